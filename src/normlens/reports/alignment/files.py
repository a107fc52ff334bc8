"""The report of a comparison on disk: the page, its figures and its tables.

Room: writing. Everything is drawn before anything is written, and the page comes last.
"""

from __future__ import annotations

from pathlib import Path

from normlens.alignment.table import Compared
from normlens.reports.alignment.layers import figure_7, heads
from normlens.reports.alignment.maps import soft_maps
from normlens.reports.alignment.page import page
from normlens.reports.alignment.rows import tables
from normlens.reports.alignment.scores import SAMPLES, scored
from normlens.reports.files import as_csv, as_json, put
from normlens.reports.pictures import Drawn, Picture, drawn


def write_alignment(compared: Compared, folder: Path | str, *, text: str = "", samples: int = SAMPLES) -> Path:
    """Write report.html, figures/ and tables/ into the folder; the path of the page.

    `text` says what the sentence pairs are; `samples` are the resamples behind each interval.
    """
    scores = scored(compared, samples)
    rows = tables(compared, scores)
    figures = {picture.name: drawn(picture) for picture in pictures(compared)}
    contents = {name: content for figure in figures.values() for name, content in _figure_files(figure)}
    for name, table in rows.items():
        contents[f"tables/{name}.csv"], contents[f"tables/{name}.json"] = as_csv(table), as_json(table)
    contents["report.html"] = page(compared, scores, figures, text=text, samples=samples).encode(
        "utf-8", "backslashreplace"
    )
    for name, content in contents.items():
        put(Path(folder) / name, content)
    return Path(folder) / "report.html"


def pictures(compared: Compared) -> list[Picture]:
    """Every figure, in reading order."""
    examples = [
        picture
        for number, example in enumerate(compared.examples, start=1)
        for picture in soft_maps(example, number, compared.shown)
    ]
    return [figure_7(compared), *heads(compared), *examples]


def _figure_files(figure: Drawn) -> list[tuple[str, bytes]]:
    stem = f"figures/{figure.picture.name}"
    return [(f"{stem}.svg", figure.svg.encode("utf-8")), (f"{stem}.png", figure.png)]
