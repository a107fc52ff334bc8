"""Sparse masks: what they keep against loops, and the change of the output against a layer computed by hand."""

from typing import Any

import blocks
import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from test_forgetting import one_layer  # noqa: F401

from normlens.cli.main import main
from normlens.studies import MasksStudy, StudyError, study

pytestmark = pytest.mark.usefixtures("as_users_run_it")
TEXTS = [
    "The mill stood by the river. The river stood still.",
    "Nobody believed it! And why would they?",
    "A mill, a river and a tree: that was all. It was enough.",
]
MASKS = ("neighbours", "special", "same_sentence", "neighbours+special")
KEPT_ONLY = MasksStudy(output=False, width=1)


def kept_slowly(mask, i, j, special, sentence):
    """Whether the mask of width 1 keeps key j of query i."""
    parts = {"neighbours": abs(i - j) <= 1, "special": j in special, "same_sentence": sentence[i] == sentence[j]}
    return i == j or any(parts[name] for name in mask.split("+"))


@given(lengths=st.lists(st.integers(1, 9), min_size=1, max_size=3), causal=st.booleans(), seed=st.integers(0, 999))
def test_what_a_mask_keeps_is_what_loops_keep(lengths, causal, seed):
    weights, values, out_weight = blocks.random_block(seed, lengths, causal=causal)
    seen = blocks.seen(weights, values, out_weight, lengths)
    sentence = np.cumsum([0] + [j == 0 or j % 5 == 4 for j in range(max(lengths))])  # blocks.group: "." and position 0
    statistics: Any = KEPT_ONLY.see(seen)
    norms = torch.from_numpy(seen.norms)
    for place, mask in enumerate(MASKS):
        shares = {"weights": [], "norms": []}
        density = []
        for b, n in enumerate(lengths):
            pairs = [(i, j) for i in range(n) for j in range(n) if not causal or j <= i]
            kept = [(i, j) for i, j in pairs if kept_slowly(mask, i, j, [0], sentence)]
            density.append(len(kept) / len(pairs))
            for measure in shares:
                maps = weights[b, :, :n, :n].double()
                if measure == "norms":
                    maps = maps * norms[b, :, None, :n]
                    maps = maps / maps.sum(-1, keepdim=True)
                shares[measure].append(torch.stack([maps[:, i, j] for i, j in kept]).sum(0).numpy() / n)
        np.testing.assert_allclose(statistics["density"].mean[place], np.mean(density), rtol=1e-6)
        for measure, values_of in shares.items():
            got = statistics[f"kept_{measure}"].mean[:, place]
            np.testing.assert_allclose(got, np.mean(values_of, axis=0), rtol=1e-4, atol=1e-6)


@given(lengths=st.lists(st.integers(1, 9), min_size=1, max_size=3), causal=st.booleans(), seed=st.integers(0, 999))
def test_a_random_mask_keeps_the_query_itself_and_as_many_keys_as_its_mask(lengths, causal, seed):
    seen = blocks.seen(*blocks.random_block(seed, lengths, causal=causal), lengths)
    keep, visible = KEPT_ONLY._keep(seen), seen.pairs
    assert not (keep & ~visible[..., None]).any()
    for place in range(len(MASKS)):
        assert torch.equal(keep[..., place].sum(-1), keep[..., place + len(MASKS)].sum(-1))
    for b, n in enumerate(lengths):
        assert keep[b, range(n), range(n)].all()


def test_a_head_that_attends_to_neighbours_loses_nothing_under_their_mask():
    maps = torch.zeros(1, 1, 6, 6)
    for i in range(6):
        maps[0, 0, i, max(i - 1, 0)] = 1.0
    values = torch.ones(1, 1, 6, 2)
    statistics: Any = KEPT_ONLY.see(blocks.seen(maps.clamp_min(1e-9), values, torch.ones(1, 2, 3), [6]))
    assert statistics["kept_weights"].mean[0, 0] == pytest.approx(1)
    assert statistics["kept_norms"].mean[0, 0] == pytest.approx(1)
    assert statistics["kept_weights"].mean[0, 1] < 0.5  # special tokens alone


def by_hand(model, x, keep):
    """The layer of `one_layer` for one text, keys that are not kept hidden."""
    layer = model.encoder.layer[0]
    own, heads = layer.attention.self, []
    for head in range(3):
        rows = slice(4 * head, 4 * head + 4)
        q, k, v = (x @ part.weight[rows].T + part.bias[rows] for part in (own.query, own.key, own.value))
        heads.append((q @ k.T / 2).masked_fill(~keep, -torch.inf).softmax(-1) @ v)
    attended = layer.attention.output(torch.cat(heads, dim=-1), x)
    return layer.output(layer.intermediate(attended), attended)


