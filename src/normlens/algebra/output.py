"""The end of a layer in parts: residual, norms, and every feed-forward block or mixture that joins on the way."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import torch
from jaxtyping import Float
from torch import Tensor

from normlens.algebra import attention
from normlens.algebra.feedforward import FeedForward, Rule
from normlens.algebra.mixture import Mixture
from normlens.algebra.parts import Stage, blocks, own_and_others, share, vectors


def output_norms(
    stage: Stage,
    weights: Float[Tensor, "batch head tgt src"],
    values: Float[Tensor, "batch head src head_dim"],
    out_weight: Float[Tensor, "head head_dim model"],
    *,
    rule: Rule,
) -> Float[Tensor, "batch tgt src"]:
    """The norm of what each key has put into each position at the end of the layer."""
    parts = _Parts(stage, weights, values, out_weight, rule)
    return parts.over(lambda vectors: vectors.norm(dim=-1))


def output_mixing(
    stage: Stage,
    weights: Float[Tensor, "batch head tgt src"],
    values: Float[Tensor, "batch head src head_dim"],
    out_weight: Float[Tensor, "head head_dim model"],
    *,
    rule: Rule,
) -> Float[Tensor, "batch tgt"]:
    """‖Σ_{j≠i} F[i,j]‖ / (‖Σ_{j≠i} F[i,j]‖ + ‖F[i,i]‖) at the end of the layer. Needs no vector for every pair."""
    own, others = own_and_others(weights, values, out_weight)
    kept, mixed = stage.along(own) + stage.own, stage.along(others)
    for layer in stage.layers:
        kept = kept + layer.through(layer.reads.along(own) + layer.reads.own, rule)
        mixed = mixed + layer.through(layer.reads.along(others), rule)
    return share(mixed, kept)


@dataclass(frozen=True, slots=True, eq=False)
class _Parts:
    """The parts at the end of a layer, some queries at a time."""

    stage: Stage
    weights: Tensor
    values: Tensor
    out_weight: Tensor
    rule: Rule

    def over(self, measure: Callable[[Tensor], Tensor]) -> Tensor:
        """A measure of the vectors (batch, query, src, model) of all queries, block by block."""
        transformed = attention.transformed(self.values, self.out_weight)
        read = [self._read(layer, transformed) for layer in self.stage.layers]
        width = max([transformed.shape[-1], *(layer.width for layer in self.stage.layers)])
        found = []
        for some in blocks(self.weights, width):
            parts = vectors(self.stage, self.weights, transformed, some)
            for layer, known in zip(self.stage.layers, read, strict=True):
                if isinstance(layer, Mixture):
                    layer.add(parts, vectors(layer.reads, self.weights, transformed, some), some, self.rule)
                    continue
                written = self._units(layer, known, transformed, some) @ layer.out_weight
                for step in layer.steps:
                    written = step.of(some)(written)
                parts += written
            found.append(measure(parts))
        return torch.cat(found, dim=1)

    def _read(self, layer: FeedForward | Mixture, transformed: Tensor) -> list[Tensor] | None:
        """Every f(x) through all that is the same for every query, up to the units; None where that cannot be done."""
        if isinstance(layer, Mixture) or not layer.reads.folds:
            return None
        folded = layer.reads.folded(transformed.flatten(0, 1)).view_as(transformed)
        return [folded @ weight for weight, _ in layer.maps(self.rule)]

    def _units(self, layer: FeedForward, known: list[Tensor] | None, transformed: Tensor, some: slice) -> Tensor:
        """What each key puts into the units of some queries, each unit with its share."""
        weights, total = self.weights[:, :, some], None
        at = torch.arange(weights.shape[2], device=weights.device)
        for index, (weight, by) in enumerate(layer.maps(self.rule)):
            if known is None:
                read = vectors(layer.reads, self.weights, transformed, some) @ weight
            else:
                read = torch.einsum("bhts,bhsu->btsu", weights, known[index])
                read *= layer.reads.sizes(read)[:, some, None]
                if self.stage.one_side:
                    read[:, at, at + some.start] += layer.reads.own[:, some] @ weight
            read *= by[:, some, None]
            total = read if total is None else total.add_(read)
        assert total is not None
        return total
