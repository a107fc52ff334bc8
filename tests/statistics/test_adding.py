"""Statistics are values: a corpus cut into shards, added in any order, is the corpus."""

import os

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import spearmanr

from normlens.statistics import Histogram, Moments, Products, Ranks, Sample, StateError, read, write

numbers = st.lists(st.floats(-(2.0**100), 2.0**100, width=32), min_size=1, max_size=60)
seeds = st.integers(0, 10_000)


def shuffled(parts, seed):
    order = np.random.default_rng(seed).permutation(len(parts))
    total = parts[order[0]]
    for index in order[1:]:
        total = total + parts[index]
    return total


def same(one, other):
    for field in one.__dataclass_fields__:
        np.testing.assert_array_equal(getattr(one, field), getattr(other, field), err_msg=field)


@given(values=numbers, cut=st.integers(0, 60), seed=seeds)
def test_moments_of_shards_are_the_moments_of_the_whole(values, cut, seed):
    values = np.array(values)[:, None] * [1e-20, 2e-20]
    total = shuffled([Moments.of(part) for part in np.split(values, [min(cut, len(values))])], seed)
    assert (total.count == len(values)).all()
    scale = 1e-12 * (1 + np.abs(values).max())
    np.testing.assert_allclose(total.mean, values.mean(axis=0), rtol=1e-12, atol=scale)
    np.testing.assert_allclose(total.deviation, values.std(axis=0), rtol=1e-6, atol=scale)
    np.testing.assert_array_equal((total.low, total.high), (values.min(axis=0), values.max(axis=0)))


def test_moments_count_only_what_is_present():
    values = np.array([[1.0, 5.0], [3.0, 7.0]])
    one = Moments.of(values, np.array([[True, False], [True, False]]))
    assert one.count.tolist() == [2, 0]
    assert (one.mean[0], one.deviation[0]) == (2.0, 1.0)
    assert (one + Moments.of(values)).count.tolist() == [4, 2]
    assert (one + Moments.of(values)).mean[1] == 6.0


@given(values=numbers, seed=seeds)
def test_grouped_moments_are_the_moments_of_each_group(values, seed):
    values = np.array(values) * 1e-30
    groups = np.random.default_rng(seed).integers(0, 4, len(values))
    one = Moments.grouped(values, groups, 5)
    for group in range(5):
        mine = values[groups == group]
        assert one.count[group] == len(mine)
        if len(mine):
            np.testing.assert_allclose(one.mean[group], mine.mean(), rtol=1e-9, atol=1e-12)
            np.testing.assert_allclose(one.deviation[group], mine.std(), rtol=1e-6, atol=1e-9)
            assert (one.low[group], one.high[group]) == (mine.min(), mine.max())


@given(values=numbers, size=st.integers(2, 40), cuts=st.integers(1, 6), seed=seeds)
def test_a_histogram_does_not_depend_on_the_order_of_its_shards(values, size, cuts, seed):
    values = np.array(values, np.float32)
    whole = Histogram.of(values, size=size)
    assert len(whole.codes) <= size
    assert whole.counts.sum() == len(values)
    parts = [Histogram.of(part, size=size) for part in np.array_split(values, cuts)]
    same(shuffled(parts, seed), whole)


@given(seed=seeds, count=st.integers(2, 300), size=st.integers(2, 40), cuts=st.integers(1, 6))
def test_a_rank_table_does_not_depend_on_the_order_of_its_shards(seed, count, size, cuts):
    random = np.random.default_rng(seed)
    x, y = (random.normal(size=(2, count)) * 10.0 ** random.integers(-20, 20, (2, count))).astype(np.float32)
    parts = [Ranks.of(a, b, size=size) for a, b in zip(np.array_split(x, cuts), np.array_split(y, cuts), strict=True)]
    same(shuffled(parts, seed), Ranks.of(x, y, size=size))


