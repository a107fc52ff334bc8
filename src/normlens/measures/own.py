"""`@measure`: a quantity of the user's own."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Sequence
from typing import Any, TypeVar

from normlens.measures.quantity import AXES, DECLARED, RECORD, SHARED, STAGES, MeasureError, Quantity, needed

Function = TypeVar("Function", bound=Callable[..., Any])
COLUMNS = ("sequence", "kind", "layer", "tgt_side", "src_side", "tgt_token", "src_token")  # of tables
TAKEN = (*RECORD, *STAGES, *SHARED, *AXES, *COLUMNS)


def measure(
    name: str,
    *,
    axes: Sequence[str],
    needs: Sequence[str],
    symbol: str | None = None,
    says: str | None = None,
    signed: bool = False,
) -> Callable[[Function], Function]:
    """Declare a measure of your own; afterwards it is a quantity like the others, `block[name]`.

    The function takes what it `needs`, in this order: other quantities, or `values` and `out_weight` of the record.
    It is called for each sequence alone, as a batch of one without padding, and returns a tensor with these `axes`:
    "batch", then any of "head", "tgt", "src". `says` is one sentence for readers; without it, the first line of the
    docstring.

        @nl.measure("sharpness", symbol="max α", axes=("batch", "head", "tgt"), needs=("weights",))
        def sharpness(weights):
            return weights.amax(-1)
    """

    def declare(function: Function) -> Function:
        documented = (inspect.getdoc(function) or "").split("\n")[0]
        quantity = Quantity(
            name, symbol or name, says or documented, tuple(axes), tuple(needs), function, signed=signed
        )
        _check(quantity)
        DECLARED[name] = quantity
        return function

    return declare


def forget(name: str) -> None:
    """Take a measure of the user's own off the list, so that its name can be used again."""
    if name in DECLARED and not DECLARED[name].batched:
        users = [other.name for other in DECLARED.values() if name in other.needs]
        if users:
            raise MeasureError(f"measure '{name}' is needed by '{users[0]}'.", do=f"forget '{users[0]}' first.")
        del DECLARED[name]


def _check(quantity: Quantity) -> None:
    name, axes, needs = quantity.name, quantity.axes, quantity.needs
    if not isinstance(name, str) or not name.isidentifier():
        raise MeasureError(
            f"measure {name!r}: its name is no word.", do="use letters, digits and _, such as 'sharpness'."
        )
    if name in TAKEN or (name in DECLARED and not _again(DECLARED[name], quantity)):
        raise MeasureError(f"measure '{name}': this name is already taken.", do="choose another name.")
    if axes != tuple(axis for axis in AXES if axis in axes) or axes[:1] != ("batch",):
        raise MeasureError(
            f"measure '{name}': its axes must be 'batch', then any of 'head', 'tgt', 'src', 'model', in this order.",
            got=axes,
        )
    if not needs:
        raise MeasureError(f"measure '{name}' needs nothing.", do="needs=('weights',), for example.")
    if name in needs or name in {other.name for other in needed(needs)}:
        raise MeasureError(f"measure '{name}' needs itself.", got=f"needs {', '.join(needs)}", do="break the cycle.")
    unknown = [need for need in needs if need not in DECLARED and need not in RECORD]
    if unknown:
        raise MeasureError(
            f"measure '{name}' needs '{unknown[0]}', which is no quantity.",
            do=f"use {', '.join((*DECLARED, *RECORD))}; a measure that another needs is declared first.",
        )
    try:
        inspect.signature(quantity.compute).bind(*needs)
    except TypeError as error:
        raise MeasureError(
            f"measure '{name}': its function does not take its {len(needs)} needs.",
            got=f"needs {', '.join(needs)}; {error}",
            do="give the function one argument for each need, in the same order.",
        ) from error
    except ValueError:
        pass  # a built-in that does not say what it takes


def _again(before: Quantity, now: Quantity) -> bool:
    """Whether a cell of a notebook was run a second time."""
    names = [
        (getattr(one.compute, "__module__", ""), getattr(one.compute, "__qualname__", "")) for one in (before, now)
    ]
    return not before.batched and names[0] == names[1] and names[0][0] == "__main__"
