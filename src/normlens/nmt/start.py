"""A training that begins from a model that was trained before: with other text, longer pairs, another schedule.

Room: a folder in; its sizes, subwords and weights out.
"""

from __future__ import annotations

import hashlib
import json
import shutil
from dataclasses import replace
from pathlib import Path
from typing import Any

from normlens.nmt.folder import MODEL, SUBWORDS, writing
from normlens.nmt.load import load_translator
from normlens.nmt.plan import FolderError
from normlens.nmt.recipe import Recipe

SIZES = {"layers": "encoder_layers", "width": "d_model", "heads": "encoder_attention_heads", "inner": "encoder_ffn_dim"}


def sized(recipe: Recipe, start: Path) -> Recipe:
    """The recipe, with the sizes of the model it begins from."""
    missing = [name for name in ("config.json", MODEL, *SUBWORDS) if not (start / name).exists()]
    if missing:
        raise FolderError(
            f"No training can begin from '{start}': it has no {', no '.join(missing)}.\n"
            "  Usual cause: the model is not one that `normlens nmt train` made.\n"
            "  Do: give the folder of a training, or train from fresh weights."
        )
    config = json.loads((start / "config.json").read_text(encoding="utf-8"))
    vocabulary = max(config["vocab_size"], config["decoder_vocab_size"])
    return replace(recipe, vocabulary=vocabulary, **{name: config[key] for name, key in SIZES.items()})


def digest(start: Path) -> str:
    """What tells one model to begin from from another."""
    with (start / MODEL).open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def take_subwords(start: Path, folder: Path) -> None:
    """Give the folder the subwords that the model knows."""
    with writing(folder):
        for name in SUBWORDS:
            shutil.copyfile(start / name, folder / name)


def take_weights(start: Path, model: Any) -> None:
    """Give the model the weights to begin from."""
    given, _ = load_translator(start)
    model.load_state_dict(given.state_dict())
