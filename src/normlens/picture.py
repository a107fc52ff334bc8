"""The image behind a sequence of patches.

Room: plain data that models give and views draw. Knows neither.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Picture:
    """The image whose patches are tokens: the patch at (row, column) is token `first + row·columns + column`."""

    png: bytes
    rows: int
    columns: int
    first: int  # how many tokens stand before the patches
