"""The loop: stream a corpus through a model, count, save, go on.

Room: studies. Memory is bounded by one batch and by the statistics, whatever the length of the corpus. After every
shard the run can be saved; what comes after a save is the same whether or not it was interrupted there.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from normlens import statistics
from normlens.lens import Block
from normlens.studies.batches import Batch, Group, batches, shards
from normlens.studies.categories import CategoriesStudy
from normlens.studies.correlation import CorrelationStudy
from normlens.studies.dispersion import DispersionStudy
from normlens.studies.frequency import FrequencyStudy
from normlens.studies.look import look
from normlens.studies.saved import begun, left
from normlens.studies.seeing import Study
from normlens.studies.setting import Setting
from normlens.studies.state import State

SHARD = 64  # items between two points at which a run can be continued
SAVE = 30.0  # seconds between two saves


class Run:
    """A study over a corpus, as far as it has come."""

    def __init__(self, setting: Setting, file: Path | None = None, *, resume: bool = False) -> None:
        self.setting, self.file = setting, file
        self.state = State()
        self.facts: dict[str, Any] = {
            "items": 0,
            "tokens": 0,
            "squares": 0,
            "error": 0.0,
            "causal": [],
            "loose": {},
            "finished": False,
        }
        if file is not None and (before := begun(file, setting.identity, resume=resume)) is not None:
            self.state.update(before[0])
            self.facts = before[1]
        self.saved: int = self.facts["items"]  # what an interruption leaves
        self.studies = self._studies()

    def go(self, progress: Callable[[int], None] = lambda items: None) -> None:
        """Run to the end. `progress` is told how many items are done, also those of an earlier run."""
        progress(self.facts["items"])
        saved = time.monotonic()
        setting = self.setting
        for items in shards(setting.corpus, SHARD, limit=setting.items, skip=self.facts["items"]):
            chosen = batches(
                setting.lens.subject,
                items,
                setting.categories,
                length=setting.length,
                tokens=setting.batch_tokens,
                padded=setting.lens.takes_padding,
            )
            for batch in chosen:
                self._see(batch)
                progress(len(next(iter(batch.groups.values())).lengths))
            for study in self.studies:
                study.shard()
            self.facts["items"] += len(items)
            if time.monotonic() - saved > SAVE:
                self._save()
                saved = time.monotonic()
        self.facts["finished"] = True
        self._save()

    def _see(self, batch: Batch) -> None:
        number = batch.number

        def on_block(block: Block) -> None:
            self.facts["error"] = max(self.facts["error"], block.error)
            tgt, src = batch.groups.get(block.tgt), batch.groups.get(block.src)
            if tgt is None or src is None or block.weights.shape[2:] != (tgt.ids.shape[1], src.ids.shape[1]):
                self.facts.setdefault("left_out", {})[f"{block.kind} L{block.layer}"] = (
                    "it looks at something else than tokens"
                )
                return
            seen = look(block, src.categories, tgt.lengths, number)
            if seen.causal and block.kind not in self.facts["causal"]:
                self.facts["causal"].append(block.kind)
            for study in self.studies:
                study.see(seen)

        output = self.setting.lens.observe(
            batch.encoded, on_block, fields=("weights", "transformed_norms"), hidden_states=True
        )
        for study in self.studies:
            study.finish(batch, output)
        for side, group in batch.groups.items():
            self.facts["tokens"] += int(group.lengths.sum())
            self.facts["squares"] += int((group.lengths**2).sum())
            self._count_loose(side, group)

    def _count_loose(self, side: str, group: Group) -> None:
        """Special tokens that fell into "other", by id: a reader of that category must know of them."""
        loose = group.ids[group.special & (group.categories == len(self.setting.categories.listed))]
        known = self.facts["loose"].setdefault(side, {})
        for token, count in zip(*np.unique(loose, return_counts=True), strict=True):
            known[str(token)] = known.get(str(token), 0) + int(count)

    def _studies(self) -> list[Study]:
        setting, state = self.setting, self.state
        made: dict[str, Callable[[], Study]] = {
            "dispersion": lambda: DispersionStudy(state),
            "categories": lambda: CategoriesStudy(state, len(setting.categories.names)),
            "correlation": lambda: CorrelationStudy(state, setting.seed),
        }
        if setting.ranks is not None:
            ranks = setting.ranks
            made["frequency"] = lambda: FrequencyStudy(state, ranks, setting.seed)
        return [made[name]() for name in setting.studies]

    def settled(self) -> State:
        """The statistics, complete up to now."""
        for study in self.studies:
            study.settle()
        return self.state

    def left(self) -> str:
        """What an interruption leaves, and how to go on."""
        return left(self.file, self.saved, self.setting.items)

    def _save(self) -> None:
        if self.file is not None:
            statistics.write(self.file, self.settled(), {**self.facts, "identity": self.setting.identity})
            self.saved = self.facts["items"]
