"""Nodes and edges; an edge is as wide and as dark as it weighs beside the heaviest."""

from __future__ import annotations

from typing import TYPE_CHECKING

from normlens.exhibits.figures import Graph
from normlens.views import INK, NORM, WIDTH, label, ramp

if TYPE_CHECKING:
    from matplotlib.figure import Figure

WIDE = 3.2  # points, of the heaviest edge


def draw(graph: Graph) -> Figure:
    """Every node at its place, y upwards."""
    from matplotlib.figure import Figure

    places = {node.name: (node.x, node.y) for node in graph.nodes}
    levels = len({node.y for node in graph.nodes})
    figure = Figure(figsize=(WIDTH, min(9.0, 0.9 + 0.42 * levels)), layout="constrained")
    axes = figure.subplots()
    heaviest = max((abs(edge.weight) for edge in graph.edges), default=1.0) or 1.0
    colours = ramp(NORM[2:])
    for edge in sorted(graph.edges, key=lambda edge: abs(edge.weight)):
        (x1, y1), (x2, y2) = places[edge.tail], places[edge.head]
        part = abs(edge.weight) / heaviest
        axes.plot(
            [x1, x2], [y1, y2], color=colours(part), linewidth=0.4 + WIDE * part, zorder=1, solid_capstyle="round"
        )
        if edge.label:
            axes.text(
                (x1 + x2) / 2,
                (y1 + y2) / 2,
                label(edge.label),
                fontsize=7,
                ha="center",
                va="center",
                bbox={"boxstyle": "square,pad=0.1", "facecolor": "white", "edgecolor": "none"},
            )
    axes.plot(
        [node.x for node in graph.nodes], [node.y for node in graph.nodes], "o", color=INK, markersize=3, zorder=2
    )
    for node in graph.nodes:
        if node.label:
            axes.annotate(
                label(node.label),
                (node.x, node.y),
                xytext=(0, -10),
                textcoords="offset points",
                ha="center",
                fontsize=7,
            )
    axes.set_xlabel(label(graph.x, 90))
    axes.set_ylabel(label(graph.y, 90))
    axes.margins(0.08)
    axes.set_xticks([])
    if graph.levels:
        axes.set_yticks([level.y for level in graph.levels], [label(level.name) for level in graph.levels])
    else:
        axes.set_yticks(sorted({node.y for node in graph.nodes}) if graph.y else [])
    return figure
