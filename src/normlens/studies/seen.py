"""What a study sees: one attention block of one batch, a whole pass, and the facts of the run.

    received[b,h,j] = Σ_i α[b,h,i,j]      over the queries i of sequence b

is enough for much where ‖αf‖ = |α|·‖f‖, since ‖f‖ does not depend on the query. Where something multiplies what a head
writes before its output matrix, ‖αf‖ is kept for every query and key instead.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, TypeVar

import numpy as np
import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from normlens.corpora import FrequencyRanks
from normlens.lens import SIDES, Block, Kind, Lens
from normlens.signature import Signature
from normlens.studies.batches import Batch, Group

T = TypeVar("T")
HIDDEN = {"self": "hidden_states", "encoder": "encoder_hidden_states", "decoder": "decoder_hidden_states"}


@dataclass(frozen=True, slots=True, eq=False)
class Facts:
    """A run: what was asked, and what was counted of the corpus so far."""

    lens: Lens | None
    model: str
    corpus: str
    signature: Signature
    categories: tuple[str, ...]  # their names; the last holds all other tokens
    ranks: FrequencyRanks | None
    seed: int
    length: int  # items are cut to this many tokens
    items: int = 0
    tokens: int = 0  # real tokens, all sides
    squares: int = 0  # Σ over sequences of n², the number of (query, key) pairs of self-attention
    error: float = 0.0  # how exactly the parts rebuilt the blocks, the worst of the run
    causal: tuple[str, ...] = ()  # kinds whose queries see only earlier keys
    uncategorised: Mapping[str, Mapping[str, int]] = field(default_factory=dict)  # by kind: special tokens in "other"
    notes: tuple[str, ...] = ()  # what was left out or cut, and why
    kept: dict[str, Any] = field(default_factory=dict)  # what `once` computed

    def once(self, name: str, compute: Callable[[], T]) -> T:
        """Something that every kind of attention needs and that is computed once a run."""
        if name not in self.kept:
            self.kept[name] = compute()
        return self.kept[name]

    @property
    def mean_length(self) -> float:
        return self.tokens / max(1, self.items)


@dataclass(frozen=True, slots=True, eq=False)
class Seen:
    """One block, one batch. Positions beyond a sequence's end have category -1 and are in no statistic."""

    run: Facts
    block: Block
    tgt: Group  # the tokens that are queries
    src: Group  # the tokens that are keys
    weights: Float[Tensor, "batch head tgt src"]
    visible: Bool[Tensor, "batch tgt src"] | None  # pairs that are real and not masked; None: all of them
    norms: Float[np.ndarray, "batch head src"]  # ‖f(x)‖; NaN where f(x) alone does not exist
    received: Float[np.ndarray, "batch head src"]
    least: Float[np.ndarray, " head"]  # smallest α of each head, over visible pairs
    most: Float[np.ndarray, " head"]
    number: int  # of the batch, for drawing at random
    kept: dict[str, Tensor] = field(default_factory=dict)  # what several studies compute once

    def __getitem__(self, quantity: str) -> Tensor:
        """A quantity that the study needs, by name."""
        return self.block[quantity]

    @property
    def kind(self) -> Kind:
        return self.block.kind

    @property
    def layer(self) -> int:
        return self.block.layer

    @property
    def categories(self) -> Int[np.ndarray, "batch src"]:
        return self.src.categories

    @property
    def queries(self) -> Int[np.ndarray, " batch"]:
        """How many queries each sequence has."""
        return self.tgt.lengths

    @property
    def real(self) -> Bool[np.ndarray, "batch src"]:
        return self.src.categories >= 0

    @property
    def real_queries(self) -> Bool[np.ndarray, "batch tgt"]:
        return self.tgt.categories >= 0

    @property
    def seen_by(self) -> Int[np.ndarray, "batch src"]:
        """By how many queries each key can be seen; 0 for padding."""
        if self.visible is None:
            return np.where(self.real, self.queries[:, None], 0)
        return self.visible.sum(dim=1).cpu().numpy()

    @property
    def pairs(self) -> Bool[Tensor, "batch tgt src"]:
        """Pairs of a query and a key that are real and not masked."""
        batch, _, tgt, src = self.weights.shape
        return self.weights.new_ones(batch, tgt, src, dtype=torch.bool) if self.visible is None else self.visible

    @property
    def sizes(self) -> Float[np.ndarray, "batch head src"]:
        """Σ_i |α|: what is received, signs left out."""
        return self.received if (self.least >= 0).all() else self.weights.abs().sum(dim=2).cpu().numpy()

    @property
    def attention(self) -> Float[Tensor, "batch head tgt src"]:
        """α as shares of its query: as it is where no weight is negative and every row adds up to 1."""
        if (self.least >= 0).all() and np.allclose(self.mass, 1, rtol=1e-4):
            return self.weights
        if "attention" not in self.kept:
            sizes = self.weights.abs()
            self.kept["attention"] = sizes / sizes.sum(dim=-1, keepdim=True).clamp_min(torch.finfo(sizes.dtype).tiny)
        return self.kept["attention"]

    @property
    def mass(self) -> Float[np.ndarray, "batch head"]:
        """Σ_j |α| of a query, mean over queries: below 1 where a learned sink takes part of the attention."""
        return self.sizes.sum(axis=-1) / self.queries[:, None]

    @property
    def is_scaled(self) -> bool:
        """Whether a gate, a scale or a norm stands before the output matrix, so that ‖αf‖ is not |α|·‖f‖."""
        return "weighted_norms" in self.block.kept

    @property
    def reaching(self) -> Float[Tensor, "batch head tgt src"]:
        """α times the scale of its query, where there is one."""
        scales = self.block.kept.get("scales")
        return self.weights if scales is None else self.weights * scales.float()[..., None]

    @property
    def weighted_norms(self) -> Float[Tensor, "batch head tgt src"]:
        """‖αf(x)‖, of every query and key."""
        if self.is_scaled:
            return self.block.weighted_norms.float()
        sizes = self.weights if (self.least >= 0).all() else self.weights.abs()
        return sizes * self.norms_of_keys[:, :, None]

    @property
    def norms_of_keys(self) -> Float[Tensor, "batch head src"]:
        """‖f(x)‖ beside the weights."""
        return torch.from_numpy(self.norms).to(self.weights)

    def received_norms(
        self, precision: type[np.floating[Any]] = np.float32, *, per_query: bool = False
    ) -> Float[np.ndarray, "batch head src"]:
        """Σ_i ‖αf(x)‖: what each key contributes to all queries, or the mean over them."""
        count = self.queries[:, None, None] if per_query else 1
        if self.is_scaled:
            return (self.weighted_norms.sum(dim=2).cpu().numpy().astype(precision) / count).astype(precision)
        return (self.sizes.astype(precision) / count).astype(precision) * self.norms

    @property
    def contributions(self) -> Float[Tensor, "batch head tgt src"]:
        """‖αf(x)‖ of every key as a share of its query: rows add up to 1, or are 0 where nothing is contributed."""
        if "contributions" not in self.kept:
            norms = self.weighted_norms
            total = norms.sum(dim=-1, keepdim=True).clamp_min(torch.finfo(norms.dtype).tiny)
            self.kept["contributions"] = norms / total if self.is_scaled else norms.div_(total)
        return self.kept["contributions"]

    @property
    def causal(self) -> bool:
        """No query sees a later key, and some see more than themselves."""
        if self.visible is None or self.visible.shape[1] != self.visible.shape[2]:
            return False
        return self.visible.shape[1] > 1 and not bool(self.visible.triu(1).any())


