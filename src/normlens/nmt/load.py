"""Bring a translation model in: one trained here, or any sequence-to-sequence model of transformers.

Room: a name or folder to a model and its tokenizer.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from normlens.models.load import LoadError, subject
from normlens.models.quiet import quiet
from normlens.nmt.build import check_device


def load_translator(source: str | Path, *, device: str = "cpu") -> tuple[Any, Any]:
    """The model, in single precision, and its tokenizer, from a folder or the hub."""
    check_device(device)
    with quiet():
        found = subject(source, dtype="float32", device=device)
    if not found.is_seq2seq or not hasattr(found.model, "generate"):
        raise LoadError(
            f"'{source}' cannot translate: it is no sequence-to-sequence model.\n"
            f"  Got: {type(found.model).__name__}.\n"
            "  Do: give a model with an encoder and a decoder, such as one that `normlens nmt train` wrote."
        )
    if found.tokenizer is None:
        raise LoadError(
            f"'{source}' has no tokenizer that could be loaded, so it cannot read text.\n"
            "  Usual causes: its files are missing, or a library for them: sentencepiece, for most.\n"
            "  Do: put the tokenizer's files beside the weights; pip install 'normlens[nmt]'."
        )
    return found.model, found.tokenizer
