"""How much does ‖f(x)‖ differ from token to token? Tables 1 and 4 of the 2020 paper.

Room: studies. Pooled: every real token of the corpus counts once, per head (‖f(x)‖) or per layer (‖x‖).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import torch

from normlens.lens.wiring import SIDES, Kind
from normlens.statistics import Moments
from normlens.studies.batches import Batch
from normlens.studies.look import Look
from normlens.studies.results import Dispersion, Spread
from normlens.studies.seeing import Study
from normlens.studies.state import State, by_layer, padded

HIDDEN: dict[Kind, str] = {
    "self": "hidden_states",
    "encoder": "encoder_hidden_states",
    "decoder": "decoder_hidden_states",
}


class DispersionStudy(Study):
    """Counts lengths."""

    def see(self, look: Look) -> None:
        lengths = look.norms.transpose(0, 2, 1)[look.real]
        self.state.add(f"dispersion/{look.kind}/{look.layer}/transformed", Moments.of(lengths))

    def finish(self, batch: Batch, output: Any) -> None:
        for kind, name in HIDDEN.items():
            group = batch.groups.get(SIDES[kind][1])
            if group is None:
                continue
            for layer, states in enumerate((getattr(output, name, None) or ())[:-1]):
                if isinstance(states, torch.Tensor) and states.shape[:2] == group.ids.shape:
                    lengths = states.float().norm(dim=-1).cpu().numpy()[group.categories >= 0]
                    self.state.add(f"dispersion/{kind}/{layer}/inputs", Moments.of(lengths[:, None]))


def dispersion(state: State, kind: str, singular: Mapping[Any, Any], reasons: Mapping[Any, str]) -> Dispersion:
    """What was counted, as a result."""
    layers, moments = by_layer(state, f"dispersion/{kind}", "transformed")
    given, inputs = by_layer(state, f"dispersion/{kind}", "inputs")
    notes = []
    if kind == "cross":
        notes.append("‖x‖: the inputs of cross-attention are the outputs of the encoder, the same for every layer.")
    elif given != layers:
        inputs = []
        notes.append("‖x‖: the model does not show one hidden state per attention layer.")
    maps = [np.asarray(singular[kind, layer]) for layer in layers if (kind, layer) in singular]
    missing = {reasons[kind, layer] for layer in layers if (kind, layer) in reasons}
    notes += [f"Singular values are missing for some layers: {reason}." for reason in sorted(missing)]
    complete = len(maps) == len(layers) and len({m.shape[1] for m in maps}) == 1
    return Dispersion(
        kind=kind,
        layers=layers,
        transformed=_spread(moments),
        inputs=_flat(_spread(inputs)) if inputs and kind != "cross" else None,
        singular=padded(maps) if complete else None,
        notes=tuple(notes),
    )


def _spread(moments: list[Moments]) -> Spread:
    count = padded([m.count for m in moments])
    return Spread(
        np.nan_to_num(count).astype(np.int64),
        *(padded([getattr(m, part) for m in moments]) for part in ("mean", "deviation", "low", "high")),
    )


def _flat(spread: Spread) -> Spread:
    """Without the axis of heads."""
    return Spread(*(getattr(spread, part)[:, 0] for part in ("count", "mean", "deviation", "low", "high")))
