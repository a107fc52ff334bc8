"""Modules that must be refused: there is no f(x), or no number that stays the same; and softmaxes that are none."""

import torch
from textbook import Textbook, merged
from torch import nn
from torch.nn import functional


class Refused(Textbook):
    expect = "refused"
    steady = True  # the same input gives the same output


class GateOfItself(Refused):
    """The output gates itself, in place."""

    def mix(self, weights, v):
        context = super().mix(weights, v)
        return context.mul_(torch.sigmoid(context))


class GateOfItsMean(Refused):
    """A number for each head that is made of the output of the head."""

    because = "sigmoid"

    def close(self, context, x):
        return self.out(merged(context * torch.sigmoid(context.mean(-1, keepdim=True))))


class GateOfItsLength(Refused):
    """The same, made of its length: no norm divides so."""

    because = "sigmoid"

    def close(self, context, x):
        return self.out(merged(context * torch.sigmoid(context.pow(2).sum(-1, keepdim=True))))


class TimesItself(Refused):
    """Each coordinate times its own square."""

    def close(self, context, x):
        return self.out(merged(context * context.square()))


class GateOfItselfThroughMemory(Refused):
    """The gate is made of a copy of the output in other memory."""

    def close(self, context, x):
        memory = torch.zeros_like(context)
        memory.copy_(context)
        return self.out(merged(context * torch.sigmoid(memory)))


class GateOfItselfThroughAView(Refused):
    """The same, written into memory of which the gate has a view."""

    def close(self, context, x):
        memory = torch.zeros_like(context)
        view = memory.view(-1)
        torch.square(context, out=memory)
        return self.out(merged(context * torch.sigmoid(view.view_as(context))))


class GateOfItselfAddedToMemory(GateOfItselfThroughAView):
    """The same, added in place."""

    def close(self, context, x):
        memory = torch.zeros_like(context)
        view = memory.view(-1)
        memory += context
        return self.out(merged(context * torch.sigmoid(view.view_as(context))))


class GateOfItselfByName(Refused):
    """The output is given by name to the call that makes the gate."""

    def close(self, context, x):
        return self.out(merged(context * torch.sigmoid(input=context)))


class NumberOfItself(Refused):
    """A number that left torch comes back as a factor."""

    because = "item"

    def close(self, context, x):
        return self.out(merged(context * context.square().sum(-1)[0, 0, 0].item()))


class StatisticOfCells(Refused):
    """The square of each cell is no statistic."""

    def close(self, context, x):
        return self.out(merged(context / (1 + context.square())))


class LayerNormThenGate(Refused):
    """Behind the mean of a LayerNorm a gate mixes heads that a token does not come from."""

    because = "a gate follows a norm"

    def close(self, context, x):
        return self.out(functional.layer_norm(merged(context), (self.width,)) * torch.sigmoid(self.k(x)))


class MeanOfOtherPositions(Refused):
    """The mean over positions is taken off."""

    because = "mean"

    def close(self, context, x):
        row = merged(context)
        return self.out(row - row.mean(1, keepdim=True))


class SumBeforeOutput(Refused):
    """The residual is added before W_O."""

    because = "sum|add"

    def close(self, context, x):
        return self.out(merged(context) + x)


class ActivationBeforeOutput(Refused):
    """gelu before W_O."""

    because = "gelu"

    def close(self, context, x):
        return self.out(functional.gelu(merged(context)))


class RoundedBeforeOutput(Refused):
    """The output is quantised before W_O."""

    because = "round"

    def close(self, context, x):
        return self.out(merged(context).round(decimals=1))


class LargestInsteadOfSum(Refused):
    """α·v, of which the largest is taken."""

    def mix(self, weights, v):
        return (weights[..., None] * v[:, :, None]).amax(-2)


class OutputMatrixFromTheText(Refused):
    """Every sequence makes its own W_O."""

    def build(self):
        self.maker = nn.Linear(self.width, self.width**2)

    def close(self, context, x):
        return merged(context) @ self.maker(x.mean(1)).unflatten(-1, (self.width, self.width))


class SomeRowsReplaced(Refused):
    """Positions whose first coordinate is negative keep themselves."""

    def close(self, context, x):
        return self.out(torch.where(x[..., :1] < 0, x, merged(context)))


class ConvolutionOverPositions(Refused):
    """W_O reads three positions at once."""

    def build(self):
        self.wide = nn.Conv1d(self.width, self.width, 3, padding=1)

    def close(self, context, x):
        return self.wide(merged(context).mT).mT


