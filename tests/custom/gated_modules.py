"""Modules with a gate, a scale or a norm between the heads and W_O: linear, given the query and its own statistics."""

import torch
from textbook import Expected, Textbook, merged, softmax
from torch import nn
from torch.nn import functional


class Gated(Textbook):
    def way(self, row, x):
        """What happens to a row of heads on its way to W_O: row @ way, and then `shift` is added."""
        raise NotImplementedError

    def shift(self):
        return torch.zeros(self.width).double()

    def constant(self):
        return self.out.weight @ self.shift() + self.out.bias

    def seen(self, expected, x):
        batch, _, tgt, src = expected.weights.shape
        sent = torch.zeros(batch, self.heads, tgt, src, self.width, dtype=x.dtype)
        for s in range(batch):
            values = [self.value(x[s], h) for h in range(self.heads)]
            for i in range(tgt):
                way = self.way(torch.cat([expected.weights[s, h, i] @ values[h] for h in range(self.heads)]), x[s, i])
                for h in range(self.heads):
                    rows = way[h * self.dim : (h + 1) * self.dim]
                    for j in range(src):
                        sent[s, h, i, j] = self.out.weight @ (values[h][j] @ rows)
        return Expected(expected.weights, sent, expected.bias)

    def gate(self, x):
        return torch.sigmoid(self.k(x))


class GateBeforeOutput(Gated):
    """A gate of the query for each coordinate."""

    def close(self, context, x):
        return self.out(merged(context) * self.gate(x))

    def way(self, row, x):
        return torch.diag(self.gate(x))


class GateInPlace(GateBeforeOutput):
    """The same, gate first, written into the memory of the heads."""

    def close(self, context, x):
        row = merged(context)
        row *= self.gate(x)
        return self.out(row)


class GateOfHeads(GateBeforeOutput):
    """The same on heads that are still apart, the gate as the first factor."""

    def close(self, context, x):
        return self.out(merged(self.split(self.gate(x)) * context))


class GatePositionsFirst(GateBeforeOutput):
    """The same with positions before sequences."""

    def close(self, context, x):
        row = merged(context).transpose(0, 1)
        return self.out(torch.mul(row, other=self.gate(x.transpose(0, 1)))).transpose(0, 1)


class GateAsDivision(GateBeforeOutput):
    """The same, divided by 1 + exp(−k)."""

    def close(self, context, x):
        return self.out(merged(context) / (1 + torch.exp(-self.k(x))))


class TwoGates(Gated):
    """A gate for each coordinate, one for each head, and a number."""

    def build(self):
        self.head = nn.Linear(self.width, self.heads)

    def close(self, context, x):
        scaled = 3 * context * torch.tanh(self.head(x)).transpose(1, 2)[..., None]
        return self.out(merged(scaled) * self.gate(x))

    def way(self, row, x):
        return torch.diag(3 * torch.tanh(self.head(x)).repeat_interleave(self.dim) * self.gate(x))


class GateForEachHead(TwoGates):
    """One number for each head and query: f(x) exists beside it."""

    def close(self, context, x):
        return self.out(merged(context * torch.tanh(self.head(x)).transpose(1, 2)[..., None]))

    def way(self, row, x):
        return torch.diag(torch.tanh(self.head(x)).repeat_interleave(self.dim))

    def seen(self, expected, x):
        gated = super().seen(expected, x)
        return Expected(gated.weights, gated.sent, gated.bias, transformed=expected.sent)


class GateThatIsZero(GateBeforeOutput):
    """Many coordinates are shut."""

    def gate(self, x):
        return torch.relu(self.k(x))


class RootMeanSquare(Gated):
    """A norm written by hand, with a factor for each channel."""

    def build(self):
        self.gamma = nn.Parameter(torch.randn(self.width))

    def close(self, context, x):
        return self.out(self.normed(merged(context)))

    def normed(self, row):
        return self.gamma * (row * torch.rsqrt(row.pow(2).mean(-1, keepdim=True) + 1e-6))

    def way(self, row, x):
        return torch.diag(self.gamma / torch.sqrt((row * row).mean() + 1e-6))


