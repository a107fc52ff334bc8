"""The attention each token receives, and its share of the contributions.

For key j in one block, with means and sums over heads h and queries i,

    weight(j) = mean_hi α[h,i,j]                                        sums to 1 over j
    norm(j)   = Σ_hi ‖α[h,i,j]·f_h(x_j)‖ / Σ_hij ‖α[h,i,j]·f_h(x_j)‖    sums to 1 over j

Signed weights keep their signs in the first, whose sum is then not 1. Over layers both are averaged, so that a layer
of large vectors does not drown the others.
"""

from dataclasses import dataclass

import numpy as np
from jaxtyping import Float

from normlens.views.figure import Figure, Side
from normlens.views.maps import Panel


@dataclass(frozen=True, slots=True, eq=False)
class Received:
    """What each key of one kind of attention receives and contributes, averaged over its layers."""

    kind: str
    side: Side
    layers: int
    heads: tuple[int, ...]  # how many a layer has; more than one number where layers differ
    weight: Float[np.ndarray, " src"]  # share of α
    transformed: Float[np.ndarray, " src"] | None  # mean ‖f(x)‖; None where f(x) alone does not exist
    norm: Float[np.ndarray, " src"]  # share of ‖α·f(x)‖
    signed: bool  # whether α may be below 0, so that it has no shares


def received(figure: Figure) -> tuple[Received, ...]:
    """Shares per kind of attention and side of keys, over its layers that have α and ‖αf(x)‖, as they appear."""
    groups: dict[tuple[str, int], list[Panel]] = {}
    for panel in figure.panels:
        contribution = panel.of_role("contribution", heads=True)
        if contribution is None or contribution.signed or "weights" not in panel.measures:
            continue
        groups.setdefault((panel.kind, panel.src), []).append(panel)
    return tuple(_over_layers(kind, figure.sides[src], panels) for (kind, src), panels in groups.items())


def _over_layers(kind: str, side: Side, panels: list[Panel]) -> Received:
    return Received(
        kind=kind,
        side=side,
        layers=len(panels),
        heads=tuple(sorted({len(panel.heads) for panel in panels})),
        weight=np.mean([panel.weights.mean(axis=(0, 1)) for panel in panels], axis=0),
        transformed=np.mean([panel.transformed_norms.mean(axis=0) for panel in panels], axis=0)
        if all("transformed_norms" in panel.measures for panel in panels)
        else None,
        norm=np.mean([_norm_share(panel) for panel in panels], axis=0),
        signed=any(panel.map("weights").signed for panel in panels),
    )


def _norm_share(panel: Panel) -> Float[np.ndarray, " src"]:
    if panel.map("weighted_norms").product is None:
        contributions = panel.weighted_norms.sum(axis=(0, 1))
    else:
        contributions = np.einsum("hts,hs->s", np.abs(panel.weights), panel.transformed_norms)
    total = contributions.sum()
    return contributions / total if total > 0 else contributions
