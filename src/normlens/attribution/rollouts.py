"""Rows of maps through the network: what the position is made of from which the prediction is read.

They know the model up to its last layer and nothing of its head: the same scores for every target, none below 0.
"""

from __future__ import annotations

from functools import partial

import torch

from normlens.attribution.embeddings import reading
from normlens.attribution.question import Method, Question, Scores

ABNAR, GLOBENC, ALTI = "Abnar and Zuidema (2020)", "Modarressi et al. (2022)", "Ferrando et al. (2022)"
MAPS = {  # name of the method: the quantity of the layers, how it is called, whose it is
    "rollout": ("weights", "attention weights", ABNAR),
    "rollout_norms": ("summed_norms", "contributions ‖Σ αf(x)‖", ABNAR),
    "rollout_residual": ("residual_norms", "contributions with the residual", GLOBENC),
    "rollout_normed": ("normed_norms", "contributions behind residual and norm", GLOBENC),
    "rollout_output": (
        "output_norms",
        "contributions at the end of the layer",
        "Kobayashi et al. (2024)",
    ),
    "globenc": ("globenc", "contributions behind both norms", GLOBENC),
    "alti": ("alti", "ALTI", ALTI),
    "value_zeroing": ("value_zeroing", "value zeroing", "Mohebbi et al. (2023)"),
}
TITLES = {"globenc": "GlobEnc", "alti": "ALTI", "value_zeroing": "Value zeroing"}
FIELDS = {"globenc": "encoder_norms"}


def of_rollout(question: Question, *, by: str) -> Scores:
    """What the position is made of after all layers, by the product of their maps."""
    trace = question.watcher.trace(dict(question.inputs), fields=(FIELDS.get(by, by),))
    values = trace.rollout(by).values[0]
    return Scores(torch.einsum("i,ij->j", reading(question).to(values), values))


ROWS = tuple(
    Method(
        name,
        TITLES.get(name, f"Rollout of {what}"),
        f"Share of the token in the position that makes the prediction: the product over layers of {what}.",
        paper,
        partial(of_rollout, by=by),
        signed=False,
    )
    for name, (by, what, paper) in MAPS.items()
)
