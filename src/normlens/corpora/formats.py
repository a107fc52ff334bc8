"""From the lines of a file to items, in the format that its suffix names."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from io import BufferedIOBase
from typing import Any

from normlens.corpora import labelled, pickled, table
from normlens.corpora.files import lines
from normlens.corpora.item import CorpusError, Item, Layout

PICKLES = (".pkl", ".pickle")
JSON_LINES = (".jsonl", ".ndjson")
FORMATS = (*PICKLES, *JSON_LINES, ".json", ".conllu", *table.DELIMITERS)  # anything else is plain text


def items(stream: BufferedIOBase, name: str, kind: str, layout: Layout, note: Callable[[str], None]) -> Iterator[Item]:
    """The items of one file, in the format that its suffix names."""
    if kind in PICKLES:
        return pickled.sequences(stream, name)
    text = lines(stream, name, layout.encoding)
    if kind in table.DELIMITERS:
        return table.rows(text, name, kind, layout, note)
    if kind == ".json":
        return _json(text, name, layout)
    if kind in JSON_LINES:
        return _json_lines(text, name, layout)
    if kind == ".conllu":
        _check_no_columns(name, "CoNLL-U", layout)
        return labelled.conllu(text, name)
    return _plain(text, name, layout)


def record(value: Any, where: str, layout: Layout) -> Item:
    """An item from a text, a list of one or two texts, or a mapping that holds them."""
    label = labels = None
    if isinstance(value, Mapping):
        column = "label" if layout.label_column is None and value.get("label") is not None else layout.label_column
        label = None if column is None else str(_field(value, column, where))
        if layout.column is None and "words" in value and "text" not in value:
            value, labels = labelled.words_and_pairs(value, where)
        else:
            value = _fields(value, where, layout)
    elif layout.column is not None or layout.label_column is not None:
        raise CorpusError(
            f"{where}: there is no field '{layout.column or layout.label_column}', because this item has no fields.",
            got=f"{value!r:.60}",
            do="leave out --column (column= in Python); labels need fields, as in {'text': ..., 'label': ...}.",
        )
    texts = (value,) if isinstance(value, str) else tuple(value) if isinstance(value, (list, tuple)) else ()
    if len(texts) not in (1, 2) or not all(isinstance(text, str) for text in texts):
        raise CorpusError(
            f"{where}: neither a text nor a pair of texts.",
            got=f"{value!r:.60}",
            do='give a text, or two in a list; in JSON {"text": "..."} or {"text": ["...", "..."]}.',
        )
    for text in texts:
        try:
            text.encode()
        except UnicodeEncodeError as error:
            raise CorpusError(
                f"{where}: character {error.start} is half of a surrogate pair, which no tokenizer reads.",
                cause="a text cut in the middle of an emoji.",
                do="leave that character out.",
            ) from error
    return Item(texts, None, where, label, labels)


def _fields(value: Mapping[Any, Any], where: str, layout: Layout) -> Any:
    column = "text" if layout.column is None else layout.column
    pair = layout.pair_column
    if pair is None and layout.column is None and value.get("text_pair") is not None:
        pair = "text_pair"
    first = _field(value, column, where)
    if pair is None:
        return first
    return [first[0] if isinstance(first, list) and len(first) == 1 else first, _field(value, pair, where)]


def _field(value: Mapping[Any, Any], name: str | int, where: str) -> Any:
    if name not in value:
        raise CorpusError(
            f"{where}: there is no field '{name}'.",
            got=f"{', '.join(map(str, value)) or 'nothing'}.",
            do="name the field of the text with --column (column= in Python), that of a second text with "
            "--pair-column (pair_column=), and that of a label with --label-column (label_column=).",
        )
    return value[name]


def _json_lines(text: Iterator[str], name: str, layout: Layout) -> Iterator[Item]:
    for number, line in enumerate(text, start=1):
        if not line.strip():
            continue
        try:
            value = json.loads(line)
        except (ValueError, RecursionError) as error:
            raise CorpusError(
                f"{name}:{number}: not JSON.",
                got=f"{line[:60]!r} ({error})",
                cause="a line that was cut, or an object written over several lines.",
                do="write one JSON value per line; name plain text .txt and one long list .json.",
            ) from error
        yield record(value, f"{name}:{number}", layout)


def _json(text: Iterator[str], name: str, layout: Layout) -> Iterator[Item]:
    try:
        values = json.loads("\n".join(text))
    except (ValueError, RecursionError) as error:
        raise CorpusError(
            f"'{name}' is not JSON.",
            got=f"{error}",
            cause="the file has one JSON value per line, which is another format.",
            do="if each line is a value of its own, rename the file to .jsonl.",
        ) from error
    if not isinstance(values, list):
        raise CorpusError(
            f"'{name}' is not a list of texts.",
            got=f"a JSON {type(values).__name__}: {values!r:.60}",
            do='write a list: ["...", "..."] or [{"text": "..."}, ...].',
        )
    for index, value in enumerate(values):
        yield record(value, f"{name}[{index}]", layout)


def _check_no_columns(name: str, read_as: str, layout: Layout) -> None:
    if any(column is not None for column in (layout.column, layout.pair_column, layout.label_column)):
        raise CorpusError(
            f"'{name}' is read as {read_as}, which has no columns to choose.",
            do="leave out --column and --pair-column (column=, pair_column= in Python); or rename the file to .csv, "
            ".tsv or .jsonl if it is one.",
        )


def _plain(text: Iterator[str], name: str, layout: Layout) -> Iterator[Item]:
    _check_no_columns(name, "plain text", layout)
    if layout.split == "line":
        yield from (Item((line,), None, f"{name}:{n}") for n, line in enumerate(text, start=1) if line.strip())
        return
    held: list[str] = []
    number = 0
    for number, line in enumerate(text, start=1):
        if line.strip():
            held.append(line)
        elif held:
            yield Item(("\n".join(held),), None, f"{name}:{number - len(held)}")
            held = []
    if held:
        yield Item(("\n".join(held),), None, f"{name}:{number - len(held) + 1}")
