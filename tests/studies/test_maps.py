"""The mean map of every head: against plain loops, and for heads with a known answer."""

import numpy as np
import pytest
import torch
from blocks import random_block, seen
from hypothesis import given
from hypothesis import strategies as st

from normlens.studies import MapsStudy, StudyError, study
from normlens.studies.maps import parts

MEASURES = ("weights", "norms")


def shares_of(block, measure, b, n):
    """The map of each head of one sequence, its rows as shares."""
    maps = block.weights[b, :, :n, :n].double().numpy()
    if measure == "norms":
        maps = maps * block.norms[b, :, None, :n]
    return maps / maps.sum(-1, keepdims=True)


def slowly(maps, size):
    """One cell at a time, in small steps: every token is 24 crumbs, and every crumb lies in one part."""
    n, fine = len(maps), 24  # size divides 24 n, so that no crumb lies in two parts
    part = [crumb * size // (fine * n) for crumb in range(fine * n)]
    raster, queries = np.zeros((size, size)), np.zeros(size)
    for i in range(fine * n):
        queries[part[i]] += 1
        for j in range(n):
            for crumb in range(fine):
                raster[part[i], part[j * fine + crumb]] += maps[i // fine, j] / fine
    return raster / queries[:, None]


@pytest.mark.parametrize(("lengths", "causal"), [((7, 4), False), ((5, 9), True)])
def test_a_mean_map_is_that_of_plain_loops(lengths, causal):
    weights, values, out_weight = random_block(0, lengths, causal=causal)
    block = seen(weights, values, out_weight, lengths)
    statistics = MapsStudy(size=6).see(block)
    for measure in MEASURES:
        rasters = [[slowly(head, 6) for head in shares_of(block, measure, b, n)] for b, n in enumerate(lengths)]
        np.testing.assert_allclose(statistics[f"map_{measure}"].mean, np.mean(rasters, axis=0), atol=1e-6)
        assert np.array_equal(statistics["sees"].mean > 0, np.mean(rasters, axis=(0, 1)) > 0)
    beyond = [
        np.maximum(shares_of(block, "weights", b, n) - shares_of(block, "norms", b, n), 0).sum(-1).mean(-1)
        for b, n in enumerate(lengths)
    ]
    np.testing.assert_allclose(statistics["difference"].mean, np.mean(beyond, axis=0), atol=1e-6)


@given(lengths=st.lists(st.integers(1, 60), min_size=1, max_size=4), size=st.integers(2, 30))
def test_every_token_lies_in_the_parts_of_its_text_once_and_parts_are_equally_long(lengths, size):
    lengths = np.array(lengths)
    overlap = parts(lengths, int(lengths.max()), size).numpy()
    real = np.arange(lengths.max()) < lengths[:, None]
    np.testing.assert_allclose(overlap.sum(axis=1), real, atol=1e-12)
    np.testing.assert_allclose(overlap.sum(axis=2), np.broadcast_to(lengths[:, None] / size, (len(lengths), size)))


def made(weights, norms):
    """The study of one text of one head with these weights and norms ‖f(x)‖."""
    n = len(weights)
    values = torch.tensor(norms, dtype=torch.float32)[None, None, :, None]
    block = seen(torch.tensor(weights, dtype=torch.float32)[None, None], values, torch.ones(1, 1, 1), (n,))
    return MapsStudy(size=4).see(block)


def test_a_diagonal_a_column_and_blocks_are_seen_as_such():
    n = 16
    assert np.allclose(made(np.eye(n), np.ones(n))["map_weights"].mean[0], np.eye(4))
    column = np.zeros((n, n))
    column[:, 5] = 1
    assert np.allclose(made(column, np.ones(n))["map_weights"].mean[0], [[0, 1, 0, 0]] * 4)
    blocks = np.kron(np.eye(2), np.full((8, 8), 1 / 8))
    assert np.allclose(made(blocks, np.ones(n))["map_weights"].mean[0], np.kron(np.eye(2), np.full((2, 2), 0.5)))


def test_attention_to_a_zero_vector_is_in_the_map_of_the_weights_only_and_all_of_it_differs():
    parked = np.full((8, 8), 0.2 / 7)
    parked[:, 0] = 0.8
    statistics = made(parked, [0, *[1] * 7])
    assert np.allclose(statistics["map_weights"].mean[0, :, 0], 0.8 + 0.2 / 7)
    assert np.allclose(statistics["map_norms"].mean[0, :, 0], 1 / 7)
    assert statistics["difference"].mean[0] == pytest.approx(0.8)
    assert made(np.eye(4), np.zeros(4))["difference"].mean[0] == pytest.approx(1)  # nothing is contributed


def test_where_no_query_sees_a_key_the_map_is_blank_not_zero(causal, texts):
    result = study(causal, texts, studies=("maps",))["maps"]["self"]
    above = np.triu(np.ones((24, 24), bool), 1)
    far = np.triu(np.ones((24, 24), bool), 8)  # in a short text one token lies in several parts
    for maps in result.maps.values():
        assert np.isnan(maps[..., far]).all()
        assert np.isfinite(maps[..., ~above]).all()


def test_rows_add_up_to_one_for_every_kind_of_attention(minilm, causal, translator, texts):
    for lens in (minilm, causal, translator):
        for result in study(lens, texts, studies=("maps",))["maps"].values():
            for maps in result.maps.values():
                np.testing.assert_allclose(np.nansum(maps, axis=-1), 1, atol=1e-5)


def test_padding_changes_nothing(minilm, texts):
    together, alone = (
        study(minilm, texts, studies=("maps",), batch_tokens=tokens)["maps"]["self"] for tokens in (4096, 1)
    )
    for measure in MEASURES:
        np.testing.assert_allclose(together.maps[measure], alone.maps[measure], atol=1e-6)
    np.testing.assert_allclose(together.difference, alone.difference, atol=1e-6)


def test_a_run_that_was_interrupted_is_continued_to_the_same_numbers(minilm, tmp_path, monkeypatch, texts):
    monkeypatch.setattr("normlens.studies.run.SHARD", 2)
    monkeypatch.setattr("normlens.studies.run.SAVE", 0.0)
    whole, done = study(minilm, texts, studies=("maps",))["maps"]["self"], [0]

    def interrupt(items, total):
        done[0] += items
        if done[0] >= 3:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        study(minilm, texts, studies=("maps",), folder=tmp_path, progress=interrupt)
    resumed = study(minilm, texts, studies=("maps",), folder=tmp_path, resume=True)["maps"]["self"]
    for measure in MEASURES:
        assert whole.maps[measure].tobytes() == resumed.maps[measure].tobytes()
    assert whole.difference.tobytes() == resumed.difference.tobytes()


@pytest.mark.parametrize("size", [1, 65])
def test_a_raster_that_cannot_be_read_is_refused(size):
    with pytest.raises(StudyError, match=f"size must be at least 2 and at most 64 \\(got {size}\\)"):
        MapsStudy(size=size)


def test_the_difference_is_one_of_shares_also_where_weights_do_not_add_up_to_one():
    parked = np.full((8, 8), 0.1 / 7)
    parked[:, 0] = 0.4  # half of what a softmax over all keys would have, as with a sink outside the text
    assert made(parked, [0, *[1] * 7])["difference"].mean[0] == pytest.approx(0.8)