@given(seed=seeds, count=st.integers(3, 200), values=st.integers(2, 30))
def test_with_room_for_every_number_rho_is_exact_also_with_ties(seed, count, values):
    random = np.random.default_rng(seed)
    x, y = random.integers(-values, values, (2, count))
    if len(set(x.tolist())) > 1 and len(set(y.tolist())) > 1:
        np.testing.assert_allclose(Ranks.of(x, y).rho, spearmanr(x, y).statistic, atol=1e-12)


@pytest.mark.parametrize("side", [0, 1])
def test_rho_of_a_constant_is_not_defined(side):
    pair = [np.ones(50), np.arange(50.0)]
    assert np.isnan(Ranks.of(pair[side], pair[1 - side]).rho)
    assert np.isnan(Ranks.none().rho)


def adversarial(random, count):
    normal, other = random.normal(size=(2, count))
    tail = random.standard_cauchy(count)
    pareto = random.pareto(0.1, count).clip(0, 1e30)
    return {
        "normal": (normal, normal + other),
        "two values": (random.integers(0, 2, count), random.integers(0, 2, count)),
        "two values against many": ((normal > 0) * 1.0, normal + other),
        "Cauchy tails": (tail, tail + random.standard_cauchy(count)),
        "Pareto tails": (pareto, pareto * random.pareto(0.3, count).clip(0, 1e6)),
        "one order, another scale": (normal, np.exp(3 * normal)),
        "opposite order": (normal, -np.cbrt(normal)),
        "a narrow band far from zero": (1000 + 1e-3 * normal, normal + other),
        "half ties": (np.maximum(normal, 0), normal + 2 * other),
        "tiny and huge": (10.0 ** random.uniform(-30, 30, count), random.uniform(size=count)),
    }


@pytest.mark.parametrize("case", list(adversarial(np.random.default_rng(0), 2)))
def test_rho_of_a_million_hostile_pairs_in_shuffled_shards_is_good_to_5e_4(case):
    x, y = (side.astype(np.float32) for side in adversarial(np.random.default_rng(1), 1_000_000)[case])
    parts = [Ranks.of(a, b) for a, b in zip(np.array_split(x, 9), np.array_split(y, 9), strict=True)]
    assert abs(shuffled(parts, 3).rho - spearmanr(x, y).statistic) < 5e-4


def test_numbers_too_uneven_for_the_codes_are_called_blurred():
    """A narrow heap and a few outliers over forty orders of magnitude: the heap falls into few codes."""
    random = np.random.default_rng(0)
    heap, noise = random.normal(size=(2, 100_000))
    uneven = np.where(random.random(100_000) < 0.01, 10.0 ** random.uniform(-20, 20, 100_000), 1 + 1e-4 * heap)
    assert Ranks.of(uneven, noise).blur > 1e-3
    assert Ranks.of(heap, noise).blur < 1e-3
    assert Ranks.of(random.integers(0, 2, 1000), random.integers(0, 2, 1000)).blur == 0


def test_the_margins_of_a_rank_table_are_histograms():
    random = np.random.default_rng(0)
    x, y = random.lognormal(size=(2, 20_000)).astype(np.float32)
    table = Ranks.of(x, y)
    same(table.x, Histogram.of(x))
    np.testing.assert_allclose(table.y.quantile(0.5), np.median(y), rtol=0.01)


@given(seed=seeds, count=st.integers(1, 200), size=st.integers(1, 50), cuts=st.integers(1, 5))
def test_a_sample_of_shards_is_a_sample_of_the_whole(seed, count, size, cuts):
    random = np.random.default_rng(seed)
    parts = [Sample.of(part, size=size, random=random) for part in np.array_split(np.arange(count)[:, None], cuts)]
    one, other = shuffled(parts, seed), shuffled(parts, seed + 1)
    same(one, other)
    assert len(set(one.rows[:, 0])) == min(size, count)


