"""What drove a prediction: ask, let a method answer, and say what it adds up to."""

from __future__ import annotations

from typing import Any

from normlens.attribution.asking import Asked, ask
from normlens.attribution.methods import method
from normlens.attribution.question import AttributionError, Method, Watcher
from normlens.attribution.result import Attribution, Explained


def attribute(
    watcher: Watcher,
    text: Any = None,
    target: Any = None,
    *,
    by: str | None = None,
    source: Any = None,
    answer: Any = None,
    position: int | None = None,
) -> Attribution:
    """A score for each token of a text: what it has to do with one prediction."""
    chosen = method(by)
    asked = ask(watcher, text, target, source=source, answer=answer, position=position)
    explained = tuple(tuple(_explained(one, chosen) for one in text) for text in asked)
    signature = watcher.signature.adding(method=chosen.name)
    return Attribution(explained, chosen.name, chosen.title, chosen.says, chosen.adds_up, chosen.signed, signature)


def _explained(asked: Asked, by: Method) -> Explained:
    question = asked.question
    scores = by.compute(question)
    values = scores.values.detach().cpu()
    if values.shape != (question.sources,) or not bool(values.isfinite().all()):
        raise AttributionError(
            f"{by.title} gave no number for some tokens of this text.",
            got=f"{int(values.isfinite().sum())} numbers for {question.sources} tokens.",
            do="choose another method.",
        )
    encoded, choices = question.encoded, asked.choices
    return Explained(
        sides=(*encoded.sides, *encoded.targets),
        given=asked.given,
        scores=values,
        prediction=choices.name(choices.predicted),
        target=asked.target,
        logit=asked.logit,
        logits=choices.logits.detach().cpu(),
        unowned=scores.unowned,
        adds_up_to=scores.adds_up_to,
    )
