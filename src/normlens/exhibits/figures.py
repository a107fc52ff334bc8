"""Figures as plain data: what is drawn, its caption, and the same in words for those who cannot see it.

Every figure has a `name` (of its files), a `caption` and an `alt`; `folded` is the summary of the fold it stands in.
Groups of points and lines are told apart by colour, mark and dash, which follow from their place in `names`.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Literal

import numpy as np
from jaxtyping import Bool, Float

Tone = Literal["weight", "norm", "grey", "error", "signed"]
Axis = Literal["plain", "log"]


@dataclass(frozen=True, slots=True, eq=False)
class Series:
    """One line. In a figure with a ramp, `place` says where on it."""

    name: str
    y: Float[np.ndarray, " point"]
    x: Float[np.ndarray, " point"] | None = None  # by default 0, 1, 2 ...
    place: float = 0.0


@dataclass(frozen=True, slots=True, eq=False)
class LinePanel:
    title: str
    series: tuple[Series, ...]
    y: str = ""
    top: float | None = None


@dataclass(frozen=True, slots=True, eq=False)
class Lines:
    """Lines over layers, or over anything, in panels side by side."""

    name: str
    caption: str
    alt: str
    panels: tuple[LinePanel, ...]
    x: str = "layer"
    ticks: tuple[str, ...] = ()  # names of the places 0, 1, 2 ... of x; none: x is a number
    names: tuple[str, ...] = ()  # every group there is, so that a group looks the same in every figure
    ramp: str = ""  # what `Series.place` is: lines take their colours from a scale of it
    folded: str = ""


@dataclass(frozen=True, slots=True)
class Frame:
    """A frame around one cell."""

    row: int
    column: int
    dashed: bool = False


@dataclass(frozen=True, slots=True, eq=False)
class Grid:
    """One map with a scale from 0 to `top`, or from -`top` where it is signed; a hole (NaN) is hatched."""

    title: str
    values: Float[np.ndarray, "row column"]
    tone: Tone
    top: float
    numbers: str = ""  # how the value of each cell is written into it, such as ".1f"; none: it is not
    frames: tuple[Frame, ...] = ()
    foot: str = ""  # a line below
    columns: tuple[str, ...] = ()  # by default those of the figure


@dataclass(frozen=True, slots=True, eq=False)
class Grids:
    """Maps of the same rows and columns, side by side: layer by head, head by head, word by word."""

    name: str
    caption: str
    alt: str
    grids: tuple[Grid, ...]
    rows: tuple[str, ...]
    columns: tuple[str, ...] = ()  # by default 0, 1, 2 ...
    row_axis: str = "layer"
    column_axis: str = "head"
    words: bool = False  # rows and columns are words: all are written, those of columns upright above the maps
    scale: bool = True  # each map has a scale; without scales the rows are named at the first map of a line only
    across: int = 3  # maps in a line, at most
    folded: str = ""


@dataclass(frozen=True, slots=True, eq=False)
class StripPanel:
    title: str
    values: Float[np.ndarray, "place dot"]  # one dot per value, NaN for none
    line: float | None = None  # a dashed line across, with its label
    label: str = ""


@dataclass(frozen=True, slots=True, eq=False)
class Strip:
    """A row of dots over each place, a bar at its median: every head of every layer."""

    name: str
    caption: str
    alt: str
    panels: tuple[StripPanel, ...]
    ticks: tuple[str, ...]
    x: str = "layer"
    y: str = ""
    limits: tuple[float, float] | None = None
    names: tuple[str, ...] = ()
    folded: str = ""


@dataclass(frozen=True, slots=True, eq=False)
class Cloud:
    """Points of one group; the pale ones stand behind."""

    name: str
    x: Float[np.ndarray, " point"]
    y: Float[np.ndarray, " point"]
    pale: bool = False


@dataclass(frozen=True, slots=True, eq=False)
class ScatterPanel:
    title: str
    clouds: tuple[Cloud, ...]
    line: tuple[Float[np.ndarray, " step"], Float[np.ndarray, " step"]] | None = None
    y: str = ""
    y_scale: Axis = "plain"


@dataclass(frozen=True, slots=True, eq=False)
class Scatter:
    """Points. `shared` panels have the same axes, one group each; the others stand side by side over a legend."""

    name: str
    caption: str
    alt: str
    panels: tuple[ScatterPanel, ...]
    x: str
    x_scale: Axis = "plain"
    x_limits: tuple[float, float] | None = None
    names: tuple[str, ...] = ()
    shared: bool = False
    labels: tuple[str, ...] = ()  # of the points of the first cloud, where they are few enough to be named
    folded: str = ""


@dataclass(frozen=True, slots=True)
class Bar:
    name: str
    value: float | int
    low: float | None = None  # ends of an interval
    high: float | None = None
    group: str = ""


@dataclass(frozen=True, slots=True)
class Bars:
    """Bars from 0, below each other, with their numbers and intervals."""

    name: str
    caption: str
    alt: str
    bars: tuple[Bar, ...]
    x: str
    names: tuple[str, ...] = ()
    folded: str = ""


@dataclass(frozen=True, slots=True)
class Node:
    name: str
    x: float
    y: float
    label: str = ""


@dataclass(frozen=True, slots=True)
class Edge:
    tail: str
    head: str
    weight: float
    label: str = ""


@dataclass(frozen=True, slots=True)
class Level:
    """A height with a name, such as the end of a layer."""

    y: float
    name: str


@dataclass(frozen=True, slots=True)
class Graph:
    """Nodes with places of their own, and edges as wide as they weigh."""

    name: str
    caption: str
    alt: str
    nodes: tuple[Node, ...]
    edges: tuple[Edge, ...]
    x: str = ""
    y: str = ""
    levels: tuple[Level, ...] = ()  # heights to name; by default those of all nodes, where y has a name
    folded: str = ""


@dataclass(frozen=True, slots=True, eq=False)
class Thumbnails:
    """A small map of every head, layers down and heads across, on one scale from 0 to 1; a hole (NaN) is blank.

    Small numbers are told apart by the scale of the colours, which follow the square root.
    """

    name: str
    caption: str
    alt: str
    maps: Float[np.ndarray, "layer head row column"]
    tone: Tone
    rows: tuple[str, ...]  # names of the layers
    groups: tuple[tuple[str, ...], ...] = ()  # by layer and head: the colour of the frame; "" for none
    names: tuple[str, ...] = ()  # every group there is
    folded: str = ""


Figure = Lines | Grids | Strip | Scatter | Bars | Graph | Thumbnails


def top_of(values: Float[np.ndarray, "*cell"]) -> float:
    """The largest number there is, as the end of a scale; 1 when there is none."""
    there = values[np.isfinite(values)]
    return float(there.max()) if there.size and there.max() > 0 else 1.0


def hatched(values: Float[np.ndarray, "row column"], what: str = "there is no such head") -> str:
    """What to say of the holes in a map."""
    there: Bool[np.ndarray, "row column"] = np.isfinite(values)
    return "" if there.all() else f" Hatched: {what}."


def slug(name: str) -> str:
    """A name as part of a file's name: its plain letters and digits."""
    return re.sub(r"[^a-z0-9]+", "-", name.lower()).strip("-")[:24]
