"""Rollout: shares of tokens after all layers, against hands, all paths, and texts alone."""

import itertools

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from made_traces import block, trace

import normlens as nl
from normlens import probes
from normlens.lens import MapError, NotKept, Wire

FIRST = [[1.0, 0.0, 0.0], [0.5, 0.5, 0.0], [0.2, 0.3, 0.5]]
SECOND = [[1.0, 0.0, 0.0], [0.0, 1.0, 0.0], [0.0, 0.6, 0.4]]
BY = ("weights", "weighted_norms", "summed_norms", "residual_norms", "normed_norms", "output_norms", "alti")


def near(ours, expected, atol=1e-9):
    torch.testing.assert_close(ours.double(), torch.as_tensor(expected, dtype=torch.float64), rtol=1e-6, atol=atol)


def through_all_paths(maps):
    """Σ over all paths of the product of their edges, by plain loops."""
    count = len(maps[0])
    found = np.zeros((count, count))
    for path in itertools.product(range(count), repeat=len(maps) + 1):
        share = 1.0
        for layer, (source, target) in enumerate(itertools.pairwise(path)):
            share *= maps[layer][target][source]
        found[path[-1], path[0]] += share
    return found


def test_two_layers_of_three_tokens_by_hand():
    """c takes 0.3 of b and half of itself through layer 1, which takes a quarter of a and three of b ..."""
    rolled = trace([block(0, [[FIRST]]), block(1, [[SECOND]])]).rollout("weights")
    near(rolled.layers[0, 0], [[1, 0, 0], [0.25, 0.75, 0], [0.1, 0.15, 0.75]])
    near(rolled.values[0], [[1, 0, 0], [0.25, 0.75, 0], [0.145, 0.33, 0.525]])
    near(rolled.of(-1), [[0.145, 0.33, 0.525]])
    near(rolled.by_layer(2)[0], [[0.1, 0.15, 0.75], [0.145, 0.33, 0.525]])
    bare = trace([block(0, [[FIRST]]), block(1, [[SECOND]])]).rollout("weights", residual=0.0)
    near(bare.values[0, 2], [0.38, 0.42, 0.2])


def test_norms_that_hold_the_residual_are_brought_to_one_and_globenc_multiplies_them_as_they_are():
    maps = [[[[2.0, 0, 0], [1, 1, 0], [1, 1, 2]]], [[[1.0, 0, 0], [0, 3, 0], [0, 1, 1]]]]
    blocks = [block(layer, each, name="encoder_norms") for layer, each in enumerate(maps)]
    made = trace(blocks)
    near(made.rollout("encoder_norms").values[0, 2], [0.375, 0.375, 0.25])
    near(made.rollout("globenc").values[0], [[2, 0, 0], [3, 3, 0], [2, 2, 2]])


@given(seed=st.integers(0, 99), depth=st.integers(1, 3), heads=st.integers(1, 3))
def test_every_number_is_that_of_all_paths(seed, depth, heads):
    maps = torch.rand(depth, 1, heads, 4, 4, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)
    rolled = trace([block(layer, each) for layer, each in enumerate(maps)], (4,)).rollout("weights").values[0]
    means = maps[:, 0].mean(1)
    edges = means / means.sum(-1, keepdim=True) / 2 + torch.eye(4) / 2
    near(rolled, through_all_paths(edges.tolist()))
    near(rolled.sum(-1), [1.0] * 4)


def test_maps_below_zero_count_by_their_size_and_a_query_that_nothing_reaches_keeps_what_it_has():
    given_maps = [[[[1.0, 0, 0], [-0.5, 1.5, 0], [0, 0, 0]]]]
    near(trace([block(0, given_maps)]).rollout("weights").values[0], [[1, 0, 0], [0.125, 0.875, 0], [0, 0, 1]])


@pytest.mark.parametrize("by", [*BY, "globenc"])
def test_a_padded_batch_has_the_numbers_of_its_texts_alone_and_so_has_a_saved_trace(minilm, by, tmp_path):
    fields = ("weights", "encoder_norms") if by == "globenc" else (by,)
    texts = ["The old cat slept quietly under a tree.", "Short."]
    both = minilm.trace(texts, fields=fields)
    rolled = both.rollout(by)
    for index, text in enumerate(texts):
        alone = minilm.trace(text, fields=fields).rollout(by)
        torch.testing.assert_close(rolled[index].layers, alone.layers, rtol=1e-4, atol=1e-5)
        torch.testing.assert_close(rolled.of(-1)[index, : alone.values.shape[2]], alone.of(-1)[0], rtol=1e-4, atol=1e-5)
    assert not rolled.values[1, 4:].any()
    assert not rolled.values[1, :, 4:].any()
    opened = nl.open(both.save(tmp_path / "t.safetensors")).rollout(by)
    assert torch.equal(opened.layers, rolled.layers)


def test_later_tokens_reach_no_position_of_a_causal_model(writer):
    rolled = writer.trace("the cat sat on the mat", fields=("weights", "alti"))
    for by in ("weights", "alti"):
        values = rolled.rollout(by).values[0]
        assert not values.triu(1).any()
        near(values.sum(-1), torch.ones(len(values)), atol=1e-6)


def slow_joint(encoder, decoder, cross, own):
    """Rows of what a decoder was fed, over source tokens and those fed, written out for one sentence pair."""
    sources, fed = len(encoder[0]), len(decoder[0])
    read = through_all_paths(encoder)
    mixed = np.zeros((fed, sources + fed))
    for i in range(fed):
        mixed[i, sources + i] = 1
    for attended, crossed in zip(decoder, cross, strict=True):
        mixed = np.array([sum(attended[i][j] * mixed[j] for j in range(fed)) for i in range(fed)])
        after = np.zeros_like(mixed)
        for i in range(fed):
            after[i] = own[i] * mixed[i]
            for j in range(sources):
                after[i, :sources] += crossed[i][j] * read[j]
        mixed = after
    return mixed


