"""Distances between heads: against plain loops and scipy, and heads with a known answer."""

import math

import blocks
import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from scipy.spatial.distance import jensenshannon

from normlens.models import Encoded
from normlens.statistics import Statistic
from normlens.studies import Batch, DistancesStudy, StudyError, study
from normlens.studies.distances import clustered, scaled
from normlens.studies.divergence import all_divergences, distributions, divergence
from normlens.studies.seen import Pass
from normlens.studies.sums import Sums

TEXTS = ["The cat saw the dog, and the dog saw the cat. It ran!", "No. Yes, no.", "Rain fell on the grey sea."]


@given(heads=st.integers(1, 5), keys=st.integers(1, 9), seed=st.integers(0, 999))
def test_every_divergence_is_that_of_scipy(heads, keys, seed):
    rows = distributions(torch.rand(heads, 3, keys, generator=torch.Generator().manual_seed(seed)).double() ** 4)
    table = all_divergences(rows)
    for query in range(3):
        for one in range(heads):
            for other in range(heads):
                expected = jensenshannon(rows[one, query], rows[other, query]) ** 2
                assert float(table[query, one, other]) == pytest.approx(expected, abs=1e-12)
                assert float(divergence(rows[one, query], rows[other, query])) == pytest.approx(expected, abs=1e-12)


def test_equal_distributions_are_0_apart_and_those_without_a_common_key_log_2():
    rows = torch.tensor([[[1.0, 0, 0]], [[1.0, 0, 0]], [[0, 0.5, 0.5]]])
    table = all_divergences(rows)[0]
    assert table[0, 1] == 0
    assert table[0, 0] == 0
    assert float(table[0, 2]) == pytest.approx(math.log(2))


def slowly(lens, texts):
    """Mean over all queries of all texts of scipy's divergence, for every two heads."""
    totals, queries = {"weights": 0.0, "norms": 0.0}, 0
    for text in texts:
        trace = lens.trace(text)
        for measure in totals:
            maps = [b.weights if measure == "weights" else b.weighted_norms for b in trace.self_attention]
            rows = torch.cat([m[0].double() for m in maps]).numpy()
            rows = rows / rows.sum(-1, keepdims=True)
            for query in range(rows.shape[1]):
                totals[measure] = totals[measure] + np.array(
                    [[jensenshannon(a[query], b[query]) ** 2 for b in rows] for a in rows]
                )
        queries += rows.shape[1]
    return {measure: total / queries for measure, total in totals.items()}, queries


@pytest.mark.parametrize("model", ["causal", "minilm"])
def test_distances_of_a_run_with_every_query_are_those_of_loops(model, request):
    lens, texts = request.getfixturevalue(model), TEXTS[1:]
    result = study(lens, texts, studies=(DistancesStudy(queries=99),))["distances"]["self"]
    expected, queries = slowly(lens, texts)
    assert result.queries == queries
    for measure, between in expected.items():
        np.testing.assert_allclose(result.between[measure], np.nan_to_num(between), atol=3e-6)
        assert (result.between[measure].diagonal() == 0).all()


def test_a_translation_model_has_distances_of_every_kind(translator, texts):
    found = study(translator, texts, studies=("distances",))
    assert set(found["distances"]) == {"encoder", "decoder", "cross"}
    assert found["distances"]["cross"].between["weights"].shape == (4, 4)
    assert "nan" not in found.show().lower()


def test_padding_changes_nothing(minilm):
    together = study(minilm, TEXTS, studies=(DistancesStudy(queries=99),))["distances"]["self"]
    alone = study(minilm, TEXTS, studies=(DistancesStudy(queries=99),), batch_tokens=1)["distances"]["self"]
    for measure, between in together.between.items():
        np.testing.assert_allclose(between, alone.between[measure], atol=2e-6)


def counted(weights, norms, *, queries=99):
    """The result for one sequence of hand-made heads (layer, head, tgt, src) with these ‖f(x)‖ (layer, head, src)."""
    statistics: dict[str, Statistic] = {}
    settings = DistancesStudy(queries=queries)
    counter = settings.counter(Sums(statistics, "distances"), blocks.RUN)
    n = weights.shape[-1]
    for layer, (maps, long) in enumerate(zip(weights, norms, strict=True)):
        heads = len(maps)
        counter.see(
            blocks.seen(
                torch.as_tensor(maps, dtype=torch.float32)[None],
                torch.as_tensor(long, dtype=torch.float32)[None, :, :, None],
                torch.ones(heads, 1, 1),
                [n],
                layer=layer,
            )
        )
    counter.see_pass(Pass(blocks.RUN, Batch(Encoded({}, (), (), None, None), {}), None, ()))
    return settings, settings.result(Sums(statistics, "distances", "self"), blocks.RUN)


