"""Traces made by hand: two layers of given maps over tokens a, b, c ..."""

import torch

from normlens.lens import Block, Trace, Wire
from normlens.models import Side
from normlens.signature import Signature


def side(count, name="text"):
    return Side(name, tuple(range(count)), tuple("abcdefgh"[:count]), (False,) * count, tuple(range(count)))


def block(layer, maps, sizes=None, kind="self", name="weights", axes=("text", "text"), path="layers.{}.attn"):
    maps = torch.as_tensor(maps, dtype=torch.float64)
    heads = tuple(range(maps.shape[1])) if maps.ndim == 4 else (0,)
    sizes = sizes or ((maps.shape[-2], maps.shape[-1]),) * len(maps)
    return Block(kind, layer, path.format(layer), heads, 0.0, *axes, {name: maps}, sizes)


def trace(blocks, counts=(3,), targets=(), wires=None):
    wires = wires or [Wire(b.kind, b.layer, b.name, f"{b.name}.out", 0, 0.0, None) for b in blocks]
    name = "source" if targets else "text"
    sides, fed = (tuple(side(n, what) for n in some) for some, what in ((counts, name), (targets, "target")))
    return Trace(tuple(blocks), tuple(wires), sides, fed, Signature((("model", "made"),)))
