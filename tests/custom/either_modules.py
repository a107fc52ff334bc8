"""Modules that may be exact or refused; if they are exact, these are the numbers."""

import torch
from textbook import Expected, Textbook, merged, softmax
from torch import nn


class Either(Textbook):
    expect = "either"


class TalkingHeads(Either):
    """Heads are mixed after the softmax: α is what multiplied the values."""

    def build(self):
        self.talk = nn.Parameter(torch.randn(self.heads, self.heads))

    def weigh(self, scores):
        return torch.einsum("bhij,hg->bgij", super().weigh(scores), self.talk)

    def seen(self, expected, x):
        mixed = [sum(expected.weights[:, h] * self.talk[h, g] for h in range(self.heads)) for g in range(self.heads)]
        return Expected(torch.stack(mixed, 1), expected.sent, expected.bias)


class DifferenceOfTwo(Either):
    """α is one softmax minus a part of another."""

    def weigh(self, scores):
        return torch.softmax(scores, -1) - 0.8 * torch.softmax(-scores, -1)

    def chosen(self, logits, h, i):
        return softmax(logits) - 0.8 * softmax(-logits)


class SoftmaxWrittenOut(Either):
    """exp, sum, division."""

    def weigh(self, scores):
        raised = torch.exp(scores - scores.amax(-1, keepdim=True))
        return raised / raised.sum(-1, keepdim=True)


class LogSoftmaxRaised(Either):
    """exp of a log-softmax."""

    def weigh(self, scores):
        return torch.log_softmax(scores, -1).exp()


class LoopOverHeads(Either):
    """Head by head, then put side by side."""

    def mix(self, weights, v):
        return torch.stack([weights[:, h] @ v[:, h] for h in range(self.heads)], 1)


class LoopOverWholeHeads(Either):
    """Head by head with a softmax each, joined by cat."""

    def attend(self, x):
        q, k, v = (self.split(matrix(x)) for matrix in (self.q, self.k, self.v))
        heads = [self.weigh(self.score(q[:, h], k[:, h])) @ v[:, h] for h in range(self.heads)]
        return self.out(torch.cat(heads, -1))


class OwnMatrixForEachHead(Either):
    """Each head has its own W_O and the results are added: one block, or none."""

    def build(self):
        self.outs = nn.ModuleList(nn.Linear(self.dim, self.width) for _ in range(self.heads))

    def close(self, context, x):
        return sum(out(context[:, h]) for h, out in enumerate(self.outs))

    def sends(self, v, h):
        return self.outs[h].weight @ v

    def constant(self):
        return sum(out.bias for out in self.outs)


class ResidualInBaddbmm(Either):
    """The residual is what baddbmm adds to."""

    def forward(self, x):
        return self.attend(x)

    def close(self, context, x):
        return torch.baddbmm(x, merged(context), self.out.weight.T.expand(len(x), -1, -1))

    def constant(self):
        return 0.0


class ScaleForEachHead(Either):
    """A learned factor for each head before W_O is linear."""

    def build(self):
        self.scale = nn.Parameter(torch.rand(self.heads, 1, 1) + 0.5)

    def mix(self, weights, v):
        return super().mix(weights, v) * self.scale

    def sends(self, v, h):
        return super().sends(v, h) * self.scale[h, 0, 0]


class AuxiliaryHead(Either):
    """A second matrix reads the attention output, and its result goes elsewhere."""

    def build(self):
        self.aux = nn.Linear(self.width, 2)

    def forward(self, x):
        self.keep = []
        return super().forward(x), self.keep[0]

    def close(self, context, x):
        self.keep.append(self.aux(merged(context)))
        return super().close(context, x)


class AdapterBeside(Either):
    """An unmerged adapter: two ways from the attention output, added."""

    def build(self):
        self.down, self.up = nn.Linear(self.width, 2, bias=False), nn.Linear(2, self.width, bias=False)

    def close(self, context, x):
        return super().close(context, x) + self.up(self.down(merged(context)))

    def matrix(self):
        return self.out.weight + self.up.weight @ self.down.weight


class NormAfterOutput(Either):
    """A norm between W_O and the residual: f ends where the norm begins."""

    rebuilds = False

    def close(self, context, x):
        return nn.functional.layer_norm(super().close(context, x), (self.width,))


class GateAfterOutput(Either):
    """A gate between W_O and the residual: f ends where the gate begins."""

    rebuilds = False

    def close(self, context, x):
        return super().close(context, x) * torch.sigmoid(self.k(x))


