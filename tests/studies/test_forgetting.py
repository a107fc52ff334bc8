"""What a cache may forget: scores against loops, and the change of the output against a model computed by hand."""

import blocks
import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from transformers import BertConfig, BertModel, LlamaConfig, LlamaForCausalLM, T5Config, T5EncoderModel

import normlens as nl
from normlens.lens import HidingError, observe_hiding
from normlens.models import encode
from normlens.studies import StudyError, study
from normlens.studies.forgetting import SCORES, ForgettingStudy, groups_of, lowest, shared
from normlens.studies.output_change import changed

TEXTS = ["The mill stood by the river, and the river stood still.", "Nobody believed it, and why would they?"]
SMALL = ForgettingStudy(shares=(0.5,))


@given(lengths=st.lists(st.integers(2, 9), min_size=1, max_size=3), causal=st.booleans(), seed=st.integers(0, 999))
def test_scores_are_those_of_loops_over_queries_and_keys(lengths, causal, seed):
    weights, values, out_weight = blocks.random_block(seed, lengths, causal=causal)
    settings = ForgettingStudy(first=1)
    seen = blocks.seen(weights, values, out_weight, lengths)
    cut = np.array(lengths) // 2 if causal else None
    scores = settings._scores(seen, cut, 1)
    for b, length in enumerate(lengths):
        cached = length // 2 if causal else length
        for head in range(2):
            for k in range(max(lengths)):
                if k < 1 or k >= cached:
                    assert all(np.isinf(scores[name][b, head, k]) for name in SCORES)
                    continue
                queries = [i for i in range(cached) if not causal or i >= k]
                received = np.mean([float(weights[b, head, i, k]) for i in queries])
                vector = (values[b, head, k].double() @ out_weight[head].double()).numpy()
                expected = {
                    "weights": received,
                    "vatp": received * float(values[b, head, k].abs().sum()),
                    "criticalkv": (received + 1e-4) * np.abs(vector).sum(),
                    "norms": received * np.sqrt((vector**2).sum()),
                }
                for name, value in expected.items():
                    np.testing.assert_allclose(scores[name][b, head, k], value, rtol=1e-5)


@given(seed=st.integers(0, 999), keys=st.integers(1, 9), kept=st.integers(0, 9), share=st.floats(0.01, 0.99))
def test_the_lowest_keys_are_this_share_of_those_that_may_be_hidden(seed, keys, kept, share):
    scores = np.random.default_rng(seed).integers(0, 4, (2, 3, keys)).astype(float)
    scores[..., :kept] = np.inf
    for row, hidden in zip(scores.reshape(-1, keys), lowest(scores, share).reshape(-1, keys), strict=True):
        free = sorted((value, k) for k, value in enumerate(row) if value < np.inf)
        assert set(np.flatnonzero(hidden)) == {k for _, k in free[: int(np.floor(share * len(free)))]}


def encoded(lens):
    return encode(lens.subject, TEXTS)


def weights_of(lens, inputs):
    kept = {}
    output = lens.observe(inputs, lambda b: kept.update({(b.kind, b.layer): b.weights.clone()}), hidden_states=True)
    return kept, output


@pytest.mark.parametrize("model", ["minilm", "causal"])
def test_a_hidden_key_gets_no_weight_and_the_others_share_it(model, request, monkeypatch):
    lens = request.getfixturevalue(model)
    inputs = encoded(lens)
    before, _ = weights_of(lens, inputs)
    hidden = {("self", 0): torch.zeros(before["self", 0].shape, dtype=torch.bool)}
    hidden["self", 0][0, 1, 4:, 2] = True
    after = {}
    whole = type(lens).observe

    def watched(self, inputs, on_block, **options):
        def both(block):
            after[block.kind, block.layer] = block.weights.clone()
            on_block(block)

        return whole(self, inputs, both, **options)

    monkeypatch.setattr(type(lens), "observe", watched)
    observe_hiding(lens, inputs, hidden)
    expected = before["self", 0].masked_fill(hidden["self", 0], 0)
    expected = expected / expected.sum(-1, keepdim=True).clamp_min(1e-9)
    torch.testing.assert_close(after["self", 0], expected, atol=1e-6, rtol=1e-5)


