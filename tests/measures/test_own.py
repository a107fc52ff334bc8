"""A measure of the user's own is a quantity like the others: on blocks, in tables, in files, in figures."""

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

import normlens as nl
from normlens import measures
from normlens.lens import Block

TEXTS = ["The cat sat.", "Nobody expected the Spanish inquisition, of course!", "Hm"]


def sharpness(**options):
    return nl.measure(
        "sharpness", **{"symbol": "max α", "axes": ("batch", "head", "tgt"), "needs": ("weights",)} | options
    )(lambda weights: weights.amax(-1))


def entropy():
    """Differs with the number of keys, so that padding would show."""
    return nl.measure("spread", symbol="H(α)/n", axes=("batch", "head", "tgt"), needs=("weights",))(
        lambda weights: -(weights * weights.clamp_min(1e-30).log()).sum(-1) / weights.shape[-1]
    )


def test_it_is_kept_when_it_is_asked_for(minilm):
    sharpness()
    block = minilm.trace(TEXTS[0], fields=("weights", "sharpness")).self_attention[3]
    assert list(block.kept) == ["weights", "sharpness"]
    torch.testing.assert_close(block["sharpness"], block.weights.amax(-1))


def test_it_is_computed_on_demand_where_its_needs_were_kept(minilm, tmp_path):
    trace = minilm.trace(TEXTS)
    again = nl.open(trace.save(tmp_path / "t.safetensors"))
    sharpness()
    for one in (trace, again):
        torch.testing.assert_close(one.self_attention[2]["sharpness"], trace.self_attention[2].weights.amax(-1))
    with pytest.raises(nl.NormlensError, match="did not keep 'sharpness', nor what it is computed from"):
        minilm.trace(TEXTS[0], fields=("transformed_norms",)).self_attention[0]["sharpness"]
    with pytest.raises(nl.NormlensError, match="no quantity 'sharp'"):
        trace.self_attention[0]["sharp"]


def test_every_declared_quantity_can_be_asked_for_by_its_name(minilm):
    block = minilm.trace(TEXTS[0], fields=tuple(measures.QUANTITIES)).self_attention[1]
    sizes = {"batch": 1, "head": 12, "tgt": 6, "src": 6, "model": 384, "head_dim": 32}
    for name, quantity in measures.QUANTITIES.items():
        assert tuple(block[name].shape) == tuple(sizes[axis] for axis in quantity.axes)
        assert torch.equal(block[name], getattr(block, name))


def test_it_may_need_other_measures_and_fields_of_the_record(minilm):
    sharpness()
    nl.measure("bluntness", axes=("batch", "head"), needs=("sharpness",))(lambda sharp: 1 - sharp.mean(-1))
    nl.measure("value_norms", axes=("batch", "head", "src"), needs=("values", "out_weight"))(
        lambda values, out_weight: torch.einsum("bhsd,hdm->bhsm", values, out_weight).norm(dim=-1)
    )
    trace = minilm.trace(TEXTS, fields=("bluntness", "value_norms", "transformed_norms"), heads=(7, 2))
    for block in trace.blocks:
        assert block.heads == (7, 2)
        torch.testing.assert_close(block["value_norms"], block.transformed_norms, rtol=1e-4, atol=1e-5)
        assert block["bluntness"].shape == (3, 2)
    whole = minilm.trace(TEXTS, fields=("bluntness",))
    torch.testing.assert_close(trace.blocks[0]["bluntness"], whole.blocks[0]["bluntness"][:, [7, 2]])


@pytest.mark.parametrize("fields", [("spread",), ("weights",)], ids=["in the pass", "on demand"])
def test_a_sequence_has_the_same_numbers_alone_and_in_a_padded_batch(minilm, fields):
    entropy()
    batch = minilm.trace(TEXTS, fields=fields)
    for index, text in enumerate(TEXTS):
        alone = minilm.trace(text, fields=fields)
        n = len(alone.tokens[0])
        for ours, theirs in zip(batch.blocks, alone.blocks, strict=True):
            torch.testing.assert_close(ours["spread"][index, :, :n], theirs["spread"][0], rtol=1e-4, atol=1e-6)
            assert (ours["spread"][index, :, n:] == 0).all()
        for ours, theirs in zip(batch[index].blocks, alone.blocks, strict=True):
            torch.testing.assert_close(ours["spread"], theirs["spread"], rtol=1e-4, atol=1e-6)


