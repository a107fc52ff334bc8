"""Types of arguments: from what is typed to a value, or a sentence that says what it must be."""

from __future__ import annotations

import argparse
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from normlens.errors import NormlensError

OUTPUTS = ("out", "report", "html", "figure", "table", "save")


class OverwrittenInput(NormlensError):
    """An output that is also an input."""


def keep_inputs(options: argparse.Namespace) -> None:
    """Refuse to write to what is read, before anything is opened."""
    given = vars(options)
    inputs = [(name, path) for name in given if name not in OUTPUTS for path in _paths(given[name])]
    for name in OUTPUTS:
        for out in _paths(given.get(name)):
            for other, path in inputs:
                if os.path.samefile(out, path):
                    raise OverwrittenInput(
                        f"--{name} is also an input, and would be overwritten.",
                        got=f"{out} as --{name} and as {other.replace('_', '-')}",
                        do=f"give --{name} another path.",
                    )


def _paths(value: Any) -> Iterator[str | Path]:
    """What stands on the disk of a value of an option."""
    for path in value if isinstance(value, (list, tuple)) else (value,):
        if isinstance(path, (str, Path)) and len(os.fsencode(path)) < 4096 and os.path.exists(path):
            yield path


def positive(text: str) -> int:
    """A whole number above 0."""
    if not text.isdecimal() or not 0 < int(text) < 10**9:
        raise argparse.ArgumentTypeError(f"must be a whole number above 0 (got {text!r})")
    return int(text)


def natural(text: str) -> int:
    """A whole number, 0 or above."""
    return 0 if text == "0" else positive(text)


def gigabytes(text: str) -> float:
    """Memory of a worker; torch alone takes half a gigabyte."""
    try:
        number = float(text)
    except ValueError:
        number = 0.0
    if not 0.5 <= number < 1e6:
        raise argparse.ArgumentTypeError(f"must be a number of gigabytes, at least 0.5 (got {text!r})")
    return number


def port(text: str) -> int:
    """A port of this computer."""
    if not text.isdecimal() or int(text) > 65535:
        raise argparse.ArgumentTypeError(f"must be a port, a number from 0 to 65535 (got {text!r})")
    return int(text)


def encoding(name: str) -> str:
    """A text encoding that Python knows."""
    try:
        "".encode(name)
    except LookupError:
        raise argparse.ArgumentTypeError(f"there is no text encoding '{name}'") from None
    return name


def languages(text: str) -> tuple[str, str]:
    """Two languages, such as de-en."""
    source, dash, target = text.partition("-")
    if not (source and dash and target):
        raise argparse.ArgumentTypeError(f"must be two languages, such as de-en (got {text!r})")
    return source, target


def layers(text: str) -> Any:
    """auto, norm, all, or numbers of layers."""
    if text in ("auto", "norm", "all"):
        return text
    try:
        return tuple(int(number) for number in text.split(","))
    except ValueError:
        raise argparse.ArgumentTypeError(f"must be auto, norm, all, or layers such as 0,1,2 (got {text!r})") from None


def names(text: str) -> tuple[str, ...]:
    """Names separated by commas."""
    return tuple(part.strip() for part in text.split(",") if part.strip())


def column(text: str) -> str | int:
    """A column by its name, or by its number."""
    return int(text) if text.isdecimal() else text