@pytest.mark.parametrize("model", ["minilm", "causal"])
def test_hiding_nothing_changes_nothing_and_hiding_in_one_text_changes_no_other(model, request):
    lens = request.getfixturevalue(model)
    inputs = encoded(lens)
    before, plain = weights_of(lens, inputs)
    hidden = {cell: torch.zeros(weights.shape, dtype=torch.bool) for cell, weights in before.items()}
    same = observe_hiding(lens, inputs, hidden, hidden_states=True).hidden_states[-1]
    torch.testing.assert_close(same, plain.hidden_states[-1], atol=1e-4, rtol=1e-4)
    for mask in hidden.values():
        mask[0, :, 6:, :3] = True
    other = observe_hiding(lens, inputs, hidden, hidden_states=True).hidden_states[-1]
    real = inputs.kept[1]
    torch.testing.assert_close(other[1][real], plain.hidden_states[-1][1][real], atol=1e-4, rtol=1e-4)
    assert (other[0] - plain.hidden_states[-1][0]).norm() > 1e-3
    if model == "causal":  # queries before those that may not see the keys
        torch.testing.assert_close(other[0, :6], plain.hidden_states[-1][0, :6], atol=1e-5, rtol=1e-4)
    assert not any(module._forward_pre_hooks for module in lens.subject.model.modules())


def test_a_model_that_takes_no_mask_in_its_attention_is_refused(minilm):
    config = T5Config(vocab_size=30522, d_model=16, d_kv=8, d_ff=16, num_layers=1, num_heads=2)
    lens = nl.load(T5EncoderModel(config).eval(), minilm.subject.tokenizer)
    before, _ = weights_of(lens, encoded(lens))
    hidden = {cell: torch.zeros(weights.shape, dtype=torch.bool) for cell, weights in before.items()}
    with pytest.raises(HidingError, match="cannot be hidden: its module takes no attention_mask"):
        observe_hiding(lens, encoded(lens), hidden)


@pytest.fixture(scope="module")
def one_layer(minilm):
    torch.manual_seed(0)
    config = BertConfig(
        vocab_size=30522, hidden_size=12, num_hidden_layers=1, num_attention_heads=3, intermediate_size=16,
        max_position_embeddings=64,
    )  # fmt: skip
    model = BertModel(config).eval()
    with torch.no_grad():
        for parameter in model.encoder.parameters():
            parameter.normal_(std=0.5)
    return nl.load(model, minilm.subject.tokenizer)


