"""A trace on disk is as good as a fresh one."""

import pytest
import torch

import normlens as nl


@pytest.fixture(scope="module")
def trace(minilm):
    return minilm.trace(["The cat sat.", "Nobody expected that </script> at all."])


def test_a_saved_trace_comes_back_whole(trace, tmp_path):
    again = nl.open(trace.save(tmp_path / "deep" / "t.safetensors"))
    assert repr(again) == repr(trace)
    assert again.tokens == trace.tokens
    assert again.words == trace.words
    assert again.wires == trace.wires
    for left, right in zip(again.blocks, trace.blocks, strict=True):
        assert left.heads == right.heads
        assert torch.equal(left.weighted_norms, right.weighted_norms)
        assert torch.equal(left.summed_norms, right.summed_norms)


def test_a_source_and_target_trace_comes_back_whole(translator, tmp_path):
    trace = translator.trace(source="the cat", target="a dog ran")
    again = nl.open(str(trace.save(tmp_path / "t.safetensors")))
    assert again.target_tokens == trace.target_tokens
    assert torch.equal(again.cross_attention[1].weights, trace.cross_attention[1].weights)


def test_the_table_is_long_and_without_padding(trace):
    table = trace.to_dataframe()
    lengths = [len(tokens) for tokens in trace.tokens]
    assert len(table) == 6 * 12 * sum(n * n for n in lengths)
    row = table[(table.sequence == 1) & (table.layer == 2) & (table["head"] == 7) & (table.tgt == 1) & (table.src == 3)]
    block = trace[1].self_attention[2]
    assert row.weights.item() == pytest.approx(block.weights[0, 7, 1, 3].item())
    assert row.weighted_norms.item() == pytest.approx(block.weighted_norms[0, 7, 1, 3].item())
    assert row.src_token.item() == trace.tokens[1][3]
    layers = trace.to_dataframe(per="layer")
    assert len(layers) == 6 * sum(n * n for n in lengths)
    assert set(layers) >= {"mean_weights", "summed_norms"}


def test_the_suffix_decides_the_form(trace, tmp_path):
    import pandas

    assert len(pandas.read_csv(trace.save(tmp_path / "t.csv"))) == len(trace.to_dataframe())
    assert len(pandas.read_parquet(trace.save(tmp_path / "t.parquet"))) == len(trace.to_dataframe())
    assert "<html" in trace.save(tmp_path / "t.html").read_text(encoding="utf-8")
    with pytest.raises(nl.NormlensError, match=r"\.safetensors"):
        trace.save(tmp_path / "t.pickle")


def test_what_is_no_trace_is_not_opened(tmp_path):
    from safetensors.torch import save_file

    (tmp_path / "text.safetensors").write_text("hello")
    save_file({"a": torch.ones(1)}, tmp_path / "other.safetensors")
    for name in ("text.safetensors", "other.safetensors", "missing.safetensors"):
        with pytest.raises(nl.NormlensError):
            nl.open(tmp_path / name)


def test_a_place_that_cannot_be_written(trace, tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(nl.NormlensError, match="cannot be written"):
        trace.save(tmp_path / "file" / "t.html")


def test_a_notebook_shows_the_view(trace):
    assert trace._repr_html_().count("<iframe") == 2


def test_the_terminal_shows_the_table_and_maps_when_asked(trace):
    assert "queries, columns: keys" not in trace.show()
    shown = trace.show(layer=2, head=4, maps=True)
    assert shown.index("mean over L2 x head 4 and all queries") < shown.index("self-attention L2H4  α")


def test_the_table_is_of_the_layer_head_and_query_that_are_named(trace):
    block = trace.self_attention[2]
    weights, norms = block.weights[0, 4, 1], block.weighted_norms[0, 4, 1]
    rows = trace.show(layer=2, head=4, pin=1).splitlines()
    token = next(place for place, row in enumerate(rows) if row.startswith("token")) + 1
    rows = rows[token : token + block.sizes[0][1]]
    for row, weight, norm in zip(rows, weights.tolist(), (norms / norms.sum()).tolist(), strict=False):
        assert f"{weight:6.1%}".strip() in row
        assert f"{norm:6.1%}".strip() in row
