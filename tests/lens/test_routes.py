"""Routes: three tokens by hand, published numbers, every vector written out, and rollout where nothing is left out."""

import sys
from pathlib import Path

import numpy as np
import pytest
import torch
from made_traces import block, trace
from slow_routes import as_tensor, attention_sum, feedforward_sum, followed

import normlens as nl
from normlens import algebra, probes
from normlens.capture import NO_FEEDFORWARD
from normlens.corpora import bare
from normlens.lens import MapError, NotKept
from normlens.lens.routes_drawn import graph

sys.path.insert(0, str(Path(__file__).parents[1] / "layers"))
from slow_layers import Notes, rms_norm

FIELDS = ("route_shares", "feedforward_share")


def sent_of(weights, values):
    """Heads whose output matrix is that of one, so that f(x) is the value."""
    weights, values = torch.tensor(weights).double()[None], torch.tensor(values).double()[None]
    return algebra.Sent(weights, values, torch.eye(values.shape[-1]).double().expand(values.shape[1], -1, -1))


def stage_of(own, whole):
    own, whole = torch.tensor([own]).double(), torch.tensor([whole]).double()
    return algebra.Stage((), own, torch.zeros_like(own), whole)


def layer(number, shares, added=None):
    """A layer of given shares, (head, tgt, src), and of its feed-forward block."""
    made = block(number, [shares], name="route_shares")
    if added is None:
        made.absent["feedforward_share"] = NO_FEEDFORWARD
    else:
        made.kept["feedforward_share"] = torch.tensor([added], dtype=torch.float64)
    return made


def test_shares_of_three_tokens_by_hand():
    """Token c is (2, 0); head 0 adds (1, 0) of a, head 1 (0, 1) of b: ‖y‖₁ = 4, each part is nearer by its size."""
    weights = [[[1, 0, 0], [0, 1, 0], [1, 0, 0]], [[1, 0, 0], [0, 1, 0], [0, 1, 0]]]
    values = [[[1, 0], [1, 0], [0, 0]], [[0, 0], [0, 1], [0, 0]]]
    own, whole = [[1, 1], [0, 2], [2, 0]], [[2, 1], [1, 3], [3, 1]]
    found = algebra.route_shares(stage_of(own, whole), sent_of(weights, values))[0]
    np.testing.assert_allclose(found[:, 2], [[0.25, 0, 0], [0, 0.25, 0]])
    np.testing.assert_allclose(found[:, 0], [[1 / 3, 0, 0], [0, 0, 0]])
    against = algebra.route_shares(stage_of([[2.0, 0.0]], [[1.0, 0.0]]), sent_of([[[1.0]]], [[[-1.0, 0.0]]]))
    assert against.item() == 0, "a part that leads away has no share"


def test_the_small_numbers_of_the_authors_tests():
    """Parts (1, 1) and (2, 2) beside (1, 1) make ¼, ½ and ¼; and 0.05, 0.15 and 0.8 above 0.1 make 0.158 and 0.842."""
    parts = sent_of([[[1.0]], [[1.0]]], [[[1.0, 1.0]], [[2.0, 2.0]]])
    found = algebra.route_shares(stage_of([[1.0, 1.0]], [[4.0, 4.0]]), parts)
    np.testing.assert_allclose(found.flatten(), [0.25, 0.5])
    carried = stage_of([[0.0, 0.0]], [[0.0, 0.0]])
    assert algebra.feedforward_share(carried, stage_of([[1.0, 1.0]], [[1.0, 1.0]])).item() == 1
    edges = trace([layer(0, [[[0.05]], [[0.15]]])], (1,)).routes(0, 0.1).edges
    assert [(edge.by, edge.head) for edge in edges] == [("residual", None), ("attention", 1)]
    np.testing.assert_allclose([edge.weight for edge in edges], [0.842105, 0.157894], atol=1e-6)


