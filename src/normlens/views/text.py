"""A figure in the terminal: a heat map of one block, and a table of what each token receives and contributes.

A cell of the map is two terminal cells, so that it is about square and a wide character fits above it as a header.
"""

from collections.abc import Sequence

import numpy as np

from normlens.views.bars import bars
from normlens.views.changes import changes
from normlens.views.figure import Figure, FigureError
from normlens.views.glyphs import clusters, fit, visible
from normlens.views.glyphs import width as cells_of
from normlens.views.look import Look
from normlens.views.maps import Panel
from normlens.views.shares import Received, received
from normlens.views.shown import Shown, shown

SHADES = " ░▒▓█"
COLOURS = (17, 18, 24, 30, 36, 72, 108, 144, 186, 229)  # dark blue to pale yellow, of the 256 terminal colours
SIGNED = (25, 31, 67, 110, 152, 255, 224, 216, 173, 167, 124)  # blue below 0, pale at 0, red above
LABEL, HEADER, BAR, ROWS = 14, 8, 16, 64  # cells of a row label, letters of a column header, cells of a bar, table rows
KINDS = {"self": "self-attention", "encoder": "encoder", "decoder": "decoder", "cross": "cross-attention"}


def heatmap(figure: Figure, *, panel: int, head: int | None, measure: str, color: bool, width: int) -> str:
    """One block as a map: rows are queries, columns are keys. `head=None` is the mean over heads.

    At most `width` terminal cells wide; of a longer text the middle is left out, and the last line says so.
    """
    block, one = _shown(figure, panel, head, measure)
    rows, columns, values = [row.label for row in one.rows], one.columns, one.values
    label = min(LABEL, max(_width_of(rows), 1))
    room = max((width - label - 1) // 2, 4)
    kept_rows, kept_columns = _kept(len(values), room), _kept(values.shape[1], room)
    lines = [f"{KINDS.get(block.kind, block.kind)} {one.where}  {one.label}", ""]
    lines += [" " * (label + 1) + header for header in _headers([column.label for column in columns], kept_columns)]
    for row in kept_rows:
        name = fit("⋮" if row is None else rows[row], label)
        cells = [None if row is None or column is None else float(values[row, column]) for column in kept_columns]
        lines.append(name + " " + "".join(_cell(value, one.top, color, one.signed) for value in cells))
    axes = "" if one.strip else "  rows: queries, columns: keys"
    low = f"-{one.top:.3g}" if one.signed and color else "0"
    sign = "; - marks cells below 0" if one.signed and not color else ""
    lines += ["", f"scale {low} {_ramp(color, one.signed)} {one.top:.3g} (the largest cell of this map{sign}){axes}"]
    for kept, total, axis in ((kept_rows, len(values), "rows"), (kept_columns, values.shape[1], "columns")):
        if None in kept:
            lines.append(f"{total - len(kept) + 1} of {total} {axis} left out of the middle (width {width})")
    return "\n".join(line.rstrip() if not color else line for line in lines) + "\n"


def summary(figure: Figure, look: Look | None = None) -> str:
    """Per token: the attention it receives, the norm ‖f(x)‖, and its share of the contributions ‖αf(x)‖.

    Over all layers, heads and queries, or those of a look. Where there are other maps instead, their numbers per token.
    """
    if figure.difference:
        tables = [changes(figure)]
    else:
        shares, every = received(figure, look), received(figure)
        others = [kind for kind in figure.groups if kind.split(" (")[0] not in {got.kind for got in every}]
        tables = [*(_table(got) for got in shares), *(_other_table(figure, kind) for kind in others)]
    return "\n".join([f"{visible_line(figure.title)}\n", *tables, visible_line(figure.signature)]) + "\n"


def visible_line(text: str) -> str:
    """Free text on one line, spaces kept, controls shown."""
    return " ".join(visible(word) for word in text.split(" ") if word)


def sentence(got: Received) -> str:
    """The finding in words: what the special tokens receive and contribute."""
    special = np.asarray(got.side.special, dtype=bool)
    if got.signed or not special.any():
        return ""
    names = list(dict.fromkeys(visible(got.side.tokens[position]) for position in np.flatnonzero(special)))
    listed = " and ".join(filter(None, (", ".join(names[:-1]), names[-1])))
    receive, make = ("receive", "make") if len(names) > 1 else ("receives", "makes")
    weight, norm = float(got.weight[special].sum()), float(got.norm[special].sum())
    return f"{listed} {receive} {_percent(weight)} of the attention and {make} {_percent(norm)} of the contributions."


def _percent(share: float) -> str:
    return f"{100 * share:.{1 if share < 0.0995 else 0}f} %"


def _shown(figure: Figure, panel: int, head: int | None, measure: str) -> tuple[Panel, Shown]:
    if not 0 <= panel < len(figure.panels):
        raise FigureError(f"no panel {panel}: the figure has panels 0 to {len(figure.panels) - 1}.")
    block = figure.panels[panel]
    if head is not None and not block.map(measure).has_heads:
        raise FigureError(f"{measure} adds the heads up, so it has no single head.", do="head=None.")
    kind = next(kind for kind, panels in figure.groups.items() if panel in panels)
    look = Look(
        kind=kind,
        layers=() if block.layer is None else (block.layer,),
        heads=() if head is None else (head,),
        measures=(measure,),
    )
    return block, shown(figure, look)[0]


def _kept(length: int, room: int) -> list[int | None]:
    """Positions to show; None stands for the part left out, nearer the end since both ends matter ([CLS], [SEP])."""
    if length <= room:
        return list(range(length))
    tail = max(room // 4, 1)
    return [*range(room - tail - 1), None, *range(length - tail, length)]


def _headers(tokens: Sequence[str], kept: list[int | None]) -> list[str]:
    """Tokens written downwards, one per column, standing on the map."""
    columns = []
    for position in kept:
        pieces = [("⋯", 1)] if position is None else clusters(tokens[position])
        if len(pieces) > HEADER:
            pieces = [*pieces[: HEADER - 1], ("…", 1)]
        columns.append([text + " " * (2 - cells) for text, cells in pieces])
    height = max(map(len, columns), default=0)
    return [
        "".join(column[line] if line >= 0 else "  " for column in columns for line in [len(column) - height + y])
        for y in range(height)
    ]


def _cell(value: float | None, top: float, color: bool, signed: bool = False) -> str:
    if value is None:
        return " ·" if not color else "\x1b[0m ·"
    part = value / top if top > 0 else 0.0
    if color:
        colours, place = (SIGNED, (part + 1) / 2) if signed else (COLOURS, part)
        return f"\x1b[48;5;{colours[round(place * (len(colours) - 1))]}m  \x1b[0m"
    shade = SHADES[round(abs(part) * (len(SHADES) - 1))]
    return f"-{shade}" if part < 0 and shade != " " else 2 * shade


def _ramp(color: bool, signed: bool) -> str:
    if not color:
        return f"[{SHADES}]"
    steps = np.linspace(-1, 1, len(SIGNED)) if signed else np.linspace(0, 1, len(COLOURS))
    return "".join(_cell(float(step), 1.0, True, signed) for step in steps)


def _width_of(tokens: Sequence[str]) -> int:
    return max((cells_of(token) for token in tokens), default=0)


def _table(got: Received) -> str:
    shown = _kept(len(got.side.tokens), ROWS)
    label = max(min(LABEL, _width_of(got.side.tokens)), len("token"))
    column = BAR + 7
    length = [] if got.transformed is None else [f"{'norm ‖f(x)‖':{column}}"]
    lines = [
        f"{KINDS.get(got.kind, got.kind)}, mean over {got.over}",
        "  ".join(
            [f"{'token':{label}}", f"{'attention received':{column}}", *length, "share of contributions ‖αf(x)‖"]
        ),
    ]
    share = max(float(got.weight.max()), float(got.norm.max()), 1e-12)  # one scale, so the two bars can be compared
    sizes = got.weight * 0 if got.transformed is None else got.transformed
    size = max(float(sizes.max()), 1e-12)
    for row in shown:
        if row is None:
            lines.append(f"⋮ {len(got.side.tokens) - len(shown) + 1} tokens left out")
            continue
        weight, norm, mean = (float(x[row]) for x in (got.weight, got.norm, sizes))
        cells = [
            f"{weight:6.1%} {_bar(weight / share)}",
            *(f"{mean:6.3g} {_bar(mean / size)}" for _ in length),
            f"{norm:6.1%} {_bar(norm / share)}",
        ]
        lines.append(f"{fit(got.side.tokens[row], label)}  {'  '.join(cells)}".rstrip())
    return "\n".join([*lines, *filter(None, [sentence(got)])]) + "\n"


def _other_table(figure: Figure, kind: str) -> str:
    """The maps of a group without α: a number per token for each, as bars show them."""
    group = [figure.panels[index] for index in figure.groups[kind]]
    layers = tuple(panel.layer for panel in group if panel.layer is not None)
    lines = []
    for name in dict.fromkeys(name for panel in group for name in panel.measures):
        (one,) = bars(figure, Look(kind=kind, layers=layers, measures=(name,)))
        label = max(min(LABEL, _width_of([token.label for token in one.tokens])), len("token"))
        lines.append(f"{one.map.label} {one.map.where}{', share' if one.unit == 'share' else ''}")
        for row in _kept(len(one.tokens), ROWS):
            if row is None:
                lines.append(f"⋮ {len(one.tokens) - ROWS + 1} tokens left out")
                continue
            value = float(one.values[row])
            number = f"{value:6.1%}" if one.unit == "share" else f"{value:6.3g}"
            lines.append(f"{fit(one.tokens[row].label, label)}  {number} {_bar(value / max(one.top, 1e-12))}".rstrip())
        lines.append("")
    return "\n".join(lines)


def _bar(part: float) -> str:
    """A bar of `BAR` cells, filled to an eighth of a cell; none below 0."""
    eighths = round(max(part, 0.0) * BAR * 8)
    return ("█" * (eighths // 8) + (" ▏▎▍▌▋▊▉"[eighths % 8] if eighths % 8 else "")).ljust(BAR)
