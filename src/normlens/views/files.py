"""A figure on disk: the interactive page, or a picture of what it shows; the suffix decides."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from normlens.files import writing
from normlens.views.figure import Figure, FigureError
from normlens.views.html import page

DRAWN = (".svg", ".pdf", ".png")
FORMS = (".html", *DRAWN)


def save(figure: Figure, path: Path) -> Path:
    """Write a figure in the form its suffix names."""
    if path.suffix not in FORMS:
        raise FigureError(f"unsupported format {path.suffix or repr(path.name)} (use {either((*DRAWN, '.html'))}).")
    with writing(path, FigureError):
        if path.suffix == ".html":
            path.write_text(page(figure), encoding="utf-8")
        else:
            from normlens.views.plots import draw

            draw(figure, path)
    return path


def either(options: Sequence[str]) -> str:
    """a, b or c."""
    return " or ".join(filter(None, (", ".join(options[:-1]), options[-1])))
