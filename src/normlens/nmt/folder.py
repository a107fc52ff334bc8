"""The folder of a training: the best model so far, and the state to go on from.

Room: files. Every file is written beside its place and then moved there, so a kill never leaves half of one.
"""

from __future__ import annotations

import json
import pickle
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from safetensors import SafetensorError

from normlens.errors import NormlensError
from normlens.models.quiet import quiet

MODEL, STATE, HISTORY, PLAN, CARD = "model.safetensors", "training.pt", "history.json", "recipe.json", "README.md"
SUBWORDS = ("source.spm", "target.spm", "vocab.json", "target_vocab.json")
OWN = {MODEL, STATE, HISTORY, PLAN, *SUBWORDS}


class StateError(NormlensError):
    """A saved state that a training cannot go on from."""


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
            f"'{folder / STATE}' does not hold the state of this training.\n  Got: {reason}\n"
            "  Usual causes: a damaged file, or a model of another size.\n"
            "  Do: give the numbers of the first training, or train into another folder."
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
            f"'{folder}' cannot be written.\n  Got: {error}\n"
            "  Usual causes: a full disk, or a folder that you may not write to.\n"
            "  Do: make room, then --resume; what was saved before is still there."
        ) from error
