"""Soft alignments from gradients: how much the probability of each target word depends on each source word.

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

import threading
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import Any, Literal

import numpy as np
import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor, nn

from normlens.alignment.maps import Pairs, check, shards
from normlens.alignment.words import Pair
from normlens.errors import NormlensError
from normlens.lens import Lens
from normlens.models import Subject

Form = Literal["li", "ding"]
Saliency = dict[Form, np.ndarray]  # (target word, source word), the last column: no word
SHARD = 64  # pairs sorted by length together: few, because each takes long
BATCH_TOKENS = 1024  # pieces of the longer side in one pass, padding and noisy copies included


class GradientError(NormlensError):
    """A model, or a setting, from which no gradient with respect to the source can be had."""


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
            by_pair: dict[int, Saliency] = {}
            for batch in shard.batches:
                spelled = [shard.spelled[index] for index in batch]
                tokens = len(batch) * max(len(side.ids) for pair in spelled for side in pair)
                draws = [np.random.default_rng([seed, *source.ids]) for source, _ in spelled]
                at_once = max(1, batch_tokens // tokens)
                options = {"samples": samples, "noise": noise, "at_once": at_once}
                maps = saliency(lens.subject, shard.pairs(lens, batch), draws, **options)
                for row, (index, (source, target)) in enumerate(zip(batch, spelled, strict=True)):
                    columns = [*range(source.count), -1]
                    by_pair[index] = {f: m[row, : target.count][:, columns].cpu().numpy() for f, m in maps.items()}
            yield from (by_pair.get(index) for index in range(len(shard)))
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


@dataclass(frozen=True, slots=True, eq=False)
class Pass:
    """A forced pass from which the gradient of each written piece can be taken.

    The output layer reads each position for itself. So one short step back yields the gradients of all log p with
    respect to what it reads, and the long step back, once for each piece, never meets the vocabulary.
    """

    clean: Float[Tensor, "copy src dim"]  # embeddings of the source as the model has them
    changed: Float[Tensor, "copy src dim"]  # as it was given them
    last: Float[Tensor, "copy tgt *dim"]  # what the output layer reads; log p itself where that is not to be seen
    onward: Float[Tensor, "copy tgt *dim"]  # the gradient of log p of what is written there, with respect to `last`

    def slope(self, step: int) -> Float[Tensor, "copy src dim"]:
        """The gradient of log p of what position `step` writes, with respect to the embeddings."""
        with torch.inference_mode(False), torch.enable_grad():
            return torch.autograd.grad(self.last[:, step], self.changed, self.onward[:, step], retain_graph=True)[0]


def forced(
    model: Any, inputs: Mapping[str, Tensor], written: Int[Tensor, "copy tgt"], change: Callable[[Tensor], Tensor]
) -> Pass:
    """Run the model on a source whose embeddings went through `change`, forced to write `written`.

    Nothing stays on the model: the hooks are gone after an exception too, and no parameter gets a gradient.
    """
    with torch.inference_mode(False), torch.enable_grad():
        inputs = {name: value.clone() for name, value in inputs.items()}  # made in inference mode, they break autograd
        clean, changed, last, logits = _run(model, inputs, tuple(written.shape), change)
        logits = logits.to(torch.promote_types(logits.dtype, torch.float32))
        chances = logits.log_softmax(dim=-1).gather(-1, written.clone()[..., None]).squeeze(-1)
        if last is None:
            return Pass(clean, changed, chances, torch.ones_like(chances))
        return Pass(clean, changed, last, torch.autograd.grad(chances.sum(), last)[0])


def _run(
    model: Any, inputs: Mapping[str, Tensor], shape: tuple[int, ...], change: Callable[[Tensor], Tensor]
) -> tuple[Tensor, Tensor, Tensor | None, Tensor]:
    me, seen = threading.get_ident(), dict[str, Tensor]()

    def embed(module: nn.Module, args: Any, output: Tensor) -> Tensor | None:
        if threading.get_ident() != me or "clean" in seen:
            return None
        seen["clean"] = output.detach()
        seen["changed"] = change(seen["clean"]).detach().clone().requires_grad_()
        return seen["changed"]

    def read(module: nn.Module, args: tuple[Any, ...]) -> None:
        if threading.get_ident() == me and args and args[0].ndim == 3 and args[0].shape[:2] == shape:
            seen["last"] = args[0]

    encoder, head = model.get_encoder(), model.get_output_embeddings()
    with _table(model, encoder).register_forward_hook(embed):
        encoded = encoder(input_ids=inputs["input_ids"], attention_mask=inputs["attention_mask"], return_dict=True)
    if "clean" not in seen:
        raise _no_embeddings(model)
    with (nn.Identity() if head is None else head).register_forward_pre_hook(read):
        output = model(encoder_outputs=encoded, **inputs, use_cache=False, return_dict=True)
    if getattr(output, "logits", None) is None:
        raise GradientError(
            f"{type(model).__name__} has no output layer, so nothing is written whose chance could be asked for.",
            cause="the bare model, loaded without its head.",
            do="load it with AutoModelForSeq2SeqLM, or align with weights or norms.",
        )
    return seen["clean"], seen["changed"], seen.get("last"), output.logits


def _table(model: Any, encoder: Any) -> nn.Module:
    """The module that turns the ids of the source into embeddings."""
    for holder in (encoder, model):
        try:
            table = holder.get_input_embeddings()
        except (AttributeError, NotImplementedError):
            continue
        if isinstance(table, nn.Module):
            return table
    raise _no_embeddings(model)


def _no_embeddings(model: Any) -> GradientError:
    return GradientError(
        f"{type(model).__name__} does not read its source through a table of token embeddings.",
        cause="a model whose source is no text, such as speech or images.",
        do="align with weights or norms instead.",
    )
