"""Small panels of the same axes."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from normlens.views import WIDTH, label

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

ACROSS = 4  # panels in a row


def panels(count: int) -> tuple[Figure, list[Axes]]:
    """So many panels, four to a row."""
    from matplotlib.figure import Figure

    columns = min(count, ACROSS)
    rows = math.ceil(count / ACROSS)
    width = min(WIDTH, 0.6 + 2.4 * columns)
    figure = Figure(figsize=(width, 0.25 + 2.1 * rows), layout="constrained")
    grid = figure.subplots(rows, columns, sharex=True, sharey=True, squeeze=False)
    for spare in grid.flat[count:]:
        spare.set_visible(False)
    return figure, list(grid.flat[:count])


def name_axes(places: list[Axes], across: str, up: str) -> None:
    """Words and numbers on the left, and beneath every panel that has none below it."""
    for index, axes in enumerate(places):
        first, last = index % ACROSS == 0, index + ACROSS >= len(places)
        axes.tick_params(labelleft=first, labelbottom=last)
        axes.set_ylabel(label(up, 90) if first else "")
        axes.set_xlabel(label(across, 90) if last else "")