@given(
    sizes=st.lists(st.tuples(st.integers(1, 5), st.integers(1, 5)), min_size=1, max_size=4),
    heads=st.integers(1, 3),
    seed=st.integers(0, 99),
)
def test_whatever_the_lengths_no_padding_enters_a_measure_and_nothing_is_beyond_the_end(sizes, heads, seed):
    entropy()
    try:
        generator = torch.Generator().manual_seed(seed)
        wide, high = max(s for _, s in sizes), max(t for t, _ in sizes)
        weights = torch.zeros(len(sizes), heads, high, wide)
        for index, (tgt, src) in enumerate(sizes):
            weights[index, :, :tgt, :src] = torch.softmax(torch.randn(heads, tgt, src, generator=generator), -1)
        block = Block("cross", 0, "", tuple(range(heads)), 0.0, "t", "s", {"weights": weights}, tuple(sizes))
        for index, (tgt, src) in enumerate(sizes):
            own = weights[index, :, :tgt, :src]
            torch.testing.assert_close(block["spread"][index, :, :tgt], -(own * own.log()).sum(-1) / src)
            assert (block["spread"][index, :, tgt:] == 0).all()
    finally:
        measures.forget("spread")


def test_what_a_function_does_to_its_inputs_stays_with_the_function(minilm):
    nl.measure("rude", axes=("batch", "head", "tgt"), needs=("weights",))(lambda weights: weights.mul_(0).amax(-1))
    trace = minilm.trace(TEXTS[0], fields=("weights", "rude"))
    trace.blocks[0]["rude"]
    torch.testing.assert_close(trace.blocks[0].weights.sum(-1), torch.ones(1, 12, 6))


def test_it_is_a_column_of_the_table(minilm):
    sharpness()
    nl.measure("loudness", axes=("batch",), needs=("summed_norms",))(lambda summed: summed.mean((1, 2)))
    table = minilm.trace(TEXTS, fields=("weights", "summed_norms", "sharpness", "loudness")).to_dataframe()
    trace = minilm.trace(TEXTS, fields=("weights", "summed_norms"))
    row = table[(table.sequence == 1) & (table.layer == 2) & (table["head"] == 7) & (table.tgt == 1) & (table.src == 3)]
    block = trace[1].self_attention[2]
    assert row.sharpness.item() == pytest.approx(block.weights[0, 7, 1].max().item())
    assert row.summed_norms.item() == pytest.approx(block.summed_norms[0, 1, 3].item())
    assert row.loudness.item() == pytest.approx(block.summed_norms.mean().item(), rel=1e-5)
    alone = minilm.trace(TEXTS, fields=("sharpness",)).to_dataframe()
    assert not {"src", "src_token", "weights"} & set(alone)
    assert len(alone) == 6 * 12 * sum(len(tokens) for tokens in trace.tokens)
    layers = minilm.trace(TEXTS, fields=("weights", "sharpness")).to_dataframe(per="layer")
    assert {"mean_weights", "mean_sharpness"} <= set(layers)


def test_files_keep_it_and_know_it_without_its_function(minilm, tmp_path):
    import pandas

    sharpness(says="The largest weight of a query.")
    trace = minilm.trace(TEXTS, fields=("weights", "sharpness"))
    paths = [trace.save(tmp_path / f"t.{form}") for form in ("safetensors", "csv", "parquet")]
    measures.forget("sharpness")
    again = nl.open(paths[0])
    assert torch.equal(again.blocks[4]["sharpness"], trace.blocks[4]["sharpness"])
    assert again.blocks[4].quantity("sharpness").says == "The largest weight of a query."
    assert again[2].blocks[0]["sharpness"].shape == (1, 12, 3)
    assert "sharpness" in again.to_dataframe()
    for read, path in ((pandas.read_csv, paths[1]), (pandas.read_parquet, paths[2])):
        np.testing.assert_allclose(read(path).sharpness, trace.to_dataframe().sharpness, rtol=1e-6)
    assert again.figure(measures=("sharpness",)).look.measures == ("sharpness",)


def test_blocks_one_by_one_and_long_runs_have_it(minilm):
    from normlens.models import encode

    sharpness()
    seen = []
    largest = minilm.each_block(lambda block: block["sharpness"].max().item(), TEXTS[0], fields=("sharpness",))
    minilm.observe(
        encode(minilm.subject, TEXTS[0]),
        lambda block: seen.append(block["sharpness"].max().item()),
        fields=("sharpness",),
    )
    assert largest == seen
    assert len(seen) == 6


