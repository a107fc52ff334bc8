"""The memory of a worker: how much a trace will take, and a limit that no allocation passes.

A trace keeps α of every block, and packing and saving it takes copies. At its peak a job took 1.9 to 2.5 times the
bytes of all α (the bundled MiniLM on 100 to 500 tokens; tests/explorer/test_memory.py measures it again).
"""

from __future__ import annotations

import contextlib
from collections.abc import Mapping
from typing import TYPE_CHECKING

from normlens.explorer.refusal import Refusal

if TYPE_CHECKING:
    from normlens.lens import Lens

FACTOR = 3.0  # peak bytes of a job over those of its attention weights, with some to spare
SIDES = {"self": ("text", "text"), "encoder": ("source", "source"), "decoder": ("target", "target")}
DO = "shorten the text; or start the explorer with a larger --memory."


def limit(most: int) -> None:
    """Let every allocation beyond `most` bytes fail in this process, where the system can do so.

    RLIMIT_DATA counts private writable memory, and not, as RLIMIT_AS does, address space that is only reserved.
    """
    with contextlib.suppress(ImportError, ValueError, OSError):
        import resource

        resource.setrlimit(resource.RLIMIT_DATA, (most, resource.getrlimit(resource.RLIMIT_DATA)[1]))


def used() -> int:
    """Bytes of this process that count towards the limit; 0 where the system does not say."""
    with contextlib.suppress(OSError, ValueError, StopIteration), open("/proc/self/status", encoding="ascii") as file:
        return 1024 * int(next(line for line in file if line.startswith("VmData:")).split()[1])
    return 0


def needed(lens: Lens, tokens: Mapping[str, int]) -> int:
    """Bytes at the peak of tracing, packing and saving a text with so many tokens per side."""
    heads = max((block.heads for block in lens.examination.blocks), default=1) if lens.examination else 1
    sides = [SIDES.get(wire.kind, ("target", "source")) for wire in lens.wires if wire.exact]
    return int(4 * FACTOR * heads * sum(tokens.get(tgt, 0) * tokens.get(src, 0) for tgt, src in sides))


def check(what: str, wanted: float, most: int) -> None:
    """Refuse work that would not fit beside the model."""
    free = max(most - used(), 0)
    if wanted > free:
        need, have = f"{what} need about {wanted / 1e9:.2g} GB", f"{free / 1e9:.2g} GB of {most / 1e9:.2g} GB"
        raise Refusal(422, f"{need}; {have} of this worker are free.", do=DO)


def ran_out(error: BaseException | None) -> bool:
    """Whether this error, or its cause, is how Python, numpy or torch say that memory ran out."""
    if error is None or isinstance(error, MemoryError):
        return error is not None
    text = str(error).lower() if isinstance(error, RuntimeError | OSError) else ""
    return "allocate memory" in text or "not enough memory" in text or ran_out(error.__cause__)


def refusal(most: int) -> Refusal:
    """The refusal when the estimate was too low, or the model alone is too large."""
    return Refusal(422, f"The work did not fit into the {most / 1e9:.2g} GB its worker may have.", do=DO)
