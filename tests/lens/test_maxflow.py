"""Maximum flow through the layers: by hand, against paths that are filled one by one, and how far rounding goes."""

from fractions import Fraction

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from made_traces import block, trace

import normlens as nl
from normlens.lens import MapError

HALVES = [[1.0, 0.0, 0.0], [0.5, 0.5, 0.0], [0.25, 0.25, 0.5]]


def filled_one_by_one(edges, source, sink):
    """Ford and Fulkerson with fractions: fill any path that has room, backwards too, until there is none."""
    room = {}
    for (tail, head), size in edges.items():
        room.setdefault(tail, {})[head] = Fraction(size)
        room.setdefault(head, {}).setdefault(tail, Fraction(0))
    flow = Fraction(0)
    while True:
        came, queue = {source: None}, [source]
        for node in queue:
            for other, left in room.get(node, {}).items():
                if left > 0 and other not in came:
                    came[other] = node
                    queue.append(other)
        if sink not in came:
            return float(flow)
        path, node = [], sink
        while came[node] is not None:
            path.append((came[node], node))
            node = came[node]
        most = min(room[tail][head] for tail, head in path)
        for tail, head in path:
            room[tail][head] -= most
            room[head][tail] += most
        flow += most


def slow(maps):
    count, edges = len(maps[0]), {}
    for layer, shares in enumerate(maps):
        for i in range(count):
            for j in range(count):
                if shares[i][j]:
                    edges[(layer + 1, i), (layer, j)] = shares[i][j]
    return np.array([[filled_one_by_one(edges, (len(maps), i), (0, j)) for j in range(count)] for i in range(count)])


def test_two_layers_of_three_tokens_by_hand():
    """From c to a: ¼ over a, ¼ over b, which takes up to ½ of it, and ¼ over c itself."""
    made = trace([block(0, [[HALVES]]), block(1, [[HALVES]])])
    flow = made.maxflow("weights", residual=0.0)
    np.testing.assert_allclose(flow.values[0, 2].numpy(), [0.25 + 0.25 + 0.25, 0.25 + 0.25, 0.5], atol=1e-6)
    np.testing.assert_allclose(flow.values[0, 0].numpy(), [1, 0, 0], atol=1e-6)
    np.testing.assert_allclose(made.maxflow("weights", residual=0.0, positions=2).of(-1)[0], flow.of(-1)[0])


@settings(max_examples=10)
@given(seed=st.integers(0, 99), depth=st.integers(1, 3), count=st.integers(2, 4))
def test_it_is_the_flow_of_paths_filled_one_by_one_and_never_above_it(seed, depth, count):
    maps = torch.rand(depth, 1, 2, count, count, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)
    flow = trace([block(layer, each) for layer, each in enumerate(maps)], (count,)).maxflow("weights")
    means = maps[:, 0].mean(1)
    edges = means / means.sum(-1, keepdim=True) / 2 + torch.eye(count) / 2
    expected = slow(edges.tolist())
    found = flow.values[0].double().numpy()
    assert 0 < flow.error < 1e-6
    assert (found <= expected + 1e-7).all()  # what single precision rounds when it is stored
    assert (found >= expected - flow.error - 1e-7).all()


def test_a_decoder_takes_from_the_source_and_from_what_it_was_fed(translator):
    one = translator.trace(source="the cat sat", target="a dog", fields=("weights",))
    flow = one.maxflow("weights", positions=[0, -1])
    sources, fed = len(one.tokens[0]), len(one.target_tokens[0])
    half = {
        kind: [(b.weights[0].double().mean(0) / 2).tolist() for b in one.layers(kind)]
        for kind in ("encoder", "decoder", "cross")
    }
    edges = {}
    for layer, shares in enumerate(half["encoder"]):
        for i in range(sources):
            for j in range(sources):
                edges[("e", layer + 1, i), ("e", layer, j)] = shares[i][j] + (i == j) / 2
    for layer, (own, crossed) in enumerate(zip(half["decoder"], half["cross"], strict=True)):
        for i in range(fed):
            for j in range(fed):
                edges[("m", layer, i), ("d", layer, j)] = own[i][j] + (i == j) / 2
            for j in range(sources):
                edges[("d", layer + 1, i), ("e", len(half["encoder"]), j)] = crossed[i][j]
            edges[("d", layer + 1, i), ("m", layer, i)] = 0.5
    edges = {pair: share for pair, share in edges.items() if share}
    sinks = [*(("e", 0, j) for j in range(sources)), *(("d", 0, j) for j in range(fed))]
    for row, position in ((0, 0), (1, fed - 1)):
        expected = [filled_one_by_one(edges, ("d", len(half["decoder"]), position), sink) for sink in sinks]
        np.testing.assert_allclose(flow.values[0, row].numpy(), expected, atol=1e-6)
    np.testing.assert_allclose(flow.of(0)[0], flow.values[0, 0])


def test_padded_and_saved_traces_have_the_flows_of_their_texts_alone(minilm, tmp_path):
    texts = ["The cat sat.", "Short."]
    both = minilm.trace(texts, fields=("alti",))
    flow = both.maxflow("alti", positions=[0, -1])
    for index, text in enumerate(texts):
        alone = minilm.trace(text, fields=("alti",)).maxflow("alti", positions=[0, -1])
        torch.testing.assert_close(flow[index].values, alone.values, rtol=1e-4, atol=1e-5)
    opened = nl.open(both.save(tmp_path / "t.safetensors")).maxflow("alti", positions=[0, -1])
    assert torch.equal(opened.values, flow.values)
    assert set(flow.to_dataframe()["tgt"]) == {0, 3, 5}
    assert [len(side.tokens) for side in flow.figure(0).sides] == [2, 6]


def test_what_has_no_flow_is_refused(minilm):
    short = minilm.trace("Short.", fields=("weights", "encoder_norms"))
    with pytest.raises(MapError, match="a flow needs shares"):
        short.maxflow("globenc")
    with pytest.raises(MapError, match="no position 9"):
        short.maxflow("weights", positions=9)
    with pytest.raises(MapError, match="position 1 has no row"):
        short.maxflow("weights", positions=0).of(1)
