"""Figures made by hand for the tests of the views."""

import numpy as np

from normlens.views import Figure, Panel, Side, attention


def side(*tokens: str, name: str = "text") -> Side:
    """Tokens in brackets are special, those with ## go on with the word before."""
    special = tuple(token.startswith(("[", "</")) for token in tokens)
    words: list[int | None] = []
    for token, mark in zip(tokens, special, strict=True):
        known = [word for word in words if word is not None]
        last = known[-1] if known else -1
        words.append(None if mark else last + (not token.startswith("##")))
    marks = tuple(token in {",", ".", "!"} for token in tokens)
    return Side(name, tokens, special, tuple(words), marks)


def panel(weights, norms, *, layer: int = 0, kind: str = "self", tgt: int = 0, src: int = 0) -> Panel:
    """A block whose heads write in directions at right angles, so the summed norm is the root of the squares."""
    weights, norms = np.asarray(weights, dtype=np.float32), np.asarray(norms, dtype=np.float32)
    summed = np.sqrt(((weights * norms[:, None, :]) ** 2).sum(axis=0))
    return attention(layer, kind, tgt, src, weights, norms, summed, 2e-7)


def headline() -> Figure:
    """The paper's point in three tokens: [SEP] receives most of the attention and contributes almost nothing."""
    weights = [[[0.1, 0.1, 0.8], [0.2, 0.2, 0.6], [0.0, 0.0, 1.0]]]
    return Figure("a cat", "model:hand | v0", (side("a", "cat", "[SEP]"),), (panel(weights, [[4.0, 8.0, 0.1]]),))


def random_figure(*tokens: str, layers: int = 2, heads: int = 3, seed: int = 0, kind: str = "self") -> Figure:
    random = np.random.default_rng(seed)
    blocks = []
    for layer in range(layers):
        raw = np.exp(2 * random.normal(size=(heads, len(tokens), len(tokens))))
        norms = random.gamma(4, 0.5, size=(heads, len(tokens)))
        blocks.append(panel(raw / raw.sum(axis=-1, keepdims=True), norms, layer=layer, kind=kind))
    return Figure("random", "model:random | v0", (side(*tokens),), tuple(blocks))


def signed_figure(*tokens: str, layers: int = 2, heads: int = 3) -> Figure:
    """Weights with their row's mean taken off, as a high-pass filter on attention has them: about half are below 0."""
    figure = random_figure(*tokens, layers=layers, heads=heads)
    blocks = []
    for block in figure.panels:
        weights = block.weights - block.weights.mean(axis=-1, keepdims=True)
        blocks.append(panel(weights, block.transformed_norms, layer=block.layer))
    return Figure("signed", "model:signed | v0", figure.sides, tuple(blocks))


def translation() -> Figure:
    """Two sides of different length, and three kinds of attention."""
    random = np.random.default_rng(1)
    sides = (side("▁Die", "▁Katze", "</s>", name="source"), side("▁The", "▁cat", "▁sat", "</s>", name="target"))
    blocks = []
    for kind, tgt, src in (("encoder", 0, 0), ("decoder", 1, 1), ("cross", 1, 0)):
        weights = random.dirichlet(np.ones(len(sides[src].tokens)), size=(2, len(sides[tgt].tokens)))
        norms = random.gamma(4, 0.5, size=(2, len(sides[src].tokens)))
        blocks += [panel(weights, norms, layer=n, kind=kind, tgt=tgt, src=src) for n in range(2)]
    return Figure("Die Katze → The cat sat", "model:hand | v0", sides, tuple(blocks))
