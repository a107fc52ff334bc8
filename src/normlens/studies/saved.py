"""The file of a run: whether it can be begun there, gone on with, and what an interruption leaves."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from normlens import statistics
from normlens.statistics import Statistic
from normlens.studies.study import StudyError


def begun(
    file: Path, identity: Mapping[str, str], *, resume: bool
) -> tuple[dict[str, Statistic], dict[str, Any]] | None:
    """What an earlier run left to go on from, its statistics and facts; None where a new one begins."""
    _check_writable(file)
    if not file.exists():
        return None
    state, facts = statistics.read(file)
    then = facts.pop("identity", {})
    if not resume:
        if not facts.get("finished"):
            raise StudyError(
                f"{file.parent} holds a run that was interrupted after {facts.get('items')} items.",
                do=("--resume (resume=True in Python) to go on with it, or give another folder to start a new one."),
            )
        return None
    differs = [name for name in {**then, **identity} if then.get(name) != identity.get(name)]
    if differs:
        told = "".join(f"  {n}: {then.get(n, 'none')} then, {identity.get(n, 'none')} now\n" for n in differs)
        raise StudyError(
            f"The run in {file.parent} was another one, so it cannot be resumed. What differs:\n{told}"
            "  Do: ask for the same as before, or give another folder."
        )
    return state, facts


def left(file: Path | None, saved: int, items: int) -> str:
    """What an interruption leaves, and how to go on."""
    if file is None:
        return "  Nothing is saved.\n  Do: give a folder to save in as it goes: --out, or out= in Python."
    if not saved:
        return f"  Nothing is saved yet in {file.parent}.\n  Do: the same again; it begins at the start."
    return (
        f"  {saved:,} of {items:,} items are saved in {file.parent}.\n"
        "  Do: the same again with --resume (resume=True in Python) goes on from there."
    )


def _check_writable(file: Path) -> None:
    try:
        file.parent.mkdir(parents=True, exist_ok=True)
        file.with_name(file.name + ".new").touch()
        file.with_name(file.name + ".new").unlink()
    except OSError as error:
        taken = next((path for path in (file.parent, *file.parent.parents) if path.is_file()), None)
        got = f"'{taken}' is a file" if taken else error.strerror or error
        raise StudyError(
            f"Nothing can be written to the folder '{file.parent}': {got}.",
            cause="a file has its name, the folder is not yours to write in, or the disk is full.",
            do="give another folder.",
        ) from error
