"""Translate with any sequence-to-sequence model, and score what it translates."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import Any

import torch

from normlens.models import quiet
from normlens.nmt.batches import Pairs
from normlens.nmt.model import loss
from normlens.nmt.subwords import PAD, check_libraries
from normlens.nmt.text import Pair

BATCH = 64
TOKENS = 6000  # of a batch whose loss is taken


@dataclass(frozen=True, slots=True)
class Validation:
    """The scores of a model on the held-back pairs."""

    update: int
    minutes: float  # of training so far, all sessions together
    train_loss: float  # label-smoothed, mean since the last validation
    valid_loss: float  # not smoothed, per target subword
    bleu: float


@dataclass(frozen=True, slots=True)
class Held:
    """The pairs that are not trained on."""

    pairs: Pairs
    lines: Sequence[Pair]  # those that are translated

    def validate(self, model: Any, tokens: Any, *, update: int, minutes: float, train_loss: float) -> Validation:
        """Loss of all pairs, BLEU of the translated ones; the model is left in training mode."""
        model.eval()
        score = bleu(
            list(translate(model, tokens, [source for source, _ in self.lines], beams=1)),
            [target for _, target in self.lines],
        )
        validation = Validation(update, minutes, train_loss, self._loss(model), score)
        model.train()
        return validation

    @torch.inference_mode()
    def _loss(self, model: Any) -> float:
        total = count = 0.0
        for chosen in self.pairs.epoch(tokens=TOKENS, seed=(0, 0)):
            source, target = self.pairs.batch(chosen)
            size = float((target != PAD).sum())
            total += size * float(loss(model, source, target, smoothing=0.0))
            count += size
        return total / count


def translate(
    model: Any,
    tokens: Any,
    lines: Iterable[str],
    *,
    beams: int = 4,
    batch: int = BATCH,
    cut: Callable[[int, int], None] = lambda line, longest: None,
) -> Iterator[str]:
    """The translation of each line, in order, as the lines come; an empty line stays empty.

    A line that is longer than the model is cut, and `cut` is told its number, from 1, and how many tokens were kept.
    """
    lines, done = iter(lines), 0
    apart, longest = _stands_apart(tokens), _longest(model, tokens)
    while part := [line.strip() for line in islice(lines, batch)]:
        full = [line for line in part if line]
        with quiet():
            texts = iter(_translated(model, tokens, full, beams, longest) if full else [])
            for number, line in enumerate(part, done + 1):
                if longest and _is_longer(tokens, line, longest):
                    cut(number, longest)
        for line in part:
            text = next(texts) if line else ""
            yield closed_up(text) if apart else text
        done += len(part)


def closed_up(text: str) -> str:
    """Take out the spaces that the subword model puts around punctuation.

    >>> closed_up("ja , das ist ' s ( so ) .")
    "ja, das ist's (so)."
    """
    text = re.sub(r" ([,.;:!?%)\]}])", r"\1", text)
    text = re.sub(r"([(\[{]) ", r"\1", text)
    return re.sub(r" (['’/-]) ", r"\1", text)


def bleu(translations: Sequence[str], references: Sequence[str]) -> float:
    """Corpus BLEU by sacreBLEU, without case, as the subwords have none."""
    check_libraries("sacrebleu")
    from sacrebleu.metrics.bleu import BLEU

    return BLEU(lowercase=True).corpus_score(list(translations), [list(references)]).score


def _translated(model: Any, tokens: Any, lines: list[str], beams: int, longest: int | None) -> list[str]:
    inputs = tokens(lines, return_tensors="pt", padding=True, truncation=longest is not None, max_length=longest)
    inputs = {name: inputs[name].to(model.device) for name in ("input_ids", "attention_mask")}
    room = 2 * inputs["input_ids"].shape[1] + 10
    room = min(room, longest - 1) if longest else room
    with torch.inference_mode():
        out = model.generate(**inputs, num_beams=beams, max_new_tokens=room, max_length=None, do_sample=False)
    return [text.strip() for text in tokens.batch_decode(out, skip_special_tokens=True)]


def _longest(model: Any, tokens: Any) -> int | None:
    """Tokens that the model has room for; None when it has no end."""
    ends = (getattr(model.config, "max_position_embeddings", None), getattr(tokens, "model_max_length", None))
    return min((end for end in ends if isinstance(end, int) and 0 < end < 1 << 30), default=None)


def _is_longer(tokens: Any, line: str, longest: int) -> bool:
    surely_not = len(line.encode()) + 8 < longest  # a token is a byte at least; the rest is for special tokens
    return not surely_not and len(tokens(line).input_ids) > longest


def _stands_apart(tokens: Any) -> bool:
    """Whether this tokenizer writes every punctuation mark as a word, as those trained here do."""
    subwords = getattr(tokens, "spm_target", None)
    return subwords is not None and "\u2581," in subwords.encode("a, b", out_type=str)
