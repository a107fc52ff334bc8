"""How much memory a trace takes, asked before it is made; and the wall behind which a worker cannot go.

Room: numbers about bytes. Runs in a worker; knows no text.

A trace keeps α of every block, and packing and saving it takes copies. At its peak a job took 1.9 to 2.5 times the
bytes of all α (the embedded MiniLM on 100 to 500 tokens; tests/explorer/test_memory.py measures it again).
"""

from __future__ import annotations

import contextlib
from collections.abc import Mapping
from typing import TYPE_CHECKING

from normlens.explorer.refusal import Refusal

if TYPE_CHECKING:
    from normlens.lens import Lens

FACTOR = 3.0  # allowed for: peak bytes of a job over those of its attention weights
SIDES = {"self": ("text", "text"), "encoder": ("source", "source"), "decoder": ("target", "target")}


def needed(lens: Lens, tokens: Mapping[str, int]) -> int:
    """Bytes at the peak of tracing, packing and saving a text with so many tokens per side."""
    heads = max((block.heads for block in lens.examination.blocks), default=1) if lens.examination else 1
    cells = 0
    for wire in lens.wires:
        tgt, src = SIDES.get(wire.kind, ("target", "source"))
        cells += heads * tokens.get(tgt, 0) * tokens.get(src, 0) * wire.exact
    return int(4 * cells * FACTOR)


def check(lens: Lens, tokens: Mapping[str, int], most: int) -> None:
    """Refuse a text whose trace would not fit beside the model."""
    wanted, free = needed(lens, tokens), most - used()
    if wanted > free:
        count = " and ".join(f"{number:,}" for number in tokens.values())
        raise Refusal(
            422,
            f"{count} tokens need about {wanted / 1e9:.2g} GB with this model; {max(free, 0) / 1e9:.2g} GB of the "
            f"{most / 1e9:.2g} GB of its worker are free.",
            "shorten the text; or let the explorer have more with --memory.",
        )


def used() -> int:
    """Bytes of private memory of this process: what the wall counts. 0 where the system does not say."""
    with contextlib.suppress(OSError, ValueError, StopIteration), open("/proc/self/status", encoding="ascii") as file:
        return 1024 * int(next(line for line in file if line.startswith("VmData:")).split()[1])
    return 0


def wall(most: int) -> None:
    """Let every allocation beyond `most` bytes fail in this process; without effect where the system has no such thing.

    RLIMIT_DATA counts private writable memory, and not, as RLIMIT_AS does, address space that is only reserved.
    """
    with contextlib.suppress(ImportError, ValueError, OSError):
        import resource

        resource.setrlimit(resource.RLIMIT_DATA, (most, resource.getrlimit(resource.RLIMIT_DATA)[1]))


def ran_out(error: BaseException) -> bool:
    """Whether this is how Python, numpy or torch say that the wall was hit."""
    if isinstance(error, MemoryError):
        return True
    text = str(error).lower()
    return isinstance(error, RuntimeError | OSError) and ("allocate memory" in text or "not enough memory" in text)


def refusal(most: int) -> Refusal:
    """Said when the estimate was too low, or the model alone is too large."""
    return Refusal(
        422,
        f"The work did not fit into the {most / 1e9:.2g} GB its worker may have.",
        "shorten the text; or let the explorer have more with --memory.",
    )
