"""Every aggregate equals the one that loops over heads and queries."""

import numpy as np
import pytest
import slowly
from scipy.stats import spearmanr

from normlens.corpora import frequency
from normlens.studies import mean_over, study

pytestmark = pytest.mark.slow
NAMES = ("[CLS]", "[SEP]", "comma & period", "other")
FOUR = {"[CLS]": ["[CLS]"], "[SEP]": ["[SEP]"], "comma & period": [",", "."]}


def category_of(token):
    return next((name for name, tokens in FOUR.items() if token in tokens), "other")


@pytest.fixture(scope="module", params=["minilm", "causal", "translator"])
def compared(request, texts):
    """What the studies found, and what the loops found."""
    lens = request.getfixturevalue(request.param)
    ranks = frequency.from_vocabulary(lens.subject.tokenizer)
    found = study(lens, texts, categories=FOUR, ranks="vocabulary", batch_tokens=60)
    return found, slowly.study(lens, texts, category_of, lambda i: None if ranks.excluded[i] else int(ranks.ranks[i]))


def test_norms_are_pooled_over_all_tokens_head_by_head(compared):
    found, (lengths, *_) = compared
    for (kind, layer, head), values in lengths.items():
        spread = found["dispersion"][kind].transformed
        assert spread.count[layer, head] == len(values)
        expected = np.mean(values), np.std(values), np.min(values), np.max(values)
        got = (part[layer, head] for part in (spread.mean, spread.deviation, spread.low, spread.high))
        rounding = 1e-6 * np.max(values)  # the shortest is one number, and rounded as its batch was
        np.testing.assert_allclose(tuple(got), expected, rtol=1e-6, atol=rounding)
        np.testing.assert_allclose(spread.variation[layer, head], np.std(values) / np.mean(values), rtol=1e-6)


def test_input_norms_are_those_of_the_hidden_states_without_the_last(compared):
    found, (_, inputs, *_) = compared
    if not inputs:
        pytest.skip("the loops look at hidden states of models with one side only")
    spread = found["dispersion"]["self"].inputs
    assert len(spread.mean) == len(inputs)
    for layer, values in inputs.items():
        np.testing.assert_allclose(spread.mean[layer], np.mean(values), rtol=1e-6)
        np.testing.assert_allclose(spread.deviation[layer], np.std(values), rtol=1e-5)


@pytest.mark.parametrize("what", ["weights", "norms", "transformed"])
def test_categories_are_summed_over_tokens_and_averaged_over_queries_then_sequences(compared, what):
    found, slow = compared
    cells = dict(zip(["weights", "norms", "transformed"], slow[2:5], strict=True))[what]
    for (kind, category, layer, head), values in cells.items():
        got = getattr(found["categories"][kind], what)[NAMES.index(category), layer, head]
        np.testing.assert_allclose(got, np.mean(values), rtol=1e-6, atol=1e-9)


def test_the_lines_of_figure_3_add_up_to_one_and_to_all_contributions(compared):
    found, (_, _, _, given, *_) = compared
    for kind, result in found["categories"].items():
        np.testing.assert_allclose(result.weight_shares.sum(axis=0), 1, atol=1e-6)
        for layer in result.layers:
            everything = [
                np.sum([np.mean(values) for cell, values in given.items() if (cell[0], *cell[2:]) == (kind, layer, h)])
                for h in range(result.norms.shape[2])
                if not np.isnan(result.norms[0, layer, h])
            ]
            np.testing.assert_allclose(mean_over(result.norms)[:, layer].sum(), np.mean(everything), rtol=1e-6)


def test_rho_is_that_of_scipy_pooled_and_head_by_head(compared):
    found, slow = compared
    pairs = slow[5]
    for kind, result in found["correlation"].items():
        for index, name in enumerate(NAMES):
            mine = [pair for cell, values in pairs.items() if cell[:2] == (kind, name) for pair in values]
            assert result.pairs[index] == len(mine)
            if mine:
                assert abs(result.rho[index] - slowly.rho(mine)) < 5e-4
            for layer in result.layers:
                for head in range(result.rho_heads.shape[2]):
                    here = pairs[kind, name, layer, head]
                    got = result.rho_heads[index, layer, head]
                    why = [one for one in result.constant if (one.category, one.layer) == (index, layer)]
                    assert sum(one.heads for one in why) >= np.isnan(got) * bool(here)
                    if np.isnan(got):
                        assert not here or np.ptp([norm for _, norm in here]) <= 1e-5 * max(norm for _, norm in here)
                    else:
                        assert abs(got - slowly.rho(here)) < 2e-3  # a few hundred pairs, in 256 codes


def test_pairs_of_all_categories_are_all_pairs(compared):
    """Of n tokens n² pairs, and n(n + 1)/2 where attention is causal."""
    found, _ = compared
    squares = 0
    for kind in found["correlation"].keys() - {"cross"}:
        lengths = found["dispersion"][kind].transformed
        pairs = found["correlation"][kind].pairs.sum() / np.count_nonzero(~np.isnan(lengths.mean))
        squares += 2 * pairs - np.max(lengths.count) if kind in found.run.causal else pairs
    assert squares == found.run.squares


def test_frequency_is_that_of_every_occurrence_and_of_every_type(compared):
    found, slow = compared
    for kind, occurrences in slow[6].items():
        result = found["frequency"][kind]
        ranked = [o for o in occurrences if o[0] is not None]
        assert (result.occurrences.points, result.excluded) == (len(ranked), len(occurrences) - len(ranked))
        rank, weight, norm, ids, special = (np.array(column) for column in zip(*ranked, strict=True))
        np.testing.assert_allclose(result.occurrences.weight, spearmanr(rank, weight).statistic, atol=5e-4)
        np.testing.assert_allclose(result.occurrences.norm, spearmanr(rank, norm).statistic, atol=5e-4)
        assert result.plain.points == (~special).sum() < len(ranked)
        rest = rank[~special]
        np.testing.assert_allclose(result.plain.weight, spearmanr(rest, weight[~special]).statistic, atol=5e-4)
        np.testing.assert_allclose(result.plain.norm, spearmanr(rest, norm[~special]).statistic, atol=5e-4)
        assert len(result.drawn.rank) == len(ranked)  # few enough for all to be drawn
        assert result.drawn_special.sum() == special.sum()
        assert set(result.drawn.rank[result.drawn_special]) <= {3, 4}  # [SEP] and [CLS]
        types = sorted(set(ids.tolist()))
        assert result.types.points == len(types)
        means = [[np.mean(column[ids == one]) for one in types] for column in (rank, weight, norm)]
        np.testing.assert_allclose(result.types.weight, spearmanr(means[0], means[1]).statistic, atol=1e-6)
        np.testing.assert_allclose(result.types.norm, spearmanr(means[0], means[2]).statistic, atol=1e-6)


def test_causal_attention_is_recognised(compared, request):
    found, _ = compared
    model = request.node.callspec.params["compared"]
    assert found.run.causal == {"minilm": (), "causal": ("self",), "translator": ("decoder",)}[model]
    assert ("cross" in found["categories"]) == (model == "translator")