class RootMeanSquareByPower(RootMeanSquare):
    """The same, to the power of −½."""

    def normed(self, row):
        return row * (row.float().square().mean(-1, keepdim=True) + 1e-6).pow(-0.5).type_as(row) * self.gamma


class RootMeanSquareDivided(RootMeanSquare):
    """The same, divided by the root; in place."""

    def normed(self, row):
        mean = (row * row).sum(-1, keepdim=True).div_(self.width)
        return row.div_(mean.add_(1e-6).sqrt_()).mul_(self.gamma)


class RootMeanSquareFused(RootMeanSquare):
    """The same by torch."""

    def normed(self, row):
        return functional.rms_norm(row, (self.width,), self.gamma, 1e-6)


class LengthOne(RootMeanSquare):
    """Rows of length 1, by torch."""

    def normed(self, row):
        return functional.normalize(row, dim=-1) * self.gamma

    def way(self, row, x):
        return torch.diag(self.gamma / row.norm())


class LargestIsOne(RootMeanSquare):
    """Divided by the largest absolute value."""

    def normed(self, row):
        return row / row.abs().amax(-1, keepdim=True).clamp_min(1e-6) * self.gamma

    def way(self, row, x):
        return torch.diag(self.gamma / row.abs().max())


class NormOfEachHead(RootMeanSquare):
    """Every head has a norm of its own."""

    def close(self, context, x):
        square = context.pow(2).mean(-1, keepdim=True)
        return self.out(merged(context * torch.rsqrt(square + 1e-6)) * self.gamma)

    def way(self, row, x):
        square = row.view(self.heads, self.dim).pow(2).mean(-1)
        return torch.diag(self.gamma / (square + 1e-6).sqrt().repeat_interleave(self.dim))


class LayerNorm(RootMeanSquare):
    """A LayerNorm by torch: the mean is linear, and its bias belongs to no token."""

    def build(self):
        super().build()
        self.beta = nn.Parameter(torch.randn(self.width))

    def normed(self, row):
        return functional.layer_norm(row, (self.width,), self.gamma, self.beta, 1e-6)

    def way(self, row, x):
        mean = torch.full((self.width, self.width), 1 / self.width).double()
        return (torch.eye(self.width) - mean) @ torch.diag(self.gamma) / torch.sqrt(row.var(correction=0) + 1e-6)

    def shift(self):
        return self.beta


class LayerNormWrittenOut(LayerNorm):
    """The same by hand."""

    def normed(self, row):
        centred = row - row.mean(-1, keepdim=True)
        return self.gamma * centred / torch.sqrt(centred.pow(2).mean(-1, keepdim=True) + 1e-6) + self.beta


class LayerNormByMoments(LayerNorm):
    """The same, the variance as the mean square less the square of the mean."""

    def normed(self, row):
        mean = row.mean(-1).unsqueeze(-1)
        spread = row.square().mean(-1, keepdim=True) - mean.square()
        return (row - mean) / (spread + 1e-6).sqrt() * self.gamma + self.beta


class GroupNorm(LayerNorm):
    """A LayerNorm of each head, by torch's group norm."""

    def normed(self, row):
        flat = row.reshape(-1, self.width)
        return functional.group_norm(flat, self.heads, self.gamma, self.beta, 1e-6).view(row.shape)

    def way(self, row, x):
        mean = torch.block_diag(*[torch.full((self.dim, self.dim), 1 / self.dim).double()] * self.heads)
        spread = row.view(self.heads, self.dim).var(-1, correction=0) + 1e-6
        return (torch.eye(self.width) - mean) @ torch.diag(self.gamma / spread.sqrt().repeat_interleave(self.dim))


class GateThenNorm(RootMeanSquare):
    """The norm has the statistics of what is gated."""

    def close(self, context, x):
        return self.out(self.normed(merged(context) * self.gate(x)))

    def way(self, row, x):
        return torch.diag(self.gate(x)) @ super().way(row * self.gate(x), x)


