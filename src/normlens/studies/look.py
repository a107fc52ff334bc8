"""What the studies see of one attention block in one batch.

Room: studies. Everything here is per token; the weights themselves are there only for those who need pairs.

    received[b,h,j] = Σ_i α[b,h,i,j]      over the queries i of sequence b

is enough for categories and frequency, since ‖αf‖ = |α|·‖f‖ and ‖f‖ does not depend on the query.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from normlens.lens import Block
from normlens.lens.wiring import Kind


@dataclass(frozen=True, slots=True, eq=False)
class Look:
    """One block, one batch. Positions beyond a sequence's end have category -1 and are in no statistic."""

    kind: Kind
    layer: int
    weights: Float[Tensor, "batch head tgt src"]
    visible: Bool[Tensor, "batch tgt src"] | None  # pairs that are real and not masked; None: all of them
    categories: Int[np.ndarray, "batch src"]
    queries: Int[np.ndarray, " batch"]  # how many queries each sequence has
    norms: Float[np.ndarray, "batch head src"]  # ‖f(x)‖
    received: Float[np.ndarray, "batch head src"]
    least: Float[np.ndarray, " head"]  # smallest α of each head, over visible pairs
    most: Float[np.ndarray, " head"]
    number: int  # of the batch, for drawing at random

    @property
    def real(self) -> Bool[np.ndarray, "batch src"]:
        return self.categories >= 0

    @property
    def seen_by(self) -> Int[np.ndarray, "batch src"]:
        """By how many queries each key can be seen; 0 for padding."""
        if self.visible is None:
            return np.where(self.real, self.queries[:, None], 0)
        return self.visible.sum(dim=1).cpu().numpy()

    @property
    def sizes(self) -> Float[np.ndarray, "batch head src"]:
        """Σ_i |α|: what is received, signs left out."""
        return self.received if (self.least >= 0).all() else self.weights.abs().sum(dim=2).cpu().numpy()

    @property
    def causal(self) -> bool:
        """No query sees a later key, and some see more than themselves."""
        if self.visible is None or self.visible.shape[1] != self.visible.shape[2]:
            return False
        return self.visible.shape[1] > 1 and not bool(self.visible.triu(1).any())


def look(
    block: Block, categories: Int[np.ndarray, "batch src"], queries: Int[np.ndarray, " batch"], number: int
) -> Look:
    """Reduce a block to what the studies need."""
    weights = block.weights.float()
    keys = (categories >= 0).sum(axis=1)
    real = [weights[b, :, :tgt, :src] for b, (tgt, src) in enumerate(zip(queries, keys, strict=True))]
    ragged = any(part.shape[1:] != weights.shape[2:] for part in real)
    least = torch.stack([part.amin(dim=(1, 2)) for part in real]).amin(dim=0)
    visible = None
    if not bool((least > 0).all()):
        visible = (weights != 0).any(dim=1)  # a pair to which no head gives any weight is masked, or padding
        least = weights.masked_fill(~visible[:, None], torch.inf).amin(dim=(0, 2, 3))
    elif ragged:
        rows = torch.arange(weights.shape[2]) < torch.from_numpy(queries)[:, None]
        visible = (rows[:, :, None] & torch.from_numpy(categories >= 0)[:, None]).to(weights.device)
    return Look(
        kind=block.kind,
        layer=block.layer,
        weights=weights,
        visible=visible,
        categories=categories,
        queries=queries,
        norms=block.transformed_norms.cpu().numpy(),
        received=weights.sum(dim=2).cpu().numpy(),
        least=least.cpu().numpy(),
        most=weights.amax(dim=(0, 2, 3)).cpu().numpy(),
        number=number,
    )
