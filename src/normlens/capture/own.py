"""The third proof: α is what the model itself returns as its attention weights, cell by cell.

Models return them from eager attention, so both are taken from one more run, on eager attention: what a padded query
attends to may be another matter there.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any

import torch
from torch import Tensor, nn

from normlens.capture.compare import tolerance
from normlens.capture.examined import ExaminedBlock, Own
from normlens.capture.implementation import beyond_reading, implementations, switched
from normlens.capture.run import WATCHED, run_as_set, seeded
from normlens.capture.watched import Gathered, Numbers, Watched
from normlens.errors import first_line
from normlens.models import as_found, takes_by_name

ASKED = {"_output_attentions": True, "output_attentions": True}


@dataclass(frozen=True, slots=True, eq=False)
class Returned:
    """One tensor among the attentions that a model returned."""

    field: str  # the list it stands in, such as "encoder_attentions"
    index: int
    tensor: Tensor

    @property
    def place(self) -> str:
        return f"{self.field}[{self.index}]"


def with_own(
    model: nn.Module, inputs: Mapping[str, Any], watched: Watched, *, stand_in: str | None
) -> tuple[ExaminedBlock, ...]:
    """The blocks, each with what the model's own attentions say of it; one that they contradict is refused."""
    exact = [block for block in watched.blocks if block.exact]
    if watched.numbers is None:
        return tuple(replace(b, own_reason="too many attention weights to be compared") for b in watched.blocks)
    verdicts: dict[tuple[str, int], tuple[Own, str]]
    blocks = {block.order: watched.numbers[block.order].block for block in exact}
    try:
        numbers, returned = _ask(model, inputs, stand_in)
    except Exception as error:  # whatever a model raises when it is asked for what it cannot give
        why = f"asked for them, the model fails: {first_line(error)[:100]}"
        verdicts = dict.fromkeys(blocks.values(), ("none", why))
    else:
        verdicts = _verdicts([one for one in numbers if one.block in blocks.values()], returned)
    return tuple(
        _judged(block, *verdicts.get(blocks[block.order], ("none", "it does not run on eager attention")))
        if block.exact
        else block
        for block in watched.blocks
    )


def _judged(block: ExaminedBlock, own: Own, reason: str) -> ExaminedBlock:
    return replace(block, own=own, own_reason=reason, reason=reason if own == "differs" else block.reason)


def _ask(model: nn.Module, inputs: Mapping[str, Any], stand_in: str | None) -> tuple[list[Numbers], list[Returned]]:
    """One more run that asks for attentions, on eager attention in place of transformers' own."""
    own = beyond_reading(model)[0] if stand_in is None else ()
    names = [name for name in implementations(model) if name not in own]
    asked = {"output_attentions": True} if takes_by_name(model, "output_attentions") else {}
    gathered = Gathered()
    with switched(model, names, settings=ASKED), as_found(model, hooks=True), seeded(WATCHED):
        output = run_as_set(model, {**inputs, **asked}, gathered.add).output
    return list((gathered.numbers or {}).values()), list(_attentions(output, ""))


def _attentions(output: Any, path: str) -> Iterator[Returned]:
    for name, value in output.items() if isinstance(output, Mapping) else ():
        here = f"{path}.{name}".lstrip(".")
        if "attentions" in name:
            yield from (Returned(here, index, tensor) for index, tensor in enumerate(_tensors(value)))
        elif isinstance(value, Mapping):
            yield from _attentions(value, here)


def _tensors(value: Any) -> Iterator[Tensor]:
    if isinstance(value, Tensor):
        yield value
    elif isinstance(value, (list, tuple)):
        for part in value:
            yield from _tensors(part)


def _verdicts(numbers: list[Numbers], returned: list[Returned]) -> dict[tuple[str, int], tuple[Own, str]]:
    matched = _matched(numbers, returned)
    verdicts: dict[tuple[str, int], tuple[Own, str]] = dict.fromkeys(matched, ("agrees", ""))
    for block, (weights, one) in _placed(numbers, returned, matched).items():
        if torch.allclose(one.tensor.float(), weights.float().mean(1, keepdim=True).expand_as(weights), atol=1e-4):
            verdicts[block] = "other", "the model returns the mean over heads"
        elif _are_probabilities(one.tensor):
            gap = float((one.tensor - weights).abs().max())
            verdicts[block] = "differs", f"its weights differ by {gap:.1e} from those the model returns in {one.place}"
        else:
            verdicts[block] = "other", f"{one.field} hold numbers that are no probabilities"
    left = [one for one in returned if one not in matched.values()]
    for of_block in numbers:
        verdicts.setdefault(of_block.block, _nothing(of_block.weights, returned, left))
    return verdicts


def _matched(numbers: list[Numbers], returned: list[Returned]) -> dict[tuple[str, int], Returned]:
    """Pairs that hold the same numbers, each tensor for one block."""
    free, matched = list(returned), dict[tuple[str, int], Returned]()
    for of_block in numbers:
        found = next((one for one in free if _equal(of_block.weights, one.tensor)), None)
        if found is not None:
            matched[of_block.block] = found
            free.remove(found)
    return matched


def _placed(
    numbers: list[Numbers], returned: list[Returned], matched: dict[tuple[str, int], Returned]
) -> dict[tuple[str, int], tuple[Tensor, Returned]]:
    """Pairs at the same place that do not hold the same numbers.

    A list that has as many tensors of a shape as there are blocks of it, not counting those of other lists, is a list
    of these blocks in their order.
    """
    pairs: dict[tuple[str, int], tuple[Tensor, Returned]] = {}
    for field, shape in Counter((one.field, one.tensor.shape) for one in returned):
        of_list = [one for one in returned if one.field == field and one.tensor.shape == shape]
        alike = [
            one
            for one in numbers
            if one.weights.shape == shape and (one.block not in matched or matched[one.block] in of_list)
        ]
        if len(alike) == len(of_list):
            pairs |= {
                ours.block: (ours.weights, theirs)
                for ours, theirs in zip(alike, of_list, strict=True)
                if ours.block not in matched
            }
    return pairs


def _nothing(weights: Tensor, returned: list[Returned], left: list[Returned]) -> tuple[Own, str]:
    batch, _, tgt, src = weights.shape
    if not returned:
        return "none", "the model returns no attentions"
    if any(one.tensor.shape == (batch, tgt, src) for one in left):
        return "other", "the model returns the mean over heads"
    if any(one.tensor.shape == weights.shape for one in left):
        return "other", "the model returns attentions of this shape, but not one for each block"
    if left:
        shapes = ", ".join(str(tuple(shape)) for shape in dict.fromkeys(one.tensor.shape for one in left))
        return "other", f"the model returns {shapes}, the block has {tuple(weights.shape)}"
    return "none", "the model returns attentions of other blocks only"


def _equal(weights: Tensor, other: Tensor) -> bool:
    """The same within rounding; a query that attends to nothing has no weights to compare."""
    if weights.shape != other.shape or not other.is_floating_point():
        return False
    attends = weights.sum(dim=-1) > 0
    return bool(((weights.float() - other.float()).abs()[attends] <= 2 * tolerance(weights.dtype)).all())


def _are_probabilities(tensor: Tensor) -> bool:
    rows = tensor.float().sum(dim=-1)
    return bool((tensor >= 0).all() and ((rows - 1).abs() < 1e-2).all())