class GateThenLayerNorm(LayerNorm):
    """The same with a LayerNorm."""

    def close(self, context, x):
        return self.out(self.normed(merged(context) * self.gate(x)))

    def way(self, row, x):
        return torch.diag(self.gate(x)) @ super().way(row * self.gate(x), x)


class NormThenGate(RootMeanSquare):
    """A gate for each coordinate behind the norm."""

    def close(self, context, x):
        return self.out(self.normed(merged(context)) * self.gate(x))

    def way(self, row, x):
        return super().way(row, x) @ torch.diag(self.gate(x))


class StatisticFrozenThenChanged(RootMeanSquare):
    """The statistic is that of the heads before the gate, though it is used behind it."""

    def close(self, context, x):
        row = merged(context)
        scale = torch.rsqrt(row.pow(2).mean(-1, keepdim=True) + 1e-6)
        row.mul_(self.gate(x))
        return self.out(row * scale * self.gamma)

    def way(self, row, x):
        return super().way(row, x) @ torch.diag(self.gate(x))


class MeasuredBeside(Textbook):
    """The norm of the heads is measured and goes nowhere."""

    def close(self, context, x):
        self.seen_norm = context.pow(2).sum(-1).sqrt()
        return self.out(merged(context))


class FactorOfEachChannel(Textbook):
    """A learned factor for each channel is part of W_O."""

    def build(self):
        self.gamma = nn.Parameter(torch.randn(self.width))

    def close(self, context, x):
        return self.out(merged(context) * self.gamma)

    def matrix(self):
        return self.out.weight * self.gamma


class ConstantAdded(Textbook):
    """A learned vector is added to the heads: it belongs to no token."""

    def build(self):
        self.beta = nn.Parameter(torch.randn(self.width))

    def close(self, context, x):
        return self.out(merged(context) + self.beta)

    def constant(self):
        return self.out.weight @ self.beta + self.out.bias


class Difference(Textbook):
    """Differential attention: two softmaxes, one value, one signed weight."""

    def build(self):
        self.share = nn.Parameter(torch.tensor([0.4, 0.9])[:, None, None])

    def attend(self, x):
        q, k, v = (self.split(matrix(x)) for matrix in (self.q, self.k, self.v))
        scores = self.score(q, k)
        first, second = torch.softmax(scores, -1) @ v, torch.softmax(-scores, -1) @ v
        return self.close(first - self.share * second, x)

    def chosen(self, logits, h, i):
        return softmax(logits) - self.share[h, 0, 0] * softmax(-logits)


class DifferenceThenNorm(Difference, NormOfEachHead):
    """The difference is normalised head by head, and its norm has no f(x)."""

    def build(self):
        NormOfEachHead.build(self)
        Difference.build(self)


class DifferenceOfOtherValues(Difference):
    """The second softmax has values of its own: both stay heads."""

    def attend(self, x):
        q, k, v = (self.split(matrix(x)) for matrix in (self.q, self.k, self.v))
        scores = self.score(q, k)
        other = self.split(self.k(x))
        return self.close(torch.softmax(scores, -1) @ v - 0.5 * (torch.softmax(-scores, -1) @ other), x)

    def chosen(self, logits, h, i):
        return softmax(logits)

    def seen(self, expected, x):
        second, sent = torch.zeros_like(expected.weights), torch.zeros_like(expected.sent)
        for s, rows in enumerate(x):
            for h in range(self.heads):
                q, k = self.of_head(self.q(rows), h), self.key(rows, h)
                for i in range(len(rows)):
                    second[s, h, i] = softmax(torch.stack([-self.logit(q[i], k[j], h, i, j) for j in range(len(rows))]))
                for j in range(len(rows)):
                    sent[s, h, j] = -0.5 * self.sends(k[j], h)
        return Expected(torch.cat([expected.weights, second], 1), torch.cat([expected.sent, sent], 1), expected.bias)
