"""Redundancy, linearity, expansion and amplification: against plain loops, and against cases made by hand."""

import copy

import numpy as np
import pytest
import torch
from scipy.stats import spearmanr

import normlens as nl
from normlens.lens import expansion_rates
from normlens.statistics import Regression
from normlens.studies import AmplificationStudy, LinearityStudy, StudyError, study
from normlens.studies.amplification import BOTH, largest
from normlens.studies.redundancy import added, changed
from normlens.studies.swapped import layers_of, swapped


def states(lens, item):
    """What goes into each layer, and what comes out of the last one."""
    with torch.no_grad():
        inputs = lens.subject.tokenizer(*item, return_tensors="pt")
        return lens.subject.model(**inputs, output_hidden_states=True).hidden_states


def test_a_vector_that_turns_by_a_right_angle_has_changed_by_one():
    one, two = (
        torch.tensor([[[1.0, 0.0], [2.0, 0.0], [0.0, 0.0]]]),
        torch.tensor([[[0.0, 3.0], [4.0, 0.0], [1.0, 0.0]]]),
    )
    np.testing.assert_allclose(changed(one, two)[0, :2], [1.0, 0.0], atol=1e-12)
    assert np.isnan(changed(one, two)[0, 2])  # no angle with nothing
    np.testing.assert_allclose(added(one, two)[0, :2], [10**0.5, 1.0])


def test_redundancy_of_a_layer_is_that_of_its_hidden_states(minilm, texts):
    result = study(minilm, texts, studies=("redundancy",), batch_tokens=60)["redundancy"]["self"]
    assert set(result.turned) == {"attention", "feedforward", "layer"}
    by_text = [states(minilm, item) for item in texts]
    for layer in result.layers:
        turned = np.concatenate([changed(s[layer], s[layer + 1])[0] for s in by_text])
        longer = np.concatenate([added(s[layer], s[layer + 1])[0] for s in by_text])
        np.testing.assert_allclose(result.turned["layer"][layer], turned.mean(), rtol=1e-4)
        np.testing.assert_allclose(result.added["layer"][layer], longer.mean(), rtol=1e-4)
    assert result.tokens == len(turned)


def test_the_parts_of_a_layer_are_what_its_modules_read_and_return(minilm, texts):
    """Post-norm: the sum of input and output of a module, before its norm."""
    noted = {}
    layer = minilm.subject.model.encoder.layer[2]
    hooks = [
        layer.attention.output.LayerNorm.register_forward_pre_hook(lambda m, a: noted.update(attended=a[0])),
        layer.output.LayerNorm.register_forward_pre_hook(lambda m, a: noted.update(joined=a[0])),
        layer.intermediate.register_forward_pre_hook(lambda m, a: noted.update(read=a[0])),
    ]
    hidden = states(minilm, texts[0])
    for hook in hooks:
        hook.remove()
    fields = ("layer_inputs", "attended_states", "feedforward_inputs", "feedforward_states", "layer_outputs")
    block = minilm.trace(texts[0], fields=fields).self_attention[2]
    expected = hidden[2], noted["attended"], noted["read"], noted["joined"], hidden[3]
    for name, state in zip(fields, expected, strict=True):
        torch.testing.assert_close(block[name], state, rtol=1e-4, atol=1e-5)


def test_a_model_whose_feed_forward_block_stands_beside_says_so():
    from normlens import probes

    built = probes.build("gptj")
    lens = nl.load(built.model, probe=built.probes[0].inputs)
    absent = lens.trace(built.probes[0].inputs, fields=("weights",)).self_attention[0].absent
    assert absent["feedforward_inputs"] == "the feed-forward block runs beside the attention"
    assert "layer_outputs" not in absent


def test_a_linear_map_is_found_and_tried_on_other_rows():
    random = np.random.default_rng(0)
    x, matrix = random.normal(size=(200, 4)), random.normal(size=(4, 3))
    y = x @ matrix + [1.0, -2.0, 3.0]
    whole, parts = Regression.of(x, y), Regression.of(x[:70], y[:70]) + Regression.of(x[70:], y[70:])
    for name in ("inputs", "both", "squares"):
        np.testing.assert_allclose(getattr(whole, name), getattr(parts, name), rtol=1e-10)
    np.testing.assert_allclose(parts.map()[:4], matrix, atol=1e-4)
    fit = Regression.of(x[:50], y[:50]).fit(whole.map())
    assert (fit.r2, fit.cosine) == (pytest.approx(1), pytest.approx(1))
    noisy = y + random.normal(size=y.shape)
    guess = (
        np.column_stack([x, np.ones(200)]) @ np.linalg.lstsq(np.column_stack([x, np.ones(200)]), noisy, rcond=None)[0]
    )
    fit = Regression.of(x, noisy).fit(Regression.of(x, noisy).map())
    error, spread = np.square(noisy - guess).sum(), np.square(noisy - noisy.mean(axis=0)).sum()
    assert fit.r2 == pytest.approx(1 - error / spread, abs=1e-6)
    assert fit.cosine == pytest.approx(
        (noisy * guess).sum() / np.sqrt(np.square(noisy).sum() * np.square(guess).sum()), abs=1e-6
    )
    assert np.isfinite(Regression.of(x[:2], y[:2]).map()).all()  # fewer rows than coordinates


ITEMS = [
    f"The {word} stood by the {n}th river." for n, word in enumerate("mill house tree horse bridge man dog cat".split())
]


