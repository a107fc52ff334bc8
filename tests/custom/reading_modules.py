"""Modules that read words and attend to words and to what is no word: each says whose position a row or column is.

A position is owned by ("text", 3), the word it is, or by None: cached, virtual, a patch, a mixture.
"""

from types import SimpleNamespace

import torch
from textbook import Expected, Textbook
from torch import Tensor, nn
from torch.nn import functional

WORDS = 4  # in a sentence; ids are 50 and above, so that no number of a position is one


def text(count: int = WORDS, side: str = "text") -> list:
    return [(side, i) for i in range(count)]


def nobody(count: int) -> list:
    return [None] * count


class Reader(nn.Module):
    """Words to vectors, and one layer above."""

    blocks: list  # of each block: the owners of its rows and of its columns
    batch = 2
    refusable = False  # columns that are no single position may also be refused

    def __init__(self):
        super().__init__()
        with torch.random.fork_rng():
            torch.manual_seed(3)
            self.embed, self.layer = nn.Embedding(99, 6), Textbook()
            self.more = nn.Parameter(torch.randn(WORDS, 6))
        self.eval()

    def inputs(self) -> dict[str, Tensor]:
        return {"input_ids": torch.arange(50, 50 + self.batch * WORDS).view(self.batch, WORDS)}

    def probe(self) -> dict[str, Tensor]:
        """What the model is proved on."""
        return self.inputs()

    def forward(self, input_ids):
        x = self.embed(input_ids)
        return x + self.between(x, self.keys(x))

    def keys(self, x):
        return x

    def between(self, queries, keys, layer=None):
        layer = layer or self.layer
        q, k, v = layer.split(layer.q(queries)), layer.split(layer.k(keys)), layer.split(layer.v(keys))
        self.say(q, k, v, layer)
        return layer.close(layer.mix(layer.weigh(layer.score(q, k)), v), queries)

    def say(self, q, k, v, layer) -> None:
        """Nothing while normlens looks; `references` listens."""

    def extended(self, x, count=2):
        return self.more[:count].expand(len(x), -1, -1)


class CachedKeys(Reader):
    """Keys and values of an earlier pass come in as inputs."""

    blocks = ((text(), nobody(3) + text()),)

    def inputs(self):
        generator = torch.Generator().manual_seed(0)
        past = torch.randn(2, self.batch, 2, 3, 3, generator=generator)
        return super().inputs() | {"past_keys": past[0], "past_values": past[1]}

    def forward(self, input_ids, past_keys=None, past_values=None):
        x, layer = self.embed(input_ids), self.layer
        q, k, v = (layer.split(matrix(x)) for matrix in (layer.q, layer.k, layer.v))
        if past_keys is not None:
            k, v = torch.cat([past_keys, k], 2), torch.cat([past_values, v], 2)
        self.say(q, k, v, layer)
        return x + layer.close(layer.mix(layer.weigh(layer.score(q, k)), v), x)


class CachedKeysOnlyLater(CachedKeys):
    """Proved without a cache, traced with one."""

    def probe(self):
        return Reader.inputs(self)


class OneWordAfterACache(CachedKeys):
    """One word is new, as in writing word by word."""

    batch = 1
    blocks = ((text(1), nobody(3) + text(1)),)

    def inputs(self):
        return super().inputs() | {"input_ids": torch.tensor([[53]])}


class VirtualKeys(Reader):
    """Prefix tuning: parameters stand in front of the keys."""

    blocks = ((text(), nobody(2) + text()),)

    def keys(self, x):
        return torch.cat([self.extended(x), x], 1)


class VirtualKeysBehind(Reader):
    """The same behind the keys."""

    blocks = ((text(), text() + nobody(2)),)

    def keys(self, x):
        return torch.cat([x, self.extended(x)], 1)


class VirtualTokens(Reader):
    """Prompt tuning: parameters stand in front of the whole sequence."""

    blocks = ((nobody(2) + text(), nobody(2) + text()),)

    def forward(self, input_ids):
        x = self.embed(input_ids)
        x = torch.cat([self.extended(x), x], 1)
        return x + self.between(x, x)


