"""The two libraries that only training needs.

Room: asking for them in time, and saying what to install.
"""

from __future__ import annotations

from importlib import import_module

from normlens.errors import NormlensError

LIBRARIES = {"sentencepiece": "subwords", "sacrebleu": "BLEU scores"}


class LibraryMissing(NormlensError, ImportError):
    """A library for translation models is not installed."""


def check(*names: str) -> None:
    """Refuse before the work when a library is missing; without names, both are asked for."""
    for name in names or LIBRARIES:
        try:
            import_module(name)
        except ImportError as error:
            raise LibraryMissing(
                f"Translation models need {name} for their {LIBRARIES[name]}, and it is not installed.\n"
                "  Do: pip install 'normlens[nmt]'."
            ) from error
