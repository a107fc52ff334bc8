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
from normlens.views.glyphs import visible
from normlens.views.look import Look
from normlens.views.maps import Panel


@dataclass(frozen=True, slots=True, eq=False)
class Received:
    """What each key of one kind of attention receives and contributes, averaged over its layers."""

    kind: str
    side: Side
    over: str  # what the numbers are means over: "6 layers x 12 heads and all queries"
    weight: Float[np.ndarray, " src"]  # share of α
    transformed: Float[np.ndarray, " src"] | None  # mean ‖f(x)‖; None where f(x) alone does not exist
    norm: Float[np.ndarray, " src"]  # share of ‖α·f(x)‖
    signed: bool  # whether α may be below 0, so that it has no shares


def received(figure: Figure, look: Look | None = None) -> tuple[Received, ...]:
    """Shares per kind of attention and side of keys, as they appear: over all layers, heads and queries that have α and
    ‖αf(x)‖, or over those that a look chooses."""
    look = look or Look()
    groups: dict[tuple[str, int], list[Panel]] = {}
    for panel in figure.panels:
        contribution = panel.of_role("contribution", heads=True)
        if contribution is None or contribution.signed or "weights" not in panel.measures:
            continue
        if _is_chosen(figure, panel, look):
            groups.setdefault((panel.kind, panel.src), []).append(panel)
    return tuple(_over_layers(kind, figure, panels, look) for (kind, _), panels in groups.items())


def _is_chosen(figure: Figure, panel: Panel, look: Look) -> bool:
    if look.layers and panel.layer not in look.layers:
        return False
    return look.pin is None or panel.tgt == figure.panels[figure.groups[str(look.resolved(figure).kind)][0]].tgt


def _over_layers(kind: str, figure: Figure, panels: list[Panel], look: Look) -> Received:
    weights = [_part(panel, panel.weights, look) for panel in panels]
    lengths = [part for panel in panels if (part := _lengths(panel, look)) is not None]
    return Received(
        kind=kind,
        side=figure.sides[panels[0].src],
        over=_over(figure, panels, look),
        weight=np.mean([part.mean(axis=(0, 1)) for part in weights], axis=0),
        transformed=None if len(lengths) < len(panels) else np.mean([part.mean(axis=0) for part in lengths], axis=0),
        norm=np.mean([_norm_share(panel, look) for panel in panels], axis=0),
        signed=any(panel.map("weights").signed for panel in panels),
    )


def _over(figure: Figure, panels: list[Panel], look: Look) -> str:
    several = f"{len(panels)} layers" if len(panels) > 1 else panels[0].name
    sizes = sorted({len(panel.heads) for panel in panels})
    every = f"{' or '.join(map(str, sizes))} head{'s' * (sizes != [1])}"
    heads = f"head {', '.join(map(str, look.heads))}" if look.heads else every
    if look.pin is None:
        return f"{several} x {heads} and all queries"
    return f"{several} x {heads}, query {visible(figure.sides[panels[0].tgt].tokens[look.pin[1]])}"


def _part(panel: Panel, values: Float[np.ndarray, "head tgt src"], look: Look) -> Float[np.ndarray, "some query src"]:
    rows = slice(None) if look.pin is None else slice(look.pin[1], look.pin[1] + 1)
    return values[_heads(panel, look), rows]


def _heads(panel: Panel, look: Look) -> list[int]:
    return [place for place, head in enumerate(panel.heads) if not look.heads or head in look.heads]


def _lengths(panel: Panel, look: Look) -> Float[np.ndarray, "some src"] | None:
    return panel.transformed_norms[_heads(panel, look)] if "transformed_norms" in panel.measures else None


def _norm_share(panel: Panel, look: Look) -> Float[np.ndarray, " src"]:
    if panel.map("weighted_norms").product is None:
        contributions = _part(panel, panel.weighted_norms, look).sum(axis=(0, 1))
    else:
        weights, lengths = np.abs(_part(panel, panel.weights, look)), panel.transformed_norms[_heads(panel, look)]
        contributions = np.einsum("hts,hs->s", weights, lengths)
    total = contributions.sum()
    return contributions / total if total > 0 else contributions
