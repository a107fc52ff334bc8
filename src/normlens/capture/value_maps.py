"""Find the matrix that makes the values of each attention block: W_V and b_V, head by head.

Room: recognising numbers. No model family, no norms.

The values v_h(x) = x W_V[h] + b_V[h] are numbers that some matrix of the model wrote, since then only moved, copied or
shared among heads. So every matrix that runs is remembered with what it wrote, for two blocks at most; each column of
the values of a block is looked for among the columns written, and the map found is proved by applying it again.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from itertools import count
from typing import Any

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn
from torch.overrides import TorchFunctionMode

from normlens.capture.examine import tolerance
from normlens.capture.operations import Projection, as_projection
from normlens.capture.record import Attended
from normlens.capture.run import run
from normlens.capture.tap import MATRICES


@dataclass(frozen=True, slots=True, eq=False)
class ValueMap:
    """How one attention block makes its values: v_h(x) = x · weight[h] + bias[h], x being what the matrix reads."""

    matrix: str  # name of the matrix, as in model.named_parameters(); "" when it is no parameter
    weight: Float[Tensor, "head model head_dim"]  # W_V, repeated for heads that share their values
    bias: Float[Tensor, "head head_dim"] | None  # b_V


def value_maps(
    model: nn.Module,
    inputs: Mapping[str, Any],
    on_map: Callable[[Attended, ValueMap | str], None],
    **options: Any,
) -> None:
    """One forward pass; each attention block goes to `on_map` with its value map, or with the reason it has none.

    `options` are those of `run`.
    """
    watch = Watch(model)
    with watch:
        run(model, inputs, lambda attended: on_map(attended, watch.value_map(attended)), **options)


@dataclass(frozen=True, slots=True, eq=False)
class Written:
    """A matrix that ran, what it read and what it wrote."""

    matrix: str
    before: tuple[str, ...]  # the matrices since the last block that had a part in what this one reads
    projection: Projection
    sources: tuple[Tensor, ...]  # one per call
    results: tuple[Tensor, ...]

    @property
    def read(self) -> Float[Tensor, "row model"]:
        return torch.cat([self.projection.rows(source) for source in self.sources])

    @property
    def wrote(self) -> Float[Tensor, "row column"]:
        return torch.cat([self.projection.out_rows(result) for result in self.results])


@dataclass(frozen=True, slots=True, eq=False)
class Match:
    """Where the values stand in what a matrix wrote."""

    written: Written
    rows: Int[Tensor, " row"]  # the row written for each position of the values
    columns: Int[Tensor, " column"]  # the column written for each column of the values
    twins: Int[Tensor, " column"]  # another column that holds the same numbers; the same one when there is none
    is_shifted: bool = False  # a constant was added to each column after the matrix


class Watch(TorchFunctionMode):
    """Remember the matrices of a forward pass, from one attention block to the next."""

    def __init__(self, model: nn.Module) -> None:
        super().__init__()
        self.names = {_storage(tensor): name for name, tensor in model.named_buffers()}
        self.names |= {_storage(tensor): name for name, tensor in model.named_parameters()}
        self.names.pop(0, None)
        self.recent: list[Written] = []  # since the last block
        self.earlier: list[Written] = []  # between the last block and the one before: blocks may run side by side
        self.steps: dict[int, str] = {}  # every matrix since the last block, by its number in the pass
        self.order = count()

    def __torch_function__(
        self, func: Any, types: Any, args: tuple[Any, ...] = (), kwargs: dict[str, Any] | None = None
    ) -> Any:
        kwargs = kwargs or {}
        result = func(*args, **kwargs)
        name = getattr(func, "__name__", "")
        if name not in MATRICES or not self._matrix(name, args, kwargs, result):
            self._set_steps(result, self._steps((*args, *kwargs.values())))
        return result

    def value_map(self, attended: Attended) -> ValueMap | str:
        """The map that made the values of a block that is just complete, or why there is none."""
        values = attended.values.permute(0, 2, 1, 3).flatten(2).flatten(0, 1).cpu().double()
        real = values.any(dim=1).nonzero().squeeze(1)  # rows of zeros are padding, written by no matrix
        candidates = [*reversed(self.recent), *reversed(self.earlier)]
        candidates += _joined(candidates)
        self.earlier, self.recent, self.steps = self.recent, [], {}
        if not len(real):
            return "its values are all 0 on the probe"
        match = _first(find(values[real], written, attended.values.dtype) for written in candidates) or _first(
            find_shifted(values[real], written, attended.values.dtype) for written in candidates
        )
        if match is None:
            return "no matrix wrote its values: they are normalised, rotated, scaled or mixed after their matrix"
        matrix = match.written.matrix
        house = matrix.removesuffix(".weight").rpartition(".")[0]
        first = next((other for other in match.written.before if house and other.startswith(house + ".")), None)
        if first is not None:
            return f"its values are made in two steps, by '{first}' and then '{matrix}'"
        return proved(match, values[real], heads=attended.values.shape[1], dtype=attended.values.dtype)

    def _matrix(self, name: str, args: tuple[Any, ...], kwargs: dict[str, Any], result: Tensor) -> bool:
        """Remember a matrix of the model; False for products of what the model computed."""
        operands = args[1:] if name in ("einsum", "addmm") else args
        operands = operands[0] if operands and isinstance(operands[0], (list, tuple)) else operands
        source = operands[0] if operands else kwargs.get("input")
        weight = operands[1] if len(operands) > 1 else kwargs.get("weight")
        if not isinstance(source, Tensor) or not isinstance(weight, Tensor):
            return False
        matrix = self.names.get(_storage(weight), "")
        if not matrix and name != "linear":
            return False
        projection, before = as_projection(name, args, kwargs), self._steps(source)
        if projection is not None:
            names = tuple(self.steps[step] for step in sorted(before))
            self.recent.append(Written(matrix, names, projection, (source,), (result,)))
        step = next(self.order)
        self.steps[step] = matrix
        self._set_steps(result, before | {step})
        return True

    def _steps(self, arguments: Any) -> frozenset[int]:
        """The matrices since the last block that had a part in any tensor of a call."""
        seen = (getattr(tensor, "_normlens_steps", frozenset()) for tensor in _tensors(arguments))
        return frozenset(step for steps in seen for step in steps if step in self.steps)

    def _set_steps(self, result: Any, steps: frozenset[int]) -> None:
        for tensor in _tensors(result):
            if steps or hasattr(tensor, "_normlens_steps"):
                tensor._normlens_steps = steps  # pyright: ignore


def find(values: Float[Tensor, "row column"], written: Written, dtype: torch.dtype) -> Match | None:
    """The same numbers, column for column, in the rows as they are or in another order."""
    wrote = _numbers(written, dtype)
    rows = _rows(values[:, _most_distinct(values)].contiguous(), wrote)
    if rows is None:
        return None
    count = wrote.shape[1]
    distinct, group = torch.unique(torch.cat([wrote[rows], values], dim=1), dim=1, return_inverse=True)
    theirs, ours = group[:count], group[count:]
    first, last = (
        torch.full((distinct.shape[1],), -1).scatter_reduce(0, theirs, torch.arange(count), end, include_self=False)
        for end in ("amin", "amax")
    )
    return None if bool((first[ours] < 0).any()) else Match(written, rows, first[ours], last[ours])


def find_shifted(values: Float[Tensor, "row column"], written: Written, dtype: torch.dtype) -> Match | None:
    """The same numbers but for a constant per column: a bias that is added after the matrix."""
    wrote = _numbers(written, dtype)
    if len(wrote) != len(values) or len(values) < 3 or not bool(torch.isfinite(wrote).all()):
        return None
    ours, theirs = values - values.mean(dim=0), wrote - wrote.mean(dim=0)
    rounding = 4 * torch.finfo(dtype).eps * values.abs().amax(dim=0)
    telling = _most_distinct(values)
    if not bool(((theirs - ours[:, telling, None]).abs().amax(dim=0) <= rounding[telling]).any()):
        return None
    gaps = torch.cdist(ours.T, theirs.T, p=torch.inf)
    columns = gaps.argmin(dim=1)
    if bool((gaps.gather(1, columns[:, None])[:, 0] > rounding).any()):
        return None
    others = gaps.scatter(1, columns[:, None], torch.inf).min(dim=1)
    twins = torch.where(others.values <= rounding, others.indices, columns)
    return Match(written, torch.arange(len(values)), columns, twins, is_shifted=True)


def proved(match: Match, values: Float[Tensor, "row column"], *, heads: int, dtype: torch.dtype) -> ValueMap | str:
    """The map of a match, applied once more to what its matrix read; a reason when that does not give the values."""
    matrix, projection = match.written.matrix, match.written.projection
    columns, twins = match.columns.to(projection.weight.device), match.twins.to(projection.weight.device)
    weight = projection.weight[:, columns]
    if not torch.equal(weight, projection.weight[:, twins]):
        return f"columns of '{matrix}' that differ write the same numbers on the probe, so its own cannot be told"
    bias = None if projection.bias is None else projection.bias[columns]
    plain = match.written.read.cpu()[match.rows].double() @ weight.cpu().double()
    if match.is_shifted:
        bias = (values - plain).mean(dim=0).to(weight)
    again = plain if bias is None else plain + bias.cpu().double()
    error, allowed = float((again - values).norm() / values.norm()), tolerance(dtype)
    if not error <= allowed:
        return f"'{matrix}' makes its values again only to {error:.1e} (allowed {allowed:.0e})"
    return ValueMap(
        matrix=matrix,
        weight=weight.unflatten(1, (heads, -1)).permute(1, 0, 2),
        bias=None if bias is None else bias.unflatten(0, (heads, -1)),
    )


def _rows(column: Float[Tensor, " row"], wrote: Float[Tensor, "all_row all_column"]) -> Int[Tensor, " row"] | None:
    """Which row written holds each number of one column of the values."""
    if not len(wrote):
        return None
    if len(wrote) == len(column) and bool((wrote == column[:, None]).all(dim=0).any()):
        return torch.arange(len(column))
    at = torch.isin(wrote, column).sum(dim=0).argmax()
    ranked = torch.sort(wrote[:, at])
    place = torch.searchsorted(ranked.values, column).clamp_max(len(wrote) - 1)
    return ranked.indices[place] if bool((ranked.values[place] == column).all()) else None


def _most_distinct(values: Float[Tensor, "row column"]) -> int:
    """The column with the fewest repeated numbers: it tells rows apart best."""
    return int(values.sort(dim=0).values.diff(dim=0).ne(0).sum(dim=0).argmax())


def _numbers(written: Written, dtype: torch.dtype) -> Float[Tensor, "row column"]:
    """What was written, in the precision in which the values arrived."""
    return written.wrote.to(dtype).cpu().double()


def _joined(written: list[Written]) -> list[Written]:
    """Matrices that ran several times, each as if it had run once: values may be put together from several calls."""
    calls: dict[Any, list[Written]] = {}
    for one in written:
        calls.setdefault((one.projection.matrix.data_ptr(), one.projection.weight.shape), []).append(one)
    return [
        replace(
            same[0],
            before=tuple(name for one in same for name in one.before),
            sources=tuple(source for one in same for source in one.sources),
            results=tuple(result for one in same for result in one.results),
        )
        for same in calls.values()
        if len(same) > 1
    ]


def _first(matches: Iterator[Match | None]) -> Match | None:
    return next((match for match in matches if match is not None), None)


def _storage(tensor: Tensor) -> int:
    return tensor.untyped_storage().data_ptr()


def _tensors(value: Any) -> Iterator[Tensor]:
    if isinstance(value, Tensor):
        yield value
    elif isinstance(value, (tuple, list)):
        for part in value:
            yield from _tensors(part)
