"""The folder of a training: its setup, the best model so far, and the state to resume from.

Only the same training resumes in a folder. Every file is written beside its place and then moved there, so a kill never
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

from normlens.errors import NormlensError, first_line
from normlens.files import replacing, write_whole
from normlens.models import quiet
from normlens.nmt.recipe import Recipe
from normlens.version import __version__

MODEL, CHECKPOINT, HISTORY, RECIPE, CARD = (
    "model.safetensors",
    "training.pt",
    "history.json",
    "recipe.json",
    "README.md",
)
SUBWORDS = ("source.spm", "target.spm", "vocab.json", "target_vocab.json")
OWN = {MODEL, CHECKPOINT, HISTORY, RECIPE, *SUBWORDS}
FRESH = "fresh weights"


class StateError(NormlensError):
    """A saved state that a training cannot resume from."""


class FolderError(NormlensError):
    """A folder that this training cannot use."""


@dataclass(frozen=True, slots=True)
class Setup:
    """Everything that decides how a training comes out."""

    recipe: Recipe
    languages: tuple[str, str]
    seed: int
    text: str  # digest of the pairs
    valid: str  # digest of the pairs held back
    valid_limit: int  # pairs that are translated
    start: str = FRESH  # or digest of the model it began from

    def facts(self) -> dict[str, Any]:
        """The setup in words and numbers."""
        return asdict(self) | {"languages": list(self.languages)}


def enter(folder: Path, setup: Setup, *, resume: bool) -> Literal["new", "resumed", "finished"]:
    """Whether this training is new, resumed or finished here; a folder of something else is refused."""
    check_free(folder, resume=resume)
    known = (folder / RECIPE).exists()
    if resume and known:
        _check_same(folder, setup)
    if (folder / CHECKPOINT).exists() or not (folder / HISTORY if known else folder / MODEL).exists():
        _prepare(folder, setup, resume=resume)
        return "resumed" if (folder / CHECKPOINT).exists() else "new"
    last = read_history(folder)[-1]["update"] if (folder / HISTORY).exists() else None
    if last != setup.recipe.updates:
        raise FolderError(
            f"'{folder}' holds a model{f' of {last} updates' if last else ''}, but no state to resume from.",
            cause="its training is finished, or it was trained elsewhere.",
            do="give another folder with --out; to train the model further, give it with --start.",
        )
    return "finished"


def check_free(folder: Path, *, resume: bool) -> None:
    """Refuse a folder that no training can use, before anything is read."""
    if folder.exists() and not folder.is_dir():
        raise FolderError(
            f"'{folder}' is a file, not a folder.",
            do="give a folder with --out; it is created if it does not exist.",
        )
    names = {path.name for path in folder.iterdir()} if folder.exists() else set()
    if not resume and names & {MODEL, CHECKPOINT}:
        raise FolderError(
            f"'{folder}' already holds a model.",
            do="add --resume to continue its training, or give another folder with --out.",
        )
    if names and not names & OWN:
        raise FolderError(
            f"'{folder}' holds files that are not of a training.",
            got=", ".join(sorted(names)[:5]) + (" ..." if len(names) > 5 else ""),
            do="give a folder of its own with --out; it is created if it does not exist.",
        )


@dataclass(frozen=True, slots=True)
class State:
    """How far a training has come."""

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
    history = list(state.history)
    parts = {"model": model.state_dict(), "optimizer": optimizer.state_dict()}
    with writing(folder), replacing(folder / CHECKPOINT) as unfinished:
        torch.save(parts | {"update": state.update, "minutes": state.minutes, "history": history}, unfinished)
    write_text(folder / HISTORY, json.dumps(history, indent=1))


def load_state(folder: Path, model: Any, optimizer: Any) -> State:
    """Resume where the training of the folder stopped; an empty state when nothing was saved."""
    if not (folder / CHECKPOINT).exists():
        return State()
    try:
        parts = torch.load(folder / CHECKPOINT, weights_only=True, map_location="cpu")
        model.load_state_dict(parts["model"])
        optimizer.load_state_dict(parts["optimizer"])
        return State(parts["update"], parts["minutes"], tuple(parts["history"]))
    except (OSError, EOFError, RuntimeError, ValueError, KeyError, TypeError, pickle.UnpicklingError) as error:
        raise StateError(
            f"'{folder / CHECKPOINT}' does not hold the state of this training.",
            got=first_line(error),
            cause="a damaged file, or a model of another size.",
            do="give the numbers of the first training, or another folder with --out.",
        ) from error


def read_history(folder: Path) -> list[dict[str, Any]]:
    """Every validation, oldest first."""
    return json.loads((folder / HISTORY).read_text(encoding="utf-8"))


def write_text(path: Path, text: str) -> None:
    """A text file, whole or not at all."""
    with writing(path.parent):
        write_whole(path, text)


@contextmanager
def writing(folder: Path) -> Iterator[None]:
    """An error while files are written becomes a StateError."""
    try:
        yield
    except (OSError, RuntimeError, SafetensorError) as error:
        raise StateError(
            f"The folder '{folder}' cannot be written.",
            got=first_line(error),
            cause="a full disk, or a folder that you may not write to.",
            do="make room, then add --resume; what was saved before is still there.",
        ) from error


def _prepare(folder: Path, setup: Setup, *, resume: bool) -> None:
    with writing(folder):
        folder.mkdir(parents=True, exist_ok=True)
        for name in () if resume else OWN:  # of a training that came to nothing
            (folder / name).unlink(missing_ok=True)
    write_text(folder / RECIPE, json.dumps(setup.facts() | {"version": __version__}, indent=1))


def _check_same(folder: Path, setup: Setup) -> None:
    try:
        past = json.loads((folder / RECIPE).read_text(encoding="utf-8"))
        there, now = _flat(past), _flat(setup.facts())
        differ = [f"{name}: {there[name]} there, {value} now" for name, value in now.items() if there[name] != value]
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise FolderError(
            f"'{folder / RECIPE}' does not say what was trained here.",
            got=repr(error),
            cause="the file was changed by hand.",
            do="give another folder with --out.",
        ) from error
    if differ:
        raise FolderError(
            f"'{folder}' holds another training, so this one cannot resume there.",
            got="; ".join(differ) + ".",
            do="give the same files, numbers and languages as before, or another folder with --out.",
        )


def _flat(facts: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in facts.items() if name != "recipe"} | facts["recipe"]
