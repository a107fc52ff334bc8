"""Texts whose words are known, with labelled relations between them: CoNLL-U, or words and pairs in JSON."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from normlens.corpora.item import CorpusError, Item, Labels

EXPECTED = 'write {"words": ["the", "cat"], "pairs": [["det", 1, 0]]}: relation, head word, dependent, counted from 0.'


def conllu(text: Iterator[str], name: str) -> Iterator[Item]:
    """One item per sentence: the text as written, its words, and head word and dependent of every relation."""
    held: list[str] = []
    number = 0
    for number, line in enumerate(text, start=1):
        if line.strip():
            held.append(line)
        elif held:
            yield from _sentence(held, name, number - len(held))
            held = []
    if held:
        yield from _sentence(held, name, number - len(held) + 1)


def words_and_pairs(value: Mapping[Any, Any], where: str) -> tuple[str, Labels]:
    """The words joined by spaces, and where each is; pairs are [relation, head word, dependent]."""
    words, pairs = value["words"], value.get("pairs", [])
    if not _is_list(words) or not words or not all(isinstance(word, str) and word.strip() for word in words):
        raise CorpusError(f"{where}: 'words' is not a list of words.", got=f"{words!r:.60}", do=EXPECTED)
    for pair in pairs if _is_list(pairs) else [pairs]:
        is_pair = _is_list(pair) and len(pair) == 3 and isinstance(pair[0], str) and bool(pair[0].strip())
        if not is_pair or not all(type(word) is int and 0 <= word < len(words) for word in pair[1:]):
            raise CorpusError(
                f"{where}: this is not a labelled pair of the {len(words)} words.", got=f"{pair!r:.60}", do=EXPECTED
            )
    return _joined([(word, [word], True) for word in words], [(str(r), i, j) for r, i, j in pairs])


def _is_list(value: Any) -> bool:
    return isinstance(value, Sequence) and not isinstance(value, str | bytes)


def _joined(tokens: list[tuple[str, list[str], bool]], pairs: list[tuple[str, int, int]]) -> tuple[str, Labels]:
    """Tokens as written, each with its words and whether a space follows. Words that the token does not spell one
    after the other (French du is de + le) all have the place of the token."""
    text, spans = "", []
    for form, words, space in tokens:
        start, apart = len(text), "".join(words) == form
        for word in words:
            end = start + len(word) if apart else len(text) + len(form)
            spans.append((start, end))
            start = end if apart else start
        text += form + " " * space
    return text.rstrip(" "), Labels(tuple(spans), tuple(pairs))


def _sentence(lines: list[str], name: str, first: int) -> Iterator[Item]:
    rows: list[list[str]] = []
    wide: dict[int, tuple[int, list[str]]] = {}  # tokens of several words: by their first, the last word and the row
    for number, line in enumerate(lines, start=first):
        if line.startswith("#"):
            continue
        row, where = line.split("\t"), f"{name}:{number}"
        if len(row) != 10:
            raise CorpusError(
                f"{where}: a line of CoNLL-U has 10 columns with tabs between them (got {len(row)}).",
                got=f"{line[:60]!r}",
                cause="spaces in place of tabs, or another format.",
                do="give CoNLL-U as Universal Dependencies has it, with an empty line between sentences.",
            )
        begin, dash, end = row[0].partition("-")
        if dash and begin.isdecimal() and end.isdecimal():
            wide[int(begin)] = int(end), row
        elif row[0].isdecimal():
            rows.append([*row, where])
            if int(row[0]) != len(rows):
                raise CorpusError(f"{where}: the word is number {row[0]}, expected {len(rows)}.", do="count from 1.")
        elif not row[0].replace(".", "", 1).isdecimal():  # 8.1 is an empty node, which no text has
            raise CorpusError(f"{where}: '{row[0][:20]}' is not the number of a word.", do="give 3, 3-4 or 3.1.")
    if rows:
        text, labels = _joined(_tokens(rows, wide, f"{name}:{first}"), [*_pairs(rows)])
        yield Item((text,), None, f"{name}:{first}", labels=labels)


def _tokens(
    rows: list[list[str]], wide: Mapping[int, tuple[int, list[str]]], where: str
) -> list[tuple[str, list[str], bool]]:
    tokens, word = [], 1
    while word <= len(rows):
        last, row = wide.get(word, (word, rows[word - 1]))
        if not word <= last <= len(rows):
            raise CorpusError(f"{where}: the token {word}-{last} has words that are not there.")
        space = "SpaceAfter=No" not in row[9].split("|")
        tokens.append((row[1], [rows[w - 1][1] for w in range(word, last + 1)], space))
        word = last + 1
    return tokens


def _pairs(rows: list[list[str]]) -> Iterator[tuple[str, int, int]]:
    for place, row in enumerate(rows):
        head, relation, where = row[6], row[7], row[10]
        if head in ("_", "0"):
            continue
        if not head.isdecimal() or int(head) > len(rows) or int(head) == place + 1:
            raise CorpusError(
                f"{where}: '{head[:20]}' is not the number of another word of this sentence of {len(rows)} words.",
                cause="a sentence that was cut, or columns in another order.",
                do="give the number of the head word in column 7, 0 for the root, _ where it is not known.",
            )
        yield relation, int(head) - 1, place
