"""The largest changes of a difference, in words.

Room: a signed figure to characters.
"""

from __future__ import annotations

import numpy as np

from normlens.views.figure import Figure
from normlens.views.glyphs import visible
from normlens.views.maps import Panel

MOST = 6  # cells told per measure


def changes(figure: Figure) -> str:
    """Per measure the cells that differ most, means over heads, with their layer and tokens."""
    lines = [figure.note, ""]
    measures = dict.fromkeys(name for panel in figure.panels for name in panel.measures if name != "transformed_norms")
    for name in measures:
        cells = [cell for panel in figure.panels if name in panel.measures for cell in _largest(figure, panel, name)]
        label = next(panel.map(name).label for panel in figure.panels if name in panel.measures)
        heads = any(panel.map(name).axes == "head tgt src" for panel in figure.panels if name in panel.measures)
        lines.append(f"{label}{', mean over heads' if heads else ''}: the largest of all layers")
        for value, text in sorted(cells, key=lambda cell: -abs(cell[0]))[:MOST]:
            lines.append(f"  {value:+.3g}  {text}")
        lines.append("")
    return "\n".join(lines)


def _largest(figure: Figure, panel: Panel, name: str) -> list[tuple[float, str]]:
    one = panel.map(name)
    values = one.values.mean(axis=0) if one.axes == "head tgt src" else one.values
    found = np.argsort(-np.abs(values), axis=None)[:MOST]
    rows, columns = (figure.sides[index].tokens for index in (panel.tgt, panel.src))
    return [
        (
            float(values[row, column]),
            f"{panel.kind} {panel.name}: {visible(rows[row])} looks at {visible(columns[column])}",
        )
        for row, column in zip(*np.unravel_index(found, values.shape), strict=True)
    ]
