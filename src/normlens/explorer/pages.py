"""What is served as it lies in the package: the page, its scripts and styles, read once at the start.

Room: a fixed table from name to bytes. No name from a browser is ever joined to a path.
"""

from __future__ import annotations

from dataclasses import dataclass
from importlib.resources import files
from pathlib import Path

from normlens.explorer.refusal import ServerError

TYPES = {"js": "text/javascript; charset=utf-8", "css": "text/css; charset=utf-8"}
PAGE = "app.html"
REPORT_POLICY = (
    "default-src 'none'; style-src 'unsafe-inline'; script-src 'unsafe-inline'; img-src data:; frame-ancestors 'none'; "
    "sandbox allow-scripts"
)


@dataclass(frozen=True, slots=True)
class Asset:
    """One file of the front end."""

    content: bytes
    kind: str


def assets() -> dict[str, Asset]:
    """Scripts and styles of the views and of the explorer, by name."""
    found = {}
    for package in ("normlens.views", "normlens.explorer"):
        for path in (files(package) / "assets").iterdir():
            kind = TYPES.get(path.name.rpartition(".")[2])
            if kind is not None:
                found[path.name] = Asset(path.read_bytes(), kind)
    return found


def page() -> bytes:
    """The explorer's one page."""
    return (files("normlens.explorer") / "assets" / PAGE).read_bytes()


def report(folder: Path | None) -> bytes | None:
    """The report.html of a folder that `normlens report` wrote."""
    if folder is None:
        return None
    try:
        return (folder / "report.html").read_bytes()
    except OSError as error:
        raise ServerError(
            f"'{folder}' holds no report.html that can be read ({error.strerror}).",
            do="give the folder that `normlens report --out DIR` wrote.",
        ) from error
