"""The logits of a prediction when some of its tokens are removed.

| removal | a removed token |
|---|---|
| mask | is hidden from attention; positions stay, and the position that is read keeps its own residual stream |
| delete | is not in the input; what follows moves up, and the row that is read is the last one at or before it |
| mask_token | is the tokenizer's mask token instead |
| mean | has the mean of the model's embeddings in place of its own |

That hidden tokens reach nothing is proved in every call: other tokens in their place must give the same logits. So is
that positions stay: a model that counts them by its mask gives what it gives when the token is deleted.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from typing import Any, Literal, get_args

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor, nn

from normlens.attribution.embeddings import repeated
from normlens.attribution.question import AttributionError, Question
from normlens.capture import relative_error, run_untapped, tolerance
from normlens.models import Subject, takes_by_name, text_tokenizer

Removal = Literal["mask", "delete", "mask_token", "mean"]
REMOVALS: tuple[Removal, ...] = get_args(Removal)
BATCH_TOKENS = 4096  # of the sequences that go through the model together
BATCH_LOGITS = 2**26  # numbers that a model may return at once
MOVED = 1e-5  # hiding and deleting that differ by less, relative, are the same: what is behind has moved
SIDES = ("", "decoder_")  # of the names of the inputs


def without(question: Question, removed: Bool[Tensor, "set source"], *, by: str = "mask") -> Float[Tensor, " set"]:
    """What the question explains, with each set of its source tokens removed."""
    return replace(question, row=None).logit(logits_without(question, removed, by=by))


def logits_without(
    question: Question, removed: Bool[Tensor, "set source"], *, by: str = "mask"
) -> Float[Tensor, "set choice"]:
    """The row of logits that the question reads, with each set of its source tokens removed."""
    _check(question, removed, by)
    compute = {"mask": _hidden, "delete": _deleted, "mask_token": _replaced, "mean": _averaged}[by]
    logits = compute(question, removed)
    if not bool(torch.isfinite(logits).all()):
        raise _refusal(question.watcher.subject, by, "the model returns logits that are no numbers")
    return logits


def _hidden(question: Question, removed: Bool[Tensor, "set source"]) -> Float[Tensor, "set choice"]:
    subject = question.watcher.subject
    missing = next((f"{side}attention_mask" for side in _sides(question) if not _takes_mask(subject, side)), None)
    if missing is not None:
        raise _refusal(subject, "mask", f"it takes no {missing}")
    proof = _inner(question)
    sets = torch.cat([removed, proof.expand(2, -1)]) if bool(proof.any()) else removed
    given = {}
    for side, part in zip(_sides(question), _parts(question, sets), strict=True):
        ids = question.inputs[f"{side}input_ids"].repeat(len(sets), 1)
        if bool(proof.any()):
            inner = part[-1]
            ids[-1, inner] = _other(ids[-1], inner)[inner]
        given[f"{side}input_ids"] = ids
        given[f"{side}attention_mask"] = (~part).long()
    logits = _run(question, given, len(sets))
    if len(sets) > len(removed):
        if not relative_error(logits[-1], logits[-2]) <= 10 * tolerance(logits.dtype):
            raise _refusal(subject, "mask", "tokens that are hidden from attention still change the logits")
        logits = logits[:-2]
        if len(some := _lone(question, removed)) and logits.dtype in (torch.float32, torch.float64):
            gone = _deleted(question, removed[some])
            if max(map(relative_error, logits[some], gone)) <= MOVED and _has_positions(question):
                raise _refusal(
                    subject, "mask", "it counts positions by its mask, so those behind a hidden token would move"
                )
    return logits


def _lone(question: Question, removed: Bool[Tensor, "set source"]) -> Int[Tensor, " few"]:
    """A few of the sets that are a single token between others, if there are any."""
    inner = _inner(question)
    fits = (removed.sum(dim=1) == 1) & (removed & inner).any(dim=1)
    return fits.nonzero().flatten()[:4]


def _has_positions(question: Question) -> bool:
    """Whether the logits change when the inner tokens of a side stand in reverse order."""
    given = {}
    for side, (inner,) in zip(_sides(question), _parts(question, _inner(question)[None]), strict=True):
        ids = question.inputs[f"{side}input_ids"].repeat(2, 1)
        ids[1, inner] = ids[1, inner].flip(0)
        given[f"{side}input_ids"] = ids
    return relative_error(*_run(question, given, 2)) > MOVED


def _deleted(question: Question, removed: Bool[Tensor, "set source"]) -> Float[Tensor, "set choice"]:
    """Sets that leave equally many tokens go together, so that nothing is padded."""
    sides, parts = _sides(question), _parts(question, removed)
    left = torch.stack([(~part).sum(dim=1) for part in parts], dim=1)
    logits: dict[int, Tensor] = {}
    for lengths in left.unique(dim=0):
        sets = (left == lengths).all(dim=1).nonzero().flatten()
        given: dict[str, Tensor] = {}
        for side, part in zip(sides, parts, strict=True):
            kept = ~part[sets]
            for name, value in _of_side(question, side).items():
                given[name] = value.expand(len(sets), -1)[kept.to(value.device)].reshape(len(sets), -1)
        rows = None
        if question.row is not None:
            rows = (~parts[-1][sets])[:, : question.row + 1].sum(dim=1) - 1
        for place, row in zip(sets.tolist(), _run(question, given, len(sets), rows), strict=True):
            logits[place] = row
    return torch.stack([logits[place] for place in range(len(removed))])


def _replaced(question: Question, removed: Bool[Tensor, "set source"]) -> Float[Tensor, "set choice"]:
    subject = question.watcher.subject
    mask = getattr(text_tokenizer(subject.tokenizer), "mask_token_id", None)
    if mask is None:
        raise _refusal(subject, "mask_token", "its tokenizer has no mask token")
    given = {}
    for side, part in zip(_sides(question), _parts(question, removed), strict=True):
        ids = question.inputs[f"{side}input_ids"].repeat(len(removed), 1)
        given[f"{side}input_ids"] = ids.masked_fill(part.to(ids.device), mask)
    return _run(question, given, len(removed))


def _averaged(question: Question, removed: Bool[Tensor, "set source"]) -> Float[Tensor, "set choice"]:
    given = {
        f"{side}input_ids": question.inputs[f"{side}input_ids"].repeat(len(removed), 1) for side in _sides(question)
    }
    return _run(question, given, len(removed), blank=_parts(question, removed))


def _run(
    question: Question,
    given: dict[str, Tensor],
    count: int,
    rows: Int[Tensor, " set"] | None = None,
    blank: tuple[Bool[Tensor, "set _"], ...] = (),
) -> Float[Tensor, "set choice"]:
    """The row that is read of so many sequences; `rows` where it is another one in each."""
    model = question.watcher.subject.model
    inputs = {name: repeated(value, count) for name, value in question.inputs.items() if name not in given} | given
    widest = max(value.shape[1] for value in given.values())
    if question.row is not None and rows is None:
        rows = torch.full((count,), question.row)
    vocabulary = getattr(question.watcher.subject.config, "vocab_size", 0) if rows is not None else 0
    size = max(1, min(BATCH_TOKENS // widest, BATCH_LOGITS // max(1, widest * vocabulary)))
    found = []
    for start in range(0, count, size):
        part = slice(start, min(start + size, count))
        batch = {name: value[part] if isinstance(value, Tensor) else value for name, value in inputs.items()}
        first = 0
        if rows is not None and question.written is None and takes_by_name(model, "logits_to_keep"):
            first = int(rows[part].min())
            batch["logits_to_keep"] = widest - first
        with _blanked(question, [side[part] for side in blank]):
            logits: Tensor = run_untapped(model, batch).output.logits
        found.append(logits if rows is None else logits[torch.arange(len(logits)), rows[part] - first])
    return torch.cat(found)


@contextmanager
def _blanked(question: Question, sides: list[Bool[Tensor, "set _"]]) -> Iterator[None]:
    """The embeddings of these tokens are the mean of all embeddings; a source is embedded before what is written."""
    if not sides:
        yield
        return
    subject = question.watcher.subject
    waiting = list(zip(_sides(question), sides, strict=True))

    def blank(module: nn.Module, args: tuple[Any, ...], output: Tensor) -> Tensor | None:
        ids = args[0] if args else None
        side = next((s for s in waiting if ids is not None and _is_side(question, s, ids)), None)
        if side is None:
            return None
        waiting.remove(side)
        return torch.where(side[1].to(output.device)[..., None], _mean(module), output)

    with ExitStack() as hooks:
        for table in _tables(subject.model):
            hooks.enter_context(table.register_forward_hook(blank))
        yield
    if waiting:
        raise _refusal(subject, "mean", "the table of its embeddings was not found")


def _is_side(question: Question, side: tuple[str, Bool[Tensor, "set _"]], ids: Tensor) -> bool:
    expected = question.inputs[f"{side[0]}input_ids"]
    return ids.shape == side[1].shape and torch.equal(ids, expected.expand_as(ids))


def _mean(table: nn.Module) -> Float[Tensor, " model"]:
    """The mean of what a table of embeddings gives for every token, whatever it multiplies its rows by."""
    weight: Tensor = table.weight  # pyright: ignore[reportAssignmentType]
    sums = [
        type(table).forward(table, ids).double().sum(dim=0)
        for ids in torch.arange(len(weight)).to(weight.device).split(8192)
    ]
    return (torch.stack(sums).sum(dim=0) / len(weight)).to(weight.dtype)


def _tables(model: Any) -> list[nn.Module]:
    """The tables of token embeddings, of both sides."""
    owners: list[Any] = [model]
    for name in ("get_encoder", "get_decoder"):
        if getattr(model.config, "is_encoder_decoder", False) and hasattr(model, name):
            owners.append(getattr(model, name)())
    tables = [owner.get_input_embeddings() for owner in owners]
    return list({id(table): table for table in tables if isinstance(table, nn.Embedding)}.values())


def _sides(question: Question) -> tuple[str, ...]:
    return SIDES if question.written is not None else SIDES[:1]


def _parts(question: Question, sets: Bool[Tensor, "set source"]) -> tuple[Bool[Tensor, "set _"], ...]:
    """Sets of source tokens, side by side."""
    return sets.split([question.inputs[f"{side}input_ids"].shape[1] for side in _sides(question)], dim=1)


def _inner(question: Question) -> Bool[Tensor, " source"]:
    """Tokens at which no model reads its logits: neither the first nor the last of a side, nor the row that is read."""
    inner = []
    for side in _sides(question):
        ids = question.inputs[f"{side}input_ids"][0]
        places = torch.arange(len(ids))
        part = (places > 0) & (places < len(ids) - 1)
        if side == _sides(question)[-1] and question.row is not None:
            part &= places < question.row if question.causal else places != question.row
        inner.append(part if len(ids[part.to(ids.device)].unique()) > 1 else torch.zeros_like(part))
    return torch.cat(inner)


def _other(ids: Int[Tensor, " position"], inner: Bool[Tensor, " position"]) -> Int[Tensor, " position"]:
    """Another token of the same text in every place."""
    if not bool(inner.any()):
        return ids
    first, *_, last = ids[inner.to(ids.device)].unique()
    return torch.where(ids == first, last, first)


def _of_side(question: Question, side: str) -> dict[str, Tensor]:
    """The inputs that have a value for every token of a side."""
    count = question.inputs[f"{side}input_ids"].shape[1]
    return {
        name: value
        for name, value in question.inputs.items()
        if name.startswith("decoder_") == bool(side) and isinstance(value, Tensor) and value.shape == (1, count)
    }


def _takes_mask(subject: Subject, side: str) -> bool:
    return takes_by_name(subject.model, f"{side}attention_mask")


def _check(question: Question, removed: Tensor, by: str) -> None:
    subject = question.watcher.subject
    if by not in REMOVALS:
        raise AttributionError(f"Tokens cannot be removed by '{by}'.", do=f"choose among {', '.join(REMOVALS)}.")
    if removed.shape[1] != question.sources:
        raise AttributionError(
            f"The sets are of {removed.shape[1]} tokens, the prediction has {question.sources}.",
            do="give one truth value for each source token.",
        )
    tables = [name for name, value in question.inputs.items() if isinstance(value, Tensor) and value.ndim]
    for name in tables:
        if not any(name in _of_side(question, side) for side in _sides(question)):
            raise _refusal(subject, by, f"its input '{name}' is not one value per token")
    fixed = None if question.causal else question.row
    if by == "delete" and fixed is not None and bool(removed[:, fixed].any()):
        raise _refusal(subject, by, f"position {fixed}, whose prediction is asked for, would be gone")
    if by in ("mask", "delete"):
        for part, end in zip(_parts(question, removed), _ends(question), strict=True):
            if not bool((~part[:, :end]).any(dim=1).all()):
                raise _refusal(subject, by, "no token would be left to read")


def _ends(question: Question) -> Iterator[int | None]:
    """Up to where tokens of each side reach the row that is read."""
    for side in _sides(question):
        reaches_all = question.row is None or not question.causal or side != _sides(question)[-1]
        yield None if reaches_all else question.row + 1  # pyright: ignore[reportOptionalOperand]


def _refusal(subject: Subject, by: str, reason: str) -> AttributionError:
    others = ", ".join(other for other in REMOVALS if other != by)
    return AttributionError(
        f"Tokens of '{subject.name}' cannot be removed by '{by}': {reason}.", do=f"choose another removal: {others}."
    )
