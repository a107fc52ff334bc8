"""How much the logit falls when a token is removed.

The token that a translation starts with cannot be removed while the decoder was fed nothing else: its score is 0 then.
"""

from __future__ import annotations

from functools import partial

import torch

from normlens.attribution.question import Method, Question, Scores
from normlens.attribution.removal import Removal, without


def leave_one_out(question: Question, *, by: Removal = "mask") -> Scores:
    """The logit of the whole text less the logit without the token."""
    removed = torch.cat([torch.zeros(1, question.sources), torch.eye(question.sources)]).bool()
    if question.written == 1:
        removed[-1] = False
    logits = without(question, removed, by=by)
    return Scores(logits[0] - logits[1:])


ROWS = (
    Method(
        "leave_one_out",
        "Leave one out",
        "How much the logit falls when the token is hidden from attention.",
        "Li, Monroe and Jurafsky (2016)",
        leave_one_out,
    ),
    Method(
        "leave_one_out_deleted",
        "Leave one out, deleted",
        "How much the logit falls when the token is not in the text.",
        "Li, Monroe and Jurafsky (2016)",
        partial(leave_one_out, by="delete"),
    ),
)
