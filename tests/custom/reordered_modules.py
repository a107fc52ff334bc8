"""Modules that change the order of tokens inside: weights come back for the original order, or the block is refused."""

import torch
from exact_modules import CausalMask
from output_modules import TwoLayers
from textbook import Expected, Textbook


def picked(order, *heads):
    """Rows of each head in a given order (batch, head, position)."""
    return [rows.gather(2, order[..., None].expand(*order.shape, rows.shape[-1])) for rows in heads]


def shuffled(count):
    return torch.randperm(count, generator=torch.Generator().manual_seed(count))


class Reordered(Textbook):
    expect = "either"


class KeysReversed(Reordered):
    """Keys and values are turned round."""

    def order(self, q, k, v):
        return q, k.flip(2), v.flip(2)


class KeysRolled(Reordered):
    """Keys and values are rolled by one."""

    def order(self, q, k, v):
        return q, k.roll(1, 2), v.roll(1, 2)


class KeysPermuted(Reordered):
    """Keys and values stand in a fixed order of their own."""

    def order(self, q, k, v):
        return q, *(rows.index_select(2, shuffled(k.shape[2])) for rows in (k, v))


class EvenKeysFirst(Reordered):
    """Keys and values at even positions, then those at odd ones."""

    def order(self, q, k, v):
        return q, *(torch.cat([rows[:, :, ::2], rows[:, :, 1::2]], 2) for rows in (k, v))


class FirstTwoKeysSwappedInPlace(Reordered):
    """The first two keys and values change places by assignment."""

    def order(self, q, k, v):
        k, v = k.clone(), v.clone()
        for rows in (k, v):
            rows[:, :, [0, 1]] = rows[:, :, [1, 0]]
        return q, k, v


class EndsSwapped(Reordered):
    """The first and the last key and value are taken from the reversed ones, by `where`."""

    def order(self, q, k, v):
        place = torch.arange(k.shape[2])
        ends = ((place == 0) | (place == k.shape[2] - 1))[:, None]
        return q, *(torch.where(ends, rows.flip(2), rows) for rows in (k, v))


class KeysCopiedInReverse(Reordered):
    """Keys and values are overwritten with themselves, turned round."""

    def order(self, q, k, v):
        return q, *(rows.clone().copy_(rows.flip(2)) for rows in (k, v))


class KeysTurnedByAMatrix(Reordered):
    """A permutation matrix from the left."""

    def order(self, q, k, v):
        turn = torch.eye(k.shape[2], dtype=k.dtype).flip(0)
        return q, turn @ k, turn @ v


class StreamReversedForKeys(Reordered):
    """The tokens are turned round before the matrices of keys and values."""

    def attend(self, x):
        q, k, v = self.split(self.q(x)), self.split(self.k(x.flip(1))), self.split(self.v(x.flip(1)))
        return self.close(self.mix(self.weigh(self.score(q, k)), v), x)


class KeysSorted(Reordered):
    """Every head sorts its keys by their length, in every sequence otherwise."""

    def order(self, q, k, v):
        return q, *picked(k.norm(dim=-1).argsort(-1), k, v)


class KeysClustered(Reordered):
    """Keys of one cluster stand together."""

    def order(self, q, k, v):
        return q, *picked((k[..., 0] > 0).long().argsort(dim=-1, stable=True), k, v)


class ValuesReversed(Reordered):
    """The values are turned round and the keys are not: the weight is on the token that sends."""

    def order(self, q, k, v):
        return q, k, v.flip(2)

    def seen(self, expected, x):
        return Expected(expected.weights.flip(-1), expected.sent, expected.bias)


class ValuesRolled(Reordered):
    """Every key brings the value of the token before it."""

    def order(self, q, k, v):
        return q, k, v.roll(1, 2)

    def seen(self, expected, x):
        return Expected(expected.weights.roll(-1, -1), expected.sent, expected.bias)


class QueriesReversed(Reordered):
    """Queries are turned round and stay so: row i is what reaches position i."""

    def order(self, q, k, v):
        return q.flip(2), k, v

    def seen(self, expected, x):
        return Expected(expected.weights.flip(-2), expected.sent, expected.bias)


class QueriesReversedAndBack(Reordered):
    """Queries are turned round, their results turned back before W_O."""

    def order(self, q, k, v):
        return q.flip(2), k, v

    def mix(self, weights, v):
        return super().mix(weights, v).flip(2)


class SequenceReversedAndBack(Reordered):
    """The whole sequence is turned round before attention and back after W_O."""

    def attend(self, x):
        return super().attend(x.flip(1)).flip(1)


class CausalFromTheEnd(CausalMask):
    """Reversed, causal, and back: everybody sees what comes later."""

    expect = "either"

    def attend(self, x):
        return super().attend(x.flip(1)).flip(1)

    def logit(self, q, k, h, i, j):
        return super().logit(q, k, h, j, i)


class ModelShuffled(Reordered):
    """The model shuffles all tokens before its layer and unshuffles after."""

    def forward(self, x):
        order = shuffled(x.shape[1])
        return super().forward(x[:, order])[:, order.argsort()]


class ModelShuffledByContent(Reordered):
    """The model sorts its tokens by content before its layer, and puts them back after."""

    def forward(self, x):
        order = x[:, :, :1].argsort(1)
        sorted_ = super().forward(x.gather(1, order.expand_as(x)))
        return sorted_.gather(1, order.argsort(1).expand_as(x))


class ShuffledBetweenLayers(TwoLayers):
    """The first layer sees the tokens in their order, the second does not."""

    expect = "either"

    def forward(self, x):
        x, order = x + self.attend(x), shuffled(x.shape[1])
        x = x[:, order]
        return (x + self.attend(x))[:, order.argsort()]


class BestThreeKeys(Reordered):
    """Every head of every sequence keeps its three longest keys: the others have weight 0."""

    def order(self, q, k, v):
        return q, *picked(k.norm(dim=-1).topk(3).indices, k, v)

    def loops(self, x):
        (block,) = super().loops(x)
        weights = torch.zeros_like(block.weights)
        for s, row in enumerate(x):
            for h in range(self.heads):
                kept = self.key(row, h).norm(dim=-1).topk(3).indices
                weights[s, h][:, kept] = block.weights[s, h][:, kept] / block.weights[s, h][:, kept].sum(-1)[:, None]
        return [Expected(weights, block.sent, block.bias)]


class SoftmaxOverQueries(Reordered):
    """Weights sum to 1 over those who look; what multiplied the values are still they."""

    def weigh(self, scores):
        return torch.softmax(scores, -2)

    def seen(self, expected, x):
        weights = torch.zeros_like(expected.weights)
        for s, row in enumerate(x):
            for h in range(self.heads):
                scores = self.of_head(self.q(row), h) @ self.key(row, h).T / self.dim**0.5
                weights[s, h] = scores.exp() / scores.exp().sum(0)
        return Expected(weights, expected.sent, expected.bias)


class WeightsTransposed(Reordered):
    """α is used the other way round: the token looked at by i receives from i."""

    def mix(self, weights, v):
        return weights.mT @ v

    def seen(self, expected, x):
        return Expected(expected.weights.mT, expected.sent, expected.bias)
