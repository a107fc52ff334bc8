"""A figure in the terminal: a heat map of one block, and a table of what each token receives.

Room: figure to characters. No HTML, no files; the caller decides about colour and width.

A cell of the map is two terminal cells, so that it is about square and a wide character fits above it as a header.
"""

import numpy as np
from jaxtyping import Float

from normlens.views.changes import changes
from normlens.views.figure import Figure, FigureError, Side
from normlens.views.glyphs import clusters, fit, visible
from normlens.views.glyphs import width as cells_of
from normlens.views.maps import MEASURES, Panel
from normlens.views.shares import Received, received

SHADES = " ░▒▓█"
COLOURS = (17, 18, 24, 30, 36, 72, 108, 144, 186, 229)  # dark blue to pale yellow, of the 256 terminal colours
SIGNED = (25, 31, 67, 110, 152, 255, 224, 216, 173, 167, 124)  # blue below 0, pale at 0, red above
LABEL, HEADER, BAR, ROWS = 14, 8, 16, 64  # cells of a row label, letters of a column header, cells of a bar, table rows
KINDS = {"self": "self-attention", "encoder": "encoder", "decoder": "decoder", "cross": "cross-attention"}


def heatmap(figure: Figure, *, panel: int, head: int | None, measure: str, color: bool, width: int) -> str:
    """One block as a map: rows look, columns are looked at. `head=None` is the mean over heads.

    At most `width` terminal cells wide; of a longer text the middle is left out, and said so.
    """
    block = _panel(figure, panel, head, measure)
    values, rows, what = _values(figure, block, head, measure)
    source = figure.sides[block.src]
    label = min(LABEL, max(_width_of(rows), 1))
    room = max((width - label - 1) // 2, 4)
    kept_rows, kept_columns = _kept(len(values), room), _kept(values.shape[1], room)
    top, signed = float(np.abs(values).max(initial=0.0)), block.map(measure).signed
    lines = [f"{KINDS.get(block.kind, block.kind)} {what}", ""]
    lines += [" " * (label + 1) + header for header in _headers(source, kept_columns)]
    for row in kept_rows:
        name = fit("⋮" if row is None else rows[row], label)
        cells = [None if row is None or column is None else float(values[row, column]) for column in kept_columns]
        lines.append(name + " " + "".join(_cell(value, top, color, signed) for value in cells))
    looks = "" if measure == "transformed_norms" else "  rows look at columns"
    low = f"-{top:.3g}" if signed and color else "0"
    sign = "; - marks cells below 0" if signed and not color else ""
    lines += ["", f"scale {low} {_ramp(color, signed)} {top:.3g} (the largest cell of this map{sign}){looks}"]
    for kept, total, axis in ((kept_rows, len(values), "rows"), (kept_columns, values.shape[1], "columns")):
        if None in kept:
            lines.append(f"{total - len(kept) + 1} of {total} {axis} left out of the middle (width {width})")
    return "\n".join(line.rstrip() if not color else line for line in lines) + "\n"


def summary(figure: Figure) -> str:
    """Per token: the weight it draws, the size of its vector ‖f(x)‖, and its share of what is moved, ‖αf(x)‖."""
    tables = [changes(figure)] if figure.difference else [_table(got) for got in received(figure)]
    return "\n".join([f"{visible_line(figure.title)}\n", *tables, visible_line(figure.signature)]) + "\n"


def visible_line(text: str) -> str:
    """Free text on one line, spaces kept, controls shown."""
    return " ".join(visible(word) for word in text.split(" ") if word)


def sentence(got: Received) -> str:
    """The finding in words: what the special tokens draw, and what they give."""
    special = np.asarray(got.side.special, dtype=bool)
    if got.signed or not special.any():
        return ""
    names = " ".join(dict.fromkeys(visible(got.side.tokens[position]) for position in np.flatnonzero(special)))
    weight, norm = float(got.weight[special].sum()), float(got.norm[special].sum())
    return f"{names}: {weight:.0%} of the weight, {norm:.0%} of what is moved."


def _panel(figure: Figure, panel: int, head: int | None, measure: str) -> Panel:
    if measure not in MEASURES:
        raise FigureError(f"measure is one of {', '.join(MEASURES)}; got {measure!r}.")
    if not 0 <= panel < len(figure.panels):
        raise FigureError(f"panel is one of 0..{len(figure.panels) - 1}; got {panel}.")
    block = figure.panels[panel]
    if head is not None and head not in block.heads:
        raise FigureError(f"heads of {block.name} are {', '.join(map(str, block.heads))}; got {head}.")
    if head is not None and measure == "summed_norms":
        raise FigureError("summed_norms adds the heads up, so it has no single head. Try: head=None.")
    return block


def _values(
    figure: Figure, block: Panel, head: int | None, measure: str
) -> tuple[Float[np.ndarray, "row src"], tuple[str, ...], str]:
    """The numbers to draw, the name of each row, and what they are."""
    targets = figure.sides[block.tgt].tokens
    if measure == "summed_norms":
        return block.summed_norms, targets, f"{block.name}  {MEASURES[measure][0]}, all heads summed"
    where = f"{block.name}, mean over {len(block.heads)} heads" if head is None else f"{block.name}H{head}"
    if measure == "transformed_norms":
        heads = block.heads if head is None else (head,)
        where = f"{block.name}, each head" if head is None else where
        return (
            block.transformed_norms[[block.heads.index(one) for one in heads]],
            tuple(f"H{one}" for one in heads),
            f"{where}  {MEASURES[measure][0]}",
        )
    values = block.weights if measure == "weights" else block.weighted_norms
    return (
        values.mean(axis=0) if head is None else values[block.heads.index(head)],
        targets,
        f"{where}  {MEASURES[measure][0]}",
    )


def _kept(length: int, room: int) -> list[int | None]:
    """Positions to show; None stands for the part left out, nearer the end since both ends matter ([CLS], [SEP])."""
    if length <= room:
        return list(range(length))
    tail = max(room // 4, 1)
    return [*range(room - tail - 1), None, *range(length - tail, length)]


def _headers(source: Side, kept: list[int | None]) -> list[str]:
    """Tokens written downwards, one per column, standing on the map."""
    columns = []
    for position in kept:
        pieces = [("⋯", 1)] if position is None else clusters(source.tokens[position])
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


def _width_of(tokens: tuple[str, ...]) -> int:
    return max((cells_of(token) for token in tokens), default=0)


def _table(got: Received) -> str:
    shown = _kept(len(got.side.tokens), ROWS)
    label = max(min(LABEL, _width_of(got.side.tokens)), len("token"))
    heads = " or ".join(map(str, got.heads))
    over = f"mean over {got.layers} layer{'s' * (got.layers != 1)} x {heads} heads and all queries"
    column = BAR + 7
    lines = [
        f"{KINDS.get(got.kind, got.kind)}, {over}",
        f"{'token':{label}}  {'weight α drawn':{column}}  {'size ‖f(x)‖':{column}}  share of ‖αf(x)‖",
    ]
    share = max(float(got.weight.max()), float(got.norm.max()), 1e-12)  # one scale, so the two bars can be compared
    size = max(float(got.transformed.max()), 1e-12)
    for row in shown:
        if row is None:
            lines.append(f"⋮ {len(got.side.tokens) - len(shown) + 1} tokens left out")
            continue
        weight, norm, length = (float(x[row]) for x in (got.weight, got.norm, got.transformed))
        cells = [
            f"{weight:6.1%} {_bar(weight / share)}",
            f"{length:6.3g} {_bar(length / size)}",
            f"{norm:6.1%} {_bar(norm / share)}",
        ]
        lines.append(f"{fit(got.side.tokens[row], label)}  {'  '.join(cells)}".rstrip())
    return "\n".join([*lines, *filter(None, [sentence(got)])]) + "\n"


def _bar(part: float) -> str:
    """A bar of `BAR` cells, filled to an eighth of a cell; none below 0."""
    eighths = round(max(part, 0.0) * BAR * 8)
    return ("█" * (eighths // 8) + (" ▏▎▍▌▋▊▉"[eighths % 8] if eighths % 8 else "")).ljust(BAR)
