"""How much the state that makes the prediction moves with the embedding of each token.

    J_j = ‖∂o / ∂x_j‖ over Σ_j        o: the last state of the position that is read, x_j: the embedding of token j

The norm is that of the whole matrix of derivatives (Frobenius): one backward pass for each coordinate of o.
"""

from __future__ import annotations

import torch

from normlens.attribution.embeddings import at_once, embedded, last_states, reading
from normlens.attribution.question import Method, Question, Scores


def jacobian_norms(question: Question) -> Scores:
    """The norm of the Jacobian for each token, as shares."""
    vectors, read = embedded(question), reading(question)
    squares, width = torch.zeros(len(vectors), dtype=torch.float64), 1
    start = 0
    while start < width:
        with torch.inference_mode(False), torch.enable_grad():
            given = vectors.expand(min(at_once(vectors), max(width - start, 1)), -1, -1).clone().requires_grad_()
            states, _ = last_states(question, given)
            width = states.shape[-1]
            rows = torch.einsum("cpm,p->cm", states, read.to(states))[: width - start]
            own = rows.diagonal(offset=start)  # of each copy another coordinate
            (slope,) = torch.autograd.grad(own.sum(), given)
        squares += slope[: len(own)].double().square().sum(dim=(0, 2)).cpu()
        start += len(own)
    norms = squares.sqrt()
    return Scores((norms / norms.sum().clamp_min(1e-300)).to(vectors.dtype))


ROWS = (
    Method(
        "jacobian",
        "Jacobian norms",
        "Share of the token in how much the state that makes the prediction moves with the embeddings.",
        "Pascual, Brunner and Wattenhofer (2021)",
        jacobian_norms,
        signed=False,
    ),
)
