"""From a text to questions: one about a class or the next token, or one for each token of an answer."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import torch
from torch import Tensor

from normlens.attribution.choices import Choices
from normlens.attribution.question import AttributionError, Question, Watcher
from normlens.capture import generate, run_untapped
from normlens.models import (
    Encoded,
    Subject,
    encode,
    encode_both,
    in_training,
    separately,
    takes,
    text_side,
    text_tokenizer,
)

RATHER = " rather than "  # between the two parts of a contrast
Answer = str | Sequence[int] | int | None  # a text, token ids, or how many tokens the model is to write


@dataclass(frozen=True, slots=True, eq=False)
class Asked:
    """A question, the logits it is about, and how many of its tokens were given: the others are the answer so far."""

    question: Question
    choices: Choices
    given: int

    @property
    def target(self) -> str:
        """What is explained, by name."""
        names = [self.choices.name(number) for number, _ in self.question.wanted]
        return RATHER.join(names)

    @property
    def logit(self) -> float:
        """The logit that is explained, or the difference of two."""
        return sum(float(self.choices.logits[number]) * factor for number, factor in self.question.wanted)


def ask(
    watcher: Watcher, data: Any, target: Any, *, source: Any = None, answer: Any = None, position: int | None = None
) -> list[list[Asked]]:
    """For each text, what is to be explained: one prediction, or those of each token of an answer."""
    subject = watcher.subject
    if (data is None) == (source is None):
        raise AttributionError("Give one thing: a text (or ids, or inputs), or source= of a model that translates.")
    if in_training(subject.model):
        raise AttributionError(
            f"'{subject.name}' is in training mode now, so dropout would make every number random.",
            do="model.eval(), then again.",
        )
    texts = _one_by_one(subject, data if source is None else source)
    several = isinstance(answer, list) and not all(isinstance(part, int) for part in answer)
    if several and len(answer) != len(texts):
        raise AttributionError(f"There are {len(texts)} texts but {len(answer)} answers.", do="give one for each.")
    answers = answer if several else [answer] * len(texts)
    return [_asked(watcher, text, target, one, position) for text, one in zip(texts, answers, strict=True)]


def _one_by_one(subject: Subject, data: Any) -> list[Encoded]:
    encoded = encode(subject, data)
    if not encoded.sides or not encoded.sides[0].tokens:
        raise AttributionError(
            "There are no tokens to attribute to.",
            got=f"the inputs {', '.join(encoded.inputs)}.",
            do="give a text, token ids, or a dict with input_ids.",
        )
    if any(kept is not None and _has_holes(kept) for kept in (encoded.kept, encoded.targets_kept)):
        raise AttributionError(
            "A text has positions in its midst that its attention_mask hides.",
            cause="a mask that is made by hand; padding stands at one end.",
            do="leave these tokens out of input_ids.",
        )
    if len(encoded.sides) == 1 and encoded.kept is None and encoded.targets_kept is None:
        return [encoded]
    return list(separately(subject, encoded))


def _has_holes(kept: Tensor) -> bool:
    """Whether some row is kept, left out and kept again."""
    kept = kept.long()
    return bool(
        ((kept.cummax(dim=1).values == 1) & (kept.flip(1).cummax(dim=1).values.flip(1) == 1) & (kept == 0)).any()
    )


def _asked(watcher: Watcher, text: Encoded, target: Any, answer: Answer, position: int | None) -> list[Asked]:
    subject = watcher.subject
    is_fed = "decoder_input_ids" in text.inputs
    if subject.is_seq2seq and not is_fed and not _writes(subject):
        raise AttributionError(
            f"'{subject.name}' ({type(subject.model).__name__}) reads its text twice, in its encoder and, moved by a "
            "token, in its decoder: no score can say which.",
            do="give a classifier with one side.",
        )
    if answer is None and (is_fed or not subject.is_seq2seq):
        return [_question(watcher, text, target, position)]
    _check_answer(subject, answer)
    if position is not None:
        raise AttributionError("position= is for a model that predicts at every position; an answer has its own.")
    writing = _writing(subject, text, answer, free=target is None)
    if target is not None or writing.first == len(writing.ids):
        return [_question(watcher, writing.until(len(writing.ids)), target, None, given=writing.given)]
    tokenizer = text_tokenizer(subject.tokenizer)
    special = {*getattr(tokenizer, "all_special_ids", ())} - {getattr(tokenizer, "unk_token_id", None)}
    ends = range(writing.first, len(writing.ids))
    asked = [end for end in ends if writing.ids[end] not in special] or ends[:1]  # why nothing is written
    return [_question(watcher, writing.until(end), writing.ids[end], None, given=writing.given) for end in asked]


@dataclass(frozen=True, slots=True, eq=False)
class Writing:
    """A text, and the tokens that a model is fed while it writes."""

    subject: Subject
    text: Encoded
    ids: list[int]  # prompt and answer; of a translation the start token and the answer
    first: int  # the first of them that is of the answer

    @property
    def given(self) -> int:
        """How many source tokens are not of the answer."""
        return self.first + (len(self.text.sides[0].tokens) if self.subject.is_seq2seq else 0)

    def until(self, end: int) -> Encoded:
        """The inputs from which token `end` is predicted."""
        if not self.subject.is_seq2seq:
            return encode(self.subject, [self.ids[:end]])
        fed = torch.tensor([self.ids[:end]], device=self.subject.device)
        inputs = {name: value for name, value in self.text.inputs.items() if not name.startswith("decoder_")}
        if takes(self.subject.model, "decoder_attention_mask"):
            inputs["decoder_attention_mask"] = torch.ones_like(fed)
        target = text_side("target", self.subject.tokenizer, self.ids[:end])
        return replace(self.text, inputs=inputs | {"decoder_input_ids": fed}, targets=(target,))


def _writing(subject: Subject, text: Encoded, answer: Answer, *, free: bool) -> Writing:
    """The tokens of an answer that was given, or that the model writes; unless it is `free` to, it writes none."""
    prompt = text.inputs["input_ids"][0].tolist()
    if subject.is_seq2seq:
        if answer is None and not free:
            start = encode_both(subject, [prompt], [prompt]).inputs["decoder_input_ids"][0, :1].tolist()
            return Writing(subject, text, start, 1)
        if answer is None or isinstance(answer, int):
            room = {} if answer is None else {"max_new_tokens": answer}
            return Writing(subject, text, generate(subject, [prompt], **room)[0], 1)
        ids = encode_both(subject, [prompt], answer if isinstance(answer, str) else [list(answer)]).inputs
        return Writing(subject, text, ids["decoder_input_ids"][0].tolist(), 1)
    if extra := set(text.inputs) - {"input_ids", "attention_mask", "token_type_ids"}:
        raise AttributionError(
            f"An answer cannot be written after these inputs: {', '.join(sorted(extra))}.",
            do="give a text or token ids as the prompt.",
        )
    if isinstance(answer, int):
        return Writing(subject, text, generate(subject, [prompt], max_new_tokens=answer)[0], len(prompt))
    return Writing(subject, text, prompt + _continuation(subject, prompt, answer), len(prompt))


def _continuation(subject: Subject, prompt: list[int], answer: str | Sequence[int] | None) -> list[int]:
    """The tokens of an answer, as they follow the prompt."""
    if not isinstance(answer, str):
        return list(answer or ())
    tokenizer: Any = text_tokenizer(subject.tokenizer)
    if tokenizer is None:
        raise AttributionError("This model was loaded without a tokenizer, so it cannot read text.", do="give ids.")
    return tokenizer(answer, add_special_tokens=False)["input_ids"]


def _writes(subject: Subject) -> bool:
    model: Any = subject.model
    return bool(getattr(model, "can_generate", bool)())


def _check_answer(subject: Subject, answer: Answer) -> None:
    if not _writes(subject):
        raise AttributionError(
            f"'{subject.name}' ({type(subject.model).__name__}) writes no answer.",
            do="leave the answer out, or give a language model or a translation model.",
        )
    is_count = isinstance(answer, int) and not isinstance(answer, bool) and answer > 0
    is_ids = isinstance(answer, Sequence) and all(isinstance(part, int) for part in answer)
    if answer is not None and not is_count and not is_ids and not isinstance(answer, str):
        raise AttributionError(
            "An answer is a text, a list of token ids, or how many tokens to write: at least 1.", got=repr(answer)[:80]
        )


def _question(
    watcher: Watcher, encoded: Encoded, target: Any, position: int | None, *, given: int | None = None
) -> Asked:
    """A question about one row of logits."""
    subject = watcher.subject
    logits = getattr(run_untapped(subject.model, encoded.inputs).output, "logits", None)
    if not isinstance(logits, Tensor) or logits.ndim not in (2, 3):
        raise AttributionError(
            f"'{subject.name}' ({type(subject.model).__name__}) predicts nothing: it has no logits.",
            cause="the model was saved or loaded without its head.",
            do="give a classifier, a language model or a translation model; in Python any model of transformers with "
            "a head: normlens.load(model, tokenizer).",
        )
    row = None if logits.ndim == 2 else _row(subject, encoded, logits.shape[1], position)
    if row is None and position is not None:
        raise AttributionError(f"'{subject.name}' makes one prediction for the whole text.", do="leave position= out.")
    choices = Choices(subject, (logits[0] if row is None else logits[0, row]).float(), classes=_classes(subject, row))
    question = Question(watcher, encoded, row, choices.wanted(target))
    if given is None:
        given = question.sources
    return Asked(question, choices, given)


def _classes(subject: Subject, row: int | None) -> bool:
    """Whether logits are of classes; otherwise of tokens."""
    return row is None or type(subject.model).__name__.endswith("ForTokenClassification")


def _row(subject: Subject, encoded: Encoded, rows: int, position: int | None) -> int:
    """The position whose prediction is asked for: the last of a model that writes, the masked one of others."""
    if position is not None:
        if not -rows <= position < rows:
            raise AttributionError(f"no position {position}: there are positions 0 to {rows - 1}.")
        return position % rows
    if _writes(subject):
        return rows - 1
    mask = getattr(text_tokenizer(subject.tokenizer), "mask_token_id", None)
    masked = [place for place, number in enumerate(encoded.sides[0].ids) if number == mask]
    if mask is None or len(masked) != 1:
        raise AttributionError(
            f"'{subject.name}' predicts at every position, so one must be chosen.",
            got=f"{len(masked)} masked tokens." if mask is not None else "no masked token.",
            do="give --position N (position= in Python), or a text with exactly one mask token.",
        )
    return masked[0]
