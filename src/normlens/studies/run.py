"""The loop: stream a corpus through a model, count, save, go on.

Room: studies. Memory is bounded by one batch and by the statistics, whatever the length of the corpus. After every
shard the run can be saved; what comes after a save is the same whether or not it was interrupted there.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from normlens import statistics
from normlens.lens import Block
from normlens.studies.batches import Batch, batches, shards
from normlens.studies.categories import CategoriesStudy
from normlens.studies.correlation import CorrelationStudy
from normlens.studies.dispersion import DispersionStudy
from normlens.studies.frequency import FrequencyStudy
from normlens.studies.look import look
from normlens.studies.seeing import Study
from normlens.studies.setting import Setting, StudyError
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
            "finished": False,
        }
        if file is not None:
            self._begin(file, resume)
        self.studies = self._studies()

    def go(self, progress: Callable[[int], None] = lambda items: None) -> None:
        """Run to the end. `progress` is told how many items are done, also those of an earlier run."""
        progress(self.facts["items"])
        saved = time.monotonic()
        setting = self.setting
        for items in shards(setting.corpus, SHARD, limit=setting.items, skip=self.facts["items"]):
            chosen = batches(
                setting.lens.subject, items, setting.categories, length=setting.length, tokens=setting.batch_tokens
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
        for group in batch.groups.values():
            self.facts["tokens"] += int(group.lengths.sum())
            self.facts["squares"] += int((group.lengths**2).sum())

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

    def _save(self) -> None:
        if self.file is not None:
            statistics.write(self.file, self.settled(), {**self.facts, "identity": self.setting.identity})

    def _begin(self, file: Path, resume: bool) -> None:
        try:
            file.parent.mkdir(parents=True, exist_ok=True)
            file.with_name(file.name + ".new").touch()
            file.with_name(file.name + ".new").unlink()
        except OSError as error:
            raise StudyError(
                f"Nothing can be written to {file.parent}: {error}.\n"
                "  Usual causes: no permission, a full disk, or a file of that name.\n  Do: give another folder."
            ) from error
        if not file.exists():
            return
        state, facts = statistics.read(file)
        if resume:
            then, now = facts.get("identity", {}), self.setting.identity
            differs = [name for name, value in now.items() if then.get(name) != value]
            if differs:
                raise StudyError(
                    f"The run in {file.parent} was another one: its {differs[0]} differs.\n"
                    f"  Then: {then.get(differs[0])}\n  Now:  {now[differs[0]]}\n"
                    "  Do: ask for the same as before, or give another folder."
                )
            self.state.update(state)
            self.facts = {k: v for k, v in facts.items() if k != "identity"}
        elif not facts.get("finished"):
            raise StudyError(
                f"{file.parent} holds a run that was interrupted after {facts.get('items')} items.\n"
                "  Do: --resume (resume=True) to go on with it, or give another folder to start a new one."
            )
