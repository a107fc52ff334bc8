"""What a training is: its recipe, its languages, its text. Only the same training goes on in a folder.

Room: from a folder and a plan to "begin", "go on", "finished", or no.
"""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Literal

from normlens.errors import NormlensError
from normlens.nmt.folder import HISTORY, MODEL, OWN, PLAN, STATE, read_history, write_text, writing
from normlens.nmt.recipe import Recipe
from normlens.version import __version__

FRESH = "fresh weights"


class FolderError(NormlensError):
    """A folder that this training cannot use."""


@dataclass(frozen=True, slots=True)
class Plan:
    """Everything that decides how a training comes out."""

    recipe: Recipe
    languages: tuple[str, str]
    seed: int
    text: str  # digest of the pairs
    valid: str  # digest of the pairs held back
    valid_limit: int  # pairs that are translated
    start: str = FRESH  # or digest of the model it began from

    def facts(self) -> dict[str, Any]:
        """The plan in words and numbers."""
        return asdict(self) | {"languages": list(self.languages)}


def enter(folder: Path, plan: Plan, *, resume: bool) -> Literal["begin", "go on", "finished"]:
    """Whether this training begins, goes on or is finished here; a folder of something else is refused."""
    check_free(folder, resume=resume)
    known = (folder / PLAN).exists()
    if resume and known:
        _check_same(folder, plan)
    if (folder / STATE).exists() or not (folder / HISTORY if known else folder / MODEL).exists():
        _prepare(folder, plan, resume=resume)
        return "go on" if (folder / STATE).exists() else "begin"
    last = read_history(folder)[-1]["update"] if (folder / HISTORY).exists() else None
    if last != plan.recipe.updates:
        raise FolderError(
            f"'{folder}' holds a model{f' of {last} updates' if last else ''}, but no state to go on from.\n"
            "  Usual cause: its training is finished, or it was not trained here.\n"
            "  Do: train into another folder."
        )
    return "finished"


def check_free(folder: Path, *, resume: bool) -> None:
    """Refuse a folder that no training can use, before anything is read."""
    if folder.exists() and not folder.is_dir():
        raise FolderError(f"'{folder}' is a file.\n  Do: name a folder; it is made if need be.")
    names = {path.name for path in folder.iterdir()} if folder.exists() else set()
    if not resume and names & {MODEL, STATE}:
        raise FolderError(
            f"'{folder}' already holds a model.\n"
            "  Do: --resume to go on with its training, or train into another folder."
        )
    if names and not names & OWN:
        raise FolderError(
            f"'{folder}' holds other files: {', '.join(sorted(names)[:5])}{' ...' if len(names) > 5 else ''}\n"
            "  Do: train into a folder of its own; it is made if need be."
        )


def _prepare(folder: Path, plan: Plan, *, resume: bool) -> None:
    with writing(folder):
        folder.mkdir(parents=True, exist_ok=True)
        for name in () if resume else OWN:  # of a training that came to nothing
            (folder / name).unlink(missing_ok=True)
    write_text(folder / PLAN, json.dumps(plan.facts() | {"version": __version__}, indent=1))


def _check_same(folder: Path, plan: Plan) -> None:
    try:
        past = json.loads((folder / PLAN).read_text(encoding="utf-8"))
        there, now = _flat(past), _flat(plan.facts())
        differ = [f"  {name}: {there[name]} there, {value} now" for name, value in now.items() if there[name] != value]
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise FolderError(
            f"'{folder / PLAN}' does not say what was trained here.\n  Got: {error!r}\n"
            "  Usual cause: the file was changed by hand.\n  Do: train into another folder."
        ) from error
    if differ:
        raise FolderError(
            f"'{folder}' holds another training, so this one cannot go on there.\n" + "\n".join(differ) + "\n"
            "  Do: give the same files, numbers and languages as before, or train into another folder."
        )


def _flat(facts: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in facts.items() if name != "recipe"} | facts["recipe"]
