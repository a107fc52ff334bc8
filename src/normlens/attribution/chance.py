"""Scores by chance: what every other method must beat."""

from __future__ import annotations

import numpy as np
import torch

from normlens.attribution.question import Method, Question, Scores


def by_chance(question: Question) -> Scores:
    """Numbers between 0 and 1 that depend on the text alone."""
    draw = np.random.default_rng([*question.encoded.sides[0].ids, question.written or 0])
    return Scores(torch.from_numpy(draw.random(question.sources)).float())


ROWS = (Method("random", "Random", "A number by chance, as a floor for the others.", "-", by_chance, signed=False),)
