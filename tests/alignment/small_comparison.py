"""A comparison of aligners made by hand for the tests of its report: no model is run."""

from typing import Any

import numpy as np
from torch import nn

from normlens.alignment import Aligner, Gold, ModelLayers, Reading, Tally
from normlens.alignment.compared import Compared, Direction, Example, Method
from normlens.lens import Lens
from normlens.models import Subject
from normlens.signature import Signature

SENTENCES = 20
BEST = {  # AER in percent of (measure, position): best layer, and how much worse each layer further from it is
    ("weights", "input"): 40,
    ("norms", "input"): 25,
    ("weights", "output"): 60,
    ("norms", "output"): 50,
}


def counted(percent: float, *, spread: int = 2, sentences: int = SENTENCES) -> Tally:
    """Sentences of 100 links and 100 sure ones, all hits sure, so that AER, precision and recall are one number."""
    hits = 100 - round(percent)
    each = [hits + (spread if sentence % 2 else -spread) for sentence in range(sentences)]
    return Tally(np.array([(100, 100, hit, hit) for hit in each], dtype=np.int32))


def direction(name="there@1", *, layers=3, heads=2, best=1, worse=15, more=0) -> Direction:
    """Layer `best` has the least error and the largest norm under AWI; under AWO it is the last layer."""
    tallies = {}
    for (measure, position), least in BEST.items():
        peak = best if position == "input" else layers - 1
        for layer in range(layers):
            percent = min(least + more + worse * abs(layer - peak), 95)
            tallies[Reading(measure, position, layer)] = counted(percent)
            for head in range(heads):
                tallies[Reading(measure, position, layer, head)] = counted(min(percent + 3 + 6 * head, 99))
    norms = np.array([[1.0 / (1 + abs(layer - best)) * 0.9**head for head in range(heads)] for layer in range(layers)])
    return Direction(name, tallies, norms, tuple(range(layers)), Signature((("model", name), ("normlens", "0"))))


def example(source=("das", "haus", "brennt"), target=("the", "house", "burns"), *, layers=3, seed=0) -> Example:
    """Weights that often fall on </s>, norms that follow the diagonal; the first word is only a possible link."""
    random = np.random.default_rng(seed)
    across, down = len(source), len(target)
    near = np.exp(
        -np.abs(np.arange(down)[:, None] / max(down - 1, 1) - np.arange(across) / max(across - 1, 1)) * across
    )
    maps = {}
    for layer in range(layers):
        for measure, lost in (("weights", 0.9), ("norms", 0.15)):
            soft = np.concatenate([near, np.full((down, 1), lost)], axis=1) + 0.3 * random.random((down, across + 1))
            maps[Reading(measure, "input", layer)] = soft / soft.sum(axis=1, keepdims=True)
    diagonal = {(round(row * (across - 1) / max(down - 1, 1)), row) for row in range(down)}
    first = {(0, 0)}
    return Example(tuple(source), tuple(target), Gold(frozenset(diagonal - first), frozenset(first)), maps)


def lens(name: str) -> Lens:
    """A name where the model would be."""
    return Lens(Subject(nn.Linear(1, 1), None, name, "1"))


def compared(*, both=True, statistical=28, multiplied=(20, 20), examples=None, **shape: Any) -> Compared:
    forward = direction("de-en", **shape)
    backward = direction("en-de", more=4, **shape) if both else None
    one = [
        Method("one direction", "norms AWI, mean of layers", None, forward.mean("norms", "input")),
        *(
            Method.of(
                "one direction", f"{measure} AWI, best layer L{best.layer}", forward.tallies[best], needs_gold=True
            )
            for measure in ("weights", "norms")
            for best in [forward.best(measure, "input")]
        ),
        Method.of("one direction", "norms AWI L1, chosen without gold", counted(27), chosen=not both),
    ]
    two = [
        Method.of(
            "both directions",
            f"{measure}, {how}",
            counted(percent + more, spread=3),
            chosen=(measure, more) == ("norms", 0),
        )
        for measure, percent in zip(("weights", "norms"), multiplied, strict=True)
        for how, more in (("maps multiplied", 0), ("intersection", 3), ("grow-diag-final-and", 6))
    ]
    trained = [Method.of("statistical", "fast_align →", counted(statistical))]
    readings = (Reading("norms", "input", forward.largest_norm),)
    why = "which has the largest mean norm (L0 0.5, L1 1.0)"
    models = [ModelLayers(lens(name), readings, why) for name in ("de-en", "en-de")]
    return Compared(
        methods=(*one, *(two if both else ()), *trained),
        forward=forward,
        backward=backward,
        aligner=Aligner(models[0], models[1] if both else None, "soft", 0.0, 1.0),
        examples=(example(layers=shape.get("layers", 3)),) if examples is None else tuple(examples),
        sentences=SENTENCES,
    )
