"""The folder of a training: its plan, the best model so far, and the state to go on from.

Only the same training goes on in a folder. Every file is written beside its place and then moved there, so a kill never
leaves half of one.
"""

from __future__ import annotations

import json
import pickle
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Literal

import torch
from safetensors import SafetensorError

from normlens.errors import NormlensError
from normlens.models.quiet import quiet
from normlens.nmt.recipe import Recipe
from normlens.version import __version__

MODEL, STATE, HISTORY, PLAN, CARD = "model.safetensors", "training.pt", "history.json", "recipe.json", "README.md"
SUBWORDS = ("source.spm", "target.spm", "vocab.json", "target_vocab.json")
OWN = {MODEL, STATE, HISTORY, PLAN, *SUBWORDS}
FRESH = "fresh weights"


class StateError(NormlensError):
    """A saved state that a training cannot go on from."""


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
            f"'{folder}' holds a model{(f' of {last} updates' if last else '')}, but no state to go on from.",
            cause="its training is finished, or it was not trained here.",
            do="train into another folder.",
        )
    return "finished"


def check_free(folder: Path, *, resume: bool) -> None:
    """Refuse a folder that no training can use, before anything is read."""
    if folder.exists() and not folder.is_dir():
        raise FolderError(
            f"'{folder}' is a file.",
            do="name a folder; it is made if need be.",
        )
    names = {path.name for path in folder.iterdir()} if folder.exists() else set()
    if not resume and names & {MODEL, STATE}:
        raise FolderError(
            f"'{folder}' already holds a model.",
            do="--resume to go on with its training, or train into another folder.",
        )
    if names and not names & OWN:
        raise FolderError(
            f"'{folder}' holds other files: {', '.join(sorted(names)[:5])}{(' ...' if len(names) > 5 else '')}",
            do="train into a folder of its own; it is made if need be.",
        )


@dataclass(frozen=True, slots=True)
class State:
    """Where a training stands."""

    update: int = 0
    minutes: float = 0.0
    history: tuple[dict[str, Any], ...] = ()


def save_model(folder: Path, model: Any, tokens: Any) -> None:
    """Put the model and its tokenizer into the folder."""
    beside = folder / "saving"
    with writing(folder), quiet():
        model.save_pretrained(beside)
        tokens.save_pretrained(beside)
        for path in beside.iterdir():
            path.replace(folder / path.name)
        shutil.rmtree(beside)


def save_state(folder: Path, model: Any, optimizer: Any, state: State) -> None:
    """Put what a resumed training needs into the folder."""
    beside = folder / f"{STATE}.saving"
    history = list(state.history)
    parts = {"model": model.state_dict(), "optimizer": optimizer.state_dict()}
    with writing(folder):
        torch.save(parts | {"update": state.update, "minutes": state.minutes, "history": history}, beside)
        beside.replace(folder / STATE)
    write_text(folder / HISTORY, json.dumps(history, indent=1))


def load_state(folder: Path, model: Any, optimizer: Any) -> State:
    """Go on where the folder's training stopped, or begin when it has not come to its first saving."""
    if not (folder / STATE).exists():
        return State()
    try:
        parts = torch.load(folder / STATE, weights_only=True, map_location="cpu")
        model.load_state_dict(parts["model"])
        optimizer.load_state_dict(parts["optimizer"])
        return State(parts["update"], parts["minutes"], tuple(parts["history"]))
    except (OSError, EOFError, RuntimeError, ValueError, KeyError, TypeError, pickle.UnpicklingError) as error:
        reason = (str(error).strip() or type(error).__name__).splitlines()[0]
        raise StateError(
            f"'{folder / STATE}' does not hold the state of this training.",
            got=f"{reason}",
            cause="a damaged file, or a model of another size.",
            do="give the numbers of the first training, or train into another folder.",
        ) from error


def read_history(folder: Path) -> list[dict[str, Any]]:
    """Every look at the held-back pairs, oldest first."""
    return json.loads((folder / HISTORY).read_text(encoding="utf-8"))


def write_text(path: Path, text: str) -> None:
    """A text file, whole or not at all."""
    beside = path.with_name(f"{path.name}.saving")
    with writing(path.parent):
        beside.write_text(text, encoding="utf-8")
        beside.replace(path)


@contextmanager
def writing(folder: Path) -> Iterator[None]:
    """What goes wrong while files are written, in words."""
    try:
        yield
    except (OSError, RuntimeError, SafetensorError) as error:
        raise StateError(
            f"'{folder}' cannot be written.",
            got=f"{error}",
            cause="a full disk, or a folder that you may not write to.",
            do="make room, then --resume; what was saved before is still there.",
        ) from error


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
            f"'{folder / PLAN}' does not say what was trained here.",
            got=f"{error!r}",
            cause="the file was changed by hand.",
            do="train into another folder.",
        ) from error
    if differ:
        raise FolderError(
            f"'{folder}' holds another training, so this one cannot go on there.\n" + "\n".join(differ) + "\n"
            "  Do: give the same files, numbers and languages as before, or train into another folder."
        )


def _flat(facts: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in facts.items() if name != "recipe"} | facts["recipe"]
