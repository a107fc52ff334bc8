"""Marks of groups and labels of axes: what every figure of a report shares.

Groups take Okabe and Ito's colours, which the colour-blind can tell apart, and differ in mark and dash as well, so
that a grey print still reads.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from normlens.exhibits.numbers import raised
from normlens.views import label

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure


@dataclass(frozen=True, slots=True)
class Style:
    """How one group is drawn in every figure."""

    colour: str
    mark: str
    dash: Any


_STYLES = (
    Style("#d55e00", "o", "-"),
    Style("#0072b2", "s", "--"),
    Style("#009e73", "^", "-."),
    Style("#cc79a7", "D", (0, (5, 1, 1, 1, 1, 1))),
    Style("#e69f00", "v", (0, (3, 1))),
    Style("#56b4e9", "P", (0, (8, 2))),
    Style("#6a3d9a", "*", (0, (1, 1))),
    Style("#8c510a", "<", (0, (6, 1, 1, 1))),
    Style("#7a8b00", ">", (0, (2, 2))),
    Style("#a50f4b", "h", (0, (4, 1, 2, 1))),
    Style("#01665e", "p", (0, (10, 1))),
    Style("#9e9ac8", "d", (0, (3, 1, 1, 1, 1, 1))),
)
_OTHER = Style("#444444", "X", (0, (1, 1)))


def style_of(name: str, names: tuple[str, ...]) -> Style:
    """The style of a group by its place among all; the rest of the tokens, called "other", is grey."""
    if name == "other" and len(names) > 1:
        return _OTHER
    if len(names) < 2:
        return _STYLES[1]
    return _STYLES[(names.index(name) if name in names else len(names)) % len(_STYLES)]


def tick(value: float, _place: Any = None) -> str:
    """A number at a logarithmic axis, without mathematics mode: plain near 1, else with powers of ten.

    >>> tick(10000.0), tick(0.02), tick(0.0125), tick(1e-5), tick(2e-5), tick(1e6)
    ('10,000', '0.02', '0.0125', '10⁻⁵', '2×10⁻⁵', '10⁶')
    """
    if 1e-3 <= value < 1e6:
        return f"{value:,.0f}" if value >= 1000 else f"{value:.4g}"
    factor, power = f"{value:.3e}".split("e")
    times = f"{float(factor):g}"
    return ("" if times == "1" else f"{times}×") + "10" + raised(int(power))


def logarithmic(axes: Axes, which: str, labels: int = 7) -> None:
    """Make an axis logarithmic, with so many labels at most. What is drawn, and its limits, must be there already.

    Labels are powers of ten; where these are fewer than three, also 3, or 2 and 5, of each; else any round numbers.
    """
    from matplotlib.ticker import FuncFormatter, LogLocator, MaxNLocator, NullFormatter, NullLocator

    (axes.set_xscale if which == "x" else axes.set_yscale)("log")
    axis = axes.xaxis if which == "x" else axes.yaxis
    low, high = axis.get_view_interval()
    powers = range(math.floor(math.log10(low)), math.ceil(math.log10(high)) + 1)
    for parts in ((1.0,), (1.0, 3.0), (1.0, 2.0, 5.0)):
        if sum(low <= part * 10.0**power <= high for part in parts for power in powers) >= 3:
            axis.set_major_locator(LogLocator(base=10, subs=parts, numticks=labels))
            break
    else:
        axis.set_major_locator(MaxNLocator(nbins=5, steps=[1, 2, 5, 10]))
        axis.set_minor_locator(NullLocator())
    axis.set_major_formatter(FuncFormatter(tick))
    axis.set_minor_formatter(NullFormatter())


def legend(figure: Figure, shown: list[str], names: tuple[str, ...], *, lines: bool) -> None:
    """The groups beneath a figure, with their marks, and their lines if they have any."""
    from matplotlib.lines import Line2D

    styles = [style_of(name, names) for name in shown]
    keys = [
        Line2D([], [], color=style.colour, marker=style.mark, linestyle=style.dash if lines else "", markersize=4)
        for style in styles
    ]
    columns = min(len(shown), 4)
    figure.legend(
        keys,
        [label(name) for name in shown],
        loc="outside lower center",
        ncols=columns,
        handlelength=3.4 if lines else 1.2,
    )
