"""Errors, differences and layers as parts of a sentence.

Room: grammar and two thresholds.
"""

from __future__ import annotations

from collections.abc import Sequence

from normlens.alignment.method import Method
from normlens.alignment.soft import ROWS, Reading
from normlens.reports.alignment.scores import tested
from normlens.reports.numbers import listing

CHANCE = 0.05  # a difference with a larger p is called one that chance could make
SAME = 0.0005  # errors nearer than this are called the same
GOLD = "†"  # marks an aligner whose layer or head was chosen with the gold
WAYS = {"forward": "source → target", "backward": "target → source"}


def aer(value: float) -> str:
    """An error as a reader wants it.

    >>> aer(0.2498)
    '25.0 %'
    """
    return f"{100 * value:.1f} %"


def points(one: Method, other: Method) -> str:
    """How far two errors lie apart."""
    return f"{100 * abs(one.aer - other.aer):.1f} points"


def alike(one: Method, other: Method) -> bool:
    return abs(one.aer - other.aer) < SAME


def verdict(one: Method, other: Method) -> str:
    """What the paired test says of two aligners."""
    test = tested(one, other)
    if test is None:
        return "of which no test can be made"
    p = "p < 0.001" if test.p < 0.001 else f"p = {test.p:.3f}"
    said = "more than chance would give" if test.p < CHANCE else "which chance alone could give"
    return f"{said} (paired test, {p})"


def better(first: str, one: Method, second: str, other: Method) -> str:
    """Which of two does better, by how much, and whether that is chance."""
    if alike(one, other):
        return f"{first} and {second} do equally well"
    return f"{first if one.aer < other.aer else second} do better by {points(one, other)}, {verdict(one, other)}"


def placed(reading: Reading) -> str:
    """layer 2, AWI."""
    return f"layer {reading.layer}, {ROWS[reading.position]}"


def names(methods: Sequence[Method]) -> str:
    """Aligners by their names, which may hold commas."""
    return listing([f"“{one.name}”" for one in methods])
