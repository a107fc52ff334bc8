"""Orders of tokens: the best and the worst, against every order there is."""

from itertools import permutations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from normlens.studies import StudyError
from normlens.studies.orders import SHARES, Drops, bounds, check_shares, counts_of, first_of, order_of


def random_drops(tokens, seed):
    """Drops that depend on which tokens are gone together, not only on each."""
    values = np.random.default_rng(seed).normal(size=2**tokens)
    return Drops(lambda sets: values[sets @ (1 << np.arange(tokens))], tokens)


def aopc(drops, order, counts):
    return float(drops.of(first_of(np.array(order), counts)).mean())


@given(tokens=st.integers(1, 6), seed=st.integers(0, 99))
def test_the_bounds_are_those_of_all_orders(tokens, seed):
    drops, counts = random_drops(tokens, seed), counts_of(SHARES, tokens)
    found = [aopc(drops, order, counts) for order in permutations(range(tokens))]
    assert bounds(drops, counts, width=1) == pytest.approx((min(found), max(found)))


@given(seed=st.integers(0, 99), width=st.integers(1, 4))
def test_a_beam_finds_orders_that_exist_and_a_wider_one_is_not_far_from_the_best(seed, width):
    drops, counts = random_drops(12, seed), counts_of((0.1, 0.5), 12)
    worst, best = bounds(drops, counts, width)
    chance = np.random.default_rng(seed)
    mean = np.mean([aopc(drops, chance.permutation(12), counts) for _ in range(20)])
    assert worst < mean < best


def test_where_tokens_add_up_even_a_beam_of_one_is_exact():
    values = np.random.default_rng(0).normal(size=16)
    drops, counts = Drops(lambda sets: sets @ values, 16), counts_of(SHARES, 16)
    down, up = np.argsort(-values), np.argsort(values)
    assert bounds(drops, counts, width=1) == pytest.approx((aopc(drops, up, counts), aopc(drops, down, counts)))


def test_a_set_is_computed_once():
    asked = []
    drops = Drops(lambda sets: asked.append(len(sets)) or sets.sum(axis=1).astype(float), 3)
    sets = np.eye(3, dtype=bool)
    assert drops.of(np.concatenate([sets, sets])).tolist() == [1.0] * 6
    assert drops.single.tolist() == [1.0] * 3
    assert asked == [3]


def test_counts_are_at_least_one_and_leave_one():
    assert counts_of(SHARES, 20).tolist() == [1, 2, 4, 10]
    assert counts_of(SHARES, 3).tolist() == [1, 1, 1, 2]
    assert counts_of((0.99,), 4).tolist() == [3]
    assert counts_of(SHARES, 1).tolist() == [1, 1, 1, 1]


def test_equal_scores_are_ordered_by_chance():
    scores = np.array([0.0, 1.0, 0.0, 0.0])
    orders = {tuple(order_of(scores, np.random.default_rng(seed)).tolist()) for seed in range(40)}
    assert len(orders) == 6
    assert {order[0] for order in orders} == {1}


def test_what_is_no_share_is_refused():
    for shares in ((), (0,), (1.0,)):
        with pytest.raises(StudyError, match="shares must be"):
            check_shares(shares, 3)
    with pytest.raises(StudyError, match="width must be"):
        check_shares(SHARES, 0)
