"""A map through the network: what a position is made of after some layers."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import torch
from jaxtyping import Float
from torch import Tensor

from normlens import views
from normlens.errors import NormlensError
from normlens.files import write_table
from normlens.lens import pictured, table
from normlens.models import Side
from normlens.signature import Signature


class MapError(NormlensError, ValueError):
    """A map through the network that cannot be made of this trace."""


def placed(position: int, side: Side) -> int:
    """A position of a sequence, counted from its first token."""
    count = len(side.tokens)
    if not -count <= position < count:
        raise MapError(f"no position {position}: the sequence has positions 0 to {count - 1}.")
    return position % count


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class NetworkMap:
    """What each position is made of after some layers: rows are positions (tgt), columns the tokens read (src).

    A batch is as wide as its longest sequence; beyond a shorter one's end everything is 0. In encoder-decoders the
    columns are the tokens of the source and then those the decoder was fed.
    """

    name: str  # "rollout" or "maxflow"
    by: str  # the quantity of the layers
    numbers: tuple[int, ...]  # the layers after which there is a map
    layers: Float[Tensor, "batch layer tgt src"]
    tgt: tuple[Side, ...]  # one for each sequence
    src: tuple[Side, ...]
    signature: Signature
    rows: tuple[tuple[int, ...], ...] = ()  # of each sequence, the positions that have a row; empty: all
    error: float = 0.0  # by how much a number may be too small, for the rounding of a flow

    @property
    def values(self) -> Float[Tensor, "batch tgt src"]:
        """After the last layer."""
        return self.layers[:, -1]

    def of(self, position: int = -1) -> Float[Tensor, "batch src"]:
        """The row of one position of every sequence; negative ones count from its end."""
        return self.by_layer(position)[:, -1]

    def by_layer(self, position: int = -1) -> Float[Tensor, "batch layer src"]:
        """The row of one position, after each layer."""
        rows = []
        for index, (maps, side) in enumerate(zip(self.layers, self.tgt, strict=True)):
            at = placed(position, side)
            if self.rows and at not in self.rows[index]:
                raise MapError(f"position {at} has no row.", do=f"{self.name}(..., positions={position}).")
            rows.append(maps[:, self.rows[index].index(at) if self.rows else at])
        return torch.stack(rows)

    def __len__(self) -> int:
        return len(self.layers)

    def __getitem__(self, index: int) -> NetworkMap:
        """Sequence `index` alone, cut to its length."""
        if not -len(self) <= index < len(self):
            raise IndexError(f"no sequence {index}: there are sequences 0 to {len(self) - 1}")
        index %= len(self)
        tgt, src = self.tgt[index], self.src[index]
        rows = self.rows[index : index + 1]
        count = len(rows[0]) if rows else len(tgt.tokens)
        own = self.layers[index : index + 1, :, :count, : len(src.tokens)]
        return replace(self, layers=own, tgt=(tgt,), src=(src,), rows=rows)

    def figure(self, index: int = 0, **look: Any) -> views.Figure:
        """Sequence `index` as a figure with a map for each layer gone through; `look` as in `Trace.figure`."""
        one = self[index]
        tgt = one.tgt[0] if not one.rows else _some(one.tgt[0], one.rows[0])
        sides = (tgt,) if one.src[0] == tgt else (tgt, one.src[0])
        says = f"What the position is made of after the layers so far: {self.name} of {self.by}."
        symbol, size = f"{self.name} of {self.by}", (one.layers.shape[2], one.layers.shape[3])
        panels = tuple(
            views.Panel(layer, self.name, 0, len(sides) - 1, (), size, (drawn,))
            for layer, values in zip(self.numbers, one.layers[0].float().cpu().numpy(), strict=True)
            for drawn in [views.Map(self.name, symbol, ("tgt", "src"), values, says, "contribution")]
        )
        figure = views.Figure(
            " → ".join(pictured.titled(side) for side in sides),
            str(self.signature),
            tuple(pictured.side_shown(one) for one in sides),
            panels,
        )
        return figure.looking(**{"layers": self.numbers[-1], **look})

    def layer_figure(self, position: int = -1, index: int = 0, **look: Any) -> views.Figure:
        """One position of sequence `index`, layer by layer: a row for each layer, a column for each token."""
        one = self[index]
        values = one.by_layer(position)[0].float().cpu().numpy()
        name = one.tgt[0].tokens[position]
        symbol = f"{self.name} of {self.by}"
        says = f"What '{name}' is made of after each layer: {symbol}."
        layers = tuple(f"L{number}" for number in self.numbers)
        plain = (False,) * len(layers)
        rows = views.Side("layers", layers, plain, tuple(range(len(layers))), plain, layers)
        drawn = views.Map(self.name, symbol, ("tgt", "src"), values, says, "contribution")
        panel = views.Panel(None, "layer by layer", 0, 1, (), values.shape, (drawn,))
        title = f"{name} · {pictured.titled(one.src[0])}"
        figure = views.Figure(title, str(self.signature), (rows, pictured.side_shown(one.src[0])), (panel,))
        return figure.looking(**look)

    def save(self, path: str | Path, **look: Any) -> Path:
        """Write it; the suffix decides: .csv or .parquet, or as `figure` .html, .svg, .pdf, .png."""
        path = Path(path)
        if path.suffix not in (".csv", ".parquet"):
            return self.figure(**look).save(path)
        write_table(self.to_dataframe(), path)
        return path

    def to_dataframe(self) -> Any:
        """Long form: a row per sequence, layer, position and token. Padding is not in it."""
        pandas = table.import_pandas()
        parts = []
        for number in range(len(self)):
            one = self[number]
            layer, tgt, src = np.indices(tuple(one.layers.shape[1:])).reshape(3, -1)
            tgt = np.asarray(one.rows[0])[tgt] if one.rows else tgt
            tokens = (np.asarray(side.tokens, dtype=object) for side in (one.tgt[0], one.src[0]))
            named = zip(("tgt", "src"), (tgt, src), tokens, strict=True)
            frame: dict[str, Any] = {"sequence": number, "layer": np.asarray(self.numbers)[layer]}
            for axis, at, names in named:
                frame |= {axis: at, f"{axis}_token": names[at]}
            parts.append(pandas.DataFrame(frame | {self.name: one.layers[0].flatten().float().cpu().numpy()}))
        return pandas.concat(parts, ignore_index=True)

    def _repr_html_(self) -> str:
        return "".join(views.fragment(self.figure(index)) for index in range(min(len(self), 4)))

    def __repr__(self) -> str:
        shape = " × ".join(map(str, self.values.shape[1:]))
        to = f"to the end of layer {self.numbers[-1]}"
        return f"NetworkMap: {self.name} of {self.by} {to}, {len(self)} × {shape}\n  {self.signature}"


def _some(side: Side, positions: Sequence[int]) -> Side:
    """Some positions of a side, as an axis of their own."""
    chosen = [side.word_ids[p] for p in positions]
    numbers = {word: at for at, word in enumerate(dict.fromkeys(word for word in chosen if word is not None))}
    words = tuple(None if word is None else numbers[word] for word in chosen)
    ids, tokens, special = (tuple(all_[p] for p in positions) for all_ in (side.ids, side.tokens, side.special))
    return Side("positions", ids, tokens, special, words)  # pyright: ignore
