"""Hold what normlens shows of a model against what the loops gave."""

import warnings

import pytest
import torch
from textbook import Expected, Textbook, acceptable
from torch import Tensor

import normlens as nl
from normlens.capture import examine
from normlens.lens import PartlyExact

FIELDS = ("weights", "transformed_norms", "weighted_norms", "summed_norms", "transformed")


def traced(lens, inputs):
    return lens.trace(inputs, fields=FIELDS).blocks


def check(blocks, wanted: list[Expected]) -> None:
    """Every number of every block is the one the loops gave."""
    assert len(blocks) == len(wanted), f"{len(blocks)} blocks where there are {len(wanted)}"
    for block, want in zip(blocks, wanted, strict=True):
        _same(block.weights, want.weights, "weights")
        parts, transformed = want.parts(), want.of_keys()
        _same(block.weighted_norms, parts.norm(dim=-1), "weighted_norms")
        _same(block.summed_norms, parts.sum(dim=1).norm(dim=-1), "summed_norms")
        if transformed is None:
            assert block.no_transformed, "f(x) alone exists"
            continue
        _same(block.transformed_norms, transformed.norm(dim=-1), "transformed_norms")
        if "transformed" in block.kept:
            _same(block.transformed, transformed, "transformed")


def matching(model: Textbook, blocks, x: Tensor, *, partly: bool = False) -> None:
    """The blocks are what the loops accept; of a model that is partly exact, each block is one that they accept."""
    choices = acceptable(model, x)
    if not partly:
        return _any(blocks, choices)
    for block in blocks:
        _any([block], [[want] for choice in choices for want in choice])
    return None


def exact_or_refused(model: Textbook, probe: dict[str, Tensor], *others: dict[str, Tensor]) -> None:
    """The numbers of the loops, or a refusal with its reason."""
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always", PartlyExact)
        try:
            lens = nl.load(model, probe=probe)
        except nl.ReconstructionError:
            examination = examine(model, probe)
            assert examination.reason or [block.reason for block in examination.blocks if block.reason]
            return
    for inputs in (probe, *others):
        later_exact_or_refused(lens, model, inputs, partly=bool(said))


def later_exact_or_refused(lens, model: Textbook, inputs: dict[str, Tensor], *, partly: bool = False) -> None:
    """The same for one pass of a model that is loaded: refused means that the block is named."""
    try:
        blocks = traced(lens, inputs)
    except nl.ReconstructionError as error:
        if "layer" not in str(error):
            raise
    else:
        matching(model, blocks, inputs["x"], partly=partly)


def _any(blocks, choices: list[list[Expected]]) -> None:
    complaints = []
    for choice in choices:
        try:
            return check(blocks, choice)
        except AssertionError as error:
            complaints.append(str(error))
    return pytest.fail("\n".join(complaints))


def _same(ours: Tensor, theirs: Tensor, what: str) -> None:
    torch.testing.assert_close(ours.double(), theirs.double(), rtol=1e-4, atol=2e-5, msg=lambda text: f"{what}: {text}")
