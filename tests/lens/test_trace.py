"""What a trace holds, for every way of giving input."""

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

import normlens as nl

TEXTS = ["The cat sat.", "Nobody expected the Spanish inquisition, of course!", "Hm"]


def test_shapes_and_names_of_the_public_surface(minilm):
    trace = minilm.trace("The cat sat on the mat.")
    n = len(trace.tokens[0])
    block = trace.self_attention[3]
    assert block.weights.shape == (1, 12, n, n)
    assert block.transformed_norms.shape == (1, 12, n)
    assert block.weighted_norms.shape == (1, 12, n, n)
    assert block.summed_norms.shape == (1, n, n)
    assert block.error < 1e-5
    assert len(trace.self_attention) == 6
    assert trace.self_attention[-1].layer == 5
    assert trace.words == [("the", "cat", "sat", "on", "the", "mat", ".")]
    assert trace.special == [(True, *[False] * 7, True)]


def test_the_headline_of_the_paper_holds_on_the_bundled_model(minilm):
    """[CLS] receives a third of the attention in layers 2 to 5 (counted from 1) and contributes next to nothing."""
    trace = minilm.trace("The old man told the children a long story about the sea, and they listened to every word.")
    for layer in (1, 2, 3, 4):
        block = trace.self_attention[layer]
        drawn = block.weights[..., 0].mean()
        given_share = block.weighted_norms[..., 0].sum() / block.weighted_norms.sum()
        assert drawn > 0.25
        assert given_share < 0.1


@given(order=st.permutations(range(3)))
def test_a_text_in_a_batch_is_traced_as_if_alone(minilm, order):
    batch = minilm.trace([TEXTS[i] for i in order])
    for place, index in enumerate(order):
        alone, within = minilm.trace(TEXTS[index]), batch[place]
        assert within.tokens == alone.tokens
        for left, right in zip(within.blocks, alone.blocks, strict=True):
            for field in ("weights", "transformed_norms", "weighted_norms", "summed_norms"):
                torch.testing.assert_close(getattr(left, field), getattr(right, field), rtol=1e-3, atol=2e-5)


def test_padding_holds_nothing(minilm):
    trace = minilm.trace(TEXTS)
    short = len(trace.tokens[0])
    for block in trace.blocks:
        assert block.weights[0, :, short:].abs().max() == 0
        assert block.weights[0, :, :, short:].abs().max() == 0
        assert block.transformed_norms[0, :, short:].abs().max() == 0
        assert block.summed_norms[0, short:].abs().max() == 0


def test_left_padding_is_moved_out_of_the_way(minilm):
    ids = minilm.subject.tokenizer("The cat sat.")["input_ids"]
    left = {"input_ids": torch.tensor([[0, 0, *ids]]), "attention_mask": torch.tensor([[0, 0, *[1] * len(ids)]])}
    left["position_ids"] = torch.tensor([[0, 0, *range(len(ids))]])
    trace, plain = minilm.trace(left), minilm.trace("The cat sat.")
    assert trace.tokens == plain.tokens
    torch.testing.assert_close(trace[0].blocks[5].summed_norms, plain.blocks[5].summed_norms, rtol=1e-3, atol=2e-5)


def test_a_pair_is_one_sequence(minilm):
    trace = minilm.trace(("The cat sat.", "It slept."))
    assert trace.tokens[0].count("[SEP]") == 2
    assert len(minilm.trace([("a b", "c"), ("d", "e f")])) == 2


def test_ids_and_texts_agree(minilm):
    ids = minilm.subject.tokenizer(TEXTS[0])["input_ids"]
    expected = minilm.trace(TEXTS[0]).blocks[2].summed_norms
    for form in (ids, [ids], torch.tensor(ids), torch.tensor([ids])):
        torch.testing.assert_close(minilm.trace(form).blocks[2].summed_norms, expected)


def test_layers_heads_and_fields_bound_what_is_kept(minilm):
    whole = minilm.trace(TEXTS[1])
    some = minilm.trace(TEXTS[1], layers=[1, -1], heads=[3, 0], fields=("weighted_norms",))
    assert [block.layer for block in some.self_attention] == [1, 5]
    assert some.self_attention[5].heads == (3, 0)
    torch.testing.assert_close(
        some.self_attention[1].weighted_norms, whole.self_attention[1].weighted_norms[:, [3, 0]], rtol=1e-4, atol=1e-6
    )
    with pytest.raises(nl.NormlensError, match="did not keep 'weights'"):
        _ = some.self_attention[1].weights
    with pytest.raises(nl.NormlensError, match="was not kept"):
        _ = some.self_attention[0]
    with pytest.raises(IndexError, match="0 to 5"):
        _ = some.self_attention[6]


