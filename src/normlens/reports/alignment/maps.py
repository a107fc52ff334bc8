"""Figures of soft alignments: what each target word takes from each source word, beside the gold.

Room: one example to pictures. Compare Figures 8 and 13 to 17 of the 2020 paper.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from jaxtyping import Float

from normlens.alignment.extract import strongest
from normlens.alignment.gold import Gold
from normlens.alignment.links import Links
from normlens.alignment.soft import Measure, Reading
from normlens.alignment.study import Example
from normlens.reports.alignment.layout import END, LONGEST, Layout, points, shown
from normlens.reports.alignment.sheet import framed, on, place, sheet
from normlens.reports.numbers import number
from normlens.reports.pictures.canvas import Picture
from normlens.reports.pictures.grid import top_of
from normlens.views.plots.paint import NORM, PALE, WEIGHT, ramp

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

STOPS: dict[Measure, tuple[str, ...]] = {"weights": WEIGHT, "norms": NORM}
SYMBOLS = {"weights": "weights α", "norms": "norms ‖Σαf(x)‖"}
TITLE, FOOT = 0.24, 0.32  # inches
SURE = "#444444"


def soft_maps(example: Example, order: int, chosen: int) -> list[Picture]:
    """One picture per layer; that of the chosen layer comes first and bears the name of the example alone.

    None for sentences of so many words that nobody could read them.
    """
    if max(len(example.source), len(example.target)) > LONGEST:
        return []
    layers = sorted({reading.layer for reading in example.maps}, key=lambda layer: (layer != chosen, layer))
    return [_picture(example, order, layer, first=place == 0) for place, layer in enumerate(layers)]


def _picture(example: Example, order: int, layer: int, *, first: bool) -> Picture:
    found: dict[Measure, Links] = {
        measure: strongest(example.maps[Reading(measure, "input", layer)]).hard for measure in STOPS
    }
    told = " and ".join(
        f"by {measure} {len(links & example.gold.possible)} of {len(links)} links stand in the gold"
        for measure, links in found.items()
    )
    return Picture(
        name=f"figure-8-{order}" if first else f"figure-8-{order}-layer-{layer}",
        caption=f"Example {order}, layer {layer}, AWI. Rows: target words; columns: source words, {END} last. "
        "Darker: more is taken from there, each map on a scale of its own. Framed: the strongest source word of each "
        f"target word, solid where the gold has this link, dashed where not; a word that takes most from {END} has no "
        f"frame. The last panel is the gold, sure links filled, possible ones hatched. Here {told}.",
        alt=f"Soft alignments of layer {layer} by weights and by norms beside the gold: {told}.",
        draw=lambda: _draw(example, layer, found),
    )


def _draw(example: Example, layer: int, found: dict[Measure, Links]) -> Figure:
    layout = Layout.of(example)
    words, targets = len(example.source) + 1, len(example.target)
    deep = layout.cell * targets
    line = TITLE + layout.columns + deep + FOOT
    figure = sheet(layout.rows + layout.across * layout.pitch, -(-3 // layout.across) * line)
    for at, measure in enumerate((*STOPS, "gold")):
        row, column = divmod(at, layout.across)
        left, top = layout.rows + column * layout.pitch, row * line + TITLE + layout.columns
        axes = place(figure, left, top, layout.cell * words, deep)
        if measure == "gold":
            _gold(axes, example.gold, words, targets)
        else:
            soft = example.maps[Reading(measure, "input", layer)]
            _soft(axes, example, soft, STOPS[measure], found[measure], layout.cell)
            axes.set_title(SYMBOLS[measure], pad=4)
        _frame(axes, example, layout, first=column == 0)
    return figure


def _soft(
    axes: Axes,
    example: Example,
    values: Float[np.ndarray, "tgt_word src_word"],
    stops: tuple[str, ...],
    links: Links,
    cell: float,
) -> None:
    top = top_of(values)
    axes.imshow(
        values,
        cmap=ramp(stops),
        vmin=0.0,
        vmax=top,
        interpolation="none",
        aspect="auto",
        extent=(0, values.shape[1], len(values), 0),
    )
    for source, target in sorted(links):
        colour = on(float(values[target, source]), top)
        dash = "-" if (source, target) in example.gold.possible else (0, (1.6, 1.1))
        framed(axes, source, target, colour, dash, thick=min(1.3, 9 * cell))
    right = len(links & example.gold.possible)
    axes.set_xlabel(f"{right} of {len(links)} links right; darkest {number(top, 2)}", loc="left", fontsize=8)


def _gold(axes: Axes, gold: Gold, words: int, targets: int) -> None:
    from matplotlib.patches import Rectangle

    axes.set_xlim(0, words)
    axes.set_ylim(targets, 0)
    for source, target in sorted(gold.possible):
        sure = (source, target) in gold.sure
        axes.add_patch(
            Rectangle(
                (source, target),
                1,
                1,
                facecolor=SURE if sure else "#ffffff",
                edgecolor=SURE,
                hatch=None if sure else "//////",
                linewidth=0.5,
            )
        )
    axes.set_title("gold", pad=4)
    axes.set_xlabel("filled: sure; hatched: possible", loc="left", fontsize=8)


def _frame(axes: Axes, example: Example, layout: Layout, *, first: bool) -> None:
    """Words on the left and above, thin lines between cells."""
    columns, rows = shown((*example.source, END)), shown(example.target)
    axes.set_xticks([at + 0.5 for at in range(len(columns))], columns, rotation=90)
    axes.set_yticks([at + 0.5 for at in range(len(rows))], rows if first else [""] * len(rows))
    axes.xaxis.set_ticks_position("top")
    axes.tick_params(length=0, pad=2, labelsize=points(layout.cell))
    axes.vlines(range(len(columns) + 1), 0, len(rows), color=PALE, linewidth=0.3, zorder=2)
    axes.hlines(range(len(rows) + 1), 0, len(columns), color=PALE, linewidth=0.3, zorder=2)
