"""transformers without its notes, warnings and bars."""

from __future__ import annotations

import logging
import warnings
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def quiet() -> Iterator[None]:
    """Silence bars, notes and recommendations of transformers; errors are heard."""
    from transformers.utils import logging as notes

    level, bars = notes.get_verbosity(), notes.is_progress_bar_enabled()
    notes.set_verbosity(logging.ERROR)
    notes.disable_progress_bar()
    try:
        with warnings.catch_warnings():
            warnings.filterwarnings("ignore", message="Recommended: pip install sacremoses")
            warnings.filterwarnings("ignore", module="transformers")
            yield
    finally:
        notes.set_verbosity(level)
        if bars:
            notes.enable_progress_bar()
