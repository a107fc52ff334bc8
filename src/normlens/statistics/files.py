"""Statistics on disk: arrays as safetensors, the rest as JSON in its header."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import fields
from pathlib import Path
from typing import Any

import numpy as np
from safetensors import SafetensorError, safe_open
from safetensors.numpy import save_file

from normlens.errors import NormlensError, first_line
from normlens.files import replacing
from normlens.statistics.histogram import Histogram
from normlens.statistics.moments import Moments
from normlens.statistics.products import Products
from normlens.statistics.ranks import Ranks
from normlens.statistics.regression import Regression
from normlens.statistics.sample import Sample

Statistic = Moments | Histogram | Products | Ranks | Regression | Sample
KINDS: dict[str, type[Any]] = {
    kind.__name__: kind for kind in (Moments, Histogram, Products, Ranks, Regression, Sample)
}


class StateError(NormlensError):
    """Statistics that cannot be written or read back."""


def write(path: Path, statistics: Mapping[str, Statistic], facts: Mapping[str, Any]) -> None:
    """Put named statistics and some facts about them into one file, whole or not at all."""
    arrays: dict[str, np.ndarray] = {}
    plain: dict[str, dict[str, Any]] = {}
    for name, one in statistics.items():
        parts = {field.name: getattr(one, field.name) for field in fields(one)}
        plain[name] = {"kind": type(one).__name__} | {k: v for k, v in parts.items() if not isinstance(v, np.ndarray)}
        arrays |= {f"{name}:{k}": _narrow(v) for k, v in parts.items() if isinstance(v, np.ndarray)}
    try:
        with replacing(path) as unfinished:
            unfinished.touch()
            mode = unfinished.stat().st_mode  # as every new file has it; safetensors would keep the file to its owner
            save_file(arrays, unfinished, {"run": json.dumps({"statistics": plain, "facts": facts})})
            unfinished.chmod(mode)
    except (OSError, SafetensorError) as error:
        raise StateError(
            f"The state of the run cannot be written to '{path}'.",
            got=first_line(error),
            cause="the disk is full, or you may not write to the folder.",
            do="make room and run again with --resume (resume=True in Python); what was saved before is still there.",
        ) from error


def read(path: Path) -> tuple[dict[str, Statistic], dict[str, Any]]:
    """The statistics of a file, and the facts."""
    try:
        with safe_open(path, "numpy") as file:
            header = json.loads(file.metadata()["run"])
            plain, facts = header["statistics"], header["facts"]
            arrays: dict[str, dict[str, np.ndarray]] = {name: {} for name in plain}
            for key in file.keys():  # noqa: SIM118
                name, _, part = key.rpartition(":")
                one = file.get_tensor(key)
                arrays[name][part] = one.astype(np.int64) if one.dtype == np.int32 else one
    except (OSError, SafetensorError, KeyError, TypeError, ValueError) as error:
        raise StateError(
            f"'{path}' does not hold the state of a run of this version.",
            got=first_line(error),
            cause="a file of another version of normlens, or a damaged one.",
            do="give another folder, or remove that file to start again.",
        ) from error
    return {
        name: KINDS[rest["kind"]](**{k: v for k, v in rest.items() if k != "kind"}, **arrays[name])
        for name, rest in plain.items()
    }, facts


def _narrow(array: np.ndarray) -> np.ndarray:
    """Whole numbers in half the space, where they fit."""
    if array.dtype == np.int64 and np.abs(array).max(initial=0) < 1 << 31:
        array = array.astype(np.int32)
    return np.ascontiguousarray(array)
