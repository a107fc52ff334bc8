"""A figure as SVG, PNG or PDF, drawn with matplotlib, for a paper.

The numbers come from `shown`, `cells` and `bars`; one file per view draws them.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, cast

from normlens.views.figure import Figure
from normlens.views.plots.bars import bars
from normlens.views.plots.grid import grid
from normlens.views.plots.heat import heat
from normlens.views.plots.lines import lines
from normlens.views.plots.picture import picture
from normlens.views.plots.style import DrawingMissing as DrawingMissing
from normlens.views.plots.style import Form, house_style, written

if TYPE_CHECKING:
    from matplotlib.figure import Figure as Drawing

VIEWS = {"heat": heat, "lines": lines, "grid": grid, "bars": bars, "picture": picture}


def draw(figure: Figure, path: Path) -> None:
    """Write what the figure shows; the suffix, .svg, .png or .pdf, decides the form."""
    with house_style(figure.look.view):
        path.write_bytes(written(drawing(figure), cast(Form, path.suffix.removeprefix("."))))


def drawing(figure: Figure) -> Drawing:
    """The same as matplotlib's figure. To be called in `house_style`."""
    figure = figure.resolved()
    return VIEWS[figure.look.view](figure)
