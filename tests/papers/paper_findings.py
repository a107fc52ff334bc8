"""Findings made by hand that hold exactly the paper's numbers; what it does not print is made up around them."""

from dataclasses import replace

import numpy as np

from normlens.papers import kobayashi2020 as expected
from normlens.signature import Signature
from normlens.studies import STUDIES, Categories, Correlation, Dispersion, Facts, Findings, Frequency, Spread
from normlens.studies.frequency import Points, Relation

NAMES = tuple(expected.TABLE_2)
NOTHING = np.zeros(0)
NO_POINTS = Points(NOTHING.astype(int), NOTHING, NOTHING)


def spread(lines, shape, apart):
    """The lines at their places; all other cells in two groups that give the averages of the third line.

    One group is `apart` longer and the other as much shorter than their mean, which brings the mean of CVs where it is
    printed.
    """
    parts = {part: np.zeros(shape) for part in expected.FIELDS}
    rest = np.ones(shape, bool)
    for line in lines[:2]:
        at = tuple(index - 1 for index in line.at)
        rest[at] = False
        for part, printed in zip(expected.FIELDS, line.figures, strict=True):
            parts[part][at] = float(printed)
    other = np.flatnonzero(rest)
    sides = np.where(np.arange(len(other)) % 2, 1.0, -1.0)
    for part, printed, gap in zip(("mean", "deviation"), lines[2].figures[:2], apart, strict=True):
        flat = parts[part].reshape(-1)
        flat[other] = (float(printed) * flat.size - flat.sum()) / len(other) + gap * sides
    parts["high"].reshape(-1)[other], parts["low"].reshape(-1)[other] = 11.0, 2.0
    return Spread(np.full(shape, 121_134), *(parts[name] for name in ("mean", "deviation", "low", "high")))


def findings(**changed):
    heads = (12, 12)
    singular = np.linspace(3.0, 1.5, 65) * np.ones((*heads, 1))
    dispersion = Dispersion(
        "self", tuple(range(12)), spread(expected.TABLE_1, heads, (2.0, 0.5)), spread(expected.TABLE_4, (12,), (0, 0)),
        singular, (),
    )  # fmt: skip
    drawn = np.array([0.1, 0.6, 0.1, 0.2])[:, None, None] * np.ones((4, *heads))
    categories = Categories(
        "self", NAMES, tuple(range(12)), np.array([992, 992, 990, 992]), 992,
        np.array([992, 1984, 10_159, 107_999]), drawn, drawn * np.array([0.5, 0.5, 1, 4])[:, None, None], drawn, {},
    )  # fmt: skip
    correlation = Correlation(
        "self", NAMES, tuple(range(12)), np.array([int(pairs) for pairs, _ in expected.TABLE_2.values()]),
        np.array([float(rho) for _, rho in expected.TABLE_2.values()]), np.zeros((4, *heads)),
        NOTHING.astype(int), NOTHING, NOTHING, (), (),
    )  # fmt: skip
    frequency = Frequency(
        "self", expected.RANKS, NAMES, 2_134, Relation(119_000, -0.08, 0.75), Relation(116_024, -0.1, 0.7),
        Relation(0, 0.0, 0.0), NO_POINTS, NOTHING.astype(int), NOTHING.astype(bool), (), NOTHING.astype(int), NO_POINTS,
    )  # fmt: skip
    run = Facts(
        lens=None, model="bert-base-uncased@made", corpus="unlabeled_attn.pkl",
        signature=Signature((("model", "made"),)), categories=NAMES, ranks=None, seed=0, length=128,
        items=992, tokens=121_134, squares=15_139_560, error=1e-7,
    )  # fmt: skip
    results = {"dispersion": dispersion, "categories": categories, "correlation": correlation, "frequency": frequency}
    return Findings(
        replace(run, **changed), tuple(STUDIES.values()), {name: {"self": result} for name, result in results.items()}
    )


def with_result(findings, study, **changed):
    """The same findings with one result changed."""
    result = replace(findings[study]["self"], **changed)
    return replace(findings, results={**findings.results, study: {"self": result}})
