"""Numbers, ranges and lists as a reader wants them. What is not defined is a dash, never a NaN."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import SupportsFloat

DASH = "–"
_RAISED = str.maketrans("-0123456789", "⁻⁰¹²³⁴⁵⁶⁷⁸⁹")


def number(value: SupportsFloat | None, digits: int = 3) -> str:
    """A length, a ratio: so many significant digits, and powers of ten for what is very small.

    >>> number(12.657), number(0.37), number(4.0), number(3.2e-7), number(12345.6), number(float("nan"))
    ('12.7', '0.370', '4.00', '3.20×10⁻⁷', '12,346', '–')
    """
    value = _finite(value)
    if value is None:
        return DASH
    if value == 0:
        return "0"
    if abs(value) < 1e-3 or abs(value) >= 1e7:
        factor, power = f"{value:.{digits - 1}e}".split("e")
        return _minus(factor) + "×10" + raised(int(power))
    if abs(value) >= 10**digits:
        return _minus(f"{value:,.0f}")
    return _minus(f"{value:#.{digits}g}".rstrip("."))


def percent(value: SupportsFloat | None) -> str:
    """A share, in two digits.

    >>> percent(0.354), percent(0.0642), percent(1.0), percent(0.0002), percent(0)
    ('35 %', '6.4 %', '100 %', '<0.1 %', '0 %')
    """
    value = _finite(value)
    if value is None:
        return DASH
    if 0 < value < 0.001:
        return "<0.1 %"
    return f"{100 * value:.1f} %" if 0 < value < 0.0995 else f"{100 * value:.0f} %"


def rho(value: SupportsFloat | None) -> str:
    """Spearman's ρ, in two decimals with a true minus.

    >>> rho(-0.694), rho(0.75), rho(-0.001), rho(float("nan"))
    ('−0.69', '0.75', '0.00', '–')
    """
    value = _finite(value)
    if value is None:
        return DASH
    return _minus(f"{value:.2f}" if abs(value) >= 0.005 else "0.00")


def count(value: SupportsFloat | None) -> str:
    """How many; the thousands marked."""
    value = _finite(value)
    return DASH if value is None else f"{value:,.0f}"


def many(value: int, one: str, more: str | None = None) -> str:
    """So many of something, with its plural where it is one.

    >>> many(1, "item"), many(1200, "item"), many(2, "query", "queries")
    ('1 item', '1,200 items', '2 queries')
    """
    return f"{count(value)} {one if value == 1 else more or one + 's'}"


def listing(items: Sequence[str]) -> str:
    """Items as part of a sentence.

    >>> listing(["a"]), listing(["a", "b"]), listing(["a", "b", "c"])
    ('a', 'a and b', 'a, b and c')
    """
    return items[0] if len(items) == 1 else ", ".join(items[:-1]) + " and " + items[-1] if items else ""


def span(layers: Sequence[int]) -> str:
    """Layers by their numbers: neighbours as a range, others one by one.

    >>> span([3]), span([2, 3, 4, 5]), span([0, 2, 4]), span([0, 2, 4, 6, 8])
    ('layer 3', 'layers 2–5', 'layers 0, 2 and 4', 'layers 0–8 (those measured)')
    """
    if len(layers) == 1:
        return f"layer {layers[0]}"
    if layers[-1] - layers[0] == len(layers) - 1:
        return f"layers {layers[0]}–{layers[-1]}"
    if len(layers) <= 4:
        return f"layers {listing([str(layer) for layer in layers])}"
    return f"layers {layers[0]}–{layers[-1]} (those measured)"


def head_name(layer: int, head: int) -> str:
    """L2H4: layer 2, head 4, both counted from 0."""
    return f"L{layer}H{head}"


def raised(power: int) -> str:
    """An exponent in small raised digits."""
    return str(power).translate(_RAISED)


def plain(value: SupportsFloat) -> float | None:
    """A number without noise in its last digits (nine, all that 32-bit floats hold), or None when it is not defined."""
    number = float(value)
    return float(f"{number:.9g}") if math.isfinite(number) else None


def _finite(value: SupportsFloat | None) -> float | None:
    number = math.nan if value is None else float(value)
    return number if math.isfinite(number) else None


def _minus(text: str) -> str:
    return text.replace("-", "−")