class OutOfTorch(Refused):
    """The output leaves torch and comes back."""

    def close(self, context, x):
        return self.out(torch.from_numpy(merged(context).numpy() ** 3))


class Sigmoids(Refused):
    """No softmax: every weight for itself."""

    def weigh(self, scores):
        return torch.sigmoid(scores)


class Random(Refused):
    steady = False
    because = "(?i)random|dropout|training|seed|twice|chang|differ"


class DropoutAlwaysOn(Random):
    """`F.dropout` without `training=`."""

    def weigh(self, scores):
        return functional.dropout(super().weigh(scores), 0.5)


class DropoutModuleInTraining(Random):
    """The model is in eval mode, one module in it is not."""

    def __init__(self, heads=2, dim=3, seed=0):
        super().__init__(heads, dim, seed)
        self.drop = nn.Dropout(0.5)

    def weigh(self, scores):
        return self.drop(super().weigh(scores))


class DropoutAfterOutputInTraining(DropoutModuleInTraining):
    """The same between W_O and the residual."""

    def weigh(self, scores):
        return Textbook.weigh(self, scores)

    def close(self, context, x):
        return self.drop(super().close(context, x))


class NoiseInScores(Random):
    """Random numbers are added to the scores."""

    def score(self, q, k):
        scores = super().score(q, k)
        return scores + 3 * torch.rand(scores.shape)


class RandomKeysHidden(Random):
    """Every pass hides other keys."""

    def score(self, q, k):
        return super().score(q, k).masked_fill(torch.empty(1, 1, 1, k.shape[2]).bernoulli_(0.5).bool(), -9.0)


class NoiseInTheResidual(Random):
    """Attention is sound, the stream it is added to is not."""

    def forward(self, x):
        return super().forward(x) + torch.randn(x.shape)


class NoAttention(Textbook):
    expect = "no attention"


class SoftmaxOverVocabulary(NoAttention):
    """The expected embedding: a softmax over words times their table."""

    def build(self):
        self.table = nn.Embedding(20, self.width)

    def attend(self, x):
        return self.out(torch.softmax(x @ self.table.weight.T, -1) @ self.table.weight)


class SoftmaxOverAsManyWordsAsTokens(SoftmaxOverVocabulary):
    """The same, with as many words as there are tokens."""

    other_size = (1, 5)

    def build(self):
        self.table = nn.Embedding(5, self.width)


class MemorySlots(NoAttention):
    """Keys and values are parameters: nothing comes from any token."""

    def build(self):
        self.slots = nn.Parameter(torch.randn(2, 5, self.width))

    def attend(self, x):
        k, v = (self.split(slot[None]) for slot in self.slots)
        return self.close(torch.softmax(self.split(self.q(x)) @ k.mT, -1) @ v, x)


class FeatureSoftmaxes(NoAttention):
    """Linear attention: a softmax over features, one over positions, and the product of keys and values first."""

    def attend(self, x):
        q, k, v = (self.split(matrix(x)) for matrix in (self.q, self.k, self.v))
        return self.close(torch.softmax(q, -1) @ (torch.softmax(k, -2).mT @ v), x)


class FeatureSoftmaxesByEinsum(NoAttention):
    """The same in einsum, keys and values summed over positions."""

    def attend(self, x):
        q, k, v = (self.split(matrix(x)) for matrix in (self.q, self.k, self.v))
        summed = torch.einsum("bhjd,bhje->bhde", torch.softmax(k, -2), v)
        return self.close(torch.einsum("bhid,bhde->bhie", torch.softmax(q, -1), summed), x)


class ChannelsLookAtChannels(NoAttention):
    """Cross-covariance attention: the softmax is among features."""

    def attend(self, x):
        q, k, v = (self.split(matrix(x)) for matrix in (self.q, self.k, self.v))
        return self.close((torch.softmax(k.mT @ q, -1) @ v.mT).mT, x)


class RouterOverExperts(NoAttention):
    """A choice among experts, weighed in one product."""

    def build(self):
        self.router, self.experts = nn.Linear(self.width, 3), nn.Parameter(torch.randn(3, self.width, self.width))

    def attend(self, x):
        choice = torch.softmax(self.router(x), -1)
        ran = torch.einsum("bid,edm->biem", x, self.experts)
        return self.out((choice[:, :, None] @ ran)[:, :, 0])


class MixtureOfStates(NoAttention):
    """A learned softmax over three states of each token."""

    def build(self):
        self.share = nn.Parameter(torch.randn(1, 3))

    def attend(self, x):
        states = torch.stack([self.q(x), self.k(x), self.v(x)], 2)
        return self.out((torch.softmax(self.share, -1) @ states)[:, :, 0])
