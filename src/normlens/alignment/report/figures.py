"""The figures of a comparison: errors of layers and heads (Figure 7 of the 2020 paper) and soft maps (8, 13 to 17)."""

from __future__ import annotations

import numpy as np
from jaxtyping import Float

from normlens.alignment.aligner import strongest
from normlens.alignment.compared import MEASURES, Compared, Direction, Example
from normlens.alignment.maps import ROWS, Measure, Position, Reading
from normlens.alignment.report.sentences import ARROWS, aer
from normlens.exhibits import Frame, Grid, Grids, number, rho, top_of

END = "</s>"
LONGEST = 80  # words of a sentence that is drawn
SYMBOLS: dict[Measure, str] = {"weights": "weights α", "norms": "norms ‖Σαf(x)‖"}


def layers_figure(compared: Compared) -> Grids:
    """Error by layer, weights above norms, AWI beside AWO; one line of maps per direction."""
    has_both = len(compared.directions) > 1
    ranges, grids = [], []
    for name, direction in compared.directions.items():
        for position, rows in ROWS.items():
            errors = _layer_errors(direction, position)
            best = enumerate(errors.argmin(axis=1).tolist())
            grids.append(
                Grid(
                    f"{ARROWS[name]}, {rows}" if has_both else rows,
                    errors,
                    "error",
                    100.0,
                    numbers=".1f",
                    frames=tuple(Frame(row, column) for row, column in best),
                    columns=tuple(map(str, direction.layers)),
                )
            )
            ranges += [
                f"{ARROWS[name]}, {rows}: {measure} from {aer(line.min() / 100)} to {aer(line.max() / 100)}"
                for measure, line in zip(MEASURES, errors, strict=True)
            ]
    return Grids(
        "figure-7",
        "Alignment error rate in percent of every layer, by attention weights and by norms. AWI: a row of the "
        "cross-attention is read as the word that the decoder was given; AWO: as the word that it writes next. "
        "Darker is worse, on one scale from 0 to 100; framed: the best layer of its row.",
        f"Maps of the error of each layer. {'. '.join(ranges)}.",
        tuple(grids),
        rows=MEASURES,
        row_axis="",
        column_axis="layer",
        scale=False,
        across=2,
    )


def heads_figure(name: str, direction: Direction) -> Grids:
    """Error of every head, by norms, beside its mean norm."""
    errors = {rows: 100 * direction.head_errors(position) for position, rows in ROWS.items()}
    rhos = {rows: rho(direction.norm_rho(position)) for position, rows in ROWS.items()}
    listed = "; ".join(f"ρ = {value} under {rows}" for rows, value in rhos.items())
    low, high = (number(float(edge)) for edge in (direction.norms.min(), direction.norms.max()))
    least = "; ".join(f"{rows} {aer(float(values.min()) / 100)}" for rows, values in errors.items())
    maps = [
        Grid(f"AER in %, {rows}", values, "error", 100.0, ".1f", foot=f"with mean norm: ρ = {rhos[rows]}")
        for rows, values in errors.items()
    ]
    return Grids(
        "heads" if name == "forward" else f"heads-{name}",
        f"Each cell is a head of {direction.name} ({ARROWS[name]}). Error of the links of the head alone, read by its "
        "norms, under AWI and AWO; and the mean of its norms ‖αf(x)‖ over all words. Spearman’s ρ between the error "
        f"of a head and its mean norm: {listed}; below 0, heads that contribute more align better.",
        f"Three maps, layer by head: error under AWI and AWO, at best {least}, and mean norm from {low} to {high}; "
        f"Spearman’s ρ {listed}.",
        (*maps, Grid("mean norm ‖αf(x)‖", direction.norms, "norm", top_of(direction.norms), "#.2g")),
        rows=tuple(map(str, direction.layers)),
    )


def example_figures(example: Example, order: int, shown: int) -> list[Grids]:
    """Soft maps beside the gold, one figure per layer: the shown layer first, the others folded.

    None for sentences of so many words that nobody could read them.
    """
    if max(len(example.source), len(example.target)) > LONGEST:
        return []
    layers = sorted({reading.layer for reading in example.maps}, key=lambda layer: (layer != shown, layer))
    return [_example_figure(example, order, layer, is_first=place == 0) for place, layer in enumerate(layers)]


def _example_figure(example: Example, order: int, layer: int, *, is_first: bool) -> Grids:
    grids, counts = [], []
    for measure, title in SYMBOLS.items():
        values = example.maps[Reading(measure, "input", layer)]
        links = strongest(values).hard
        right, top = len(links & example.gold.possible), top_of(values)
        frames = [Frame(tgt, src, (src, tgt) not in example.gold.possible) for src, tgt in sorted(links)]
        foot = f"{right} of {len(links)} links right; darkest {number(top, 2)}"
        tone = "weight" if measure == "weights" else "norm"
        grids.append(Grid(title, values, tone, top, frames=tuple(frames), foot=foot))
        counts.append(f"by {measure} {right} of {len(links)} links are in the gold")
    listed = " and ".join(counts)
    return Grids(
        f"figure-8-{order}" if is_first else f"figure-8-{order}-layer-{layer}",
        f"Example {order}, layer {layer}, AWI. Rows: target words; columns: source words, {END} last. Darker: a larger "
        "weight, or a larger contribution; each map has a scale of its own. Framed: the strongest source word of each "
        "target word, solid where the gold has this link, dashed where not; a word whose strongest is "
        f"{END} has no frame. The last map is the gold, sure links filled, possible ones hatched. Here {listed}.",
        f"Soft alignments of layer {layer} by weights and by norms beside the gold: {listed}.",
        (*grids, _gold(example)),
        rows=example.target,
        columns=(*example.source, END),
        row_axis="",
        column_axis="",
        words=True,
        scale=False,
        folded="" if is_first else "The other layers",
    )


def _gold(example: Example) -> Grid:
    """Sure links filled, possible ones, which are holes, hatched."""
    values = np.zeros((len(example.target), len(example.source) + 1))
    for source, target in example.gold.possible:
        values[target, source] = 1.0 if (source, target) in example.gold.sure else np.nan
    return Grid("gold", values, "grey", 1.0, foot="filled: sure; hatched: possible")


def _layer_errors(direction: Direction, position: Position) -> Float[np.ndarray, "measure layer"]:
    return np.array(
        [[100 * direction.aer(measure, position, layer) for layer in direction.layers] for measure in MEASURES]
    )
