"""Turn texts, ids, images and tensors into model inputs, and remember which tokens they are."""

from __future__ import annotations

import inspect
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from jaxtyping import Bool
from torch import Tensor

from normlens.errors import first_line
from normlens.models.alone import alone
from normlens.models.limits import InputError, check_ids, longest, takes
from normlens.models.load import Subject
from normlens.models.mask import real_positions
from normlens.models.sides import Side, positions, text_side
from normlens.models.tokenizer import text_tokenizer

Text = str | tuple[str, str]


@dataclass(frozen=True, slots=True, eq=False)
class Encoded:
    """Model inputs, and for each sequence in them its tokens and which positions are real."""

    inputs: dict[str, Any]
    sides: tuple[Side, ...]  # one per sequence of the batch: the text, or the source
    targets: tuple[Side, ...]  # the decoder's side; empty for models with one side
    kept: Bool[Tensor, "batch src"] | None  # real positions of `sides`; None when all are
    targets_kept: Bool[Tensor, "batch tgt"] | None


def encode(subject: Subject, data: Any, *, truncate: bool = False, length: int | None = None) -> Encoded:
    """Texts, pairs, ids, an image or ready inputs of a model with one side (or the source of one with two).

    With `truncate`, texts are cut to `length` tokens, or to what the model takes if that is less.
    """
    if isinstance(data, Mapping):
        return ready(subject, data)
    if _is_image(data):
        return ready(subject, _processed(subject, data))
    if isinstance(data, Tensor) or _is_ids(data):
        return ready(subject, _padded_ids(subject, data))
    return _finished(subject, tokenized(subject, data, truncate=truncate, length=length), {})


def encode_both(
    subject: Subject, source: Any, target: Any, *, truncate: bool = False, length: int | None = None
) -> Encoded:
    """Source and target of a sequence-to-sequence model: the decoder is fed the target, as in training."""
    first = encode(subject, source, truncate=truncate, length=length)
    if isinstance(target, Tensor) or _is_ids(target):
        second = _padded_ids(subject, target)
        ids, mask = second["input_ids"], second["attention_mask"]
    else:
        second = tokenized(subject, target, as_target=True, truncate=truncate, length=length)
        ids, mask = second["input_ids"], second["attention_mask"]
    if len(ids) != len(first.sides):
        raise InputError(
            f"There are {len(first.sides)} sources but {len(ids)} targets.",
            do="give one target for each source, in the same order.",
        )
    shifted, kept = _shifted(subject, ids, mask)
    inputs = {key: value for key, value in first.inputs.items() if not key.startswith("decoder_")}
    return _finished(subject, inputs, {"decoder_input_ids": shifted, "decoder_attention_mask": kept}, kept_from=first)


def encode_forced(subject: Subject, sources: Sequence[Sequence[int]], targets: Sequence[Sequence[int]]) -> Encoded:
    """Rows of source and target ids, special tokens included, for many sentences: their tokens are not written out."""
    first, second = _padded_ids(subject, sources), _padded_ids(subject, targets)
    shifted, kept = _shifted(subject, second["input_ids"], second["attention_mask"])
    inputs = first | {"decoder_input_ids": shifted, "decoder_attention_mask": kept}
    check_ids(subject, inputs)
    return Encoded(inputs, (), (), *(m.bool() for m in (first["attention_mask"], kept)))


def ready(subject: Subject, inputs: Mapping[str, Any]) -> Encoded:
    """Inputs that the caller made: taken as they are."""
    tensors = {k: _tensor(k, v) for k, v in inputs.items()}
    tensors = {k: v.to(subject.device) if isinstance(v, Tensor) else v for k, v in tensors.items()}
    if not tensors:
        raise InputError(
            "The inputs are empty.",
            do="give what the model's forward takes, such as {'input_ids': ...}.",
        )
    decoder = {k: v for k, v in tensors.items() if k in ("decoder_input_ids", "decoder_attention_mask")}
    return _finished(subject, {k: v for k, v in tensors.items() if k not in decoder}, decoder)


def _tensor(name: str, value: Any) -> Any:
    """Ids and masks as tensors, also when they come as lists or numpy arrays."""
    if name.endswith(("_ids", "_mask")) and not isinstance(value, Tensor) and value is not None:
        try:
            return torch.as_tensor(value)
        except (TypeError, ValueError) as error:
            raise InputError(
                f"'{name}' is not a table of whole numbers.",
                got=first_line(error),
                cause="rows of different lengths, or entries that are not whole numbers.",
                do="give one row per sequence, all of the same length.",
            ) from error
    return value