@pytest.mark.parametrize(
    ("options", "told"),
    [
        ({"name": "weights"}, "measure 'weights': this name is already taken"),
        ({"name": "tgt_token"}, "measure 'tgt_token': this name is already taken"),
        ({"name": "two words"}, "measure 'two words': its name is no word"),
        ({"needs": ("weigths",)}, "measure 'mine' needs 'weigths', which is no quantity"),
        ({"needs": ("mine",)}, "measure 'mine' needs itself"),
        ({"needs": ()}, "measure 'mine' needs nothing"),
        ({"needs": ("weights", "summed_norms")}, "measure 'mine': its function does not take its 2 needs"),
        ({"axes": ("head", "tgt")}, "measure 'mine': its axes must be 'batch', then"),
        ({"axes": ("batch", "src", "tgt")}, "measure 'mine': its axes must be"),
    ],
)
def test_what_cannot_be_declared_is_refused_by_name(options, told):
    options = {"name": "mine", "axes": ("batch", "head", "tgt"), "needs": ("weights",)} | options
    with pytest.raises(nl.NormlensError) as refused:
        nl.measure(options.pop("name"), **options)(lambda weights: weights.amax(-1))
    assert told in str(refused.value)
    assert "mine" not in measures.QUANTITIES


def test_a_second_measure_of_the_same_name_is_refused_but_a_cell_that_is_run_again_is_not():
    sharpness()
    with pytest.raises(nl.NormlensError, match="'sharpness': this name is already taken"):
        sharpness()

    def cell(needs):
        def again(value):
            return value.amax(-1)

        again.__module__, again.__qualname__ = "__main__", "again"
        return nl.measure("again", axes=("batch", "head", "tgt"), needs=needs)(again)

    cell(("weights",))
    cell(("weighted_norms",))
    assert measures.QUANTITIES["again"].needs == ("weighted_norms",)
    nl.measure("after", axes=("batch", "head"), needs=("again",))(lambda again: again.amax(-1))
    with pytest.raises(nl.NormlensError, match="'again' needs itself"):
        cell(("after",))


@pytest.mark.parametrize(
    ("function", "told"),
    [
        (lambda weights: weights, "measure 'mine' returned the shape (1, 12, 6, 6), not (1, 12, 6)"),
        (lambda weights: weights.amax(-1) / 0, "measure 'mine' returned NaN or infinite numbers"),
        (lambda weights: weights.amax(-1) * float("nan"), "measure 'mine' returned NaN"),
        (
            lambda weights: -weights.amax(-1),
            "measure 'mine' returned numbers below 0.\n  Do: declare it with signed=True",
        ),
        (lambda weights: [1, 2, 3][7], "measure 'mine' could not be computed: IndexError: list index out of range"),
        (lambda weights: "much", "measure 'mine' could not be computed"),
        (lambda weights: weights.amax(-1).to(torch.complex64), "measure 'mine' returned complex numbers"),
    ],
)
@pytest.mark.parametrize("fields", [("mine",), ("weights",)], ids=["in the pass", "on demand"])
def test_what_goes_wrong_in_a_function_is_said_with_its_name(minilm, function, told, fields):
    nl.measure("mine", axes=("batch", "head", "tgt"), needs=("weights",))(function)
    with pytest.raises(nl.NormlensError) as refused:
        minilm.trace(TEXTS[0], fields=fields).blocks[0]["mine"]
    assert told in str(refused.value)


def test_a_signed_measure_and_numbers_of_other_kinds_are_taken(minilm):
    nl.measure("gain", axes=("batch", "head", "tgt"), needs=("weights",), signed=True)(lambda w: 1 - 2 * w.amax(-1))
    nl.measure("peak", axes=("batch", "head", "tgt"), needs=("weights",))(lambda w: w.argmax(-1))
    nl.measure("mean", axes=("batch", "src"), needs=("weights",))(lambda w: w.mean((1, 2)).numpy())
    block = minilm.trace(TEXTS[0], fields=("gain", "peak", "mean")).blocks[0]
    assert (block["gain"] < 0).any()
    assert block["peak"].dtype == torch.float32
    torch.testing.assert_close(block["mean"].sum(-1), torch.ones(1))


def test_a_field_that_is_no_quantity_is_refused_with_those_there_are(minilm):
    with pytest.raises(nl.NormlensError, match="no quantity 'norm'"):
        minilm.trace("a", fields=("norm",))
    with pytest.raises(nl.NormlensError, match="fields takes several names"):
        minilm.trace("a", fields="weights")


def test_the_docs_list_every_quantity_as_it_is_declared():
    from pathlib import Path

    page = (Path(__file__).parents[2] / "docs" / "tracing.md").read_text(encoding="utf-8")
    for quantity in measures.QUANTITIES.values():
        axes = ", ".join(quantity.axes)
        assert f"| `{quantity.name}` | {quantity.symbol} | {axes} | {quantity.says} |" in page
    assert page.count("| batch, ") == len(measures.QUANTITIES)
