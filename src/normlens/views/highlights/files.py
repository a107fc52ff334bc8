"""Highlighted text on disk: the page, or a drawing; the suffix decides."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from normlens.files import write_whole, writing
from normlens.views.files import DRAWN, either
from normlens.views.highlights.data import Highlights
from normlens.views.highlights.page import highlights_page
from normlens.views.maps import FigureError


def save_highlights(texts: Sequence[Highlights], path: Path) -> Path:
    """Write highlighted texts in the form their suffix names."""
    if path.suffix not in (".html", *DRAWN):
        raise FigureError(f"unsupported format {path.suffix or repr(path.name)} (use {either((*DRAWN, '.html'))}).")
    if path.suffix == ".html":
        content: str | bytes = highlights_page(texts)
    else:
        from normlens.views.highlights.drawn import drawn

        content = drawn(texts, path.suffix[1:])  # pyright: ignore[reportArgumentType]
    with writing(path, FigureError):
        write_whole(path, content)
    return path