def tokenized(
    subject: Subject, data: Any, *, as_target: bool = False, truncate: bool = False, length: int | None = None
) -> dict[str, Tensor]:
    """Texts or pairs of texts, padded to the longest."""
    texts = _texts(data)
    if subject.tokenizer is None:
        raise InputError(
            "This model was loaded without a tokenizer, so it cannot read text.",
            do="give a folder that holds the tokenizer too; in Python also normlens.load(model, tokenizer), or trace "
            "token ids or a dict of model inputs.",
        )
    tokenizer = text_tokenizer(subject.tokenizer)
    words = {"text_target" if as_target else "text": [t if isinstance(t, str) else t[0] for t in texts]}
    if any(isinstance(t, tuple) for t in texts):
        words["text_pair"] = [t[1] for t in texts]
    options: dict[str, Any] = {"truncation": truncate}
    limits = [limit for limit in (length, longest(subject)) if limit]
    if truncate and limits:
        options["max_length"] = min(limits)
    if len(texts) > 1:
        if tokenizer.pad_token is None:
            return _padded_ids(subject, tokenizer(**words, **options)["input_ids"])
        options |= {"padding": True, "padding_side": "right"}
    batch = dict(tokenizer(**words, **options, return_tensors="pt"))
    batch.setdefault("attention_mask", torch.ones_like(batch["input_ids"]))
    wanted = set(inspect.signature(subject.model.forward).parameters) | {"attention_mask"}
    return {k: v.to(subject.device) for k, v in batch.items() if k in wanted}


def separately(subject: Subject, encoded: Encoded) -> tuple[Encoded, ...]:
    """Each text of a batch as inputs of its own, without padding: for models that padding would change."""
    texts = []
    for row, side in enumerate(encoded.sides):
        inputs = alone(encoded.inputs, row, encoded.kept, encoded.targets_kept)
        if isinstance(inputs, str):
            raise InputError(
                f"This batch for '{subject.name}' cannot be split into single texts: {inputs}.",
                cause="padding is not proved harmless for this model, so a batch is run text by text.",
                do="give the texts one by one.",
            )
        texts.append(Encoded(inputs, (side,), encoded.targets[row : row + 1], None, None))
    return tuple(texts)


def _texts(data: Any) -> list[Text]:
    if isinstance(data, str) or (isinstance(data, tuple) and len(data) == 2 and all(isinstance(t, str) for t in data)):
        data = [data]
    if not isinstance(data, Sequence):
        raise InputError(
            f"An input of type {type(data).__name__} cannot be traced.",
            do="give a text, a list of texts, a pair (a, b), token ids, an image, or a dict of model inputs.",
        )
    texts: list[Any] = [tuple(t) if isinstance(t, list) and len(t) == 2 else t for t in data]
    if not texts:
        raise InputError(
            "The list of texts is empty.",
            do="give at least one text.",
        )
    for index, text in enumerate(texts):
        parts = text if isinstance(text, tuple) else (text,)
        if not all(isinstance(part, str) for part in parts) or len(parts) > 2:
            raise InputError(
                f"Item {index} is neither a text nor a pair of texts.",
                got=f"{text!r:.80}",
                do="give each item as a string, or as two strings in a tuple.",
            )
        if not all(part.strip() for part in parts):
            raise InputError(
                f"Item {index} is empty." if len(texts) > 1 else "The text is empty.",
                got=f"{text!r:.80}",
                cause="a blank line in a file.",
                do="give a text with at least one character that is not a space.",
            )
    if len({isinstance(text, tuple) for text in texts}) > 1:
        raise InputError(
            "The list mixes single texts and pairs.",
            do="trace texts and pairs separately.",
        )
    return texts


def _is_ids(data: Any) -> bool:
    first = data[0] if isinstance(data, Sequence) and len(data) and not isinstance(data, str) else None
    return isinstance(first, int) or (isinstance(first, Sequence) and len(first) > 0 and isinstance(first[0], int))


def _is_image(data: Any) -> bool:
    one = data[0] if isinstance(data, Sequence) and len(data) and not isinstance(data, str) else data
    return type(one).__module__.startswith("PIL.")


