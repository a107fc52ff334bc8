"""What was proved may change after loading: then the numbers follow, or the trace stops; nothing vanishes."""

import pytest
import torch
from either_modules import HeadPruned
from gated_modules import GateBeforeOutput, LayerNorm
from output_modules import TwoLayers, TwoMatrices
from proving import exact_or_refused, later_exact_or_refused, matching, traced
from reordered_modules import KeysReversed, KeysSorted
from textbook import Textbook, merged

import normlens as nl

LONG = 13
SHORT = Textbook.inputs((2, 5))


class Switching(Textbook):
    """Another module for long inputs; what is short goes the textbook's way."""

    def attend(self, x):
        return self.way(x) if x.shape[1] >= LONG else super().attend(x)


class GateOfItselfForLong(Switching):
    def way(self, x):
        q, k, v = (self.split(matrix(x)) for matrix in (self.q, self.k, self.v))
        row = merged(self.weigh(self.score(q, k)) @ v)
        return self.out(row * torch.sigmoid(row))


class ActivationForLong(Switching):
    def way(self, x):
        q, k, v = (self.split(matrix(x)) for matrix in (self.q, self.k, self.v))
        return self.out(torch.nn.functional.gelu(merged(self.weigh(self.score(q, k)) @ v)))


class NoSoftmaxForLong(Switching):
    def way(self, x):
        q, k, v = (self.split(matrix(x)) for matrix in (self.q, self.k, self.v))
        return self.out(merged(torch.sigmoid(self.score(q, k)) @ v))


class NoAttentionForLong(Switching):
    def way(self, x):
        return self.out(self.v(x))


class SecondLayerGatedForLong(TwoLayers):
    def build(self):
        self.above = GateOfItselfForLong(self.heads, self.dim, seed=7)

    def layers(self):
        return [self, self.above]


STOPPED = [GateOfItselfForLong, ActivationForLong, NoSoftmaxForLong, NoAttentionForLong, SecondLayerGatedForLong]


@pytest.mark.parametrize("case", STOPPED, ids=lambda case: case.__name__)
def test_a_block_that_cannot_be_read_later_stops_the_trace_by_name(case):
    model = case()
    lens = nl.load(model, probe=SHORT)
    name = "layer 1" if case is SecondLayerGatedForLong else "layer 0"
    for again in (lens.trace, lambda inputs: lens.each_block(lambda block: block.error, inputs)):
        with pytest.raises(nl.ReconstructionError, match=name):
            again(case.inputs((2, LONG), seed=2))
    blocks = traced(lens, SHORT)
    assert [block.layer for block in blocks] == list(range(1 + (case is SecondLayerGatedForLong)))


@pytest.mark.parametrize(
    "case",
    [KeysReversed, KeysSorted, TwoMatrices, HeadPruned, LayerNorm, GateBeforeOutput],
    ids=lambda case: case.__name__,
)
def test_a_way_taken_only_later_is_read_or_refused(case):
    """The textbook's way on the probe; reversed, sorted, two matrices, a norm, a gate on long inputs."""

    class Later(case):
        def order(self, q, k, v):
            return super().order(q, k, v) if q.shape[2] >= LONG else (q, k, v)

        def mix(self, weights, v):
            return super().mix(weights, v) if v.shape[2] >= LONG else weights @ v

        def close(self, context, x):
            return super().close(context, x) if x.shape[1] >= LONG else Textbook.close(self, context, x)

    model = Later()
    lens = nl.load(model, probe=SHORT)
    later_exact_or_refused(lens, model, case.inputs((2, LONG), seed=2))


def test_a_hook_that_gates_what_enters_the_output_matrix_stops_the_trace():
    model = Textbook()
    lens = nl.load(model, probe=SHORT)
    hook = model.out.register_forward_pre_hook(lambda module, args: (args[0] * torch.sigmoid(args[0]),))
    with pytest.raises(nl.ReconstructionError, match="layer 0"):
        lens.trace(SHORT)
    hook.remove()
    matching(model, traced(lens, SHORT), SHORT["x"])


def test_a_hook_that_gates_the_result_of_an_inner_module_stops_the_trace():
    class Inner(torch.nn.Module):
        def forward(self, weights, v):
            return weights @ v

    class Outer(Textbook):
        def build(self):
            self.inner = Inner()

        def mix(self, weights, v):
            return self.inner(weights, v)

    model = Outer()
    lens = nl.load(model, probe=SHORT)
    model.inner.register_forward_hook(lambda module, args, result: result * torch.tanh(result))
    with pytest.raises(nl.ReconstructionError, match="layer 0"):
        lens.trace(SHORT)


def test_a_hook_behind_the_output_matrix_changes_no_part():
    """f(x) ends at the last matrix: a factor between it and the residual is no part of f."""
    model = Textbook()
    lens = nl.load(model, probe=SHORT)
    model.out.register_forward_hook(lambda module, args, result: 3 * result)
    later_exact_or_refused(lens, model, SHORT)


def test_a_module_put_into_training_mode_later_is_refused():
    class Dropping(Textbook):
        def build(self):
            self.drop = torch.nn.Dropout(0.5)

        def weigh(self, scores):
            return self.drop(super().weigh(scores))

    model = Dropping()
    lens = nl.load(model, probe=SHORT)
    matching(model, traced(lens, SHORT), SHORT["x"])
    model.drop.train()
    with pytest.raises(nl.NormlensError, match="training"):
        lens.trace(SHORT)
    assert model.drop.training


@pytest.mark.parametrize("case", [Textbook, TwoMatrices], ids=lambda case: case.__name__)
def test_numbers_follow_weights_that_are_changed(case):
    model = case()
    lens = nl.load(model, probe=SHORT)
    model.load_state_dict(case(seed=9).state_dict())
    matching(model, traced(lens, SHORT), SHORT["x"])


class Looping(TwoLayers):
    """One layer, as often as the first number of the text says."""

    def forward(self, x):
        for layer in [self] * rounds(x):
            x = x + layer.attend(x)
        return x

    def layers(self):
        return [self] * self.count

    def loops(self, x):
        self.count = rounds(x)
        return super().loops(x)


def rounds(x):
    return int(x[0, 0, 0])


def told(count, seed=1):
    inputs = Looping.inputs((2, 5), seed=seed)
    inputs["x"][0, 0, 0] = count
    return inputs


def test_a_layer_that_runs_more_often_than_on_the_probe_is_numbered_by_its_place():
    model = Looping()
    lens = nl.load(model, probe=told(2))
    for _ in range(2):
        blocks = traced(lens, told(4))
        assert [(block.kind, block.layer) for block in blocks] == [("self", layer) for layer in range(4)]
        matching(model, blocks, told(4)["x"])
    wires = len(lens.wires)
    lens.trace(told(4, seed=2))
    assert len(lens.wires) == wires
    assert [block.layer for block in lens.trace(told(2)).blocks] == [0, 1]


def test_a_layer_that_runs_less_often_than_on_the_probe_is_read_or_refused():
    exact_or_refused(Looping(), told(3), told(1), told(2), told(3))
