"""Batches hold every pair once an epoch, little padding, and come again in the same order."""

from itertools import islice

import numpy as np
import torch
from hypothesis import given
from hypothesis import strategies as st

from normlens.nmt.batches import joined
from normlens.nmt.subwords import END, PAD

lengths = st.lists(st.tuples(st.integers(1, 30), st.integers(1, 30)), min_size=1, max_size=80)
seeds = st.integers(0, 1000)
bounds = st.integers(10, 200)


def numbered(lengths):
    """Pair n is made of ids n + 10 alone."""
    return joined(([n + 10] * source, [n + 10] * target) for n, (source, target) in enumerate(lengths))


@given(lengths=lengths, tokens=bounds, seed=seeds)
def test_an_epoch_holds_every_pair_once_and_keeps_the_bound(lengths, tokens, seed):
    pairs = numbered(lengths)
    batches = pairs.epoch(tokens=tokens, seed=(seed, 0))
    assert sorted(np.concatenate(batches).tolist()) == list(range(len(lengths)))
    for chosen in batches:
        source, target = pairs.batch(chosen)
        assert max(source.numel(), target.numel()) <= tokens or len(chosen) == 1


@given(lengths=lengths, tokens=bounds, seed=seeds)
def test_a_row_comes_back_with_its_end_and_its_padding(lengths, tokens, seed):
    pairs = numbered(lengths)
    for chosen in pairs.epoch(tokens=tokens, seed=(seed, 0)):
        for side, rows in enumerate(pairs.batch(chosen)):
            for n, row in zip(chosen, rows.tolist(), strict=True):
                size = lengths[n][side]
                assert row == [n + 10] * size + [END] + [PAD] * (len(row) - size - 1)


@given(lengths=lengths, tokens=bounds, seed=seeds, skip=st.integers(0, 60))
def test_skipping_batches_is_what_a_resumed_training_does(lengths, tokens, seed, skip):
    pairs = numbered(lengths)
    whole = list(islice(pairs.endless(tokens=tokens, seed=seed), skip + 3))[skip:]
    rest = list(islice(pairs.endless(tokens=tokens, seed=seed, skip=skip), 3))
    for (source, target), (other_source, other_target) in zip(whole, rest, strict=True):
        assert torch.equal(source, other_source)
        assert torch.equal(target, other_target)


def test_epochs_and_seeds_differ_in_order():
    pairs = numbered([(3, 3)] * 50)
    orders = {
        tuple(np.concatenate(pairs.epoch(tokens=40, seed=seed)).tolist()) for seed in ((0, 0), (0, 1), (1, 0), (0, 0))
    }
    assert len(orders) == 3


def test_pairs_of_one_length_share_a_batch():
    """Ten of length 2 and ten of length 19, 40 tokens: 3 + 1 of each, never mixed."""
    pairs = numbered([(1, 1)] * 10 + [(19, 19)] * 10)
    widths = [pairs.batch(chosen)[0].shape for chosen in pairs.epoch(tokens=40, seed=(0, 0))]
    assert sorted(widths) == [(2, 20)] * 5 + [(10, 2)]