def by_hand(model, x, score):
    """The layer of `one_layer` for one text, half of the keys of each head hidden, by the formulas of the docs."""
    layer = model.encoder.layer[0]
    own, heads = layer.attention.self, []
    dense = layer.attention.output.dense.weight
    for head in range(3):
        rows = slice(4 * head, 4 * head + 4)
        q, k, v = (x @ part.weight[rows].T + part.bias[rows] for part in (own.query, own.key, own.value))
        logits = q @ k.T / 2
        received = logits.softmax(-1).mean(0)
        f = v @ dense[:, rows].T
        scores = {
            "weights": received,
            "vatp": received * v.abs().sum(-1),
            "criticalkv": (received + 1e-4) * f.abs().sum(-1),
            "norms": received * f.norm(dim=-1),
            "nothing": received,
        }[score]
        gone = scores.argsort()[: 0 if score == "nothing" else len(x) // 2]
        logits[:, gone] = -torch.inf
        heads.append(logits.softmax(-1) @ v)
    attended = layer.attention.output(torch.cat(heads, dim=-1), x)
    return layer.output(layer.intermediate(attended), attended)


@pytest.mark.parametrize("score", ["weights", "vatp", "criticalkv", "norms"])
def test_the_change_of_the_output_is_that_of_a_layer_computed_by_hand(one_layer, score):
    found = study(one_layer, TEXTS, studies=(SMALL,))["forgetting"]["self"]
    model, changes = one_layer.subject.model, []
    for text in TEXTS:
        with torch.no_grad():
            x = model.embeddings(one_layer.subject.tokenizer(text, return_tensors="pt")["input_ids"])[0]
            plain, without = by_hand(model, x, "nothing"), by_hand(model, x, score)
        changes.append(float(((without - plain).norm(dim=-1) / plain.norm(dim=-1)).mean()))
    got = found.change["change"][list(SCORES).index(score), 0]
    np.testing.assert_allclose(got, np.mean(changes), rtol=1e-4)
    assert got > 0.01


def test_a_decoder_is_measured_by_its_prediction_too(causal):
    found = study(causal, TEXTS, studies=(SMALL,))["forgetting"]["self"]
    assert set(found.change) == {"change", "divergence"}
    assert found.sequences == 2
    assert (found.gap["divergence"][0] == 0).all()
    np.testing.assert_allclose(
        found.gap["divergence"], found.change["divergence"] - found.change["divergence"][:1], atol=1e-12
    )


def test_a_translation_model_forgets_keys_of_its_source(translator, texts):
    found = study(translator, texts[:2], studies=(SMALL,))["forgetting"]
    assert list(found) == ["cross"]
    assert (found["cross"].change["divergence"] > 0).all()


def test_batches_of_texts_of_many_lengths_are_every_text_alone(causal):
    texts = [*TEXTS, "A mill, a river and a tree: that was all."]
    together = study(causal, texts, studies=(SMALL,))["forgetting"]["self"].change
    alone = [study(causal, [text], studies=(SMALL,))["forgetting"]["self"].change for text in texts]
    for name, values in together.items():
        np.testing.assert_allclose(values[:4], np.mean([one[name][:4] for one in alone], axis=0), rtol=1e-3, atol=1e-9)


def test_kl_divergence_is_that_of_the_distributions():
    class Output:
        def __init__(self, logits):
            self.logits = torch.tensor(logits).log()

    before, after = Output([[[0.5, 0.5], [0.9, 0.1]]]), Output([[[0.25, 0.75], [0.9, 0.1]]])
    later = torch.tensor([[True, True]])
    expected = (0.5 * np.log(2) + 0.5 * np.log(2 / 3)) / 2
    np.testing.assert_allclose(changed(before, after, "self", later)["divergence"], [expected], rtol=1e-6)
    np.testing.assert_allclose(changed(before, after, "self", ~later)["divergence"], [0.0])


def test_heads_that_share_keys_forget_the_same_ones():
    scores = np.array([[[1.0, 2.0], [3.0, 0.0], [5.0, 5.0], [0.0, 1.0]]])
    assert shared(scores, 2).tolist() == [[[2.0, 1.0], [2.0, 1.0], [2.5, 3.0], [2.5, 3.0]]]
    assert shared(scores, 1).tolist() == scores.tolist()


def test_how_many_heads_share_keys_is_asked_of_the_model(minilm):
    config = LlamaConfig(
        vocab_size=30522, hidden_size=16, intermediate_size=16, num_hidden_layers=1, num_attention_heads=4,
        num_key_value_heads=2,
    )  # fmt: skip
    lens = nl.load(LlamaForCausalLM(config).eval(), minilm.subject.tokenizer)
    weights, values, out_weight = blocks.random_block(0, [4], heads=4)
    assert groups_of(lens, blocks.seen(weights, values, out_weight, [4])) == 2
    assert groups_of(minilm, blocks.seen(weights, values, out_weight, [4])) == 1
    found = study(lens, TEXTS, studies=(SMALL,))["forgetting"]["self"]
    assert (found.change["change"] > 0).all()


@pytest.mark.parametrize("wrong", [{"shares": ()}, {"shares": (1.0,)}, {"prompt": 0.0}])
def test_shares_that_are_none_are_refused(wrong):
    with pytest.raises(StudyError, match="above 0 and below 1"):
        ForgettingStudy(**wrong)


def test_texts_that_are_too_short_are_left_out(minilm):
    found = study(minilm, ["Oh.", TEXTS[0]], studies=(SMALL,))
    assert found["forgetting"]["self"].sequences == 1
    assert "1 sequence of 2 had at least 8 tokens." in found.show()
    assert study(minilm, ["Oh."], studies=(SMALL,))["forgetting"] == {}


def test_no_difference_is_clear_in_one_sequence(minilm):
    found = study(minilm, TEXTS[:1], studies=(SMALL,))
    assert np.isnan(found["forgetting"]["self"].error["change"]).all()
    assert "clearly" not in found.show()
    assert "One sequence has no standard error" in found.show()