def test_two_layers_of_three_tokens_by_hand():
    """c is 0.6 itself, 0.3 b by head 1 and 0.1 a by head 0, which 0.2 leaves out; then b is half a and half itself."""
    nothing = [0.0, 0.0, 0.0]
    first = [[nothing, [0.5, 0, 0], nothing], [nothing, nothing, nothing]]
    second = [[nothing, nothing, [0.1, 0, 0]], [nothing, nothing, [0, 0.3, 0]]]
    made = trace([layer(0, first, [0.25, 0.25, 0.1]), layer(1, second)])
    found = made.routes(-1, 0.2)
    np.testing.assert_allclose(found.scores, [1 / 6, 1 / 6, 2 / 3])
    assert [(e.by, e.head, e.tgt.layer, e.tgt.position, e.src.position) for e in found.edges] == [
        ("residual", None, 1, 2, 2),
        ("attention", 1, 1, 2, 1),
        ("residual", None, 0, 1, 1),
        ("feed-forward", None, 0, 1, 1),
        ("feed-forward", None, 0, 1, 1),
        ("residual", None, 0, 2, 2),
        ("residual", None, 0, 1, 1),
        ("attention", 0, 0, 1, 0),
        ("residual", None, 0, 2, 2),
    ]
    assert [node.part for node in found.nodes if node.position == 1] == [
        "end", "attended", "feed-forward", "read",
    ]  # fmt: skip
    assert found.token(found.nodes[0]) == "c"
    table = found.to_dataframe()
    np.testing.assert_allclose(table["flow"][:2], [2 / 3, 1 / 3])
    assert table["head"].dropna().tolist() == [1, 0]
    assert table["src_token"].tolist()[:2] == ["c", "b"]
    assert "from c 0.67, a 0.17, b 0.17" in repr(found)


@pytest.mark.parametrize("kind", ["bert", "gpt2", "llama", "gemma2", "gptj"])
def test_they_are_those_of_vectors_written_out(kind):
    """Sums behind norms, before, between them, and of a block beside the attention; double where the model has it."""
    torch.manual_seed(0)
    built = probes.build(kind)
    double = kind not in ("llama", "gemma2")
    model = built.model.double() if double else built.model
    near = {"rtol": 1e-9, "atol": 1e-12} if double else {"rtol": 1e-4, "atol": 1e-6}
    lens = nl.load(model, probe=built.probes[0].inputs)
    inputs = {"input_ids": built.probes[0].inputs["input_ids"][:1, :4].clamp_min(3)}
    own, joined, behind = {
        "bert": ("encoder.layer.{}.attention.self", "encoder.layer.{}.output.LayerNorm", None),
        "gpt2": ("h.{}.ln_1", "h.{}.mlp", None),
        "llama": ("layers.{}.input_layernorm", "layers.{}.mlp", None),
        "gemma2": (
            "layers.{}.input_layernorm",
            "layers.{}.post_feedforward_layernorm",
            "layers.{}.post_attention_layernorm",
        ),
        "gptj": ("h.{}.ln_1", "h.{}.mlp", None),
    }[kind]
    names = [name.format(number) for name in (own, joined, behind) if name for number in (0, 1)]
    if kind == "bert":
        names += [f"encoder.layer.{number}.attention.output.LayerNorm" for number in (0, 1)]
    with Notes(model, names) as notes:
        ours = lens.trace(inputs, fields=("weights", "transformed", "head_outputs", *FIELDS))
    layers = []
    for number, made in enumerate(ours.self_attention):
        x = notes.of[own.format(number)].read[0]
        if kind == "bert":
            attended = notes.of[f"encoder.layer.{number}.attention.output.LayerNorm"].read[0]
            carried = notes.of[f"encoder.layer.{number}.attention.output.LayerNorm"].returned[0]
            added = notes.of[joined.format(number)].read[0] - carried
        else:
            written = made.head_outputs[0].double().sum(0)
            if kind == "gpt2":
                written = written + model.h[number].attn.c_proj.bias.detach()
            if behind:
                written = notes.of[behind.format(number)].returned[0]
            attended = carried = x + written
            added = notes.of[joined.format(number)].returned[0]

        def along(part, query, number=number):
            if behind is None:
                return part
            norm = model.layers[number].post_attention_layernorm
            before = notes.of[behind.format(number)].read[:, query : query + 1]
            return rms_norm(part[None, None, None], before, 1 + norm.weight, norm.eps).flatten()

        count = len(x)
        weights, vectors = made.weights[0].double(), made.transformed[0].double()
        by_attention = [attention_sum(weights, vectors, x, attended, query, along) for query in range(count)]
        by_network = [feedforward_sum(carried, added, query) for query in range(count)]
        torch.testing.assert_close(made.route_shares[0].double(), as_tensor(by_attention, len(weights), count), **near)
        expected = torch.tensor([one["feed-forward"] for one in by_network], dtype=torch.float64)
        torch.testing.assert_close(made.feedforward_share[0].double(), expected, **near)
        layers.append((by_attention, by_network))
    for threshold in (0.0, 0.1):
        found = ours.routes(2, threshold)
        expected = followed(layers, 2, threshold, beside=kind == "gptj")
        expected = [expected.get(token, 0.0) for token in range(len(found.scores))]
        np.testing.assert_allclose(found.scores, expected, atol=near["rtol"])
    reads = {edge.src.part for edge in found.edges if edge.tgt.part == "feed-forward"}
    assert reads <= ({"read", "end"} if kind == "gptj" else {"attended"})


