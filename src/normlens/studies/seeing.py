"""What every study has in common: when it is told what.

Room: studies.
"""

from __future__ import annotations

from typing import Any

from normlens.studies.batches import Batch
from normlens.studies.look import Look
from normlens.studies.state import State


class Study:
    """Counts into a state. A study does what it needs at each of these moments, most need only the first."""

    def __init__(self, state: State) -> None:
        self.state = state

    def see(self, look: Look) -> None:
        """A block of a batch, as soon as it exists."""

    def finish(self, batch: Batch, output: Any) -> None:
        """A batch is through the model, which returned `output`."""

    def shard(self) -> None:
        """A shard is over: the run may be continued from here, so whatever waits must be counted now."""

    def settle(self) -> None:
        """The state is about to be read."""
