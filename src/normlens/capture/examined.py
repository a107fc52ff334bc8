"""What a probe input showed about a model."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Literal

from normlens.capture.paths import NO_PATH, Path

Own = Literal["agrees", "none", "other", "differs", "not tried"]
Padding = Literal["equal", "differs", "not tried"]


@dataclass(frozen=True, slots=True)
class ExaminedBlock:
    """One attention block of the probe run, and how exactly its parts rebuilt its output."""

    order: int  # its place among all attention seen in the pass
    name: str  # module path of the attention
    out: str  # its output matrix; "" when it has none
    heads: int
    tgt: int
    src: int
    error: float  # ‖rebuilt - output‖ / ‖output‖
    reason: str | None  # why it is refused; None when exact
    own: Own = "not tried"  # whether α is what the model returns as its own attention weights
    own_reason: str = ""  # what it returns instead
    asks: tuple[str, ...] = ()  # the inputs its queries come from
    answers: tuple[str, ...] = ()  # the inputs its keys come from
    path: Path = NO_PATH  # its way to the end of the layer

    @property
    def exact(self) -> bool:
        return self.reason is None


@dataclass(frozen=True, slots=True)
class Examination:
    """The proofs of a model on one probe input."""

    blocks: tuple[ExaminedBlock, ...]
    difference: float  # ‖tapped - untapped‖ / ‖untapped‖ over the model's outputs
    reason: str | None  # why the model as a whole is refused; None when it is not
    stand_in: str | None = None  # the attention that was read in place of the user's own, which cannot be read
    changed: tuple[str, ...] = ()  # what the model changes about itself while it runs; it has been put back
    padding: Padding = "not tried"  # whether a padded text gives what it gives alone
    padding_reason: str = ""
    chains: Mapping[str, int] = field(default_factory=dict)  # output matrices that further matrices follow
    spare: Mapping[str, int] = field(default_factory=dict)  # uses of an output matrix beside its blocks
    read_on: Mapping[str, int] = field(default_factory=dict)  # matrices that follow it in whatever module

    @property
    def exact(self) -> bool:
        """Every attention block in the model is exact."""
        return self.reason is None and bool(self.blocks) and all(block.exact for block in self.blocks)

    @property
    def batches(self) -> bool:
        """Whether padded batches can be trusted; if not, texts of different lengths are to be run one by one."""
        return self.padding == "equal"

    @property
    def options(self) -> dict[str, Any]:
        """How a pass is to be run so that it is read as it was proved."""
        return {"stand_in": self.stand_in, "chains": self.chains}

    def extended(self, more: Examination) -> Examination:
        """This proof, and one on further inputs."""
        known = {block.name: block for block in (*self.blocks, *more.blocks)}
        return replace(
            self,
            blocks=tuple(known.values()),
            difference=max(self.difference, more.difference),
            changed=tuple(dict.fromkeys((*self.changed, *more.changed))),
            chains={**self.chains, **more.chains},
            spare={**self.spare, **more.spare},
            read_on={**self.read_on, **more.read_on},
        )