def slow_rollout(made):
    """Matrices of the layers multiplied: heads added up, and what they leave to the residual."""
    product = None
    for one in made:
        shares = one.route_shares[0].double().sum(0)
        edges = shares + torch.diag(1 - shares.sum(-1))
        product = edges if product is None else edges @ product
    return product


def test_where_every_edge_is_kept_they_lead_where_a_rollout_leads(minilm):
    text = "The old cat slept quietly."
    made = minilm.trace(text, fields=FIELDS)
    expected = slow_rollout(made.self_attention)
    for position in (0, 3):
        np.testing.assert_allclose(made.routes(position, 0.0).scores, expected[position], atol=1e-6)
    few, many = made.routes(0, 0.1), made.routes(0, 0.02)
    assert len(few.edges) < len(many.edges)
    assert all(edge.share >= 0.1 for edge in few.edges)
    assert sum(edge.weight for edge in few.edges if edge.tgt == few.nodes[0]) == pytest.approx(1)


def test_padded_and_saved_traces_have_the_routes_of_their_texts_alone(minilm, tmp_path):
    texts = ["The old cat slept quietly under a tree.", "Short."]
    both = minilm.trace(texts, fields=FIELDS)
    opened = nl.open(both.save(tmp_path / "t.safetensors"))
    for index, text in enumerate(texts):
        alone = minilm.trace(text, fields=FIELDS).routes(0, 0.01)
        for made in (both, opened):
            np.testing.assert_allclose(made.routes(0, 0.01, index=index).scores, alone.scores, atol=1e-4)


def test_later_tokens_are_on_no_route_of_a_causal_model(writer):
    found = writer.trace("the cat sat on the mat", fields=FIELDS).routes(2, 0.0)
    assert {node.position for node in found.nodes} == {0, 1, 2}
    assert found.scores.sum() == pytest.approx(1)


def test_a_decoder_leads_back_to_the_source_and_to_what_it_was_fed(translator):
    made = translator.trace(source="the cat sat on the mat", target="a dog ran", fields=FIELDS)
    found = made.routes(-1, 0.0)
    assert {node.part for node in found.nodes if node.side == "target"} == {
        "read", "attended", "crossed", "feed-forward", "end",
    }  # fmt: skip
    read, mixed = slow_rollout(made.encoder_attention), None
    sources, fed = len(made.tokens[0]), len(made.target_tokens[0])
    mixed = torch.cat([torch.zeros(fed, sources), torch.eye(fed)], dim=1).double()
    for own, crossed in zip(made.decoder_attention, made.cross_attention, strict=True):
        mixed = slow_rollout([own]) @ mixed
        shares = crossed.route_shares[0].double().sum(0)
        mixed = (1 - shares.sum(-1, keepdim=True)) * mixed
        mixed[:, :sources] += shares @ read
    np.testing.assert_allclose(found.scores, mixed[-1], atol=1e-6)
    assert set(found.to_dataframe()["src_side"]) == {"source", "target"}
    assert {node.side for node in made.routes(-1, 0.0, kind="encoder").nodes} == {"source"}


