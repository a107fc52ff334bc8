"""Figures of errors: of every layer, and of every head beside its mean norm.

Room: scores to pictures. Compare Figure 7 of the 2020 paper.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from jaxtyping import Float

from normlens.alignment.soft import ROWS, Position
from normlens.alignment.study import Direction
from normlens.alignment.table import Compared
from normlens.reports.alignment.scores import MEASURES, directions, head_errors, rank_correlation
from normlens.reports.alignment.sheet import ERROR, READABLE, cells, framed, named, on, place, scale, sheet, write
from normlens.reports.alignment.telling import WAYS, aer
from normlens.reports.numbers import correlation, number
from normlens.reports.pictures.canvas import Picture
from normlens.reports.pictures.grid import top_of
from normlens.views.plots.paint import NORM
from normlens.views.plots.style import WIDTH

if TYPE_CHECKING:
    from matplotlib.figure import Figure

LABEL, GAP, HIGH = 0.75, 0.3, 0.3  # inches: of "weights", between panels, of a row
LEFT, TOP, BAR = 0.5, 0.32, 0.62  # inches: of the names of layers, of a title, of a scale with its numbers


def figure_7(compared: Compared) -> Picture:
    """Error by layer, weights above norms, AWI beside AWO; one line of panels per direction."""
    said = [
        f"{WAYS[name]}, {rows}: {measure} from {aer(min(errors))} to {aer(max(errors))}"
        for name, found in directions(compared).items()
        for position, rows in ROWS.items()
        for measure in MEASURES
        if (errors := [found.aer(measure, position, layer) for layer in found.layers])
    ]
    return Picture(
        name="figure-7",
        caption="Alignment error rate in percent of every layer, by attention weights and by norms. AWI: a row of the "
        "cross-attention is read as the word that the decoder was given; AWO: as the word that it writes next. "
        "Darker is worse, on one scale from 0 to 100; framed: the best layer of its row.",
        alt=f"Maps of the error of each layer. {'. '.join(said)}.",
        draw=lambda: _layers(compared),
    )


def heads(compared: Compared) -> list[Picture]:
    """Error of every head beside its mean norm, one picture per direction."""
    return [_heads_picture(name, found) for name, found in directions(compared).items()]


def _layers(compared: Compared) -> Figure:
    found = directions(compared)
    count = max(len(one.layers) for one in found.values())
    beside = (WIDTH - LABEL - 2 * GAP) / (2 * count) >= READABLE
    size = min(0.42, (WIDTH - LABEL - GAP - beside * GAP) / (count + beside * count)), HIGH
    pitch, deep = max(size[0] * count + GAP, 2.0), TOP + 2 * HIGH + 0.36
    figure = sheet(LABEL + pitch * (1 + beside), deep * len(found) * (2 - beside))
    for line, (name, one) in enumerate(found.items()):
        for column, (position, rows) in enumerate(ROWS.items()):
            left, above = (column * pitch, line * deep) if beside else (0.0, (2 * line + column) * deep)
            axes = place(figure, LABEL + left, above + TOP, size[0] * len(one.layers), 2 * HIGH)
            errors = _errors(one, position)
            cells(axes, errors, ERROR, 100.0, size=size, written=lambda value: f"{value:.1f}")
            for row, best in enumerate(errors.argmin(axis=1)):
                framed(axes, int(best), row, on(float(errors[row, best]), 100.0))
            named(axes, one.layers, MEASURES if left == 0 else ("", ""), size)
            axes.set_title(f"{WAYS[name]}, {rows}" if len(found) > 1 else rows)
            axes.set_xlabel("layer", labelpad=1)
    return figure


def _errors(found: Direction, position: Position) -> Float[np.ndarray, "measure layer"]:
    return np.array([[100 * found.aer(measure, position, layer) for layer in found.layers] for measure in MEASURES])


def _heads_picture(name: str, found: Direction) -> Picture:
    rhos = {rows: rank_correlation(found, position) for position, rows in ROWS.items()}
    told = "; ".join(f"ρ = {correlation(rho)} under {rows}" for rows, rho in rhos.items())
    low, high = (number(float(edge)) for edge in (found.norms.min(), found.norms.max()))
    least = "; ".join(f"{rows} {aer(float(head_errors(found, place).min()))}" for place, rows in ROWS.items())
    return Picture(
        name="heads" if name == "forward" else f"heads-{name}",
        caption=f"Each cell is a head of {found.name} ({WAYS[name]}). Error of the links that the head alone gives, "
        "read by its norms, under AWI and AWO; and the mean of its norms ‖αf(x)‖ over all words. Spearman’s ρ between "
        f"the error of a head and its mean norm: {told}; below 0, heads that move more align better.",
        alt=f"Three maps, layer by head: error under AWI and AWO, at best {least}, and mean norm from {low} to {high}; "
        f"rank correlations {told}.",
        draw=lambda: _heads(found),
    )


def _heads(found: Direction) -> Figure:
    rows, count = found.norms.shape
    wide = min(0.4, (WIDTH - LEFT - 3 * BAR) / (3 * count))
    size = wide, min(0.3, max(wide, 0.09), 6.0 / rows)
    panel, deep = size[0] * count, size[1] * rows
    pitch = max(panel + BAR, 2.0)
    figure = sheet(LEFT + 2 * pitch + max(panel + BAR, 1.6), TOP + deep + 0.62)
    maps = [(f"AER in %, {rows}", 100 * head_errors(found, position)) for position, rows in ROWS.items()]
    for column, (title, values) in enumerate([*maps, ("mean norm ‖αf(x)‖", found.norms)]):
        left, error = LEFT + column * pitch, column < len(maps)
        axes = place(figure, left, TOP, panel, deep)
        mesh = cells(
            axes,
            values,
            ERROR if error else NORM,
            100.0 if error else top_of(values),
            size=size,
            written=(lambda value: f"{value:.1f}") if error else (lambda value: f"{value:#.2g}".rstrip(".")),
        )
        axes.set_title(title, pad=7)
        axes.set_xlabel("head", labelpad=1)
        axes.set_ylabel("layer" if column == 0 else "", labelpad=2)
        named(axes, range(count), found.layers, size)
        scale(figure, mesh, left + panel + 0.07, TOP, deep)
    for column, position in enumerate(ROWS):
        rho = f"with mean norm: ρ = {correlation(rank_correlation(found, position))}"
        write(figure, LEFT + column * pitch, TOP + deep + 0.42, rho)
    return figure