def test_a_decoder_is_made_of_the_source_and_of_what_it_was_fed(translator):
    given_texts = ["the cat sat on the mat", "a dog ran"], ["the old dog", "a tree and a mat"]
    batch = translator.trace(source=given_texts[0], target=given_texts[1], fields=("weights", "alti"))
    rolled = batch.rollout("weights")
    for index in (0, 1):
        one = batch[index]
        half = {
            kind: [(b.weights[0].double().mean(0) / 2).numpy() for b in one.layers(kind)]
            for kind in ("encoder", "decoder", "cross")
        }
        for kind in ("encoder", "decoder"):
            half[kind] = [edges + np.eye(len(edges)) / 2 for edges in half[kind]]
        expected = slow_joint(half["encoder"], half["decoder"], half["cross"], [0.5] * len(one.target_tokens[0]))
        near(rolled[index].values[0], expected, atol=1e-6)
        near(rolled[index].values[0].sum(-1), np.ones(len(expected)), atol=1e-6)
        assert rolled[index].src[0].tokens == (*one.tokens[0], *one.target_tokens[0])
        assert one.rollout("weights").values.shape == (1, *expected.shape)
    shares = batch.rollout("alti").values
    near(shares[0].sum(-1)[: len(batch.target_tokens[0])], np.ones(len(batch.target_tokens[0])), atol=1e-6)
    assert batch.rollout("alti", kind="encoder").values.shape[1:] == batch.encoder_attention[0].alti.shape[1:]
    with pytest.raises(MapError, match="not the residual beside them"):
        translator.trace(source="a dog", target="a cat", fields=("residual_norms",)).rollout("residual_norms")


def test_a_layer_that_is_missing_stops_it_and_is_named(minilm):
    some = minilm.trace("Short.", layers=[0, 1, 3], fields=("weights",))
    with pytest.raises(MapError, match=r"self layer 2 is missing(.|\n)*layers=range\(0, 2\)"):
        some.rollout()
    assert some.rollout(layers=range(2)).numbers == (0, 1)
    assert some.rollout(layers=[3]).numbers == (3,)
    wires = [Wire("self", n, f"layers.{n}.attn", "", 0, 0.0, "no" if n == 1 else None) for n in range(2)]
    with pytest.raises(MapError, match="layer 1 is missing: no"):
        trace([block(0, [[FIRST]])], wires=wires).rollout()


def test_layers_without_attention_between_stop_it():
    made = [block(0, [[FIRST]]), block(1, [[SECOND]], path="layers.4.attn")]
    with pytest.raises(MapError, match=r"between 'layers.0.attn' and 'layers.4.attn'"):
        trace(made).rollout()
    assert trace(made).rollout(layers=[0]).numbers == (0,)
    for kind, reason in (("jamba", "the 4 layers before"), ("falcon_h1", "made beside the attention")):
        built = probes.build(kind)
        lens = nl.load(built.model, probe=built.probes[0].inputs)
        with pytest.raises(MapError, match=reason):
            lens.trace(built.probes[0].inputs).rollout()


def test_what_is_no_map_or_was_not_kept_is_refused(minilm):
    short = minilm.trace("Short.")
    with pytest.raises(MapError, match="no map of what a key adds"):
        short.rollout("transformed_norms")
    with pytest.raises(NotKept, match="did not keep 'alti'"):
        short.alti()
    with pytest.raises(NotKept, match="no quantity 'nothing'"):
        short.rollout("nothing")
    with pytest.raises(MapError, match="no position 9"):
        short.rollout().of(9)
    with pytest.raises(MapError, match="from 0 to 1"):
        short.rollout(residual=2.0)


def test_it_is_drawn_with_a_map_for_each_layer_and_has_a_table(minilm, tmp_path):
    rolled = minilm.trace(["The cat sat.", "Short."]).rollout("summed_norms")
    figure = rolled.figure(1)
    assert [panel.layer for panel in figure.panels] == list(range(6))
    assert figure.look.layers == (5,)
    np.testing.assert_allclose(figure.panels[5].values("rollout"), rolled[1].values[0].numpy())
    assert "rollout of summed_norms" in rolled.save(tmp_path / "r.html").read_text(encoding="utf-8")
    table = rolled.to_dataframe()
    assert len(table) == 6 * (6 * 6 + 4 * 4)
    cell = table[(table.sequence == 0) & (table.layer == 5) & (table.tgt == 0) & (table.src == 2)]
    assert cell["rollout"].item() == pytest.approx(rolled.values[0, 0, 2].item())
    assert (cell.tgt_token.item(), cell.src_token.item()) == ("[CLS]", "cat")


def test_one_position_is_drawn_with_a_row_for_each_layer(minilm, tmp_path):
    rolled = minilm.trace(["Short.", "The cat sat."]).rollout("summed_norms")
    figure = rolled.layer_figure(0, 1)
    assert figure.sides[0].tokens == tuple(f"L{number}" for number in range(6))
    (panel,) = figure.panels
    np.testing.assert_allclose(panel.values("rollout"), rolled.by_layer(0)[1].numpy())
    assert figure.sides[1].tokens == tuple(rolled.src[1].tokens)
    assert "[CLS] · the cat sat ." in figure.save(tmp_path / "cls.html").read_text(encoding="utf-8")
    assert figure.save(tmp_path / "cls.svg").stat().st_size > 1000
