"""A trace in long form."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from normlens.errors import NormlensError
from normlens.files import import_pandas
from normlens.models import Side

if TYPE_CHECKING:
    from normlens.lens.block import Block
    from normlens.lens.trace import Trace


class TableError(NormlensError, ValueError):
    """A table that does not exist."""


def dataframe(trace: Trace, *, per: str) -> Any:
    """A row for each cell of the axes there are, a column for each quantity; one that lacks an axis is repeated."""
    pandas = import_pandas()
    parts = []
    if per not in ("head", "layer"):
        raise TableError("per must be 'head' or 'layer'.", got=repr(per))
    for number, one in enumerate(trace):
        for block, whole in zip(one.blocks, trace.blocks, strict=True):
            apart = (block is whole and len(trace) > 1) or len(block.sizes) > 1
            if apart and number:
                continue  # a batch of its own, such as three images beside two texts: written once
            columns, axes = _columns(block, per)
            if not columns:
                continue
            shape = next(iter(columns.values())).shape
            index = dict(zip(axes, np.indices(shape).reshape(len(shape), -1), strict=True))
            frame: dict[str, Any] = {"sequence": index["batch"] if apart else number}
            frame |= {"kind": block.kind, "layer": block.layer}
            if "head" in index:
                frame["head"] = np.asarray(block.heads)[index["head"]]
            sides = {axis: getattr(block, axis) for axis in ("tgt", "src") if axis in index}
            frame |= {axis: index[axis] for axis in sides}
            frame |= {f"{axis}_side": side for axis, side in sides.items()}
            for axis, side in sides.items():
                frame[f"{axis}_token"] = _tokens(one.side(side), index[axis], shape[axes.index(axis)])
            parts.append(pandas.DataFrame(frame | {name: values.reshape(-1) for name, values in columns.items()}))
    return pandas.concat(parts, ignore_index=True) if parts else pandas.DataFrame()


def _columns(block: Block, per: str) -> tuple[dict[str, np.ndarray], tuple[str, ...]]:
    """Each quantity that is no vector, on the axes that any of them has; per layer, means over heads."""
    arrays: dict[str, tuple[tuple[str, ...], np.ndarray]] = {}
    for name, quantity in block.quantities.items():
        if quantity.is_vectors:
            continue
        axes, values = quantity.axes, block[name].cpu()
        if per == "layer" and "head" in axes:
            name, values = f"mean_{name}", values.mean(dim=axes.index("head"))
            axes = tuple(axis for axis in axes if axis != "head")
        arrays[name] = axes, values.numpy()
    every = tuple(axis for axis in ("batch", "head", "tgt", "src") if any(axis in axes for axes, _ in arrays.values()))
    lengths = {axis: n for axes, values in arrays.values() for axis, n in zip(axes, values.shape, strict=True)}
    shape = tuple(lengths[axis] for axis in every)
    spread = {
        name: np.broadcast_to(np.expand_dims(values, [at for at, axis in enumerate(every) if axis not in axes]), shape)
        for name, (axes, values) in arrays.items()
    }
    return spread, every


def _tokens(side: Side | None, index: np.ndarray, size: int) -> np.ndarray:
    tokens = () if side is None else side.tokens
    names = np.asarray(tokens if len(tokens) == size else [str(i) for i in range(size)], dtype=object)
    return names[index]
