"""Texts with a needle: a sentence planted somewhere in each text and repeated at its end.

    [CLS] haystack … needle … haystack question needle [SEP]

Items are ready tokens, so the needle has the same tokens in both places, and the end is never cut off.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from normlens.corpora import Corpus, Item, bare
from normlens.corpora import corpus as as_corpus
from normlens.models import Subject, longest, text_side, text_tokenizer
from normlens.studies.marks import ENDS
from normlens.studies.study import StudyError


@dataclass(frozen=True, slots=True)
class Needle:
    """The tokens of the planted sentence and what is around them."""

    tokens: tuple[str, ...]
    ids: tuple[int, ...]
    question: tuple[str, ...]  # before the needle is repeated
    before: tuple[str, ...]  # special tokens that begin a text
    after: tuple[str, ...]  # and those that end it

    @property
    def frame(self) -> int:
        """How many tokens of a planted text are not haystack."""
        return 2 * len(self.tokens) + len(self.question) + len(self.before) + len(self.after)


def needle_of(subject: Subject, needle: str, question: str) -> Needle:
    """The needle in the tokens of this model, as they are after another sentence."""
    before, _, after = _pieces(subject, needle, None)
    tokens, words = (_after_a_sentence(subject, text) if text.strip() else () for text in (needle, question))
    tokenizer = text_tokenizer(subject.tokenizer)
    ids = tuple(tokenizer.convert_tokens_to_ids(list(tokens)))
    if len(ids) < 2:
        raise StudyError("The needle must have two tokens at least.", got=f"'{needle}'", do="give a sentence.")
    return Needle(tokens, ids, words, before, after)


def planted(
    corpus: Any,
    subject: Subject,
    *,
    needle: str,
    question: str = "",
    depths: Sequence[float] = (0.1, 0.5, 0.9),
    length: int = 128,
) -> Corpus:
    """The texts of a corpus with the needle in them, each at the next of `depths`, cut to `length` tokens in all.

    The needle is planted after the end of a sentence, the nearest to its depth. Texts of less haystack than twice the
    needle are left out.
    """
    if subject.is_seq2seq or subject.tokenizer is None:
        raise StudyError(
            f"No needle can be planted for '{subject.name}'.",
            cause="it has a source and a target, or no tokenizer.",
            do="choose a model of one text with its tokenizer.",
        )
    if not depths or not all(0 <= depth <= 1 for depth in depths):
        raise StudyError("depths must be between 0 and 1.", got=str(tuple(depths)))
    texts = as_corpus(corpus)
    sentence = needle_of(subject, needle, question)
    least = 2 * len(sentence.tokens)
    room = min(length, longest(subject) or length) - sentence.frame
    if room < least:
        raise StudyError(
            f"The needle, twice, and the question have {sentence.frame} tokens; with a haystack of {least} they do not "
            f"fit into {length}.",
            do="give a larger --length, which the model must be able to read, or a shorter needle.",
        )

    def start() -> Iterator[Item]:
        number = 0
        for item in texts:
            if item.tokens is not None:
                raise StudyError(f"{item.where}: a needle is planted in texts, not in ready tokens.")
            _, haystack, _ = _pieces(subject, " ".join(item.texts), length)
            haystack = haystack[:room]
            if len(haystack) < least:
                note = f"texts of fewer than {least} tokens were left out: too short for the needle"
                texts.notes.extend([] if note in texts.notes else [note])
                continue
            at = _place(haystack, depths[number % len(depths)])
            parts = (sentence.before, haystack[:at], sentence.tokens, haystack[at:])
            tokens = sum((*parts, sentence.question, sentence.tokens, sentence.after), ())
            yield Item((), tokens, item.where)
            number += 1
        if number == 0:
            raise StudyError(
                f"No text of {texts.name} is long enough for the needle.",
                got=f"a needle of {len(sentence.tokens)} tokens, so {least} tokens of text are needed at least.",
                do="give longer texts or a shorter needle.",
            )

    return Corpus(f"{texts.name} with a needle", start, texts.notes)


def _place(haystack: tuple[str, ...], depth: float) -> int:
    """After the end of a sentence, the nearest to this depth; anywhere where no sentence ends."""
    ends = [at + 1 for at, token in enumerate(haystack) if bare(token) in ENDS]
    aim = round(depth * len(haystack))
    return min([0, *ends, *([] if ends else [aim])], key=lambda at: abs(at - aim))


def _pieces(subject: Subject, text: str, length: int | None) -> tuple[tuple[str, ...], ...]:
    """The tokens of a text: special ones before it, its own, special ones after it."""
    tokenizer = text_tokenizer(subject.tokenizer)
    side = text_side("text", tokenizer, tokenizer(text, truncation=length is not None, max_length=length)["input_ids"])
    own = [at for at, special in enumerate(side.special) if not special]
    first, last = (own[0], own[-1] + 1) if own else (len(side.tokens), len(side.tokens))
    return side.tokens[:first], side.tokens[first:last], side.tokens[last:]


def _after_a_sentence(subject: Subject, text: str) -> tuple[str, ...]:
    """The tokens of a text that follows another: there its first word may begin with a mark."""
    _, lead, _ = _pieces(subject, "So.", None)
    _, whole, _ = _pieces(subject, f"So. {text}", None)
    return whole[len(lead) :] if whole[: len(lead)] == lead else _pieces(subject, text, None)[1]
