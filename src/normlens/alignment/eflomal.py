"""eflomal, an aligner by Gibbs sampling, run as the separate program `eflomal-align` when the user has it.

It is under the GPL: it is called, never imported, and no extra installs it.
"""

from __future__ import annotations

import shutil
import subprocess
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from tempfile import TemporaryDirectory

from normlens.alignment.links import Links
from normlens.errors import NormlensError

PROGRAM = "eflomal-align"
LONGEST = 256  # words; eflomal 2.0.0 takes longer sentences but links nothing after word 257


class EflomalError(NormlensError):
    """eflomal is absent, or it failed."""


def missing() -> EflomalError | None:
    """Why eflomal cannot run here; None when it can."""
    if _program():
        return None
    return EflomalError(
        f"eflomal needs its program {PROGRAM}, which is not on the path.",
        do="pip install eflomal (it is under the GPL, so normlens only calls it).",
    )


def align(
    sources: Sequence[Sequence[str]],
    targets: Sequence[Sequence[str]],
    *,
    count: int,
    iterations: int | None,
    progress: Callable[[int, int], None],
) -> tuple[list[Links], list[Links]]:
    """The links of the first pairs both ways. The program does not say how far it is, so it is one step."""
    if (error := missing()) is not None:
        raise error
    progress(0, 1)
    with TemporaryDirectory() as place:
        folder = Path(place)
        command = [str(_program()), "--overwrite", "--model", "3"]
        for flag, name, text in (("-s", "source", sources), ("-t", "target", targets)):
            (folder / name).write_text("".join(" ".join(words) + "\n" for words in text), encoding="utf-8")
            command += [flag, str(folder / name)]
        command += ["-f", str(folder / "forward"), "-r", str(folder / "backward"), *_schedule(iterations)]
        ran = subprocess.run(command, capture_output=True, text=True, check=False)
        links = [_read(folder / name, len(sources)) for name in ("forward", "backward")]
    if ran.returncode or None in links:
        raise EflomalError(
            f"{PROGRAM} ended with code {ran.returncode} and no links for every pair.",
            got=ran.stderr.strip()[-500:] or "nothing",
            do=f"try {PROGRAM} by itself on the same text.",
        )
    progress(1, 1)
    forward, backward = (lines[:count] for lines in links if lines is not None)
    return forward, backward


def _schedule(iterations: int | None) -> list[str]:
    """IBM-1 and HMM take a quarter of the iterations of the last model, as eflomal itself divides them."""
    if iterations is None:
        return []
    before = str(max(1, iterations // 4))
    return ["-1", before, "-2", before, "-3", str(iterations)]


def _program() -> str | None:
    beside = Path(sys.executable).parent
    return shutil.which(PROGRAM) or shutil.which(PROGRAM, path=str(beside))


def _read(path: Path, count: int) -> list[Links] | None:
    """Links line by line; None if the file does not hold one line for each pair."""
    lines = path.read_text(encoding="utf-8").splitlines() if path.exists() else []
    if len(lines) != count:
        return None
    return [frozenset((int(a), int(b)) for a, b in (link.split("-") for link in line.split())) for line in lines]
