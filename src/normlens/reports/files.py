"""A report on disk: the page, its figures and its tables.

Room: writing. Everything is drawn before anything is written; each file is written under another name and then put in
its place, so that a full disk leaves whole files or none, and the page comes last.
"""

from __future__ import annotations

import csv
import io
import json
import os
from contextlib import suppress
from pathlib import Path

from normlens.errors import NormlensError
from normlens.reports.headline import headline
from normlens.reports.page import page
from normlens.reports.parts import pictures_of, results, tables
from normlens.reports.pictures import Drawn, drawn
from normlens.reports.rows.row import Row
from normlens.studies import STUDIES
from normlens.studies.results import Findings


class ReportError(NormlensError, OSError):
    """A report that cannot be written."""


def write(findings: Findings, folder: Path) -> Path:
    """Write report.html, findings.json, figures/ and tables/ into the folder; the path of the page."""
    figures = drawn_figures(findings)
    contents: dict[str, bytes] = {}
    for name, figure in figures.items():
        contents[f"figures/{name}.svg"] = figure.svg.encode("utf-8")
        contents[f"figures/{name}.png"] = figure.png
    for name, rows in tables(findings).items():
        if rows:
            contents[f"tables/{name}.csv"] = as_csv(rows)
            contents[f"tables/{name}.json"] = as_json(rows)
    contents["findings.json"] = as_json(headline(findings))
    contents["report.html"] = page(findings, figures).encode("utf-8", "backslashreplace")
    for name, content in contents.items():
        put(folder / name, content)
    return folder / "report.html"


def drawn_figures(findings: Findings) -> dict[str, Drawn]:
    """Every figure of the report by its name."""
    return {
        picture.name: drawn(picture)
        for study in STUDIES
        for result in results(findings, study).values()
        for picture in pictures_of(result)
    }


def put(path: Path, content: bytes) -> None:
    """Write beside its place, then take the place at once."""
    unfinished = path.with_name(f".{path.name}.{os.getpid()}.part")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        unfinished.write_bytes(content)
        os.replace(unfinished, path)
    except OSError as error:
        raise ReportError(
            f"The report cannot be written: '{path}': {error.strerror or error}.",
            cause="the folder is not yours to write in, a file has its name, or the disk is full.",
            do=("choose another folder, or make room, and write again. Every file that is there is whole, old or new."),
        ) from error
    finally:
        with suppress(OSError):
            unfinished.unlink(missing_ok=True)


def as_csv(rows: list[Row]) -> bytes:
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