def test_every_row_is_as_likely_to_be_drawn():
    hits = np.zeros(20)
    for seed in range(400):
        random = np.random.default_rng(seed)
        first = Sample.of(np.arange(15)[:, None], size=5, random=random)
        hits[(first + Sample.of(np.arange(15, 20)[:, None], size=5, random=random)).rows[:, 0].astype(int)] += 1
    assert hits.sum() == 2000
    assert (abs(hits - 100) < 50).all()


def test_statistics_come_back_from_a_file_as_they_were(tmp_path):
    random = np.random.default_rng(0)
    rows = random.normal(size=(30, 2))
    statistics = {
        "a/b": Moments.of(rows),
        "h": Histogram.of(rows[:, 0]),
        "r": Ranks.of(rows[:, 0], rows[:, 1], size=8),
        "s": Sample.of(rows, size=4, random=random),
        "big": Histogram(8, 0, np.array([1, 2]), np.array([1, 1 << 40])),
    }
    write(tmp_path / "x.safetensors", statistics, {"items": 3})
    back, facts = read(tmp_path / "x.safetensors")
    assert facts == {"items": 3}
    assert list(back) == list(statistics)
    for name, one in statistics.items():
        same(back[name], one)
        assert all(
            getattr(back[name], f).dtype == getattr(one, f).dtype
            for f in one.__dataclass_fields__
            if isinstance(getattr(one, f), np.ndarray)
        )


def test_a_file_that_is_no_state_is_refused_in_words(tmp_path):
    (tmp_path / "x.safetensors").write_bytes(b"nothing of the kind")
    with pytest.raises(StateError, match="does not hold the state of a run"):
        read(tmp_path / "x.safetensors")


def test_the_state_may_be_read_by_whoever_may_read_new_files(tmp_path):
    before = os.umask(0o027)
    try:
        write(tmp_path / "x.safetensors", {"m": Moments.of(np.ones((2, 1)))}, {})
    finally:
        os.umask(before)
    assert (tmp_path / "x.safetensors").stat().st_mode & 0o777 == 0o640


def test_a_state_that_cannot_be_written_leaves_the_old_one(tmp_path, monkeypatch):
    path = tmp_path / "x.safetensors"
    write(path, {"m": Moments.of(np.ones((2, 1)))}, {"items": 1})
    before = path.read_bytes()

    def full(*args, **options):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("normlens.statistics.files.save_file", full)
    with pytest.raises(StateError, match="No space left"):
        write(path, {"m": Moments.of(np.ones((3, 1)))}, {"items": 2})
    assert path.read_bytes() == before
    assert [p.name for p in tmp_path.iterdir()] == ["x.safetensors"]


@given(seed=seeds, count=st.integers(1, 30), cut=st.integers(0, 30))
def test_directions_of_shards_are_the_directions_of_the_whole(seed, count, cut):
    random = np.random.default_rng(seed)
    vectors, weights, cells = random.normal(size=(count, 3)), random.random(count), random.integers(0, 3, count)
    parts = [
        Products.grouped(vectors[some], weights[some], cells[some], 4)
        for some in np.split(np.arange(count), [min(cut, count)])
    ]
    total = shuffled(parts, seed)
    for cell in range(4):
        mine = cells == cell
        expected = sum(
            (w * np.outer(v, v) for v, w in zip(vectors[mine], weights[mine], strict=True)), np.zeros((3, 3))
        )
        np.testing.assert_allclose(total.sums[cell], expected, atol=1e-12)
        if mine.any():
            values = np.linalg.eigvalsh(expected)
            np.testing.assert_allclose(total.rank[cell], values.sum() ** 2 / (values**2).sum(), rtol=1e-9)
        else:
            assert np.isnan(total.rank[cell])


def test_one_direction_has_rank_one_at_any_size_and_n_equal_ones_have_rank_n():
    for size in (1e-150, 1.0, 1e70):
        assert Products.grouped(size * np.ones((4, 3)), np.ones(4), np.zeros(4, int), 1).rank == pytest.approx(1)
        assert Products.grouped(size * np.eye(3), np.ones(3), np.zeros(3, int), 1).rank == pytest.approx(3)
