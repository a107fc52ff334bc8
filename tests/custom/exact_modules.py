"""Modules that must be exact: every way of weighing tokens and of writing the same algebra."""

import torch
from textbook import Expected, Textbook, softmax
from torch import nn
from torch.nn import functional


class Plain(Textbook):
    """Nothing special."""


class Fused(Textbook):
    """Torch's own attention."""

    def attend(self, x):
        q, k, v = (self.split(matrix(x)) for matrix in (self.q, self.k, self.v))
        return self.close(functional.scaled_dot_product_attention(q, k, v), x)


class CausalMask(Textbook):
    """Nobody sees the future."""

    def score(self, q, k):
        scores = super().score(q, k)
        return scores.masked_fill(torch.ones_like(scores, dtype=torch.bool).triu(1), float("-inf"))

    def logit(self, q, k, h, i, j):
        return super().logit(q, k, h, i, j) if j <= i else torch.tensor(float("-inf")).double()


class SlidingWindow(Textbook):
    """Everybody sees the nearest neighbours only."""

    def score(self, q, k):
        at = torch.arange(q.shape[2])
        return super().score(q, k) + torch.where((at[:, None] - at).abs() <= 1, 0.0, float("-inf"))

    def logit(self, q, k, h, i, j):
        return super().logit(q, k, h, i, j) if abs(i - j) <= 1 else torch.tensor(float("-inf")).double()


class BlindQuery(Textbook):
    """The first query sees nothing: its row is 0."""

    def score(self, q, k):
        blind = torch.arange(q.shape[2])[:, None] == 0
        return super().score(q, k).masked_fill(blind, float("-inf"))

    def weigh(self, scores):
        return super().weigh(scores).nan_to_num(0.0)

    def chosen(self, logits, h, i):
        return torch.zeros_like(logits) if i == 0 else super().chosen(logits, h, i)


class Temperature(Textbook):
    """Each head has its own."""

    def build(self):
        self.heat = nn.Parameter(torch.rand(self.heads, 1, 1) + 0.5)

    def score(self, q, k):
        return super().score(q, k) / self.heat

    def logit(self, q, k, h, i, j):
        return super().logit(q, k, h, i, j) / self.heat[h, 0, 0]


class RelativeBias(Textbook):
    """A learned number for each distance and head."""

    def build(self):
        self.table = nn.Embedding(21, self.heads)

    def score(self, q, k):
        at = torch.arange(q.shape[2])
        return super().score(q, k) + self.table(at[:, None] - at + 10).permute(2, 0, 1)

    def logit(self, q, k, h, i, j):
        return super().logit(q, k, h, i, j) + self.table.weight[i - j + 10, h]


class Alibi(Textbook):
    """A slope for each head."""

    def score(self, q, k):
        slopes = 2.0 ** -torch.arange(1, self.heads + 1)[:, None, None]
        at = torch.arange(q.shape[2])
        return super().score(q, k) - slopes * (at[:, None] - at).abs()

    def logit(self, q, k, h, i, j):
        return super().logit(q, k, h, i, j) - abs(i - j) / 2 ** (h + 1)


class SinkLogit(Textbook):
    """One logit belongs to nobody: rows sum to less than 1."""

    def build(self):
        self.sink = nn.Parameter(torch.randn(self.heads, 1, 1))

    def weigh(self, scores):
        sink = self.sink.expand(len(scores), -1, scores.shape[2], 1)
        return torch.softmax(torch.cat([scores, sink], -1), -1)[..., :-1]

    def chosen(self, logits, h, i):
        return softmax(torch.cat([logits, self.sink[h, 0]]))[:-1]


class MultiQuery(Textbook):
    """All heads share one key and one value."""

    def split(self, x):
        return super().split(x) if x.shape[-1] == self.width else x[:, None]

    def build(self):
        self.k, self.v = (nn.Linear(self.width, self.dim) for _ in range(2))

    def key(self, rows, h):
        return self.k(rows)

    def value(self, rows, h):
        return self.v(rows)


