"""The end of a layer in parts: residual, norms, and every feed-forward block or mixture that joins on the way."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import torch
from jaxtyping import Float
from torch import Tensor

from normlens.algebra.feedforward import FeedForward, Rule
from normlens.algebra.mixture import Mixture
from normlens.algebra.parts import Sent, Stage, share, vectors


def output_norms(stage: Stage, sent: Sent, *, rule: Rule) -> Float[Tensor, "batch tgt src"]:
    """The norm of what each key has put into each position at the end of the layer."""
    return _Parts(stage, sent, rule).over(lambda vectors: vectors.norm(dim=-1))


def output_mixing(stage: Stage, sent: Sent, *, rule: Rule) -> Float[Tensor, "batch tgt"]:
    """‖Σ_{j≠i} F[i,j]‖ / (‖Σ_{j≠i} F[i,j]‖ + ‖F[i,i]‖) at the end of the layer. Needs no vector for every pair."""
    own, others = sent.own_and_others()
    kept, mixed = stage.along(own) + stage.own, stage.along(others)
    for layer in stage.layers:
        kept = kept + layer.through(layer.reads.along(own) + layer.reads.own, rule)
        mixed = mixed + layer.through(layer.reads.along(others), rule)
    return share(mixed, kept)


@dataclass(frozen=True, slots=True, eq=False)
class _Way:
    """A matrix from a state to the units of a feed-forward block, with what serves every block of queries."""

    weight: Float[Tensor, "model unit"]
    by: Float[Tensor, "batch tgt unit"]  # what each unit is multiplied by
    keys: Float[Tensor, "batch src head unit"] | None  # what f(x) of each key puts into the units
    own: Float[Tensor, "batch tgt unit"] | None  # what each token puts into its own


@dataclass(frozen=True, slots=True, eq=False)
class _Parts:
    """The parts at the end of a layer, some queries at a time."""

    stage: Stage
    sent: Sent
    rule: Rule

    def over(self, measure: Callable[[Tensor], Tensor]) -> Tensor:
        """A measure of the vectors (batch, query, src, model) of all queries, block by block."""
        transformed, width = self.sent.transformed(), self.sent.out_weight.shape[-1]
        ways = [self._ways(layer, transformed) for layer in self.stage.layers]
        found = []
        for some in self.sent.blocks(max([width, *(layer.width for layer in self.stage.layers)])):
            parts = vectors(self.stage, self.sent, transformed, some)
            for layer, known in zip(self.stage.layers, ways, strict=True):
                if isinstance(layer, Mixture):
                    layer.add(parts, vectors(layer.reads, self.sent, transformed, some), some, self.rule)
                    continue
                written = layer.write(self._units(layer.reads, known, transformed, some), some)
                for step in layer.steps:
                    written = step.of(some)(written)
                parts += written
            found.append(measure(parts))
        return torch.cat(found, dim=1)

    def _ways(self, layer: FeedForward | Mixture, transformed: Tensor | None) -> list[_Way]:
        if isinstance(layer, Mixture):
            return []
        if transformed is None or not layer.reads.folds:
            return [_Way(weight, by, None, None) for weight, by in layer.maps(self.rule)]
        folded = layer.reads.folded(transformed).transpose(1, 2)
        own = layer.reads.own if layer.reads.one_side else None
        return [
            _Way(weight, by, folded @ weight, None if own is None else own @ weight)
            for weight, by in layer.maps(self.rule)
        ]

    def _units(self, reads: Stage, ways: list[_Way], transformed: Tensor | None, some: slice) -> Tensor:
        """What each key puts into the units of some queries, each unit with its share."""
        weights, total = self.sent.weights[:, :, some], None
        at = torch.arange(weights.shape[2], device=weights.device)
        for way in ways:
            if way.keys is None:
                units = vectors(reads, self.sent, transformed, some) @ way.weight
            else:
                sized = weights * reads.sizes(weights)[:, None, some]
                units = torch.matmul(sized.permute(0, 3, 2, 1), way.keys).transpose(1, 2)
                if way.own is not None:
                    units[:, at, at + some.start] += way.own[:, some]
            units *= way.by[:, some, None]
            total = units if total is None else total.add_(units)
        assert total is not None
        return total