def test_the_vectors_themselves_add_up(minilm):
    block = minilm.trace(TEXTS[1], fields=("weights", "transformed", "head_outputs", "transformed_norms")).blocks[0]
    torch.testing.assert_close(block.transformed.norm(dim=-1), block.transformed_norms, rtol=1e-4, atol=1e-6)
    outputs = torch.einsum("bhts,bhsm->bhtm", block.weights, block.transformed)
    torch.testing.assert_close(outputs, block.head_outputs, rtol=1e-3, atol=1e-5)


def test_each_block_sees_the_same_and_keeps_only_the_answer(minilm):
    means = minilm.each_block(lambda block: block.summed_norms.mean().item(), TEXTS[1])
    assert means == [block.summed_norms.mean().item() for block in minilm.trace(TEXTS[1]).blocks]


def test_source_and_target(translator):
    trace = translator.trace(source=["the cat sat on the mat", "a dog ran"], target=["a cat slept", "the old dog ran"])
    assert trace.tokens[1] == ("a", "dog", "ran", "</s>")
    assert trace.target_tokens[0] == ("</s>", "a", "cat", "slept")
    assert [len(layers) for layers in (trace.encoder_attention, trace.decoder_attention, trace.cross_attention)] == [
        2,
        3,
        3,
    ]
    assert trace.cross_attention[0].weights.shape == (2, 4, 5, 7)
    assert trace[1].cross_attention[2].weights.shape == (1, 4, 5, 4)
    assert trace[0].decoder_attention[0].summed_norms.shape == (1, 4, 4)


def test_cross_attention_is_known_also_when_both_sides_are_equally_long(translator):
    trace = translator.trace(source="the cat sat", target="the dog sat")
    assert trace.cross_attention[0].weights.shape[2:] == trace.decoder_attention[0].weights.shape[2:]
    assert len(trace.cross_attention) == 3


def test_without_a_target_the_model_writes_one(translator):
    trace = translator.trace("the cat sat")
    assert trace.target_tokens[0][0] == "</s>"
    written = translator.trace_generation("the cat sat", max_new_tokens=5)
    assert 1 <= len(written.target_tokens[0]) <= 6


def test_generation_is_one_ordinary_trace(writer):
    trace = writer.trace_generation(["the cat", "a big old dog"], max_new_tokens=6, do_sample=False, layers=0)
    assert trace.tokens[0][:3] == ("the", "cat", "</s>")
    n = max(len(tokens) for tokens in trace.tokens)
    block = trace.self_attention[0]
    assert block.weights.shape == (2, 2, n, n)
    assert block.weights.triu(1).abs().max() == 0


def test_repr_says_what_it_is(minilm):
    text = repr(minilm.trace(TEXTS))
    assert "3 sequences of 3 to" in text
    assert "6 self blocks" in text
    assert "all-MiniLM-L6-v2@" in text
    assert "6 self blocks exact" in repr(minilm)


def test_a_figure_is_titled_by_its_text_and_a_long_one_is_cut_at_a_word(minilm):
    assert minilm.trace("The cat sat.").figure().title == "the cat sat ."
    title = minilm.trace("word " * 60).figure().title
    assert title == "word " * 16 + "…"


def test_a_map_that_is_given_is_shown(minilm):
    trace = minilm.trace("The cat sat.")
    figure = trace.figure(maps={"mine": [block.weights for block in trace.blocks]})
    assert figure.look.measures == ("weights", "mine")


def test_a_trace_is_saved_as_a_picture_by_its_suffix(minilm, tmp_path):
    trace = minilm.trace("The cat sat.")
    assert trace.save(tmp_path / "cat.svg", view="bars", pin="cat").read_text().startswith("<?xml")
    with pytest.raises(nl.NormlensError, match=r"view: a \.csv file holds everything"):
        trace.save(tmp_path / "cat.csv", view="bars")
