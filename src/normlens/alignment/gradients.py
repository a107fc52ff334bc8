"""Soft alignments from gradients: how much the chance of each target word hangs on each source word.

Room: what a gradient says of a word. No attention, no links, no gold.

With g the gradient of log p(piece written | pieces before it, source) with respect to the embedding x of a source
piece, there are two forms, both from the same g:

    li      mean over the dimensions of |g|        Li et al. (2016), https://aclanthology.org/N16-1082
    ding    max(0, g · x)                          Ding et al. (2019), https://aclanthology.org/W19-5201

g · x is the derivative with respect to a weight of 1 on the embedding. It is negative where a word speaks against what
was written. Such a word is no translation of it, and Ding et al.'s own code clamps it to 0, so it is 0 here.

SmoothGrad (Smilkov et al. 2017, https://arxiv.org/abs/1706.03825) is the mean over `samples` runs with Gaussian noise
on the embeddings of the source, of standard deviation `noise` times their range (max - min). Ding et al. ran 30 samples
of 0.15, and so do we. As in their code, x in g · x is the embedding without noise, the clamp comes before the mean, and
each run gives each row as shares that add up to 1, so that no run counts more because its gradient is larger. With
shares, p and log p give the same.

Two things differ from their code. For the row "Li" of their table it takes |g · x|, in the versions we could read; here
it is what Li et al. define. They link pieces and never let </s> win; here pieces are merged to words and </s> has the
last column, as in every other map.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import islice
from typing import Literal

import numpy as np
import torch
from jaxtyping import Bool, Float
from torch import Tensor, nn

from normlens.alignment.derivative import GradientError, Pass, forced
from normlens.alignment.soft import Pairs
from normlens.alignment.stream import Pair, check, shards
from normlens.lens import Lens
from normlens.models import Subject

Form = Literal["li", "ding"]
Saliency = dict[Form, np.ndarray]  # (target word, source word), the last column: no word
SHARD = 64  # pairs sorted by length together: few, because each takes long
BATCH_TOKENS = 1024  # pieces of the longer side in one pass, padding and noisy copies included


def each_saliency(
    lens: Lens,
    sentences: Iterable[Pair],
    *,
    samples: int = 30,
    noise: float = 0.15,
    seed: int = 0,
    batch_tokens: int = BATCH_TOKENS,
    left_out: Callable[[int, str], None] = lambda index, why: None,
) -> Iterator[Saliency | None]:
    """Both forms for each pair, a row for each word the decoder writes (AWO); None for a pair that has none.

    Without samples, or without noise, it is plain saliency. The noise of a sentence depends on `seed` and its source
    alone: not on its place, its batch or the device. `left_out` hears of pairs as it does in `each_map`.
    """
    _check(lens, samples, noise, seed)
    return _each(lens, iter(sentences), samples if noise else 0, noise, seed, batch_tokens, left_out)


def saliency(
    subject: Subject, batch: Pairs, draws: Sequence[np.random.Generator], *, samples: int, noise: float, at_once: int
) -> dict[Form, Float[Tensor, "batch tgt_word src_word"]]:
    """The word-level maps of a batch, from `at_once` noisy copies of it at a time; a sentence draws its own noise."""
    inputs, kept = batch.encoded.inputs, batch.encoded.kept
    assert kept is not None
    given, end = inputs["decoder_input_ids"], getattr(subject.config, "eos_token_id", None)
    written = nn.functional.pad(given[:, 1:], (0, 1), value=end if isinstance(end, int) else 0)
    steps = (batch.rows["output"].sum(dim=(0, 1)) > 0).nonzero().flatten().tolist()
    runs = max(samples, 1)
    li, ding = (torch.zeros(*given.shape, kept.shape[1], device=kept.device) for _ in range(2))
    for copies in (min(at_once, runs - done) for done in range(0, runs, at_once)):
        real = kept.repeat(copies, 1)

        def change(clean: Tensor, real: Tensor = real, copies: int = copies) -> Tensor:
            return shaken(clean, real, [*draws] * copies, noise) if samples else clean

        many = {name: value.repeat(copies, 1) for name, value in inputs.items()}
        run = forced(subject.model, many, written.repeat(copies, 1), change)
        for step in steps:
            for total, values in zip((li, ding), _forms(run, step), strict=True):
                total[:, step] += _shares(values, real).view(copies, len(kept), -1).sum(dim=0) / runs
    return {"li": batch.words(li, "output"), "ding": batch.words(ding, "output")}


def shaken(
    clean: Float[Tensor, "copy src dim"],
    real: Bool[Tensor, "copy src"],
    draws: Sequence[np.random.Generator],
    noise: float,
) -> Float[Tensor, "copy src dim"]:
    """Embeddings with noise on what is no padding, in proportion to their range in the sentence."""
    result = clean.clone()
    for copy, (draw, here) in enumerate(zip(draws, real, strict=True)):
        own = clean[copy, here]
        normal = torch.from_numpy(draw.standard_normal(tuple(own.shape), dtype=np.float32))
        result[copy, here] = own + noise * (own.max() - own.min()) * normal.to(own)
    return result


def _forms(run: Pass, step: int) -> tuple[Float[Tensor, "copy src"], Float[Tensor, "copy src"]]:
    slope = run.slope(step)
    slope = slope.to(torch.promote_types(slope.dtype, torch.float32))
    return slope.abs().mean(dim=-1), (slope * run.clean).sum(dim=-1).clamp_min(0)


def _shares(values: Float[Tensor, "copy src"], real: Bool[Tensor, "copy src"]) -> Float[Tensor, "copy src"]:
    values = values.masked_fill(~real, 0)
    return values / values.sum(dim=-1, keepdim=True).clamp_min(torch.finfo(values.dtype).tiny)


def _each(
    lens: Lens,
    sentences: Iterator[Pair],
    samples: int,
    noise: float,
    seed: int,
    batch_tokens: int,
    left_out: Callable[[int, str], None],
) -> Iterator[Saliency | None]:
    done, room = 0, max(1, batch_tokens // max(samples, 1))

    def leave(index: int, why: str) -> None:
        left_out(done + index, why)

    while some := list(islice(sentences, SHARD)):
        for shard in shards(lens, some, batch_tokens=room, left_out=leave):
            found: dict[int, Saliency] = {}
            for batch in shard.batches:
                spelled = [shard.spelled[index] for index in batch]
                tokens = len(batch) * max(len(side.ids) for pair in spelled for side in pair)
                draws = [np.random.default_rng([seed, *source.ids]) for source, _ in spelled]
                at_once = max(1, batch_tokens // tokens)
                options = {"samples": samples, "noise": noise, "at_once": at_once}
                maps = saliency(lens.subject, shard.pairs(lens, batch), draws, **options)
                for row, (index, (source, target)) in enumerate(zip(batch, spelled, strict=True)):
                    columns = [*range(source.count), -1]
                    found[index] = {f: m[row, : target.count][:, columns].cpu().numpy() for f, m in maps.items()}
            yield from (found.get(index) for index in range(len(shard)))
        done += len(some)


def _check(lens: Lens, samples: int, noise: float, seed: int) -> None:
    check(lens)
    if lens.subject.model.training:
        raise GradientError(
            f"'{lens.subject.name}' is in training mode, so dropout would make every gradient random.",
            do="model.eval(), then try again.",
        )
    if samples < 0 or not 0 <= noise < float("inf") or seed < 0:
        raise GradientError(
            f"samples={samples}, noise={noise} and seed={seed} must be finite and not negative.",
            do="samples=30, noise=0.15 for SmoothGrad; samples=0 for plain saliency.",
        )
