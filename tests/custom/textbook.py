"""Textbook attention with a hook at every place where a twist may sit, and what it must give, by plain loops.

A case is a subclass with a docstring: it overrides what the model does (`score`, `weigh`, `mix`, `close` ...) and, if
that changes the numbers, what the loops do (`logit`, `chosen`, `sends`, `constant`, `seen`). Nothing in the loops knows
normlens, and `test_the_loops_give_what_the_module_returns` holds each case's loops against its own module.
"""

import copy
from dataclasses import dataclass
from typing import ClassVar, Literal

import torch
from torch import Tensor, nn

Verdict = Literal["exact", "refused", "no attention", "either"]


@dataclass(frozen=True, eq=False)
class Expected:
    """One attention block: α, f(x) and what belongs to no token. Row i and column j are input positions i and j."""

    weights: Tensor  # batch head tgt src
    sent: Tensor  # batch head src model; with a gate, batch head tgt src model
    bias: Tensor | float = 0.0
    transformed: Tensor | None = None  # f(x), where something depends on the query beside it

    def parts(self) -> Tensor:
        """batch head tgt src model"""
        return self.weights[..., None] * (self.sent if self.sent.ndim == 5 else self.sent[:, :, None])

    def output(self) -> Tensor:
        return self.parts().sum(dim=(1, 3)) + self.bias

    def of_keys(self) -> Tensor | None:
        """f(x), where it exists: batch head src model"""
        return self.sent if self.sent.ndim == 4 else self.transformed


class Textbook(nn.Module):
    """x + attention(x), heads side by side in one matrix."""

    cases: ClassVar[list[type["Textbook"]]] = []
    expect: ClassVar[Verdict] = "exact"
    because: ClassVar[str] = "."  # a pattern in the reason of a refusal
    probe_size: ClassVar[tuple[int, int]] = (2, 5)
    other_size: ClassVar[tuple[int, int]] = (1, 4)
    any_length: ClassVar[bool] = True  # also takes a single token
    rebuilds: ClassVar[bool] = True  # x and all blocks of the loops are the output; False where more follows

    def __init_subclass__(cls, **options):
        super().__init_subclass__(**options)
        if cls.__doc__:  # one without a sentence of its own is only a stage for others
            Textbook.cases.append(cls)

    def __init__(self, heads: int = 2, dim: int = 3, seed: int = 0):
        super().__init__()
        self.heads, self.dim, self.width = heads, dim, heads * dim
        with torch.random.fork_rng():
            torch.manual_seed(seed)
            self.q, self.k, self.v, self.out = (nn.Linear(self.width, self.width) for _ in range(4))
            self.build()
        with torch.no_grad():
            for matrix in (self.q, self.k):
                matrix.weight.mul_(3)  # so that no two weights are nearly alike
        self.eval()

    # what the model does

    def build(self) -> None:
        """More parameters."""

    def forward(self, x: Tensor) -> Tensor:
        return x + self.attend(x)

    def attend(self, x: Tensor) -> Tensor:
        keys = self.keys(x)
        q, k, v = self.split(self.q(x)), self.split(self.k(keys)), self.split(self.values(keys))
        q, k, v = self.order(q, k, v)
        return self.close(self.mix(self.weigh(self.score(q, k)), v), x)

    def keys(self, x: Tensor) -> Tensor:
        return x

    def values(self, keys: Tensor) -> Tensor:
        return self.v(keys)

    def split(self, x: Tensor) -> Tensor:
        return x.unflatten(-1, (-1, self.dim)).transpose(1, 2)

    def order(self, q: Tensor, k: Tensor, v: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        return q, k, v

    def score(self, q: Tensor, k: Tensor) -> Tensor:
        return q @ k.mT / self.dim**0.5

    def weigh(self, scores: Tensor) -> Tensor:
        return torch.softmax(scores, -1)

    def mix(self, weights: Tensor, v: Tensor) -> Tensor:
        return weights @ v

    def close(self, context: Tensor, x: Tensor) -> Tensor:
        return self.out(merged(context))

    # what it must give, by plain loops

    def loops(self, x: Tensor) -> list[Expected]:
        """What each attention block must give for x, in the order in which they run."""
        keys = self.keys(x)
        (batch, tgt), src = x.shape[:2], keys.shape[1]
        weights = torch.zeros(batch, self.heads, tgt, src, dtype=x.dtype)
        sent = torch.zeros(batch, self.heads, src, self.width, dtype=x.dtype)
        for s in range(batch):
            for h in range(self.heads):
                q, k, v = self.of_head(self.q(x[s]), h), self.key(keys[s], h), self.value(keys[s], h)
                for i in range(tgt):
                    logits = [self.logit(q[i], k[j], h, i, j) for j in range(src)]
                    weights[s, h, i] = self.chosen(torch.stack(logits), h, i)
                for j in range(src):
                    sent[s, h, j] = self.sends(v[j], h)
        return [self.seen(Expected(weights, sent, self.constant()), x)]

    def acceptable(self, x: Tensor) -> list[list[Expected]]:
        """More than one where the same numbers may be laid out in more than one way."""
        return [self.loops(x)]

    def of_head(self, rows: Tensor, h: int) -> Tensor:
        return rows[:, h * self.dim : (h + 1) * self.dim]

    def key(self, rows: Tensor, h: int) -> Tensor:
        return self.of_head(self.k(rows), h)

    def value(self, rows: Tensor, h: int) -> Tensor:
        return self.of_head(self.v(rows), h)

    def logit(self, q: Tensor, k: Tensor, h: int, i: int, j: int) -> Tensor:
        return (q * k).sum() / self.dim**0.5

    def chosen(self, logits: Tensor, h: int, i: int) -> Tensor:
        return softmax(logits)

    def sends(self, v: Tensor, h: int) -> Tensor:
        return self.matrix()[:, h * self.dim : (h + 1) * self.dim] @ v

    def matrix(self) -> Tensor:
        """All that is linear between the heads and the residual, as one matrix."""
        return self.out.weight

    def constant(self) -> Tensor | float:
        return self.out.bias

    def seen(self, expected: Expected, x: Tensor) -> Expected:
        """What remains to be done once all heads are there."""
        return expected

    @classmethod
    def inputs(cls, size: tuple[int, int], width: int = 6, seed: int = 1) -> dict[str, Tensor]:
        return {"x": torch.randn(*size, width, generator=torch.Generator().manual_seed(seed))}


def softmax(logits: Tensor) -> Tensor:
    """By its definition, stable."""
    raised = torch.stack([torch.exp(logit - logits.max()) for logit in logits])
    return raised / raised.sum()


def merged(context: Tensor) -> Tensor:
    """(batch, head, tgt, dim) to (batch, tgt, width)."""
    return context.transpose(1, 2).flatten(2)


@torch.no_grad()
def acceptable(model: Textbook, x: Tensor) -> list[list[Expected]]:
    """What the loops of a case accept, run on a copy in double precision."""
    return copy.deepcopy(model).double().acceptable(x.double())