def test_heads_that_attend_to_the_same_token_are_one_cluster_and_norms_can_part_them():
    """Heads 0 and 1 of both layers attend to token 1 alone; half of the attention of head 2 is on either neighbour."""
    n = 6
    on_one = np.zeros((n, n))
    on_one[:, 1] = 1
    shared = np.full((n, n), 0.0)
    shared[:, 2] = shared[:, 4] = 0.5
    weights = np.stack([[on_one, shared], [on_one, shared]])
    norms = np.ones((2, 2, n))
    norms[1, 1, 2] = 0  # of layer 1, head 1 only token 4 contributes
    _, result = counted(weights, norms)
    assert result.names == ["L0H0", "L0H1", "L1H0", "L1H1"]
    assert result.clusters["weights"].tolist() == [1, 2, 1, 2]
    far = math.log(2)
    np.testing.assert_allclose(result.between["weights"][0], [0, far, 0, far], atol=1e-6)
    parted = jensenshannon([0.5, 0.5], [0.0, 1.0]) ** 2
    assert result.between["norms"][1, 3] == pytest.approx(parted, abs=1e-6)
    places = result.places["weights"]
    assert np.linalg.norm(places[0] - places[1]) == pytest.approx(far, abs=1e-5)
    assert np.linalg.norm(places[0] - places[2]) == pytest.approx(0, abs=1e-5)


def test_a_head_whose_queries_contribute_nothing_has_no_distance_and_no_cluster():
    maps = np.full((1, 3, 4, 4), 0.25)
    norms = np.ones((1, 3, 4))
    norms[0, 2] = 0
    settings, result = counted(maps, norms)
    assert result.clusters["weights"].tolist() == [1, 1, 1]
    assert result.clusters["norms"].tolist() == [1, 1, 0]
    assert np.isnan(result.between["norms"][2]).all()
    assert [row["cluster_norms"] for row in settings.per_head(result).rows()] == [1, 1, None]
    settings.section(result, blocks.RUN)


def test_the_same_queries_are_drawn_for_every_layer_and_every_run(minilm):
    few = [study(minilm, TEXTS, studies=(DistancesStudy(queries=2),))["distances"]["self"] for _ in range(2)]
    assert few[0].queries == 2 * len(TEXTS)
    for measure, between in few[0].between.items():
        assert between.tobytes() == few[1].between[measure].tobytes()
    other = study(minilm, TEXTS, studies=(DistancesStudy(queries=2),), seed=1)["distances"]["self"]
    assert not np.allclose(other.between["weights"], few[0].between["weights"])


def test_points_of_the_plane_are_found_again():
    points = np.random.default_rng(0).normal(size=(7, 2))
    between = np.linalg.norm(points[:, None] - points, axis=-1)
    places = scaled(between)
    np.testing.assert_allclose(np.linalg.norm(places[:, None] - places, axis=-1), between, atol=1e-9)


def test_clusters_are_numbered_by_size_and_their_number_can_be_chosen():
    line = np.array([0.0, 5.0, 5.1, 5.2, 9.0])
    between = np.abs(line[:, None] - line)
    assert clustered(between, 3).tolist() == [2, 1, 1, 1, 3]
    assert clustered(between, 1).tolist() == [1, 1, 1, 1, 1]
    assert clustered(between).max() >= 2
    assert clustered(between[:1, :1]).tolist() == [1]


def test_a_run_that_was_interrupted_is_continued_to_the_same_numbers(minilm, tmp_path, monkeypatch):
    monkeypatch.setattr("normlens.studies.run.SHARD", 1)
    monkeypatch.setattr("normlens.studies.run.SAVE", 0.0)
    whole = study(minilm, TEXTS, studies=("distances",))

    def stop(items, total):
        stop.done = getattr(stop, "done", 0) + items
        if stop.done >= 2:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        study(minilm, TEXTS, studies=("distances",), folder=tmp_path, progress=stop)
    again = study(minilm, TEXTS, studies=("distances",), folder=tmp_path, resume=True)
    assert again.to_json() == whole.to_json()
    for measure, between in whole["distances"]["self"].between.items():
        assert again["distances"]["self"].between[measure].tobytes() == between.tobytes()


@pytest.mark.parametrize("wrong", [{"queries": 0}, {"clusters": -1}])
def test_numbers_that_mean_nothing_are_refused(wrong):
    with pytest.raises(StudyError, match="must be at least"):
        DistancesStudy(**wrong)