@pytest.fixture(scope="module")
def linear(minilm):
    return study(minilm, ITEMS, studies=(LinearityStudy(swaps=3),))["linearity"]["self"]


def test_swapped_layers_are_really_run(minilm, linear):
    """As in a copy of the model whose layers were put in that order; and the model is as it was."""
    assert linear.swapped == 3
    other = copy.deepcopy(minilm.subject.model)
    other.encoder.layer[1], other.encoder.layer[2] = other.encoder.layer[2], other.encoder.layer[1]
    turned = {}
    for item in ITEMS:
        inputs = minilm.subject.tokenizer(item, return_tensors="pt")
        with torch.no_grad():
            pair = [m(**inputs).last_hidden_state for m in (minilm.subject.model, other)]
        turned[item] = changed(*pair)[0]
    sizes = [len(minilm.subject.tokenizer(item)["input_ids"]) for item in ITEMS]
    first = sorted(range(len(ITEMS)), key=lambda n: (-sizes[n], n))[:3]
    expected = np.concatenate([turned[ITEMS[n]] for n in first]).mean()
    np.testing.assert_allclose(linear.swaps[1], expected, rtol=1e-4)
    layers = layers_of(minilm, "self")
    before = list(layers)
    with swapped(layers, 0):
        assert list(layers)[:2] == before[1::-1]
    assert all(a is b for a, b in zip(before, layers, strict=True))


def test_few_tokens_are_warned_of_and_held_out_by_sequence(minilm, linear):
    held = linear.fitted + linear.held
    assert held == sum(len(minilm.subject.tokenizer(item)["input_ids"]) for item in ITEMS)
    note = study(minilm, ITEMS, studies=(LinearityStudy(swaps=0),)).document().chapters[0].articles[0].section.notes
    assert any("tokens were fitted for 384 coordinates" in line for line in note)


def test_layers_that_are_no_list_are_not_swapped(translator):
    assert isinstance(layers_of(translator, "encoder"), torch.nn.ModuleList)
    assert layers_of(translator, "image") == "its attention is not in modules of its own"


@pytest.mark.parametrize("variant", ["affine", "authors"])
def test_the_expansion_rate_is_the_norm_of_the_whole_matrix(minilm, variant):
    found = expansion_rates(minilm, variant=variant)
    for layer, module in enumerate(minilm.subject.model.encoder.layer):
        size = module.attention.self.value.weight.shape[0]
        value, dense = (torch.zeros(size + 1, size + 1, dtype=torch.float64) for _ in range(2))
        value[:size, :size], value[size, :size] = (
            module.attention.self.value.weight.mT,
            module.attention.self.value.bias,
        )
        dense[:size, :size] = module.attention.output.dense.weight.mT
        if variant == "affine":
            dense[size, :size] = module.attention.output.dense.bias
        else:
            dense[:size, size] = module.attention.output.dense.bias
        value[size, size] = dense[size, size] = 1
        expected = (value @ dense).detach().norm() / (size + 1) ** 0.5
        assert found.values["self", layer] == pytest.approx(float(expected), rel=1e-9)


def test_the_study_of_expansion_takes_its_variant(minilm, as_users_run_it):
    from normlens.studies import ExpansionStudy

    found = study(minilm, ["One text."], studies=(ExpansionStudy(variant="authors"),))
    rates = expansion_rates(minilm, variant="authors").values
    assert found["expansion"]["self"].rates.tolist() == [rates["self", layer] for layer in range(6)]
    assert "expansion(variant='authors')" in str(found.run.signature)
    with pytest.raises(StudyError, match="no variant"):
        ExpansionStudy(variant="paper")


def test_the_gain_of_a_pair_is_that_of_its_share():
    before = np.array([[1.0, 3.0], [2.0, 2.0]])
    after = np.array([[1.0, 1.0], [6.0, 2.0]])
    top = largest(before, after, np.ones((2, 2), bool), np.array([7, 9]))
    np.testing.assert_allclose(top.rows, [[9, 7, 0.25], [7, 9, -0.25]])


@pytest.mark.slow
@pytest.mark.parametrize("model", ["minilm", "causal"])
def test_changes_of_the_maps_are_those_of_scipy(model, request, texts):
    lens = request.getfixturevalue(model)
    result = study(lens, texts, studies=(AmplificationStudy(items=2),), batch_tokens=60)["amplification"]["self"]
    assert result.sequences == 2
    fields = ("summed_norms", "residual_norms", "normed_norms", "joined_norms", "output_norms")
    sizes = [len(lens.subject.tokenizer(*item)["input_ids"]) for item in texts]
    first = sorted(range(len(texts)), key=lambda n: (-sizes[n], n))[:2]
    blocks = [lens.trace(texts[n], fields=("weights", *fields)).self_attention for n in first]
    names = {
        "minilm": {"residual": (0, 1), "norm": (1, 2), "feed-forward block": (2, 3), "last norm": (3, 4), BOTH: (2, 4)},
        "causal": {"residual": (0, 1), "feed-forward block": (1, 4)},
    }[model]
    assert set(result.changes) == set(names)
    for step, pair in names.items():
        for layer in result.layers:
            found = []
            for layers in blocks:
                one, two = (layers[layer][fields[place]][0].double().numpy() for place in pair)
                seen = np.tril(np.ones_like(one, bool)) if model == "causal" else np.ones_like(one, bool)
                found.append(1 - spearmanr(one[seen], two[seen]).statistic)
            np.testing.assert_allclose(result.changes[step][layer], np.mean(found), atol=2e-4)
