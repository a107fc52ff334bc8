"""Matrices in a row are one matrix: f(x) is what reaches the sum with the residual, through all of them."""

from __future__ import annotations

from dataclasses import dataclass, field, replace

from torch import Tensor

from normlens.capture.operations import Projection
from normlens.capture.pieces import Part, Piece


@dataclass(frozen=True, slots=True, eq=False)
class Pending:
    """An attention block whose output matrix ran, with the matrices that are still to follow."""

    pieces: tuple[Piece, ...]
    terms: tuple[tuple[Part, ...], ...]
    out: str
    left: int


def composed(pending: Pending, then: Projection, name: str) -> Pending:
    """The block with one more matrix behind its own: (x A + a) B + b = x (A B) + (a B + b)."""
    terms = tuple(
        tuple(replace(part, projection=_both(part.projection, then)) for part in parts) for parts in pending.terms
    )
    return replace(pending, terms=terms, out=f"{pending.out} @ {name}", left=pending.left - 1)


def _both(first: Projection, then: Projection) -> Projection:
    weight = _times(first.weight, then.weight)
    bias = then.bias
    if first.bias is not None:
        passed = _times(first.bias[None], then.weight)[0]
        bias = passed if bias is None else passed + bias
    return replace(first, weight=weight, bias=bias, added=then.added, out_rows=then.out_rows)


def _times(left: Tensor, right: Tensor) -> Tensor:
    return (left.double() @ right.double()).to(left.dtype)


@dataclass(slots=True, eq=False)
class Reader:
    """What came out of an output matrix, and who reads it: one matrix and nobody else makes a row of matrices."""

    out: str
    product: str  # module path of the attention product
    here: str  # module path of this matrix
    children: list[Reader] = field(default_factory=list)
    others: int = 0
    is_summed: bool = False  # goes into a sum
    composable: bool = True
    attends: bool = False  # meets something the model computed in a product: it is a query, a key or a value

    def matrix(self, here: str, is_parameter: bool) -> Reader | None:
        """A product reads it; with a parameter of the model that is one more matrix."""
        if not is_parameter:
            self.attends = True
            return None
        child = Reader(self.out, self.product, here)
        self.children.append(child)
        return child

    def other(self, *, is_sum: bool = False) -> None:
        self.others += 1
        self.is_summed = self.is_summed or is_sum

    def length(self, *, anywhere: bool = False) -> int:
        """How many matrices follow in the module that holds the attention, or elsewhere before a sum; or anywhere."""
        house, reader, length, found = _common(self.product, self.here), self, 0, 0
        while len(reader.children) == 1 and not reader.others:
            reader = reader.children[0]
            inside = anywhere or reader.here == house or reader.here.startswith(f"{house}." if house else "")
            if reader.attends:
                break
            length += 1
            if inside or reader.is_summed:
                found = length
        return found


def _common(left: str, right: str) -> str:
    """The innermost module that holds both."""
    shared = []
    for one, other in zip(left.split("."), right.split("."), strict=False):
        if one != other:
            break
        shared.append(one)
    return ".".join(shared)
