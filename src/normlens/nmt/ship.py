"""A trained model as a small folder: half precision, and nothing but what loading needs.

Room: one folder in, one folder out. Position tables are not stored, they are computed; tied weights are stored once.
"""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import torch

from normlens.models.quiet import quiet
from normlens.nmt.folder import CARD, write_text, writing
from normlens.nmt.load import load_translator
from normlens.nmt.plan import FolderError
from normlens.nmt.spm import without_paths

SUBWORDS = ("source.spm", "target.spm")
VOCABULARIES = ("vocab.json", "target_vocab.json")
NOTE = """
## Precision

The weights are stored in half precision. Load them in single precision, where every stored number is kept exactly:
`MarianMTModel.from_pretrained(folder, dtype="float32")`.
"""


def shipped(folder: Path, out: Path) -> Path:
    """Write the model of a finished training to `out`, for others to load with transformers."""
    if not (folder / CARD).exists():
        raise FolderError(
            f"'{folder}' has no model card, {CARD}.\n"
            "  Usual cause: its training is not finished; the card is written at the end.\n"
            "  Do: finish it: the same command with --resume; or write a card."
        )
    model, _ = load_translator(folder)
    _check_fits(folder, model)
    with writing(out), quiet():
        out.mkdir(parents=True, exist_ok=True)
        model.half().save_pretrained(out)
        shutil.copyfile(folder / "tokenizer_config.json", out / "tokenizer_config.json")
        for name in SUBWORDS:
            (out / name).write_bytes(without_paths((folder / name).read_bytes()))
    for name in VOCABULARIES:
        pieces = json.loads((folder / name).read_text(encoding="utf-8"))
        write_text(out / name, json.dumps(pieces, ensure_ascii=False, separators=(",", ":")))
    write_text(out / CARD, (folder / CARD).read_text(encoding="utf-8") + NOTE)
    return out


def _check_fits(folder: Path, model: torch.nn.Module) -> None:
    largest = max(float(parameter.detach().abs().max()) for parameter in model.parameters())
    if not largest < torch.finfo(torch.float16).max:
        raise FolderError(
            f"The weights of '{folder}' do not fit into half precision.\n  Got: one of size {largest:.3g}.\n"
            "  Usual cause: a training that diverged.\n  Do: train with a lower rate."
        )
