"""A translation model and its tokenizer: untrained or loaded, and the loss it is trained with.

The loss is label-smoothed cross-entropy, computed without ever holding all the logits of the output layer. With
z = h Wᵀ over a vocabulary of V and p = softmax(z), the loss of a row with label y is

    (1 - ε)(lse z - z_y) + ε(lse z - mean z)        and its gradient  ∂/∂z = p - (1 - ε)·onehot(y) - ε/V

so a few rows at a time are enough: their logits stay in the cache and become the gradient in place. For a small model,
whole matrices of logits would cost as much as the model itself.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import torch
from jaxtyping import Float, Int
from torch import Tensor
from torch.nn.functional import cross_entropy

from normlens.errors import NormlensError, first_line
from normlens.models import LoadError, quiet, subject
from normlens.nmt.recipe import Recipe
from normlens.nmt.subwords import END, PAD

POSITIONS = 512
ROWS = 256  # logits of so many rows are held at a time


class DeviceError(NormlensError):
    """A device that torch cannot use here."""


def check_device(device: str) -> None:
    """Refuse a device that is not there."""
    try:
        torch.zeros(1, device=device).sum().item()
    except (RuntimeError, AssertionError, NotImplementedError) as error:
        raise DeviceError(
            f"The device '{device}' cannot be used.",
            got=first_line(error),
            do="give a device that torch can use on this machine; --device cpu always works.",
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
            f"'{source}' cannot translate: it is not a sequence-to-sequence model.",
            got=f"{type(found.model).__name__}.",
            do="give a model with an encoder and a decoder, such as one that `normlens nmt train` wrote.",
        )
    if found.tokenizer is None:
        raise LoadError(
            f"'{source}' has no tokenizer that can be loaded, so it cannot read text.",
            cause="the tokenizer's files are missing, or a library for them is, most often sentencepiece.",
            do="put the tokenizer's files beside the weights, and pip install 'normlens[nmt]'.",
        )
    return found.model, found.tokenizer


def loss(model: Any, source: Tensor, target: Tensor, *, smoothing: float) -> Tensor:
    """Mean cross-entropy of the target's subwords, each predicted from the ones before it."""
    source, target = source.to(model.device), target.to(model.device)
    start = torch.full_like(target[:, :1], model.config.decoder_start_token_id)
    hidden = model.model(
        input_ids=source,
        attention_mask=(source != PAD).long(),
        decoder_input_ids=torch.cat([start, target[:, :-1]], dim=1),
        use_cache=False,
    ).last_hidden_state
    real = target != PAD
    if hidden.is_cpu and torch.is_grad_enabled():
        return smoothed_loss(hidden[real], model.lm_head.weight, target[real], smoothing=smoothing)
    return cross_entropy(model.lm_head(hidden[real]), target[real], label_smoothing=smoothing)


def smoothed_loss(
    hidden: Float[Tensor, "row width"],
    weight: Float[Tensor, "vocabulary width"],
    labels: Int[Tensor, " row"],
    *,
    smoothing: float,
) -> Float[Tensor, ""]:
    """Mean over the rows, differentiable in `hidden` and `weight`."""
    return _Smoothed.apply(hidden, weight, labels, smoothing)


class _Smoothed(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, hidden: Tensor, weight: Tensor, labels: Tensor, smoothing: float) -> Tensor:
        rows, size = len(hidden), len(weight)
        grad_hidden, grad_weight = torch.empty_like(hidden), torch.zeros_like(weight)
        total = torch.zeros((), dtype=torch.float64)
        for start in range(0, rows, ROWS):
            h, y = hidden[start : start + ROWS], labels[start : start + ROWS, None]
            logits = torch.mm(h, weight.T)
            wanted = (1 - smoothing) * logits.gather(1, y) + smoothing * logits.mean(dim=1, keepdim=True)
            top = logits.amax(dim=1, keepdim=True)
            logits.sub_(top).exp_()
            sums = logits.sum(dim=1, keepdim=True)
            total += (sums.log() + top - wanted).sum(dtype=torch.float64)
            logits.div_(sums).sub_(smoothing / size)
            logits.scatter_add_(1, y, torch.full_like(top, smoothing - 1))
            torch.mm(logits, weight, out=grad_hidden[start : start + ROWS])
            grad_weight.addmm_(logits.T, h)
        ctx.save_for_backward(grad_hidden.div_(rows), grad_weight.div_(rows))
        return (total / rows).to(hidden.dtype)

    @staticmethod
    def backward(ctx: Any, *grad_outputs: Any) -> tuple[Tensor | None, ...]:
        (grad,), (grad_hidden, grad_weight) = grad_outputs, ctx.saved_tensors
        return grad_hidden * grad, grad_weight * grad, None, None
