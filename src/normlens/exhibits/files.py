"""A document on disk: the page, its figures and its tables.

Everything is drawn before anything is written; each file is whole or not there at all, also when the disk is full, and
the page comes last.
"""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Mapping, Sequence
from pathlib import Path

from normlens.errors import NormlensError
from normlens.exhibits.document import Document
from normlens.exhibits.html import page
from normlens.exhibits.plots import Drawing, draw
from normlens.exhibits.table import Row
from normlens.files import write_whole


class ReportError(NormlensError, OSError):
    """A report that cannot be written."""


def write(document: Document, folder: Path, *, beside: Mapping[str, bytes] | None = None) -> Path:
    """Write report.html, figures/, tables/ and what belongs beside them into the folder; the path of the page."""
    drawings = drawn(document)
    contents: dict[str, bytes] = {}
    for name, drawing in drawings.items():
        contents[f"figures/{name}.svg"] = drawing.svg.encode("utf-8")
        contents[f"figures/{name}.png"] = drawing.png
    for name, table in document.tables().items():
        contents[f"tables/{name}.csv"] = as_csv(table.rows)
        contents[f"tables/{name}.json"] = as_json(list(table.rows))
    contents |= beside or {}
    contents["report.html"] = page(document, drawings).encode("utf-8", "backslashreplace")
    for name, content in contents.items():
        write_file(folder / name, content)
    return folder / "report.html"


def drawn(document: Document) -> dict[str, Drawing]:
    """Every figure of the document by the name of its files."""
    return {name: draw(figure, name) for name, figure in document.figures().items()}


def write_file(path: Path, content: bytes) -> None:
    """Write a file of a report, whole or not at all."""
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        write_whole(path, content)
    except OSError as error:
        raise ReportError(
            f"The report cannot be written: '{path}': {error.strerror or error}.",
            cause="the folder is not yours to write in, a file has its name, or the disk is full.",
            do="choose another folder, or make room, and write again. Every file that is there is whole, old or new.",
        ) from error


def as_csv(rows: Sequence[Row]) -> bytes:
    """One line per row; what is not defined is an empty cell."""
    text = io.StringIO(newline="")
    table = csv.DictWriter(text, fieldnames=list(rows[0]), lineterminator="\n")
    table.writeheader()
    table.writerows(rows)
    return text.getvalue().encode("utf-8", "backslashreplace")


def as_json(content: object) -> bytes:
    """Rows one to a line, everything else laid out; what is not defined is null."""
    if isinstance(content, list):
        lines = ",\n".join(json.dumps(row, ensure_ascii=False, allow_nan=False) for row in content)
        text = f"[\n{lines}\n]\n"
    else:
        text = json.dumps(content, ensure_ascii=False, allow_nan=False, indent=1) + "\n"
    return text.encode("utf-8", "backslashreplace")
