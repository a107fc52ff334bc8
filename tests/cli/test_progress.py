"""Where nobody watches, a plain line now and then; nothing about a run that is over soon."""

import pytest

from normlens.cli.progress import Progress


def lines(capsys, steps, total, resumed=False):
    """What is written when so many items are done at these seconds."""
    now = [0.0]
    with Progress(resumed=resumed, clock=lambda: now[0]) as progress:
        for second, items in steps:
            now[0] = second
            progress(items, total)
    return [line.removeprefix("normlens: ") for line in capsys.readouterr().err.splitlines()]


def test_a_short_run_is_silent(capsys):
    assert lines(capsys, [(0, 0), (10, 50), (29, 40), (40, 10)], 100) == []


def test_a_line_for_every_tenth_but_not_more_than_one_in_half_a_minute(capsys):
    steps = [(0, 0), *((10 * n, 10) for n in range(1, 10))]
    assert lines(capsys, steps, 100) == [
        "30 of 100 items, 1 a second, 01:10 left",
        "60 of 100 items, 1 a second, 00:40 left",
        "90 of 100 items, 1 a second, 00:10 left",
    ]


def test_a_slow_run_is_heard_of_every_five_minutes(capsys):
    steps = [(0, 0), *((100 * n, 1) for n in range(1, 8))]
    assert lines(capsys, steps, 5000) == [
        "3 of 5,000 items, 0.01 a second, 138:48:20 left",
        "6 of 5,000 items, 0.01 a second, 138:43:20 left",
    ]


@pytest.mark.parametrize(
    ("before", "said"),
    [
        (0, "no items were saved; starting at the first"),
        (64, "64 of 992 items are already done; continuing with the rest"),
        (992, "all 992 items are already done"),
    ],
)
def test_what_is_resumed_is_said(before, said, capsys):
    assert lines(capsys, [(0, before)], 992, resumed=True) == [said]


def test_the_rate_is_that_of_this_run_alone(capsys):
    assert lines(capsys, [(0, 500), (50, 100)], 1000, resumed=True)[1:] == [
        "600 of 1,000 items, 2 a second, 03:20 left"
    ]
