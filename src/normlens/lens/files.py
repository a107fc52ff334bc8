"""A trace on disk: tensors and their description in one safetensors file; the view or the table by the suffix."""

from __future__ import annotations

import json
from base64 import b64decode, b64encode
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

from safetensors import SafetensorError, safe_open
from safetensors.torch import save_file

from normlens import capture, views
from normlens.errors import NormlensError
from normlens.files import writing
from normlens.lens.block import Block
from normlens.lens.wiring import Wire
from normlens.measures import QUANTITIES, MeasureError, Quantity
from normlens.models import Side
from normlens.picture import Picture
from normlens.signature import Signature

if TYPE_CHECKING:
    from normlens.lens.trace import Trace

FORMAT = "normlens-trace-2"
DECLARED = ("name", "symbol", "says", "axes", "needs", "signed")  # what a file says of a measure of the user's own


class FileError(NormlensError):
    """A file that cannot be written or read as a trace."""


def save(trace: Trace, path: Path, look: Mapping[str, Any]) -> Path:
    """Write a trace in the form its suffix names; `look` is for pictures."""
    if path.suffix in views.FORMS:
        return trace.figure(**look).save(path)
    writer = WRITERS.get(path.suffix)
    if writer is None:
        raise FileError(
            f"unsupported format {path.suffix or repr(path.name)} (use {views.either((*WRITERS, *views.FORMS))}).",
        )
    if look:
        raise FileError(
            f"{', '.join(look)}: a {path.suffix} file holds everything.",
            do="leave it out; it is for pictures.",
        )
    with writing(path, FileError):
        writer(trace, path)
    return path


def open(path: str | Path) -> Trace:
    """Read a trace that `save` wrote as .safetensors."""
    from normlens.lens.trace import Trace

    if not Path(path).exists():
        raise FileError(
            f"There is no file '{path}'.",
            do="check the name.",
        )
    try:
        with safe_open(path, framework="pt") as file:
            story = json.loads((file.metadata() or {}).get("normlens", "{}"))
            if story.get("format") != FORMAT:
                raise FileError(
                    f"'{path}' is a safetensors file, but not a trace of this version of normlens.",
                    do="open what trace.save() wrote; or trace the text again.",
                )
            tensors = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118
    except (OSError, SafetensorError) as error:
        raise FileError(
            f"'{path}' cannot be opened as a trace: {error}.",
            cause="another format, or a copy cut short.",
            do="open the .safetensors file that trace.save() wrote.",
        ) from error
    own = {facts["name"]: Quantity(**_untuple(facts), compute=_undeclared(facts["name"])) for facts in story["own"]}
    blocks = tuple(
        Block(
            **_untuple(block),
            kept={name: tensors[f"{number}.{name}"] for name in names},
            own={name: own[name] for name in names if name in own},
        )
        for number, (block, names) in enumerate(story["blocks"])
    )
    _check(blocks, path)
    sides, targets = (tuple(_side(side) for side in story[key]) for key in ("sides", "targets"))
    others = {name: tuple(_side(side) for side in more) for name, more in story.get("others", {}).items()}
    signature = Signature(tuple((name, value) for name, value in story["signature"]))
    wires = tuple(Wire(**wire | {"path": _path(wire["path"])}) for wire in story["wires"])
    return Trace(blocks, wires, sides, targets, signature, others)


def _write_tensors(trace: Trace, path: Path) -> None:
    tensors = {
        f"{number}.{name}": tensor.detach().cpu().contiguous()
        for number, block in enumerate(trace.blocks)
        for name, tensor in block.kept.items()
    }
    story = {
        "format": FORMAT,
        "blocks": [(_facts(block), list(block.kept)) for block in trace.blocks],
        "wires": [asdict(wire) for wire in trace.wires],
        "sides": [asdict(side) for side in trace.sides],
        "targets": [asdict(side) for side in trace.targets],
        "others": {name: [asdict(side) for side in more] for name, more in trace.others.items()},
        "own": [_declaration(quantity) for quantity in _own(trace).values()],
        "signature": trace.signature.facts,
    }
    save_file(tensors, path, metadata={"normlens": json.dumps(story, ensure_ascii=False, default=_letters)})


def _facts(block: Block) -> dict[str, Any]:
    names = ("kind", "layer", "name", "heads", "error", "tgt", "src", "sizes", "absent")
    return {name: getattr(block, name) for name in names}


def _own(trace: Trace) -> dict[str, Quantity]:
    return {name: quantity for block in trace.blocks for name, quantity in block.own.items()}


def _declaration(quantity: Quantity) -> dict[str, Any]:
    return {name: getattr(quantity, name) for name in DECLARED}


def _undeclared(name: str) -> Callable[..., Any]:
    """A file has the numbers of a measure of the user's own, not its function."""

    def compute(*_: Any) -> Any:
        raise MeasureError(
            f"measure '{name}' comes from a file, without its function.", do="declare it with @nl.measure."
        )

    return compute


def _check(blocks: Sequence[Block], path: str | Path) -> None:
    """Every tensor has the axes of its quantity, and no sequence is longer than they are."""
    for block in blocks:
        lengths = {"batch": len(block.sizes), "head": len(block.heads)}
        for name, tensor in block.kept.items():
            axes = block.quantity(name).axes if name in block.own or name in QUANTITIES else ()
            shape = dict(zip(axes, tensor.shape, strict=False))
            longest = {"tgt": max(size[0] for size in block.sizes), "src": max(size[1] for size in block.sizes)}
            fits = len(axes) == tensor.ndim and all(shape[axis] == n for axis, n in lengths.items() if axis in shape)
            if not fits or any(shape[axis] < n for axis, n in longest.items() if axis in shape):
                raise FileError(f"'{path}': '{name}' of {block.kind} layer {block.layer} does not fit its axes.")


def _letters(png: bytes) -> str:
    """The bytes of a side's picture, for JSON."""
    return b64encode(png).decode("ascii")


def _side(record: dict[str, Any]) -> Side:
    facts = _untuple(record)
    seen = facts.pop("picture", None)
    return Side(**facts, picture=Picture(**seen | {"png": b64decode(seen["png"])}) if seen else None)


def _path(facts: dict[str, Any]) -> capture.Path:
    return capture.Path(**facts | {"spellings": _untuple(facts["spellings"])})


def _untuple(record: dict[str, Any]) -> dict[str, Any]:
    """Tuples, which JSON has as lists."""
    return {name: _tuple(value) for name, value in record.items()}


def _tuple(value: Any) -> Any:
    return tuple(_tuple(part) for part in value) if isinstance(value, list) else value


WRITERS = {
    ".safetensors": _write_tensors,
    ".csv": lambda trace, path: trace.to_dataframe().to_csv(path, index=False),
    ".parquet": lambda trace, path: trace.to_dataframe().to_parquet(path, index=False),
}
