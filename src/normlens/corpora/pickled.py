"""Ready token sequences from a pickle, read without running anything in it.

Clark et al. (2019) publish `unlabeled_attn.pkl`, written by Python 2: a list of
dictionaries whose "tokens" are wordpieces with [CLS] and [SEP], and whose "attns" are attention maps, four gigabytes of
numpy arrays. A pickle is a program, and can name any function to be called; here no name is ever looked up: what makes
an array is replaced by something that does nothing, every other name is refused, and only lists, dictionaries, strings
and numbers can come out.
"""

from __future__ import annotations

import pickle
from collections.abc import Iterator
from io import BufferedIOBase
from typing import Any, NoReturn

from normlens.corpora.item import CorpusError, Item
from normlens.errors import first_line

LONG = 1 << 16  # no token has as many bytes: the inside of an array, which is read past and not kept
ARRAYS = {  # what numpy writes for an array, old and new; bytes of Python 3 in an old protocol are "encoded"
    *((f"numpy.{core}.multiarray", "_reconstruct") for core in ("core", "_core")),
    *((f"numpy.{core}.numeric", "_frombuffer") for core in ("core", "_core")),
    ("numpy", "ndarray"),
    ("numpy", "dtype"),
    ("_codecs", "encode"),
}
EXPECTED = 'a list of dictionaries with "tokens": [{"tokens": ["[CLS]", "a", "[SEP]"]}, ...]'


def sequences(stream: BufferedIOBase, name: str) -> Iterator[Item]:
    """One item of tokens per sequence."""
    values = _plain_data(stream, name)
    if not isinstance(values, list):
        raise CorpusError(
            f"'{name}' is not a list of sequences.",
            got=f"a {type(values).__name__}.",
            do=f"give {EXPECTED}.",
        )
    for index, value in enumerate(values):
        tokens = value.get("tokens") if isinstance(value, dict) else None
        if not isinstance(tokens, (list, tuple)) or not all(isinstance(token, str) for token in tokens):
            got = f"keys {', '.join(map(repr, value))}" if isinstance(value, dict) else f"{value!r:.60}"
            raise CorpusError(
                f"{name}[{index}]: there is no list of tokens.",
                got=f"{got:.80}",
                do=f"give {EXPECTED}.",
            )
        yield Item((), tuple(tokens), f"{name}[{index}]")


def _plain_data(stream: BufferedIOBase, name: str) -> Any:
    try:
        return _Data(stream, name).load()
    except CorpusError:
        raise
    except Exception as error:  # a damaged pickle raises whatever its bytes lead to
        raise CorpusError(
            f"'{name}' is not a pickle, or it is damaged.",
            got=first_line(error),
            cause="a download that was cut short.",
            do=f"fetch it again; it should be {EXPECTED}.",
        ) from error


class _Data(pickle._Unpickler):
    """The one in Python, which can let go of long strings; the one in C keeps whatever it has read."""

    def __init__(self, stream: BufferedIOBase, name: str) -> None:
        super().__init__(stream, encoding="latin1")
        self.name = name

    def find_class(self, module: str, name: str) -> type[_Array]:
        if (module, name) in ARRAYS:
            return _Array
        raise CorpusError(
            f"'{self.name}' asks for '{module}.{name}', and nothing that a pickle names is run.",
            cause="the pickle holds objects (tensors, models) rather than lists of strings.",
            do=f"write {EXPECTED}; or write the texts as .jsonl.",
        )

    def persistent_load(self, pid: Any) -> NoReturn:
        raise CorpusError(
            f"'{self.name}' refers to something outside itself.",
            got=f"{pid!r:.60}",
            do=f"write {EXPECTED}.",
        )

    def _decode_string(self, value: bytes) -> str:
        return "" if len(value) > LONG else value.decode("latin1")


class _Array:
    """In the place of an array, or of a part of one. Takes anything and keeps nothing."""

    def __init__(self, *_: object) -> None: ...

    def __setstate__(self, *_: object) -> None: ...