def _processed(subject: Subject, images: Any) -> dict[str, Any]:
    if subject.tokenizer is None:
        raise InputError(
            "This model was loaded without an image processor, so it cannot read an image.",
            do="give a folder that holds the processor too; in Python also normlens.load(model, processor), or trace "
            "{'pixel_values': pixels}.",
        )
    if hasattr(subject.tokenizer, "convert_ids_to_tokens") and not hasattr(subject.tokenizer, "image_processor"):
        raise InputError(
            f"'{subject.name}' reads text, not images.",
            do="give a text, or load a vision model.",
        )
    return dict(subject.tokenizer(images=images, return_tensors="pt"))


def _padded_ids(subject: Subject, data: Any) -> dict[str, Tensor]:
    rows = [data] if isinstance(data, Sequence) and isinstance(data[0], int) else data
    rows = [torch.as_tensor(row) for row in (rows[None] if isinstance(rows, Tensor) and rows.ndim == 1 else rows)]
    if any(row.ndim != 1 or not len(row) or row.is_floating_point() for row in rows):
        raise InputError(
            "Token ids must be whole numbers, one non-empty row per sequence.",
            do="check the ids; give other inputs by name, as in {'pixel_values': pixels}.",
        )
    pad = getattr(subject.config, "pad_token_id", None)
    ids = torch.nn.utils.rnn.pad_sequence(
        rows, batch_first=True, padding_value=pad if isinstance(pad, int) and pad >= 0 else 0
    )
    mask = torch.nn.utils.rnn.pad_sequence([torch.ones_like(row) for row in rows], batch_first=True)
    return {"input_ids": ids.to(subject.device), "attention_mask": mask.to(subject.device)}


def _shifted(subject: Subject, ids: Tensor, mask: Tensor) -> tuple[Tensor, Tensor]:
    """The decoder's input: the start token, then the target without its last token."""
    start = getattr(subject.config, "decoder_start_token_id", None)
    if start is None:
        start = getattr(getattr(subject.model, "generation_config", None), "decoder_start_token_id", None)
    if start is None:
        start = getattr(subject.config, "bos_token_id", None)
    if start is None:
        raise InputError(
            "The model's configuration has no decoder_start_token_id, so the decoder cannot be given a target.",
            do="set model.config.decoder_start_token_id, or give decoder_input_ids in a dict of model inputs.",
        )
    if bool((ids[:, 0] == start).all()):
        return ids, mask
    eos = getattr(subject.config, "eos_token_id", None)
    shifted = torch.cat([torch.full_like(ids[:, :1], start), ids], dim=1)
    kept = torch.cat([torch.ones_like(mask[:, :1]), mask], dim=1)
    last = kept.sum(dim=1) - 1
    ends = shifted.gather(1, last[:, None]).squeeze(1)
    if isinstance(eos, int) and bool((ends == eos).all()):
        kept = kept.scatter(1, last[:, None], 0)
        shifted, kept = shifted[:, :-1], kept[:, :-1]
    return shifted, kept


def _finished(
    subject: Subject, inputs: dict[str, Any], decoder: dict[str, Any], *, kept_from: Encoded | None = None
) -> Encoded:
    optional = {name for name in ("attention_mask", *decoder) if not takes(subject.model, name)}
    all_inputs = {k: v for k, v in (inputs | decoder).items() if k not in optional}
    check_ids(subject, all_inputs)
    sides, kept = (
        (kept_from.sides, kept_from.kept)
        if kept_from
        else _sides("text", subject, inputs, "input_ids", "attention_mask")
    )
    targets, targets_kept = _sides("target", subject, decoder, "decoder_input_ids", "decoder_attention_mask")
    if subject.is_seq2seq:
        sides = tuple(side.named("source") for side in sides)
    return Encoded(all_inputs, sides, targets, kept, targets_kept)


def _sides(
    name: str, subject: Subject, inputs: Mapping[str, Any], ids_name: str, mask_name: str
) -> tuple[tuple[Side, ...], Tensor | None]:
    ids, mask = inputs.get(ids_name), inputs.get(mask_name)
    if not isinstance(ids, Tensor) or ids.ndim != 2:
        first = next((v for v in inputs.values() if isinstance(v, Tensor) and v.ndim), None)
        count = 0 if first is None else len(first)
        return tuple(positions(name, 0) for _ in range(count)), None
    kept = real_positions(ids, mask, subject.config)
    if not bool(kept.any(dim=1).all()):
        raise InputError(
            "A sequence consists of padding alone.",
            cause="a row of zeros in the attention mask.",
            do="leave that sequence out.",
        )
    sides = tuple(
        text_side(name, subject.tokenizer, row[keep].tolist()) for row, keep in zip(ids.cpu(), kept.cpu(), strict=True)
    )
    return sides, None if bool(kept.all()) else kept
