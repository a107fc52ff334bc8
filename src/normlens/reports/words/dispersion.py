"""How much lengths differ, in sentences.

Room: results to words.
"""

from __future__ import annotations

import numpy as np

from normlens.reports.numbers import count, head_name, number, percent
from normlens.reports.shares import extremes, mean_over, stretch
from normlens.studies.results import Dispersion

HARDLY = 0.05  # below this CV lengths are called nearly constant
ALIKE = 1.25  # two CVs within this factor are called about the same


def dispersion(found: Dispersion) -> list[str]:
    """Sentences about ‖f(x)‖, then ‖x‖, then the singular values of f."""
    return [*_transformed(found), *_inputs(found), *_singular(found)]


def _transformed(found: Dispersion) -> list[str]:
    variation = found.transformed.variation
    ends = extremes(variation)
    if ends is None:
        return ["No coefficient of variation (CV) is defined: ‖f(x)‖ is 0 in every head, or was not measured."]
    if int(found.transformed.count.max()) < 2:
        return ["Only one token was looked at, so nothing can vary."]
    average = float(mean_over(variation.reshape(-1)))
    if average >= HARDLY:
        meaning = "the same weight α moves more for one token than for another"
    else:
        meaning = "lengths are nearly constant, so here α alone is close to the whole picture"
    heads = int(np.isfinite(variation).sum())
    high, low = ends
    if heads == 1:
        where = head_name(found.layers[high[0]], high[1])
        lead = f"In {where}, the only head, the standard deviation of ‖f(x)‖ is {percent(average)} of its mean"
        return [f"{lead} (CV {number(average, 2)}): {meaning}."]
    named = [(percent(variation[at]), head_name(found.layers[at[0]], at[1])) for at in (low, high)]
    lead = f"Within a head, the standard deviation of ‖f(x)‖ is on average {percent(average)} of its mean"
    ends_said = f"from {named[0][0]} in {named[0][1]} to {named[1][0]} in {named[1][1]}"
    return [f"{lead} (CV {number(average, 2)}; {ends_said}): {meaning}."]


def _inputs(found: Dispersion) -> list[str]:
    if found.inputs is None or int(found.inputs.count.max()) < 2:
        return []
    inputs = float(mean_over(found.inputs.variation))
    outputs = float(mean_over(found.transformed.variation.reshape(-1)))
    if not (np.isfinite(inputs) and np.isfinite(outputs)):
        return []
    if inputs * ALIKE < outputs:
        compared = "varies less than ‖f(x)‖"
    elif inputs > outputs * ALIKE:
        compared = "varies more than ‖f(x)‖"
    else:
        compared = "varies about as much as ‖f(x)‖"
    return [f"What the layers are given, ‖x‖, {compared}: CV {number(inputs, 2)} on average over the layers."]


def _singular(found: Dispersion) -> list[str]:
    if found.singular is None:
        return []
    ratios = np.array([stretch(head)[2] for layer in found.singular for head in layer])
    ratios = ratios[np.isfinite(ratios)]
    if not ratios.size:
        return []
    if ratios.size == 1:
        return [f"f stretches its strongest direction {number(ratios[0], 2)} times as much as its weakest."]
    low, middle, high = (number(float(x), 2) for x in (ratios.min(), np.median(ratios), ratios.max()))
    return [
        f"f does not treat all directions alike: its largest singular value is {low} to {high} times its smallest "
        f"(median {middle}, {count(ratios.size)} heads)."
    ]
