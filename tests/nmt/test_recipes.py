"""The schedule by hand, and numbers that are refused before any work."""

from dataclasses import replace

import pytest

from normlens.nmt import PRESETS, RecipeError, tailored

SMALL, PAPER = PRESETS["small"], PRESETS["paper"]


@pytest.mark.parametrize(
    ("update", "rate"),
    [
        (1, 0.25),  # a quarter of the way up
        (4, 1.0),  # the peak
        (9, 2 / 3),  # (4 / 9) ** 0.5
        (16, 0.5),  # the first of the last quarter: 5 of 5 left
        (18, 0.6 * (4 / 18) ** 0.5),  # 3 of 5 left
        (20, 0.2 * (4 / 20) ** 0.5),  # 1 of 5 left: the last update still moves
    ],
)
def test_the_rate_rises_falls_and_fades(update, rate):
    recipe = replace(SMALL, rate=1.0, warmup=4, updates=20, cooldown=0.25)
    assert recipe.rate_at(update) == pytest.approx(rate, rel=1e-12)


def test_the_paper_never_fades():
    assert PAPER.rate_at(4000) == pytest.approx(1e-3)
    assert PAPER.rate_at(100_000) == pytest.approx(1e-3 * 0.2)  # (4000 / 100000) ** 0.5


def test_a_preset_is_changed_where_it_is_told_to():
    assert tailored(SMALL) == SMALL
    assert tailored(SMALL, updates=5500, rate=None) == replace(SMALL, updates=5500)
    assert tailored(SMALL, updates=100).warmup == 10
    assert tailored(SMALL, updates=100, warmup=40).warmup == 40
    assert tailored(SMALL, width=80).inner == 320
    assert tailored(PAPER, width=256).inner == 512


@pytest.mark.parametrize(
    ("numbers", "said"),
    [
        ({"width": 50, "heads": 4}, r"multiple of heads \(got width 50 and 4 heads\).\n.*--width 52"),
        ({"updates": 0}, r"updates must be above 0 .*\(got 0\)"),
        ({"layers": -1}, r"layers .*\(got -1\)"),
        ({"rate": float("nan")}, r"rate .*\(got nan\)"),
        ({"rate": float("inf")}, r"rate .* finite \(got inf\)"),
        ({"dropout": 1.0}, r"dropout must be at least 0 and below 1 \(got 1.0\)"),
        ({"warmup": 0}, r"warmup .*\(got 0\)"),
    ],
)
def test_numbers_that_cannot_be_trained_with_are_refused(numbers, said):
    with pytest.raises(RecipeError, match=said):
        tailored(SMALL, **numbers)
