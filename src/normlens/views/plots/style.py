"""matplotlib's settings and files: one style, no global state left behind, the same bytes every time."""

from __future__ import annotations

import io
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Literal

from normlens.errors import NormlensError

if TYPE_CHECKING:
    from matplotlib.figure import Figure

Form = Literal["svg", "png", "pdf"]
WIDTH = 7.0  # inches: the text width of a page
DOTS = 200  # per inch: of a PNG, and of images inside SVG and PDF
MOST_DOTS = 24_000  # on the long side of a PNG; a longer one gets fewer per inch
STYLE: dict[Any, Any] = {
    "font.family": ["DejaVu Sans"],  # comes with matplotlib, so every machine draws the same letters
    "font.size": 8.5,
    "axes.titlesize": 9,
    "axes.titlelocation": "left",
    "axes.titlepad": 5,
    "axes.labelsize": 8.5,
    "xtick.labelsize": 8,
    "ytick.labelsize": 8,
    "legend.fontsize": 8,
    "legend.frameon": False,
    "figure.titlesize": 9,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.linewidth": 0.7,
    "axes.edgecolor": "#444444",
    "xtick.major.width": 0.7,
    "ytick.major.width": 0.7,
    "xtick.color": "#444444",
    "ytick.color": "#444444",
    "xtick.labelcolor": "#111111",
    "ytick.labelcolor": "#111111",
    "hatch.linewidth": 0.4,
    "lines.linewidth": 1.5,
    "text.parse_math": False,  # a token may hold a dollar
    "svg.fonttype": "path",
    "svg.image_inline": True,
    "pdf.fonttype": 42,  # publishers refuse type 3
}
UNDATED: dict[str, dict[str, Any]] = {
    "svg": dict.fromkeys(("Date", "Creator", "Format", "Type")),
    "png": {"Software": None},
    "pdf": dict.fromkeys(("CreationDate", "Creator", "Producer")),
}


class DrawingMissing(NormlensError, ImportError):
    """matplotlib is not installed."""


def check() -> None:
    """Refuse before the work when there is nothing to draw with."""
    try:
        import matplotlib as matplotlib
    except ImportError as error:
        raise DrawingMissing(
            "Drawing needs matplotlib, which is not installed.",
            do="pip install 'normlens[report]'.",
        ) from error


@contextmanager
def house_style(name: str) -> Iterator[None]:
    """Our settings on top of matplotlib's own; the reader's come back afterwards. `name` seeds the ids of an SVG."""
    check()
    import matplotlib

    with matplotlib.rc_context():
        matplotlib.rcdefaults()
        matplotlib.rcParams.update({**STYLE, "svg.hashsalt": name})
        yield


def written(figure: Figure, form: Form) -> bytes:
    """A drawing as the bytes of a file, without date and maker. To be called in `house_style`."""
    file = io.BytesIO()
    dots = min(DOTS, int(MOST_DOTS / max(figure.get_size_inches())))
    figure.savefig(file, format=form, dpi=dots, metadata=UNDATED[form])
    return file.getvalue()
