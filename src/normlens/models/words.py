"""From subwords back to words."""

from __future__ import annotations

from collections.abc import Sequence

STARTS = ("▁", "Ġ")  # sentencepiece, byte-level: a piece that opens a word
CONTINUES = "##"  # WordPiece: a piece that goes on
ENDS = "</w>"  # GPT and XLM style: a piece that closes a word
OPEN = "@@"  # subword-nmt: a piece that is not the last of its word


def word_ids(tokens: Sequence[str], special: Sequence[bool]) -> tuple[int | None, ...]:
    """Number the words that the pieces spell, by the marks on the pieces; None for special tokens.

    >>> word_ids(["[CLS]", "un", "##likely", "tale"], [True, False, False, False])
    (None, 0, 0, 1)
    """
    marked = [token for token, is_special in zip(tokens, special, strict=True) if not is_special]
    begins = _begins_a_word(marked)
    ids: list[int | None] = []
    current, fresh = -1, True
    pieces = iter(zip(marked, begins, strict=True))
    for is_special in special:
        if is_special:
            ids.append(None)
            fresh = True
            continue
        _, begin = next(pieces)
        if begin or fresh:
            current += 1
        fresh = False
        ids.append(current)
    return tuple(ids)


def spell(pieces: Sequence[str]) -> str:
    """Write the pieces of one word as the word."""
    text = "".join(piece.removeprefix(CONTINUES).removesuffix(ENDS).removesuffix(OPEN) for piece in pieces)
    return text.lstrip("".join(STARTS)) or text


def _begins_a_word(tokens: Sequence[str]) -> list[bool]:
    if any(token.startswith(STARTS) for token in tokens):
        return [token.startswith(STARTS) for token in tokens]
    if any(token.endswith(ENDS) for token in tokens):
        return [index == 0 or tokens[index - 1].endswith(ENDS) for index in range(len(tokens))]
    if any(token.endswith(OPEN) for token in tokens):
        return [index == 0 or not tokens[index - 1].endswith(OPEN) for index in range(len(tokens))]
    return [not token.startswith(CONTINUES) for token in tokens]
