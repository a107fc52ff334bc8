"""What a command writes: names of files that can be written, colours and the width of the terminal."""

from __future__ import annotations

import argparse
import os
import shutil
import sys
from collections.abc import Mapping

from normlens.models import InputError
from normlens.views import either


def check_suffixes(options: argparse.Namespace, forms: Mapping[str, tuple[str, ...]]) -> None:
    """Refuse an unsupported format before the work, not after it."""
    for name, suffixes in forms.items():
        path = getattr(options, name)
        if path is not None and path.suffix not in suffixes:
            raise InputError(
                f"--{name} {path}: unsupported format {path.suffix or '(no suffix)'} (use {either(suffixes)}).",
                do=f"give a name that ends in {either(suffixes)}.",
            )


def colorful() -> bool:
    """Whether the terminal shows colours."""
    return sys.stdout.isatty() and "NO_COLOR" not in os.environ


def columns() -> int:
    """How wide the terminal is."""
    return shutil.get_terminal_size((100, 24)).columns
