"""Colours, marks and labels: what every figure shares.

Room: how things look. Knows no study.

Categories take Okabe and Ito's colours, which the colour-blind can tell apart, and differ in mark and dash as well, so
that a grey print still reads. Amber is the weight α and blue a length, in the same steps of lightness as in the views.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING, Any

from normlens.reports.numbers import raised
from normlens.views.text import visible_line

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.colors import Colormap
    from matplotlib.figure import Figure

WEIGHT = ("#fbf9f5", "#efdab5", "#e6b879", "#d99546", "#c7731c", "#ad5604", "#8d3e0f", "#692d18", "#432019")
NORM = ("#f5fafb", "#b5e6f2", "#76cfed", "#3eb3e6", "#1894d6", "#1c75bd", "#28589b", "#2a3e72", "#232847")
PALE, INK = "#d4d4d4", "#111111"


@dataclass(frozen=True, slots=True)
class Look:
    """How one category is drawn in every figure."""

    colour: str
    mark: str
    dash: Any


_LOOKS = (
    Look("#d55e00", "o", "-"),
    Look("#0072b2", "s", "--"),
    Look("#009e73", "^", "-."),
    Look("#cc79a7", "D", (0, (5, 1, 1, 1, 1, 1))),
    Look("#e69f00", "v", (0, (3, 1))),
    Look("#56b4e9", "P", (0, (8, 2))),
)
_REST = Look("#444444", "X", (0, (1, 1)))


def looks(names: tuple[str, ...]) -> list[Look]:
    """One look per category; the last of several, which holds all other tokens, is grey."""
    if len(names) < 2:
        return [_LOOKS[1]]
    return [*(_LOOKS[index % len(_LOOKS)] for index in range(len(names) - 1)), _REST]


def ramp(stops: tuple[str, ...]) -> Colormap:
    """A scale of colours through these stops; a hole stays transparent, so that the hatching behind it shows."""
    from matplotlib.colors import LinearSegmentedColormap

    return LinearSegmentedColormap.from_list("ramp", stops).with_extremes(bad="#ffffff00")


def label(text: str, longest: int = 24) -> str:
    """A name as it can be drawn: nothing hidden, no letter the font lacks, not too long."""
    shown = "".join(char if ord(char) in _letters() else "□" for char in visible_line(text))
    return shown if len(shown) <= longest else shown[: longest - 1] + "…"


def steps(count: int, room: float, each: float) -> list[int]:
    """Which of `count` places get a label when each needs so many of the inches there are: every 1st, 2nd, 5th ..."""
    step = next(
        step for step in (1, 2, 4, 5, 10, 20, 25, 50, 100, 200, count) if count * each / step <= room or step >= count
    )
    return list(range(0, count, step))


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


def legend(figure: Figure, names: list[str], shown: list[Look], *, lines: bool) -> None:
    """The categories beneath a figure, with their marks, and their lines if they have any."""
    from matplotlib.lines import Line2D

    keys = [
        Line2D([], [], color=look.colour, marker=look.mark, linestyle=look.dash if lines else "", markersize=4)
        for look in shown
    ]
    names = [label(name) for name in names]
    columns = min(len(names), 4)
    figure.legend(keys, names, loc="outside lower center", ncols=columns, handlelength=3.4 if lines else 1.2)


@cache
def _letters() -> frozenset[int]:
    from matplotlib.font_manager import FontProperties, findfont, get_font

    return frozenset(get_font(findfont(FontProperties(family=["DejaVu Sans"]))).get_charmap())
