"""What a quantity is, and the list of all of them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import TYPE_CHECKING, Literal

from normlens.errors import NormlensError

if TYPE_CHECKING:
    from torch import Tensor

Role = Literal["attention", "contribution"]
AXES = ("batch", "head", "tgt", "src", "model")
VECTORS = ("model", "head_dim")  # axes along which a vector lies
RECORD = {  # fields of the record of a block that a quantity may need, beside other quantities
    "values": ("batch", "head", "src", "head_dim"),
    "out_weight": ("head", "head_dim", "model"),
}
STAGES = (  # points of the layer that it may need
    "residual", "normed", "encoder", "joined", "added", "output", "nearest", "rerun",
)  # fmt: skip
FACTORS = ("scales", "gates")  # of the record, where something multiplies what a head writes before its output matrix
WITH_FACTORS = ("weighted_norms", "summed_norms", "head_outputs", "head_vectors")  # computed with them
WITH_RESIDUAL = (  # maps that hold the residual, where keys are the same tokens
    "residual_norms", "normed_norms", "encoder_norms", "output_norms", "joined_norms", "output_norms_both", "alti",
    "value_zeroing",
)  # fmt: skip
SHARED = ("gram", "norms", "scores", "sent")  # worked out at most once for a block, for several quantities of ours


class MeasureError(NormlensError, ValueError):
    """A measure that cannot be declared or computed."""


@dataclass(frozen=True, slots=True, eq=False)
class Quantity:
    """Something a trace can hold, declared once: blocks, tables, views, the page and the docs read it from here."""

    name: str
    symbol: str
    says: str  # one sentence: tooltip, docs
    axes: tuple[str, ...]  # of batch, head, tgt, src, model, in this order; head_dim for vectors within a head
    needs: tuple[str, ...]  # other quantities, or fields of the record, in the order in which `compute` takes them
    compute: Callable[..., Tensor]
    scope: Literal["block", "layer", "model"] = "block"
    signed: bool = False
    role: Role | None = None  # what it says about a key: the attention it receives, or its contribution
    batched: bool = False  # computed for a padded batch at once; otherwise for each sequence alone
    one_side: bool = False  # compares queries with each other, so it exists where keys are the same tokens

    @property
    def map_axes(self) -> tuple[str, ...]:
        """Its axes within one sequence."""
        return self.axes[1:]

    @property
    def is_vectors(self) -> bool:
        """Whether it is vectors, not numbers, of heads and tokens."""
        return self.axes[-1] in ("model", "head_dim")

    @property
    def drawable(self) -> bool:
        """Whether it is numbers of heads and tokens, not vectors."""
        return bool(self.map_axes) and not self.is_vectors


def _ours(name: str) -> Callable[..., Tensor]:
    """A function of normlens.measures.norms, imported with torch when it is first called."""

    def compute(*needs: Tensor) -> Tensor:
        from normlens.measures import norms

        return getattr(norms, name)(*needs)

    return compute


def _recorded() -> Tensor:
    raise AssertionError("read from the record, never computed")


_PAPER = (
    Quantity(
        "weights", "α", "Attention weight: how much attention the key receives from the query.",
        ("batch", "head", "tgt", "src"), (), _recorded, role="attention", batched=True,
    ),
    Quantity(
        "transformed_norms", "‖f(x)‖", "Norm of the transformed vector f(x) of the key, before weighting.",
        ("batch", "head", "src"), ("weights", "norms"), _ours("transformed_norms"), batched=True,
    ),
    Quantity(
        "weighted_norms", "‖αf(x)‖", "Contribution of the key to the query in one head: the norm of α·f(x).",
        ("batch", "head", "tgt", "src"), ("weights", "transformed_norms"), _ours("weighted_norms"),
        role="contribution", batched=True,
    ),
    Quantity(
        "summed_norms", "‖Σₕ αf(x)‖", 
        "Contribution of the key to the query in all heads: the norm of the sum of α·f(x) over heads.",
        ("batch", "tgt", "src"), ("weights", "gram", "values", "out_weight"), _ours("summed_norms"),
        role="contribution", batched=True,
    ),
    Quantity(
        "transformed", "f(x)", "Transformed vector of the key: (x·W_V + b_V)·W_O of its head.",
        ("batch", "head", "src", "model"), ("values", "out_weight"), _ours("transformed"), signed=True, batched=True,
    ),
    Quantity(
        "head_outputs", "Σ αf(x)", "Vector that a head adds to the output for the query: the sum of α·f(x) over keys.",
        ("batch", "head", "tgt", "model"), ("weights", "values", "out_weight"), _ours("head_outputs"),
        signed=True, batched=True,
    ),
)  # fmt: skip
_HALEVI = (
    Quantity(
        "head_vectors", "z", "Vector that a head writes for the query before the output matrix: the sum of α·v(x).",
        ("batch", "head", "tgt", "head_dim"), ("weights", "values"), _ours("head_vectors"), signed=True, batched=True,
    ),
    Quantity(
        "similarity", "zᵢ·zⱼ", "Context similarity of two tokens: the scalar product of what a head writes for them.",
        ("batch", "head", "tgt", "src"), ("head_vectors",), _ours("similarity"),
        signed=True, batched=True, one_side=True,
    ),
)  # fmt: skip
_OF_KEYS = (
    Quantity(
        "coordinates", "f(x)", "Transformed vector of the key in an orthonormal basis of the output of its head.",
        ("batch", "head", "src", "head_dim"), ("values", "out_weight"), _ours("coordinates"), signed=True, batched=True,
    ),
    Quantity(
        "value_sums", "‖v(x)‖₁", "Sum of the absolute values of the value vector of the key.",
        ("batch", "head", "src"), ("values",), _ours("value_sums"), batched=True,
    ),
    Quantity(
        "transformed_sums", "‖f(x)‖₁", "Sum of the absolute values of the transformed vector of the key.",
        ("batch", "head", "src"), ("values", "out_weight"), _ours("transformed_sums"), batched=True,
    ),
)  # fmt: skip
_OF_QUERIES = (
    Quantity(
        "scales", "scale", "Number that multiplies what the head writes for the query, before the output matrix.",
        ("batch", "head", "tgt"), (), _recorded, signed=True, batched=True,
    ),
    Quantity(
        "lost_mass", "1 − Σα", "Attention of the query that no key receives, as with a learned sink.",
        ("batch", "head", "tgt"), ("weights",), _ours("lost_mass"), signed=True, batched=True,
    ),
)  # fmt: skip
_OF_PAIRS = (
    Quantity(
        "visible", "visible", "1 where the query may attend to the key, 0 where the key is masked.",
        ("batch", "tgt", "src"), ("weights", "scores"), _ours("visible"), batched=True,
    ),
)  # fmt: skip
_MAP, _TOKEN = ("batch", "tgt", "src"), ("batch", "tgt")
_LAYER = (
    Quantity(
        "residual_norms", "‖Σₕ αf(x)+x‖",
        "Contribution of the key to the query in all heads, the residual added where the key is the query.",
        _MAP, ("sent", "summed_norms", "residual"), _ours("stage_norms"), role="contribution", batched=True,
    ),
    Quantity(
        "normed_norms", "‖N(Σₕ αf(x)+x)‖",
        "Contribution of the key to the query after the residual and the norm behind it.",
        _MAP, ("sent", "summed_norms", "normed"), _ours("stage_norms"), role="contribution", batched=True,
    ),
    Quantity(
        "encoder_norms", "‖N₂N₁(Σₕ αf(x)+x)‖",
        "Contribution of the key to the query at the end of the layer, the feed-forward block left out.",
        _MAP, ("sent", "summed_norms", "encoder"), _ours("stage_norms"), role="contribution", batched=True,
    ),
    Quantity(
        "output_norms", "‖F‖",
        "Contribution of the key at the end of the layer, feed-forward block included; gates and routers as they were.",
        _MAP, ("sent", "output"), _ours("output_norms"), role="contribution", batched=True,
    ),
    Quantity(
        "joined_norms", "‖F‖ before the norm",
        "Contribution of the key with the feed-forward block and its residual, before any norm behind it.",
        _MAP, ("sent", "joined"), _ours("output_norms"), role="contribution", batched=True,
    ),
    Quantity(
        "output_norms_both", "‖F‖ (both)",
        "The same, with a gated feed-forward block shared out half by its gate and half by its units.",
        _MAP, ("sent", "output"), _ours("output_norms_both"), role="contribution", batched=True,
    ),
    Quantity(
        "alti", "ALTI", "Share of the key in the query by ALTI: how much nearer its part brings the whole, rows to 1.",
        _MAP, ("sent", "nearest"), _ours("alti"), role="contribution", batched=True,
    ),
    Quantity(
        "value_zeroing", "value zeroing",
        "Share of the key by value zeroing: how far the layer ends elsewhere without its values, rows to 1.",
        _MAP, ("sent", "rerun"), _ours("value_zeroing"), role="contribution", batched=True,
    ),
    Quantity(
        "route_shares", "routes",
        "Share of the key through one head in the sum with the residual, by proximity; the rest is the residual's.",
        ("batch", "head", "tgt", "src"), ("sent", "residual"), _ours("route_shares"),
        role="contribution", batched=True,
    ),
    Quantity(
        "feedforward_share", "routes of FF",
        "Share of the feed-forward block in its sum with the residual, by proximity.",
        _TOKEN, ("residual", "added"), _ours("feedforward_share"), batched=True,
    ),
    Quantity(
        "effective_weights", "effective α",
        "Attention weights without what the transformed vectors of the keys cancel.",
        ("batch", "head", "tgt", "src"), ("weights", "values", "out_weight"), _ours("effective_weights"),
        signed=True, role="attention",
    ),
    Quantity(
        "mixing_attention", "mixing of attention",
        "Share of the other tokens in what attention adds to the query: ‖others‖ / (‖others‖ + ‖own‖).",
        _TOKEN, ("sent",), _ours("mixing_attention"), batched=True, one_side=True,
    ),
    Quantity(
        "mixing_residual", "mixing with residual", "Share of the other tokens once the residual is added.",
        _TOKEN, ("sent", "residual"), _ours("mixing"), batched=True, one_side=True,
    ),
    Quantity(
        "mixing_normed", "mixing after the norm", "Share of the other tokens after the residual and its norm.",
        _TOKEN, ("sent", "normed"), _ours("mixing"), batched=True, one_side=True,
    ),
    Quantity(
        "mixing_output", "mixing of the layer",
        "Share of the other tokens at the end of the layer, feed-forward block included.",
        _TOKEN, ("sent", "output"), _ours("mixing_output"), batched=True, one_side=True,
    ),
)  # fmt: skip
_VECTORS = ("batch", "tgt", "model")
_STATES = (
    Quantity(
        "layer_inputs", "x", "Vector of the token that the residual carries past the attention block.",
        _VECTORS, ("residual",), _ours("own_state"), signed=True, batched=True,
    ),
    Quantity(
        "attended_states", "x+o", "Sum of the residual and what attention adds, before any norm behind it.",
        _VECTORS, ("residual",), _ours("state"), signed=True, batched=True,
    ),
    Quantity(
        "feedforward_inputs", "x′", "Vector of the token that the residual carries past the feed-forward block.",
        _VECTORS, ("joined",), _ours("state"), signed=True, batched=True,
    ),
    Quantity(
        "feedforward_states", "x′+FF", "Sum of that residual and what the feed-forward block adds, before any norm.",
        _VECTORS, ("joined",), _ours("full_state"), signed=True, batched=True,
    ),
    Quantity(
        "layer_outputs", "y", "Vector of the token at the end of the layer.",
        _VECTORS, ("output",), _ours("full_state"), signed=True, batched=True,
    ),
)  # fmt: skip
DECLARED: dict[str, Quantity] = {
    quantity.name: quantity for quantity in (*_PAPER, *_LAYER, *_STATES, *_HALEVI, *_OF_KEYS, *_OF_QUERIES, *_OF_PAIRS)
}
QUANTITIES: Mapping[str, Quantity] = MappingProxyType(DECLARED)
DEFAULT = ("weights", "transformed_norms", "weighted_norms", "summed_norms")


def needs_transformed(name: str) -> bool:
    """Whether a quantity is made of f(x) alone, which a gate or a norm before the output matrix does not leave."""
    if name not in DECLARED or name in WITH_FACTORS:
        return name in ("out_weight", "norms")
    return any(needs_transformed(need) for need in DECLARED[name].needs)


def check_names(names: Sequence[str]) -> None:
    """Refuse a name that is no quantity."""
    wrong = [name for name in names if name not in DECLARED] if not isinstance(names, str) else [names]
    if wrong:
        raise MeasureError(
            f"no quantity {wrong[0]!r}." if not isinstance(names, str) else "fields takes several names.",
            got=repr(names),
            do=f"use a tuple of {', '.join(DECLARED)}; @nl.measure declares one of your own.",
        )


def stages_of(quantity: Quantity) -> tuple[str, ...]:
    """The points of the layer that a quantity needs, through others too."""
    return tuple(dict.fromkeys(need for one in needed((quantity.name,)) for need in one.needs if need in STAGES))


def needed(names: Iterable[str]) -> tuple[Quantity, ...]:
    """These quantities and all they need, each after what it needs."""
    ordered: dict[str, Quantity] = {}

    def add(name: str) -> None:
        if name in ordered or name not in DECLARED:
            return
        for need in DECLARED[name].needs:
            add(need)
        ordered[name] = DECLARED[name]

    for name in names:
        add(name)
    return tuple(ordered.values())