@pytest.mark.parametrize("mask", ["neighbours", "special", "neighbours+special"])
def test_the_change_of_the_output_is_that_of_a_layer_computed_by_hand(one_layer, mask):  # noqa: F811
    result = study(one_layer, TEXTS, studies=(MasksStudy(masks=(mask,), width=1),))["masks"]["self"]
    model, changes = one_layer.subject.model, []
    for text in TEXTS:
        ids = one_layer.subject.tokenizer(text, return_tensors="pt")["input_ids"]
        n = ids.shape[1]
        keep = torch.tensor([[kept_slowly(mask, i, j, [0, n - 1], range(n)) for j in range(n)] for i in range(n)])
        with torch.no_grad():
            x = model.embeddings(ids)[0]
            plain, without = by_hand(model, x, torch.ones(n, n, dtype=torch.bool)), by_hand(model, x, keep)
        changes.append(float(((without - plain).norm(dim=-1) / plain.norm(dim=-1)).mean()))
    assert result.change["change"][0] == pytest.approx(np.mean(changes), rel=1e-4)
    assert result.change["change"][0] > 0.01


def test_a_mask_that_keeps_everything_changes_nothing(causal):
    every = MasksStudy(masks=("all",), own={"all": lambda query, key: True}, each_layer=True)
    result = study(causal, TEXTS, studies=(every,))["masks"]["self"]
    assert result.density == pytest.approx([1, 1])
    assert result.change["change"].max() < 1e-5
    assert result.alone["divergence"].max() < 1e-8
    assert set(result.change) == {"change", "divergence"}


def test_batches_of_texts_of_many_lengths_are_every_text_alone(causal):
    settings = (MasksStudy(masks=("neighbours", "same_sentence"), width=2, each_layer=True),)
    together = study(causal, TEXTS, studies=settings)["masks"]["self"]
    alone = [study(causal, [text], studies=settings)["masks"]["self"] for text in TEXTS]
    for name in together.change:
        np.testing.assert_allclose(
            together.change[name], np.mean([one.change[name] for one in alone], axis=0), rtol=1e-3, atol=1e-9
        )
        np.testing.assert_allclose(
            together.alone[name], np.mean([one.alone[name] for one in alone], axis=0), rtol=1e-3, atol=1e-9
        )
    np.testing.assert_allclose(together.density, np.mean([one.density for one in alone], axis=0))


def test_a_translation_model_is_masked_side_by_side(translator, texts):
    found = study(translator, texts[:2], studies=(MasksStudy(masks=("neighbours",), width=1),))["masks"]
    assert list(found) == ["encoder", "decoder"]
    assert set(found["encoder"].change) == {"change"}
    assert set(found["decoder"].change) == {"change", "divergence"}


def test_agreement_is_minus_one_where_what_is_kept_orders_the_changes(minilm):
    findings = study(minilm, TEXTS, studies=(MasksStudy(),))
    result = findings["masks"]["self"]
    kept = result.kept_by_layer("weights").mean(axis=0)
    order = np.argsort(np.argsort(kept))
    made = type(result)(
        result.kind, result.layers, result.masks, 3, result.density, result.kept, {"change": -order.astype(float)}, {}
    )
    assert made.agreement("weights") == (pytest.approx(-1), 8)
    assert "Over 8 masks, Spearman" in findings.show().replace("\n  ", " ")


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        ({"masks": ("neighbors",)}, "no predicate 'neighbors'"),
        ({"masks": ()}, "masks must be different"),
        ({"masks": ("special", "special")}, "masks must be different"),
    ],
)
def test_masks_of_nothing_are_refused(arguments, told):
    with pytest.raises(StudyError, match=told):
        MasksStudy(**arguments)


def test_a_run_that_is_resumed_gives_the_same_numbers_and_the_command_line_joins_predicates(
    minilm, tmp_path, monkeypatch, capsys
):
    monkeypatch.setattr("normlens.studies.run.SHARD", 1)
    monkeypatch.setattr("normlens.studies.run.SAVE", 0.0)
    done = []

    def progress(items, total):
        done.append(items)
        if sum(done) >= 2:
            raise KeyboardInterrupt

    settings = MasksStudy(masks=("previous+special",))
    whole = study(minilm, TEXTS, studies=(settings,))["masks"]["self"]
    with pytest.raises(KeyboardInterrupt):
        study(minilm, TEXTS, studies=(settings,), folder=tmp_path / "run", progress=progress)
    again = study(minilm, TEXTS, studies=(settings,), folder=tmp_path / "run", resume=True)["masks"]["self"]
    np.testing.assert_array_equal(again.change["change"], whole.change["change"])
    np.testing.assert_array_equal(again.kept["norms"], whole.kept["norms"])
    (tmp_path / "texts.txt").write_text("\n".join(TEXTS))
    command = ["study", "masks", "--corpus", str(tmp_path / "texts.txt"), "--set", "masks=previous+special"]
    assert main(command) == 0
    assert "random like previous+special" in capsys.readouterr().out
