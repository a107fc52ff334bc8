"""A trace in long form.

Room: results to rows. pandas is asked for only here.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from normlens.errors import NormlensError

if TYPE_CHECKING:
    from normlens.lens.trace import Trace


class TablesMissing(NormlensError, ImportError):
    """pandas is not installed."""


def dataframe(trace: Trace, *, per: str) -> Any:
    """One row per (sequence, block, head, query, key), or without heads for `per="layer"`."""
    pandas = import_pandas()
    parts = []
    for number, one in enumerate(trace):
        sides = {side.name: side.tokens for side in (*one.sides, *one.targets)}
        for block in one.blocks:
            columns = _per_head(block) if per == "head" else _per_layer(block)
            if not columns:
                continue
            shape = next(iter(columns.values())).shape
            index = np.indices(shape).reshape(len(shape), -1)
            tgt, src = index[-2], index[-1]
            frame: dict[str, Any] = {"sequence": number, "kind": block.kind, "layer": block.layer}
            if per == "head":
                frame["head"] = np.asarray(block.heads)[index[1]]
            frame |= {"tgt": tgt, "src": src}
            frame |= {"tgt_token": _tokens(sides.get(block.tgt, ()), tgt, shape[-2])}
            frame |= {"src_token": _tokens(sides.get(block.src, ()), src, shape[-1])}
            parts.append(pandas.DataFrame(frame | {name: values.reshape(-1) for name, values in columns.items()}))
    return pandas.concat(parts, ignore_index=True) if parts else pandas.DataFrame()


def import_pandas() -> Any:
    """pandas, or an error that names what to install."""
    try:
        import pandas
    except ImportError as error:
        raise TablesMissing(
            "Tables need pandas, which is not installed.\n  Do: pip install 'normlens[tables]'."
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


def _tokens(tokens: tuple[str, ...], index: np.ndarray, size: int) -> np.ndarray:
    names = np.asarray(tokens if len(tokens) == size else [str(i) for i in range(size)], dtype=object)
    return names[index]
