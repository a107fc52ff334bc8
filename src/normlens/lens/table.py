"""A trace in long form.

Room: results to rows. pandas is asked for only here.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from normlens.errors import NormlensError
from normlens.models import Side

if TYPE_CHECKING:
    from normlens.lens.trace import Trace


class TableError(NormlensError, ValueError):
    """A table that does not exist."""


class TablesMissing(NormlensError, ImportError):
    """pandas is not installed."""


def dataframe(trace: Trace, *, per: str) -> Any:
    """One row per (sequence, block, head, query, key), or without heads for `per="layer"`."""
    pandas = import_pandas()
    parts = []
    if per not in ("head", "layer"):
        raise TableError(f"per= takes 'head' or 'layer'; got {per!r}.")
    for number, one in enumerate(trace):
        for block, whole in zip(one.blocks, trace.blocks, strict=True):
            apart = (block is whole and len(trace) > 1) or len(next(iter(block.kept.values()), ())) > 1
            if apart and number:
                continue  # a batch of its own, such as three images beside two texts: written once
            columns = _per_head(block) if per == "head" else _per_layer(block)
            if not columns:
                continue
            shape = next(iter(columns.values())).shape
            index = np.indices(shape).reshape(len(shape), -1)
            tgt, src = index[-2], index[-1]
            sequence = index[0] if apart else number
            frame: dict[str, Any] = {"sequence": sequence, "kind": block.kind, "layer": block.layer}
            if per == "head":
                frame["head"] = np.asarray(block.heads)[index[1]]
            frame |= {"tgt": tgt, "src": src}
            frame |= {"tgt_side": block.tgt, "src_side": block.src}
            frame |= {"tgt_token": _tokens(one.side(block.tgt), tgt, shape[-2])}
            frame |= {"src_token": _tokens(one.side(block.src), src, shape[-1])}
            parts.append(pandas.DataFrame(frame | {name: values.reshape(-1) for name, values in columns.items()}))
    return pandas.concat(parts, ignore_index=True) if parts else pandas.DataFrame()


def import_pandas() -> Any:
    """pandas, or an error that names what to install."""
    try:
        import pandas
    except ImportError as error:
        raise TablesMissing(
            "Tables need pandas, which is not installed.",
            do="pip install 'normlens[tables]'.",
        ) from error
    return pandas


def _per_head(block: Any) -> dict[str, np.ndarray]:
    kept, columns = block.kept, {}
    if "weights" in kept:
        columns["weight"] = kept["weights"].cpu().numpy()
    shape = columns["weight"].shape if columns else None
    if "transformed_norms" in kept and shape is not None:
        norms = kept["transformed_norms"].cpu().numpy()
        columns["transformed_norm"] = np.broadcast_to(norms[:, :, None, :], shape)
    if "weighted_norms" in kept or len(columns) == 2:
        columns["weighted_norm"] = block.weighted_norms.cpu().numpy()
    return columns


def _per_layer(block: Any) -> dict[str, np.ndarray]:
    columns = {}
    if "weights" in block.kept:
        columns["mean_weight"] = block.weights.mean(dim=1).cpu().numpy()
    if "summed_norms" in block.kept:
        columns["summed_norm"] = block.summed_norms.cpu().numpy()
    return columns


def _tokens(side: Side | None, index: np.ndarray, size: int) -> np.ndarray:
    tokens = () if side is None else side.tokens
    names = np.asarray(tokens if len(tokens) == size else [str(i) for i in range(size)], dtype=object)
    return names[index]
