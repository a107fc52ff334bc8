"""From parallel text to what a training takes its batches from.

Room: which pairs are trained on and which are held back; subwords; ids.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Any

from normlens.nmt.build import tokenizer
from normlens.nmt.encode import encoded
from normlens.nmt.pairs import Pairs
from normlens.nmt.plan import Plan
from normlens.nmt.start import take_subwords
from normlens.nmt.subwords import train_subwords, write_vocabulary
from normlens.nmt.text import Pair, TextError, survey, with_text
from normlens.nmt.validate import Held

SUBWORD_LINES = 300_000
HELD_BACK = (1000, 0.05)  # pairs, or this share of them, whichever is less


@dataclass(frozen=True, slots=True)
class Text:
    """Parallel text, read once to know it, with the pairs that are held back."""

    pairs: Iterable[Pair]
    kept: int  # pairs to train on, the first ones
    left_out: int  # with an empty side
    digest: str
    name: str
    held: list[Pair]
    held_digest: str
    held_name: str

    def training(self) -> Iterator[Pair]:
        """The pairs to train on."""
        return islice(with_text(self.pairs), self.kept)


@dataclass(frozen=True, slots=True)
class Data:
    """The same in subwords."""

    tokens: Any
    pairs: Pairs
    held: Held


def read(pairs: Iterable[Pair], valid: Iterable[Pair] | None) -> Text:
    """Read the text once and decide what is held back: `valid`, or the last pairs."""
    name = _name(pairs)
    found = survey(pairs, name)
    if valid is not None:
        named = _name(valid)
        other = survey(valid, named)
        return Text(pairs, found.pairs, found.left_out, found.digest, name, list(with_text(valid)), other.digest, named)
    count = max(1, min(HELD_BACK[0], int(found.pairs * HELD_BACK[1])))
    kept = found.pairs - count
    if not kept:
        raise TextError(
            "One pair is not enough: the last ones are held back for validation.\n"
            "  Do: give more pairs, or others to validate on."
        )
    held, named = list(islice(with_text(pairs), kept, None)), f"its last {count} pairs, held back"
    return Text(pairs, kept, found.left_out, found.digest, name, held, named, named)


def prepare(text: Text, folder: Path, plan: Plan, start: Path | None) -> Data:
    """Subwords, learned now unless the folder or the model to start from has them, and the ids of every pair."""
    if start is not None:
        take_subwords(start, folder)
    for at, (side, vocabulary) in enumerate((("source", "vocab.json"), ("target", "target_vocab.json"))):
        if not (folder / vocabulary).exists():
            lines = (pair[at] for pair in islice(text.training(), SUBWORD_LINES))
            write_vocabulary(train_subwords(lines, folder / side, size=plan.recipe.vocabulary), folder / vocabulary)
    tokens = tokenizer(folder, source=plan.languages[0], target=plan.languages[1])
    pairs = encoded(tokens, text.training(), longest=plan.recipe.longest)
    held = encoded(tokens, text.held)
    if not len(pairs) or not len(held):
        raise TextError(
            f"No pair is left to {'validate' if len(pairs) else 'train'} on: each is longer than "
            f"{'the model' if len(pairs) else f'{plan.recipe.longest} words'}.\n"
            "  Usual cause: whole paragraphs or documents on a line.\n"
            "  Do: give one sentence a line, or allow more words."
        )
    return Data(tokens, pairs, Held(held, text.held[: plan.valid_limit]))


def _name(pairs: Iterable[Pair]) -> str:
    describe: Any = getattr(pairs, "describe", None)
    return describe() if describe else "pairs given in Python"