class FeedForwardAfterOutput(Either):
    """No residual before the feed-forward: f ends at its activation, behind both matrices."""

    rebuilds = False

    def build(self):
        self.wide, self.back = nn.Linear(self.width, self.width), nn.Linear(self.width, self.width)

    def close(self, context, x):
        return self.back(torch.relu(self.wide(super().close(context, x))))

    def matrix(self):
        return self.wide.weight @ self.out.weight

    def constant(self):
        return self.wide.weight @ self.out.bias + self.wide.bias

    def acceptable(self, x):
        (block,) = self.loops(x)
        sent = torch.linalg.solve(self.wide.weight, block.sent.mT.flatten(0, 1)).unflatten(0, block.sent.shape[:2]).mT
        return [[block], [Expected(block.weights, sent)]]  # or W_O alone


class NoOutputMatrix(Either):
    """Heads are added to the residual as they are: f(x) is the value."""

    def close(self, context, x):
        return merged(context)

    def matrix(self):
        return torch.eye(self.width).double()

    def constant(self):
        return 0.0


class ProductWrittenOut(Either):
    """α times v cell by cell, then a sum."""

    def mix(self, weights, v):
        return (weights[..., None] * v[:, :, None]).sum(-2)


class HeadPruned(Either):
    """The first head's result is set to 0 before W_O."""

    def mix(self, weights, v):
        context = weights @ v
        context[:, 0] = 0
        return context

    def sends(self, v, h):
        return super().sends(v, h) * (h > 0)


class WeightsReusedAfterwards(Either):
    """Once they are used, the memory of the weights is overwritten."""

    def mix(self, weights, v):
        context = weights @ v
        weights.zero_()
        return context


class WeightsCutInPlace(Either):
    """The weights of the first key are set to 0 in place."""

    def weigh(self, scores):
        weights = super().weigh(scores)
        weights[..., 0] = 0
        return weights

    def chosen(self, logits, h, i):
        return torch.cat([torch.zeros(1).double(), softmax(logits)[1:]])


class SumOverTheBeforehand(Either):
    """What reaches position i is the sum of what reached all before it."""

    def mix(self, weights, v):
        return super().mix(weights, v).cumsum(2)

    def seen(self, expected, x):
        return Expected(expected.weights.cumsum(2), expected.sent, expected.bias)


class KeysCompressed(Either):
    """Linformer: as many mixtures of tokens as there are tokens; no column of the softmax is a token."""

    other_size = (1, 5)

    def build(self):
        self.press = nn.Parameter(torch.randn(5, 5))

    def order(self, q, k, v):
        return q, self.press @ k, self.press @ v

    def loops(self, x):
        (block,) = super().loops(x)
        weights = torch.zeros_like(block.weights)
        for s, row in enumerate(x):
            for h in range(self.heads):
                q, k = self.of_head(self.q(row), h), self.press @ self.key(row, h)
                for i in range(len(row)):
                    chosen = softmax(torch.stack([(q[i] * k[c]).sum() / self.dim**0.5 for c in range(5)]))
                    weights[s, h, i] = chosen @ self.press
        return [Expected(weights, block.sent, block.bias)]


class WindowsInTheBatch(Either):
    """Windows of two, rolled by one and back, as more sequences; a batch of windows or one map with zeros."""

    probe_size, other_size = (2, 4), (1, 6)

    def forward(self, x):
        windows = x.roll(-1, 1).unflatten(1, (-1, 2)).flatten(0, 1)
        return x + self.attend(windows).view(x.shape).roll(1, 1)

    def logit(self, q, k, h, i, j):
        same = (i - 1) % self.count // 2 == (j - 1) % self.count // 2
        return super().logit(q, k, h, i, j) if same else torch.tensor(float("-inf")).double()

    def loops(self, x):
        self.count = x.shape[1]
        return super().loops(x)

    def acceptable(self, x):
        (block,) = self.loops(x)
        weights, sent = block.weights.roll((-1, -1), (2, 3)), block.sent.roll(-1, 2)
        at = [(s, slice(w, w + 2)) for s in range(len(x)) for w in range(0, x.shape[1], 2)]
        cut = Expected(
            torch.stack([weights[s][:, w, w] for s, w in at]), torch.stack([sent[s][:, w] for s, w in at]), block.bias
        )
        return [[block], [cut]]
