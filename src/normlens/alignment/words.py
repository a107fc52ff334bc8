"""What the words of a sentence are, and sentences beside their translations."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import zip_longest
from typing import Any

from normlens.models import InputError

Splitter = Callable[[str], list[str]]
Sentence = str | Sequence[str]  # a text, or its words
Pair = tuple[Sequence[str], Sequence[str]]  # the words of a source and of a target sentence
MARKS = re.compile(r"\w+(?:[.,]\d+)*|[^\w\s]", re.UNICODE)


def splitter(name: Splitter | str) -> Splitter:
    """A function from text to words: your own, or one of

    whitespace       words are what stands between spaces: text that is tokenised already
    punctuation      marks stand alone: "Ja, das!" is Ja , das !
    moses:LANGUAGE   the Moses tokenizer of the sacremoses package, e.g. moses:de
    """
    if not isinstance(name, str):
        return name
    if name == "whitespace":
        return str.split
    if name == "punctuation":
        return MARKS.findall
    kind, _, language = name.partition(":")
    if kind == "moses":
        return _moses(language or "en")
    raise InputError(
        f"There is no word splitter '{name}'.",
        do=(
            "choose whitespace, punctuation or moses:LANGUAGE, or from Python give a function from a text to its words."
        ),
    )


def paired(sources: Iterable[Sentence], targets: Iterable[Sentence], words: Splitter | str) -> Iterator[Pair]:
    """Sentence beside sentence, split into words; refused when one side ends before the other."""
    split = splitter(words)
    absent: Any = object()
    for number, (source, target) in enumerate(zip_longest(sources, targets, fillvalue=absent)):
        if source is absent or target is absent:
            raise InputError(
                f"The {'sources' if source is absent else 'targets'} end after {number}, the other side does not.",
                cause="a line break inside a sentence, or a file cut short.",
                do="give one target for each source, line by line.",
            )
        yield _words(source, split), _words(target, split)


def _words(sentence: Sentence, split: Splitter) -> Sequence[str]:
    if isinstance(sentence, str):
        return split(sentence)
    wrong = next((word for word in sentence if not isinstance(word, str) or not word or word.split() != [word]), None)
    if wrong is not None:
        raise InputError(
            f"This is not a word: {wrong!r:.60}.",
            do="give words without spaces in them, or a text.",
        )
    return list(sentence)


def _moses(language: str) -> Splitter:
    try:
        from sacremoses import MosesTokenizer
    except ImportError as error:
        raise InputError(
            "The Moses tokenizer needs the sacremoses package, which is not installed.",
            do="pip install sacremoses, or split words by 'punctuation'.",
        ) from error
    tokenizer: Any = MosesTokenizer(lang=language)
    return lambda text: tokenizer.tokenize(text, escape=False)
