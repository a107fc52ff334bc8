"""What becomes of a trained model: its card, a small folder for others, and the start of another training."""

from __future__ import annotations

import hashlib
import json
import shutil
from collections.abc import Sequence
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import torch

from normlens.models import quiet
from normlens.nmt.folder import CARD, FRESH, MODEL, SUBWORDS, FolderError, Setup, write_text, writing
from normlens.nmt.model import load_translator
from normlens.nmt.recipe import Recipe
from normlens.version import __version__

SIZES = {"layers": "encoder_layers", "width": "d_model", "heads": "encoder_attention_heads", "inner": "encoder_ffn_dim"}
NOTE = """
## Precision

The weights are stored in half precision. Load them in single precision, where every stored number is kept exactly:
`MarianMTModel.from_pretrained(folder, dtype="float32")`.
"""


def card(setup: Setup, history: Sequence[dict[str, Any]], *, data: str, valid_data: str) -> str:
    """README.md of a trained model."""
    best = max(reversed(history), key=lambda validation: validation["bleu"])
    source, target = setup.languages
    began = FRESH if setup.start == FRESH else f"an earlier model (sha256 {setup.start[:12]})"
    numbers = "\n".join(f"| {name} | {value} |" for name, value in asdict(setup.recipe).items())
    return f"""---
library_name: transformers
pipeline_tag: translation
---
# Translation, {source} to {target}

A Marian Transformer, trained from {began} by `normlens nmt train`, normlens {__version__}.
It reads and writes text without case, with every punctuation mark as a word of its own: its use is word alignment.

## Data

- trained on: {data}
- validated on: {valid_data}

## Result

| | |
|---|---|
| minutes of training | {history[-1]["minutes"]:.1f} |
| updates | {history[-1]["update"]} |
| kept: the model after update | {best["update"]} |
| its BLEU (sacreBLEU, greedy, lower-cased, at most {setup.valid_limit} pairs) | {best["bleu"]:.2f} |
| its loss per subword on the validation pairs | {best["valid_loss"]:.4f} |

`history.json` of the training holds every validation.

## Recipe

| | |
|---|---|
{numbers}
| seed | {setup.seed} |

`vocabulary` counts the subwords of each language, `tokens` those of an update; pairs of more than `longest` words a
side were left out. AdamW (0.9, 0.98) without weight decay, gradients cut to norm 1, single precision.
"""


def shipped(folder: Path, out: Path) -> Path:
    """Write the model of a finished training to `out`, for others to load with transformers."""
    if not (folder / CARD).exists():
        raise FolderError(
            f"'{folder}' has no model card, {CARD}.",
            cause="the training is not finished: the card is written at its end.",
            do="finish the training with the same command and --resume; or write a card.",
        )
    model, _ = load_translator(folder)
    _check_fits(folder, model)
    with writing(out), quiet():
        out.mkdir(parents=True, exist_ok=True)
        model.half().save_pretrained(out)
        shutil.copyfile(folder / "tokenizer_config.json", out / "tokenizer_config.json")
        for name in ("source.spm", "target.spm"):
            shutil.copyfile(folder / name, out / name)
    for name in ("vocab.json", "target_vocab.json"):
        pieces = json.loads((folder / name).read_text(encoding="utf-8"))
        write_text(out / name, json.dumps(pieces, ensure_ascii=False, separators=(",", ":")))
    write_text(out / CARD, (folder / CARD).read_text(encoding="utf-8") + NOTE)
    return out


def _check_fits(folder: Path, model: torch.nn.Module) -> None:
    largest = max(float(parameter.detach().abs().max()) for parameter in model.parameters())
    if not largest < torch.finfo(torch.float16).max:
        raise FolderError(
            f"The weights of '{folder}' do not fit into half precision.",
            got=f"a weight of {largest:.3g}.",
            cause="a training that diverged.",
            do="train again with a lower --rate.",
        )


def sized(recipe: Recipe, start: Path) -> Recipe:
    """The recipe, with the sizes of the model it begins from."""
    missing = [name for name in ("config.json", MODEL, *SUBWORDS) if not (start / name).exists()]
    if missing:
        raise FolderError(
            f"No training can start from '{start}': it has no {', no '.join(missing)}.",
            cause="the model was not trained by `normlens nmt train`.",
            do="give --start the folder of a training, or leave it out to train from fresh weights.",
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