@dataclass(frozen=True, slots=True, eq=False)
class Pass:
    """A batch that is through the model."""

    run: Facts
    batch: Batch
    output: Any  # what the model returned
    blocks: tuple[Seen, ...]  # empty unless the study needs the whole pass

    def hidden_states(self, *, last: bool = True) -> Iterator[tuple[str, int, Tensor, Group]]:
        """The hidden states that the model returned, where they are one vector per token: kind, number, state, tokens.

        State 0 is the input of layer 0; the `last` one is the output of the last layer.
        """
        for kind, name in HIDDEN.items():
            group = self.batch.groups.get(SIDES[kind][1])
            states = getattr(self.output, name, None) or ()
            for layer, state in enumerate(states if last else states[:-1]):
                if group is not None and isinstance(state, Tensor) and state.shape[:2] == group.ids.shape:
                    yield kind, layer, state, group


def seen_block(run: Facts, block: Block, tgt: Group, src: Group, number: int) -> Seen:
    """Reduce a block to what the studies need."""
    weights = block.weights.float()
    real = [weights[b, :, :rows, :keys] for b, (rows, keys) in enumerate(zip(tgt.lengths, src.lengths, strict=True))]
    ragged = any(part.shape[1:] != weights.shape[2:] for part in real)
    least = torch.stack([part.amin(dim=(1, 2)) for part in real]).amin(dim=0)
    visible = None
    if not bool((least > 0).all()):
        visible = block["visible"] > 0
        least = weights.masked_fill(~visible[:, None], torch.inf).amin(dim=(0, 2, 3))
    elif ragged:
        rows = torch.arange(weights.shape[2]) < torch.from_numpy(tgt.lengths)[:, None]
        visible = (rows[:, :, None] & torch.from_numpy(src.categories >= 0)[:, None]).to(weights.device)
    return Seen(
        run=run,
        block=block,
        tgt=tgt,
        src=src,
        weights=weights,
        visible=visible,
        norms=_norms(block),
        received=weights.sum(dim=2).cpu().numpy(),
        least=least.cpu().numpy(),
        most=weights.amax(dim=(0, 2, 3)).cpu().numpy(),
        number=number,
    )


def _norms(block: Block) -> Float[np.ndarray, "batch head src"]:
    if block.no_transformed is None:
        return block.transformed_norms.cpu().numpy()
    batch, heads, _, src = block.weights.shape
    return np.full((batch, heads, src), np.nan, np.float32)
