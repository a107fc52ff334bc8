"""The largest changes of a difference, in words."""

from __future__ import annotations

import numpy as np

from normlens.views.figure import Figure
from normlens.views.glyphs import visible
from normlens.views.maps import Panel

MOST = 6  # cells listed per measure


def changes(figure: Figure) -> str:
    """Per measure the cells that differ most, means over heads, with their layer and tokens."""
    lines = [figure.note, ""]
    names = (name for panel in figure.panels for name in panel.measures if panel.map(name).is_matrix)
    for name in dict.fromkeys(names):
        panels = [panel for panel in figure.panels if name in panel.measures]
        cells = [cell for panel in panels for cell in _largest(figure, panel, name)]
        heads = any(panel.map(name).has_heads for panel in panels)
        lines.append(f"{panels[0].map(name).label}{', mean over heads' if heads else ''}: the largest of all layers")
        for value, text in sorted(cells, key=lambda cell: -abs(cell[0]))[:MOST]:
            lines.append(f"  {value:+.3g}  {text}")
        lines.append("")
    return "\n".join(lines)


def _largest(figure: Figure, panel: Panel, name: str) -> list[tuple[float, str]]:
    values = panel.values(name).mean(axis=0) if panel.map(name).has_heads else panel.values(name)
    places = np.argsort(-np.abs(values), axis=None)[:MOST]
    rows, columns = (figure.sides[index].tokens for index in (panel.tgt, panel.src))
    return [
        (float(values[row, column]), f"{panel.where}: query {visible(rows[row])}, key {visible(columns[column])}")
        for row, column in zip(*np.unravel_index(places, values.shape), strict=True)
    ]
