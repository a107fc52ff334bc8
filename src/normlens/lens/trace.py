"""The result of one forward pass: blocks, tokens, tables and figures. A saved trace is as good as a fresh one."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Literal

from normlens import views
from normlens.lens import files, pictured, table, through
from normlens.lens import routes as routed
from normlens.lens.block import Block, Layers, NotKept
from normlens.lens.network_map import NetworkMap
from normlens.lens.routes import THRESHOLD, Routes
from normlens.lens.wiring import Wire
from normlens.models import Side
from normlens.signature import Signature


@dataclass(frozen=True, slots=True, repr=False, eq=False)
class Trace:
    """The attention of one batch. A batch of one is the usual case; `trace[i]` cuts out sequence i."""

    blocks: tuple[Block, ...]  # in the order in which the model ran them
    wires: tuple[Wire, ...]  # every block of the model, also those not kept or refused
    sides: tuple[Side, ...]  # one per sequence: the text, or the source
    targets: tuple[Side, ...]  # one per sequence: the decoder's side; empty for models with one side
    signature: Signature
    others: Mapping[str, tuple[Side, ...]] = field(default_factory=dict)  # further sides of blocks, one per sequence

    @property
    def self_attention(self) -> Layers:
        """Layers of an encoder-only or decoder-only model."""
        return self._layers("self")

    @property
    def encoder_attention(self) -> Layers:
        return self._layers("encoder")

    @property
    def decoder_attention(self) -> Layers:
        return self._layers("decoder")

    @property
    def cross_attention(self) -> Layers:
        """Layers in which the queries are the decoder's (tgt) and the keys the encoder's (src)."""
        return self._layers("cross")

    def layers(self, kind: str) -> Layers:
        """Layers of any kind, or those over one side: "self", "cross", "image", "text" ..."""
        kinds = list(dict.fromkeys(block.kind for block in self.blocks))
        if kind not in kinds:
            kind = next((block.kind for block in self.blocks if block.tgt == block.src == kind), kind)
        if kind not in kinds:
            raise NotKept(f"no {kind} attention: this trace has {', '.join(kinds) or 'none'}.")
        return self._layers(kind)

    @property
    def tokens(self) -> list[tuple[str, ...]]:
        """Per sequence: the tokens of the text, or of the source."""
        return [side.tokens for side in self.sides]

    @property
    def words(self) -> list[tuple[str, ...]]:
        return [side.words for side in self.sides]

    @property
    def special(self) -> list[tuple[bool, ...]]:
        """Per sequence: which tokens are special ([CLS], [SEP], </s> ...)."""
        return [side.special for side in self.sides]

    @property
    def target_tokens(self) -> list[tuple[str, ...]]:
        """Per sequence: the tokens the decoder was fed."""
        return [side.tokens for side in self.targets]

    @property
    def target_words(self) -> list[tuple[str, ...]]:
        return [side.words for side in self.targets]

    @property
    def error(self) -> float:
        """The largest relative error of any block in this pass."""
        return max((block.error for block in self.blocks), default=0.0)

    def __len__(self) -> int:
        return len(self.sides)

    def __getitem__(self, index: int) -> Trace:
        """Sequence `index` alone, every tensor cut to its length."""
        if not -len(self) <= index < len(self):
            raise IndexError(f"no sequence {index}: this trace has sequences 0 to {len(self) - 1}")
        index %= len(self)
        others = {name: sides[index : index + 1] for name, sides in self.others.items()}
        own = (self.sides[index], *self.targets[index : index + 1], *(side for one in others.values() for side in one))
        here = {side.name: len(side.tokens) for side in own}
        blocks = tuple(
            block.sequence(index, here.get(block.tgt, _ALL), here.get(block.src, _ALL))
            if len(block.sizes) == len(self)
            else block
            for block in self.blocks
        )
        return replace(
            self,
            blocks=blocks,
            sides=(self.sides[index],),
            targets=self.targets[index : index + 1],
            others=others,
        )

    def side(self, name: str, index: int = 0) -> Side | None:
        """The tokens on the axis of that name, for one sequence."""
        own = (
            *self.sides[index : index + 1],
            *self.targets[index : index + 1],
            *self.others.get(name, ())[index : index + 1],
        )
        return next((side for side in own if side.name == name), None)

    def __iter__(self) -> Iterator[Trace]:
        return iter(self[index] for index in range(len(self)))

    def rollout(
        self,
        by: str = "weights",
        *,
        kind: str | None = None,
        layers: int | Sequence[int] | None = None,
        residual: float | None = None,
    ) -> NetworkMap:
        """What each position is made of after all layers: the product of the maps of the layers.

        `by` is a map that the blocks hold, rows brought to 1: "weights", "summed_norms", "normed_norms", "alti" ...; a
        map that knows nothing of the residual is averaged with it, one half each, or by the share `residual`.
        "globenc" multiplies encoder_norms as they are. Encoder-decoders: columns are the source and what the decoder
        was fed; `kind` chooses one attention, `layers` a stretch of layers.
        """
        return through.rollout(self, by, kind, layers, residual)

    def maxflow(
        self,
        by: str = "weights",
        *,
        positions: int | Sequence[int] | None = None,
        kind: str | None = None,
        layers: int | Sequence[int] | None = None,
        residual: float | None = None,
    ) -> NetworkMap:
        """The most that can flow from each token to a position (Abnar and Zuidema, 2020), with the shares of a rollout.

        Every pair of a position and a token is a search of its own: with `positions`, only these have rows.
        """
        return through.maxflow(self, by, positions, kind, layers, residual)

    def routes(
        self,
        position: int = -1,
        threshold: float = THRESHOLD,
        *,
        index: int = 0,
        kind: str | None = None,
        layers: int | Sequence[int] | None = None,
    ) -> Routes:
        """Which heads, residuals and feed-forward blocks lead to a position (Ferrando and Voita, 2024).

        Terms of a sum with a share of at least `threshold` are kept, in sequence `index`. Trace with
        fields=("route_shares", "feedforward_share").
        """
        return routed.routes(self, position, threshold, index, kind, layers)

    def alti(self) -> NetworkMap:
        """ALTI through all layers (Ferrando et al., 2022): the rollout of the layers' own ALTI."""
        return self.rollout("alti")

    def figure(self, index: int = 0, *, maps: Mapping[str, Sequence[Any]] | None = None, **look: Any) -> views.Figure:
        """Sequence `index` as a figure: it shows itself, and `.save()` writes .html, .svg, .pdf or .png.

        `look` says what is shown: view="heat", "lines", "grid", "bars" or "picture"; kind=, layers=, heads=, measures=
        (any quantity, yours included), scale="shared", hide=("special", "punctuation"), rescale=True, unit="words",
        pin="token" ... `maps` adds arrays: a name, and for each block an array (head, tgt, src) or (tgt, src), or None.
        """
        return pictured.figure(self, index, maps, look)

    def minus(self, other: Trace, index: int = 0, **look: Any) -> views.Figure:
        """What is larger here than in `other`, as a figure of signed maps: two models, or two texts."""
        asked = {"measures": look["measures"]} if "measures" in look else {}
        return self.figure(index, **asked).minus(other.figure(index, **asked)).looking(**look)

    def show(
        self,
        *,
        layer: int | None = None,
        head: int | None = None,
        pin: str | int | None = None,
        maps: bool = False,
        color: bool = False,
        width: int = 100,
    ) -> str:
        """The table of the first sequence for a terminal: of all layers, heads and queries, or of those named.

        With `maps` also the heat maps of one layer: the middle one, or the one named.
        """
        asked = {"layers": layer, "heads": head, "pin": pin}
        chosen: dict[str, Any] = {name: value for name, value in asked.items() if value is not None}
        figure = self.figure(**chosen)
        table = views.summary(figure, figure.look)
        return table if not maps else "\n".join([table, *self._maps(figure.resolved(), head, color, width)])

    @staticmethod
    def _maps(figure: views.Figure, head: int | None, color: bool, width: int) -> list[str]:
        group = figure.groups[str(figure.look.kind)]
        panel = next(index for index in group if figure.panels[index].layer in (*figure.look.layers, None))
        return [
            views.heatmap(figure, panel=panel, head=head, measure=measure, color=color, width=width)
            for measure in figure.look.measures
        ]

    def to_dataframe(self, *, per: Literal["head", "layer"] = "head") -> Any:
        """Long form: a row per sequence, block, (head,) query and key. Padding is not in it."""
        return table.dataframe(self, per=per)

    def save(self, path: str | Path, **look: Any) -> Path:
        """Write the trace; the suffix decides: .safetensors, .csv, .parquet, or as `figure` .html, .svg, .pdf, .png."""
        return files.save(self, Path(path), look)

    def _repr_html_(self) -> str:
        return "".join(views.fragment(self.figure(index)) for index in range(min(len(self), 4)))

    def __repr__(self) -> str:
        counts = {block.kind: 0 for block in self.blocks}
        for block in self.blocks:
            counts[block.kind] += 1
        parts = ", ".join(f"{count} {kind}" for kind, count in counts.items()) or "no"
        lengths = [len(s.tokens) for s in self.sides]
        lines = [
            f"Trace: {len(self)} sequence{'s' * (len(self) != 1)} of {_span(lengths)} tokens, {parts} blocks, "
            f"parts rebuild the output to {self.error:.0e}",
            f"  {self.signature}",
        ]
        lines += [f"  {' '.join(side.tokens[:14])}{' ...' * (len(side.tokens) > 14)}" for side in self.sides[:3]]
        return "\n".join(lines)

    def _layers(self, kind: str) -> Layers:
        wires = [wire for wire in self.wires if wire.kind == kind]
        return Layers(kind, [block for block in self.blocks if block.kind == kind], wires)


_ALL = 1 << 62


def _span(numbers: list[int]) -> str:
    low, high = min(numbers, default=0), max(numbers, default=0)
    return str(low) if low == high else f"{low} to {high}"
