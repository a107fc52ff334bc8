"""Scores from the slope of the logit: gradient x input, and integrated gradients.

    gradient x input        x_j · ∂F/∂x_j
    integrated gradients    x_j · ∫ ∂F(t x)/∂x_j dt,  t from 0 to 1        their sum is F(x) - F(0)

x_j is the embedding of token j, without its position; F is the logit.
"""

from __future__ import annotations

import numpy as np
import torch
from jaxtyping import Float
from torch import Tensor

from normlens.attribution.embeddings import embedded, slopes
from normlens.attribution.question import Method, Question, Scores

STEPS = (32, 64, 128, 256)  # places on the line from 0 to x; more where the sum misses by more than ENOUGH
ENOUGH = 0.01


def gradient_x_input(question: Question) -> Scores:
    """The slope of the logit along each embedding, times the embedding."""
    vectors = embedded(question)
    _, gradients = slopes(question, vectors[None])
    return Scores((gradients[0] * vectors).sum(dim=-1))


def integrated_gradients(question: Question) -> Scores:
    """The mean slope between embeddings of 0 and the embeddings, times the embeddings."""
    vectors = embedded(question)
    ends, _ = slopes(question, torch.stack([torch.zeros_like(vectors), vectors]))
    nothing, everything = ends.tolist()
    values = torch.zeros(len(vectors))
    for steps in STEPS:
        values = integrated(question, vectors, steps)
        gap = abs(float(values.sum()) - (everything - nothing))
        if gap <= ENOUGH * max(abs(everything), float(values.abs().sum())):
            break
    return Scores(values, unowned=nothing, adds_up_to=everything)


def integrated(question: Question, vectors: Float[Tensor, "source dim"], steps: int) -> Float[Tensor, " source"]:
    """The integral from 0 to the vectors by the rule of Gauss and Legendre."""
    places, weights = (torch.from_numpy(one).to(vectors) / 2 for one in np.polynomial.legendre.leggauss(steps))
    _, gradients = slopes(question, (places + 0.5)[:, None, None] * vectors)
    return (torch.einsum("tsd,t->sd", gradients, weights) * vectors).sum(dim=-1)


ROWS = (
    Method(
        "gradient_x_input",
        "Gradient x input",
        "The slope of the logit along the embedding of the token, times the embedding.",
        "Denil, Demiraj and de Freitas (2014)",
        gradient_x_input,
    ),
    Method(
        "integrated_gradients",
        "Integrated gradients",
        "The mean slope of the logit between an embedding of 0 and that of the token, times the embedding; the "
        "logit of embeddings of 0 belongs to no token.",
        "Sundararajan, Taly and Yan (2017)",
        integrated_gradients,
        adds_up=True,
    ),
)
