"""One row of a table.

Room: plain values. Numbers keep nine digits, all that 32-bit floats hold.
"""

from __future__ import annotations

import math
from typing import SupportsFloat

Cell = str | int | float | None
Row = dict[str, Cell]


def plain(value: SupportsFloat) -> float | None:
    """A number without noise in its last digits, or None when it is not defined."""
    number = float(value)
    return float(f"{number:.9g}") if math.isfinite(number) else None
