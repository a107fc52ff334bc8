"""Hand-made attention, one twist each: the numbers are those of plain loops, or there are none."""

import inspect
import warnings

import either_modules
import exact_modules
import gated_modules
import output_modules
import pytest
import refused_modules
import reordered_modules
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from proving import exact_or_refused, matching, traced
from textbook import Textbook, acceptable

import normlens as nl
from normlens.capture import examine
from normlens.lens import PartlyExact

MODULES = (exact_modules, gated_modules, output_modules, reordered_modules, either_modules, refused_modules)


def of(*verdicts):
    return [case for case in Textbook.cases if case.expect in verdicts and inspect.getmodule(case) in MODULES]


def cases(*verdicts):
    """Every module of these verdicts, by its name."""
    return pytest.mark.parametrize("case", of(*verdicts), ids=lambda case: case.__name__)


def test_there_are_many_modules_of_every_verdict():
    assert len(of("exact")) >= 30
    assert len(of("either")) >= 30
    assert len(of("refused", "no attention")) >= 25


@cases("exact", "either")
def test_the_loops_give_what_the_module_returns(case):
    """The reference is sound: without normlens, it adds up to the module's own output."""
    model = case()
    for size in (case.probe_size, case.other_size):
        x = case.inputs(size)["x"]
        for choice in acceptable(model, x)[:1] if case.rebuilds else []:
            with torch.no_grad():
                output = model.double()(x.double())
            output = output[0] if isinstance(output, tuple) else output
            torch.testing.assert_close(x + sum(block.output() for block in choice), output, rtol=1e-6, atol=1e-6)
            model.float()


@cases("refused")
def test_what_is_to_be_refused_does_not_add_up(case):
    """The refusal is deserved: the textbook's parts are not the output, or the output is another each time."""
    model, x = case(), case.inputs(case.probe_size)["x"]
    with torch.no_grad(), torch.random.fork_rng():
        torch.manual_seed(0)
        first, second = model(x), model(x)
    (parts,) = acceptable(model, x)[0]
    assert not torch.allclose(first, second) or not torch.allclose(x + parts.output().float(), first, atol=1e-3)
    assert torch.equal(first, second) == case.steady


@cases("exact")
def test_the_numbers_are_those_of_plain_loops(case):
    model, probe = case(), case.inputs(case.probe_size)
    lens = nl.load(model, probe=probe)
    assert examine(model, probe).exact
    for inputs in (probe, case.inputs(case.other_size, seed=2)):
        matching(model, traced(lens, inputs), inputs["x"])


@cases("either")
def test_the_numbers_are_those_of_plain_loops_or_there_are_none(case):
    exact_or_refused(case(), case.inputs(case.probe_size), case.inputs(case.other_size, seed=2))


@cases("refused")
def test_what_has_no_exact_parts_is_refused_with_the_reason(case):
    probe = case.inputs(case.probe_size)
    with pytest.raises(nl.NormlensError, match=case.because) as refusal:
        nl.load(case(), probe=probe)
    assert isinstance(refusal.value, (nl.ReconstructionError, nl.LoadError))
    examination = examine(case(), probe)
    assert not examination.exact
    assert examination.reason or all(block.reason for block in examination.blocks)


@cases("no attention")
def test_a_softmax_that_is_not_among_tokens_is_never_a_block(case):
    probe = case.inputs(case.probe_size)
    assert [block.name for block in examine(case(), probe).blocks if block.exact] == []
    with pytest.raises(nl.ReconstructionError):
        nl.load(case(), probe=probe)


@cases("no attention")
def test_a_softmax_that_is_not_among_tokens_leaves_the_attention_beside_it_alone(case):
    below, above, probe = exact_modules.Plain(seed=8), case(), case.inputs(case.probe_size)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", PartlyExact)
        lens = nl.load(Stacked(below, above), probe=probe)
    matching(below, traced(lens, probe), probe["x"])


def test_a_refused_block_is_left_out_with_a_warning_and_the_other_stays_exact():
    below, above, probe = exact_modules.Plain(seed=8), refused_modules.GateOfItself(), Textbook.inputs((2, 5))
    with pytest.warns(PartlyExact, match="1 of 2"):
        lens = nl.load(Stacked(below, above), probe=probe)
    trace = lens.trace(probe)
    matching(below, trace.blocks, probe["x"])
    with pytest.raises(nl.NormlensError, match="layer 1 was refused"):
        trace.self_attention[1]


@pytest.mark.parametrize("case", [case for case in of("exact") if case.any_length], ids=lambda case: case.__name__)
def test_a_single_token_is_exact(case):
    model, one = case(), case.inputs((1, 1), seed=3)
    lens = nl.load(model, probe=case.inputs(case.probe_size))
    matching(model, traced(lens, one), one["x"])


@settings(max_examples=12)
@given(
    heads=st.integers(1, 3),
    dim=st.integers(1, 4),
    size=st.tuples(st.integers(1, 3), st.integers(1, 6)),
    other=st.tuples(st.integers(1, 3), st.integers(1, 6)),
    case=st.sampled_from([exact_modules.Plain, exact_modules.Fused, exact_modules.Alibi, output_modules.TwoMatrices]),
)
def test_every_size_is_exact(heads, dim, size, other, case):
    """One token, one sequence, one head, one channel: proved on one size, traced in another."""
    model, probe = case(heads, dim), case.inputs(size, heads * dim)
    lens = nl.load(model, probe=probe)
    for inputs in (probe, case.inputs(other, heads * dim, seed=2)):
        matching(model, traced(lens, inputs), inputs["x"])


@pytest.mark.parametrize("case", [exact_modules.RelativeBias, exact_modules.CausalMask, exact_modules.NoValueMatrix])
def test_tokens_that_are_alike_or_nothing_keep_their_places(case):
    """Numbers alone cannot tell these positions apart; their weights differ all the same."""
    model, x = case(), case.inputs((2, 5))["x"]
    x[:, 3], x[:, 4], x[1, 0] = x[:, 1], x[:, 1], 0
    lens = nl.load(model, probe=case.inputs((2, 5), seed=4))
    matching(model, traced(lens, {"x": x}), x)
    matching(model, traced(nl.load(model, probe={"x": x}), {"x": x}), x)


@pytest.mark.parametrize("case", [reordered_modules.KeysSorted, reordered_modules.ModelShuffledByContent])
def test_an_order_that_the_probe_did_not_show_is_read_or_refused(case):
    """On the probe all tokens are in order already; later they are not."""
    probe = case.inputs((2, 5))
    probe["x"] = probe["x"][:, :1] * torch.tensor([1.0, 1.5, 2.0, 2.5, 3.0])[:, None]
    probe["x"] = probe["x"] * probe["x"][:, :1, :1].sign()
    exact_or_refused(case(), probe, case.inputs((2, 5), seed=3))


def test_a_batch_gives_what_its_sequences_give_alone():
    case = output_modules.TwoMatrices
    model, probe = case(), case.inputs((3, 5))
    lens = nl.load(model, probe=probe)
    whole = lens.trace(probe).blocks[0]
    for index in range(3):
        (alone,) = lens.trace({"x": probe["x"][index : index + 1]}).blocks
        torch.testing.assert_close(alone.summed_norms[0], whole.summed_norms[index])


class Stacked(torch.nn.Module):
    """One module after the other."""

    def __init__(self, below, above):
        super().__init__()
        self.below, self.above = below, above
        self.training = False

    def forward(self, x):
        return self.above(self.below(x))
