"""A translation model and its tokenizer: untrained, or loaded from a folder or the hub."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import torch

from normlens.errors import NormlensError
from normlens.models.load import LoadError, subject
from normlens.models.quiet import quiet
from normlens.nmt.recipe import Recipe
from normlens.nmt.subwords import END, PAD

POSITIONS = 512


class DeviceError(NormlensError):
    """A device that torch cannot use here."""


def check_device(device: str) -> None:
    """Refuse a device that is not there."""
    try:
        torch.zeros(1, device=device).sum().item()
    except (RuntimeError, AssertionError, NotImplementedError) as error:
        raise DeviceError(
            f"The device '{device}' cannot be used.",
            got=f"{str(error).strip().splitlines()[0]}",
            do="give one that torch can use here; 'cpu' always works.",
        ) from error


def untrained(recipe: Recipe, *, sources: int, targets: int, seed: int) -> Any:
    """A Marian model for so many source and target subwords, with fresh weights."""
    from transformers import MarianConfig, MarianMTModel

    config = MarianConfig(
        vocab_size=sources,
        decoder_vocab_size=targets,
        share_encoder_decoder_embeddings=False,
        d_model=recipe.width,
        encoder_layers=recipe.layers,
        decoder_layers=recipe.layers,
        encoder_attention_heads=recipe.heads,
        decoder_attention_heads=recipe.heads,
        encoder_ffn_dim=recipe.inner,
        decoder_ffn_dim=recipe.inner,
        dropout=recipe.dropout,
        activation_function="relu",
        scale_embedding=True,
        init_std=recipe.width**-0.5,
        max_position_embeddings=POSITIONS,
        pad_token_id=PAD,
        eos_token_id=END,
        decoder_start_token_id=PAD,
        forced_eos_token_id=None,
    )
    torch.manual_seed(seed)
    model = MarianMTModel(config)
    model.generation_config.bad_words_ids = [[PAD]]
    return model


def tokenizer(folder: Path, *, source: str, target: str) -> Any:
    """The tokenizer of the subword files in a folder."""
    from transformers import MarianTokenizer

    with quiet():
        return MarianTokenizer(
            str(folder / "source.spm"),
            str(folder / "target.spm"),
            str(folder / "vocab.json"),
            target_vocab_file=str(folder / "target_vocab.json"),
            separate_vocabs=True,
            source_lang=source,
            target_lang=target,
            model_max_length=POSITIONS,
        )


def load_translator(source: str | Path, *, device: str = "cpu") -> tuple[Any, Any]:
    """The model, in single precision, and its tokenizer, from a folder or the hub."""
    check_device(device)
    with quiet():
        found = subject(source, dtype="float32", device=device)
    if not found.is_seq2seq or not hasattr(found.model, "generate"):
        raise LoadError(
            f"'{source}' cannot translate: it is no sequence-to-sequence model.",
            got=f"{type(found.model).__name__}.",
            do="give a model with an encoder and a decoder, such as one that `normlens nmt train` wrote.",
        )
    if found.tokenizer is None:
        raise LoadError(
            f"'{source}' has no tokenizer that could be loaded, so it cannot read text.",
            cause="its files are missing, or a library for them: sentencepiece, for most.",
            do="put the tokenizer's files beside the weights; pip install 'normlens[nmt]'.",
        )
    return found.model, found.tokenizer