class PatchesInFront(VirtualTokens):
    """An image stands in front of the text, as many patches as words."""

    blocks = ((nobody(WORDS) + text(), nobody(WORDS) + text()),)

    def inputs(self):
        pixels = torch.randn(self.batch, WORDS, 6, generator=torch.Generator().manual_seed(0))
        return super().inputs() | {"pixel_values": pixels}

    def forward(self, input_ids, pixel_values):
        x = torch.cat([pixel_values, self.embed(input_ids)], 1)
        return x + self.between(x, x)


class TwoTowers(PatchesInFront):
    """An image in one tower, the text in another, equally long."""

    blocks = ((nobody(WORDS), nobody(WORDS)), (text(), text()))

    def __init__(self):
        super().__init__()
        self.tower = Textbook(seed=5)

    def forward(self, input_ids, pixel_values):
        seen, x = pixel_values + self.between(pixel_values, pixel_values, self.tower), self.embed(input_ids)
        return seen.mean(1), x + self.between(x, x)


class AsManyLatentsAsWords(Reader):
    """Parameters look at the text: no row is a word."""

    blocks = ((nobody(WORDS), text()),)

    def forward(self, input_ids):
        x = self.embed(input_ids)
        return self.extended(x, WORDS) + self.between(self.extended(x, WORDS), x)


class OneLatent(Reader):
    """Attention pooling."""

    blocks = ((nobody(1), text()),)

    def forward(self, input_ids):
        x = self.embed(input_ids)
        return self.extended(x, 1) + self.between(self.extended(x, 1), x)


class MeansOfWords(Reader):
    """Keys are the means of two neighbours."""

    blocks, refusable = ((text(), nobody(2)),), True

    def keys(self, x):
        return x.unflatten(1, (-1, 2)).mean(2)


class FirstWordUnseen(Reader):
    """Nobody looks at the first word: column 0 is word 1."""

    blocks, refusable = ((text(), text()[1:]),), True

    def keys(self, x):
        return x[:, 1:]


class JoinedStreams(Reader):
    """Target and source in one softmax, equally long; the target looks."""

    blocks = ((text(side="target"), text(side="target") + text(side="source")),)
    config = SimpleNamespace(is_encoder_decoder=True)

    def inputs(self):
        return super().inputs() | {"decoder_input_ids": super().inputs()["input_ids"] + 20}

    def forward(self, input_ids, decoder_input_ids):
        x = self.embed(decoder_input_ids)
        return x + self.between(x, torch.cat([x, self.embed(input_ids)], 1))


class WindowForEveryWord(Reader):
    """Every word has keys of its own, as many as there are words: a batch of windows, or refused."""

    blocks, refusable = ((nobody(1), nobody(WORDS)),), True

    def forward(self, input_ids):
        x, layer = self.embed(input_ids), self.layer
        around = functional.pad(x, (0, 0, 2, 1)).unfold(1, WORDS, 1).mT.flatten(0, 1)
        return x + self.between(x.flatten(0, 1)[:, None], around, layer).view(x.shape)


READERS = (
    CachedKeys,
    CachedKeysOnlyLater,
    OneWordAfterACache,
    VirtualKeys,
    VirtualKeysBehind,
    VirtualTokens,
    PatchesInFront,
    TwoTowers,
    AsManyLatentsAsWords,
    OneLatent,
    MeansOfWords,
    FirstWordUnseen,
    JoinedStreams,
    WindowForEveryWord,
)


@torch.no_grad()
def references(model: Reader) -> list[Expected]:
    """What each block must give, by the definition, in double precision."""
    heard = []
    model.say = lambda *parts: heard.append(parts)
    try:
        model(**model.inputs())
    finally:
        del model.say
    found = []
    for q, k, v, layer in heard:
        raised = torch.exp(torch.einsum("bhid,bhjd->bhij", q.double(), k.double()) / layer.dim**0.5)
        matrix = layer.out.weight.double().unflatten(1, (layer.heads, layer.dim))
        sent = torch.einsum("bhjd,mhd->bhjm", v.double(), matrix)
        found.append(Expected(raised / raised.sum(-1, keepdim=True), sent, layer.out.bias.double()))
    return found