class GroupedQuery(Textbook):
    """Four heads, two values."""

    def __init__(self, heads=4, dim=3, seed=0):
        super().__init__(heads, dim, seed)

    @classmethod
    def inputs(cls, size, width=12, seed=1):
        return super().inputs(size, width, seed)

    def build(self):
        self.k, self.v = (nn.Linear(self.width, self.width // 2) for _ in range(2))

    def split(self, x):
        heads = super().split(x)
        return heads if heads.shape[1] == self.heads else heads.repeat_interleave(2, 1)

    def key(self, rows, h):
        return self.of_head(self.k(rows), h // 2)

    def value(self, rows, h):
        return self.of_head(self.v(rows), h // 2)


class OneMatrixForQueriesKeysAndValues(Textbook):
    """W_Q = W_K = W_V."""

    def build(self):
        self.q = self.k = self.v


class ValueMatrixIsOutputMatrix(Textbook):
    """W_V = W_O: the matrix that takes the result has run before."""

    def build(self):
        self.out = self.v


class NoValueMatrix(Textbook):
    """Tokens send themselves, cut into heads."""

    def values(self, keys):
        return keys

    def value(self, rows, h):
        return self.of_head(rows, h)


class GateOnValues(Textbook):
    """A gate that a token puts on itself, before anybody looks, is part of f."""

    def values(self, keys):
        return self.v(keys) * torch.sigmoid(self.k(keys))

    def value(self, rows, h):
        return self.of_head(self.v(rows) * torch.sigmoid(self.k(rows)), h)


class NegativeWeights(Textbook):
    """A high-pass on α: norms are |α| times a length."""

    def weigh(self, scores):
        return 2 * super().weigh(scores) - 1 / scores.shape[-1]

    def chosen(self, logits, h, i):
        return 2 * softmax(logits) - 1 / len(logits)


class SmallWeightsDropped(Textbook):
    """Weights below a tenth are 0."""

    def weigh(self, scores):
        weights = super().weigh(scores)
        return torch.where(weights > 0.1, weights, 0.0)

    def chosen(self, logits, h, i):
        return torch.stack([w if w > 0.1 else 0 * w for w in softmax(logits)])


class SoftmaxInDoublePrecision(Textbook):
    """α is computed in double precision and comes back."""

    def weigh(self, scores):
        return torch.softmax(scores.double(), -1).to(scores.dtype)


class KeysFirst(Textbook):
    """Scores are (key, query), the softmax runs down the columns."""

    def score(self, q, k):
        return k @ q.mT / self.dim**0.5

    def weigh(self, scores):
        return torch.softmax(scores, -2)

    def mix(self, weights, v):
        return (v.mT @ weights).mT


class PositionsFirst(Textbook):
    """Inside, positions stand before sequences."""

    def attend(self, x):
        q, k, v = (m(x.transpose(0, 1)).unflatten(-1, (self.heads, self.dim)) for m in (self.q, self.k, self.v))
        weights = self.weigh(torch.einsum("ibhd,jbhd->bhij", q, k) / self.dim**0.5)
        return self.out(torch.einsum("bhij,jbhd->ibhd", weights, v).flatten(2)).transpose(0, 1)


class DenseSynthesizer(Textbook):
    """Scores straight from an MLP: no queries, no keys."""

    other_size, any_length = (1, 5), False

    def build(self):
        self.inner, self.outer = nn.Linear(self.width, 8), nn.Linear(8, self.heads * 5)

    def attend(self, x):
        scores = self.outer(torch.relu(self.inner(x))).unflatten(-1, (self.heads, 5)).transpose(1, 2)
        return self.close(self.mix(self.weigh(2 * scores), self.split(self.v(x))), x)

    def seen(self, expected, x):
        weights = torch.zeros_like(expected.weights)
        for s, row in enumerate(x):
            for i, token in enumerate(row):
                scores = 2 * self.outer(self.inner(token).clamp_min(0))
                for h in range(self.heads):
                    weights[s, h, i] = softmax(scores[5 * h : 5 * h + 5])
        return Expected(weights, expected.sent, expected.bias)


class RandomSynthesizer(Textbook):
    """Scores are parameters: every text is read alike."""

    other_size, any_length = (1, 5), False

    def build(self):
        self.table = nn.Parameter(torch.randn(self.heads, 5, 5))

    def score(self, q, k):
        return self.table.expand(len(q), -1, -1, -1)

    def logit(self, q, k, h, i, j):
        return self.table[h, i, j]


class TwoWindows(Textbook):
    """Two windows of the sequence, each for itself, put together again: 0 outside the own window."""

    any_length = False

    def attend(self, x):
        q, k, v = (self.split(matrix(x)) for matrix in (self.q, self.k, self.v))
        windows = [self.weigh(self.score(q[:, :, a], k[:, :, a])) @ v[:, :, a] for a in (slice(2), slice(2, None))]
        return self.close(torch.cat(windows, 2), x)

    def logit(self, q, k, h, i, j):
        return super().logit(q, k, h, i, j) if (i < 2) == (j < 2) else torch.tensor(float("-inf")).double()