def test_where_every_term_is_below_the_threshold_a_route_ends():
    shares = [[[0.25, 0.25, 0.25]] * 3]
    found = trace([layer(0, shares), layer(1, [[[0.4, 0, 0]] * 3])]).routes(-1, 0.3)
    assert [edge.tgt.layer for edge in found.edges] == [1, 1]
    assert found.scores.sum() == 0
    assert "from no token" in repr(found)


def test_what_has_no_routes_is_refused(minilm):
    with pytest.raises(MapError, match=r"did not keep(.|\n)*feedforward_share"):
        minilm.trace("Short.").routes()
    made = minilm.trace("Short.", fields=FIELDS)
    with pytest.raises(MapError, match="no position 9"):
        made.routes(9)
    with pytest.raises(MapError, match="at least 0 and below 1"):
        made.routes(0, 1.0)
    with pytest.raises(NotKept, match="share among all heads"):
        minilm.trace("Short.", fields=FIELDS, heads=(0, 1)).routes()
    with pytest.raises(NotKept, match="share among all heads"):
        minilm.trace("Short.", fields=("alti",), heads=(0, 1)).rollout("alti")


def test_they_are_drawn_as_a_graph_of_the_same_edges(minilm, tmp_path):
    found = minilm.trace("The <b>cat</b> sat.", fields=FIELDS).routes(0, 0.1)
    shown = graph(found)
    pairs = {(edge.tgt, edge.src) for edge in found.edges}
    assert len(shown.edges) == len(pairs)
    assert sum(edge.weight for edge in shown.edges) == pytest.approx(sum(edge.flow for edge in found.edges))
    assert [node.label for node in shown.nodes if node.label] == [bare(token) for token in found.sides[0].tokens]
    heads = {edge.head for edge in found.edges if edge.tgt.layer == 5 and edge.by == "attention"}
    assert heads == {int(head) for edge in shown.edges for head in edge.label.split() if " 5 attended" in edge.head}
    page = found.save(tmp_path / "routes.html").read_text(encoding="utf-8")
    assert "<svg" in page
    assert "<b>" not in page
    assert "default-src 'none'" in page
    assert found.save(tmp_path / "routes.svg").read_text(encoding="utf-8").startswith("<?xml")
    assert len(found.save(tmp_path / "routes.csv").read_text(encoding="utf-8").splitlines()) == len(found.edges) + 1
    assert found._repr_html_().startswith("<svg")
    with pytest.raises(MapError, match=r"unsupported format \.jpg"):
        found.save(tmp_path / "routes.jpg")


def test_the_decoder_is_drawn_beside_and_above_its_encoder(translator):
    found = translator.trace(source="the cat", target="a dog", fields=FIELDS).routes(-1, 0.0)
    shown = graph(found)
    places = {node.name: (node.x, node.y) for node in shown.nodes}
    rows = {side: [place for name, place in places.items() if name.startswith(side)] for side in ("source", "target")}
    assert max(x for x, _ in rows["source"]) < min(x for x, _ in rows["target"])
    assert max(y for _, y in rows["source"]) <= min(y for _, y in rows["target"])
    assert [level.name for level in shown.levels] == ["source 0", "source 1", "target 0", "target 1", "target 2"]


@pytest.mark.parametrize("gated", [False, True])
def test_the_vectors_of_the_heads_add_up_to_those_of_the_block(gated):
    torch.manual_seed(0)
    weights, values = torch.rand(2, 3, 4, 5).double(), torch.randn(2, 3, 5, 6).double()
    gates = torch.randn(2, 3, 4, 6).double() if gated else None
    sent = algebra.Sent(weights, values, torch.randn(3, 6, 7).double(), gates)
    some, transformed = slice(1, 3), sent.transformed()
    by_head = sent.head_vectors(some, transformed)
    assert by_head.shape == (2, 2, 3, 5, 7)
    torch.testing.assert_close(by_head.sum(dim=2), sent.vectors(some, transformed))
    if gates is not None:
        one = weights[1, 2, 1, 4] * (gates[1, 2, 1] * values[1, 2, 4]) @ sent.out_weight[2]
        torch.testing.assert_close(by_head[1, 0, 2, 4], one)
