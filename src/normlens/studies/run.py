"""The loop: stream a corpus through a model, count, save, continue.

Memory is bounded by one batch and by the statistics, whatever the length of the corpus. After every shard the run can
be saved; what comes after a save is the same whether or not it was interrupted there.
"""

from __future__ import annotations

import time
import zlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from normlens import statistics
from normlens.exhibits import listing
from normlens.lens import SIDES, Block
from normlens.models import text_tokenizer
from normlens.statistics import Statistic
from normlens.studies.batches import Batch, Group, batches, shards
from normlens.studies.request import Request
from normlens.studies.saved import begun, left
from normlens.studies.seen import Facts, Pass, Seen, seen_block
from normlens.studies.study import Counter, Study, StudyError, is_ours, named
from normlens.studies.sums import Sums

SHARD = 64  # items between two points at which a run can be continued
SAVE = 30.0  # seconds between two saves


class Run:
    """Studies over a corpus, as far as they have come."""

    def __init__(self, request: Request, file: Path | None = None, *, resume: bool = False) -> None:
        self.request, self.file = request, file
        self.statistics: dict[str, Statistic] = {}
        self.counted: dict[str, Any] = {
            "items": 0,
            "tokens": 0,
            "squares": 0,
            "error": 0.0,
            "causal": [],
            "uncategorised": {},
            "left_out": {},
            "untransformed": {},  # blocks in which f(x) alone does not exist, and why
            "mass": {},  # by kind: sum and number of what the weights of a head add up to
            "finished": False,
        }
        if file is not None and (before := begun(file, request.identity, resume=resume)) is not None:
            self.statistics.update(before[0])
            self.counted |= before[1]
        self.saved: int = self.counted["items"]  # what an interruption leaves
        self._asked = request.facts
        self._counters: list[tuple[Study[Any], Counter]] = []
        for study in request.studies:
            with named(study, "counter"):
                self._counters.append((study, study.counter(Sums(self.statistics, study.name), self._asked)))
        needed = [name for study in request.studies for name in study.needs.quantities]
        self._fields = tuple(dict.fromkeys(("weights", "transformed_norms", "visible", *needed)))
        self._hidden_states = any(study.needs.hidden_states for study in request.studies)
        self._whole_pass = any(study.needs.whole_pass for study in request.studies)

    def go(self, progress: Callable[[int], None] = lambda items: None) -> None:
        """Run to the end. `progress` is told how many items are done, also those of an earlier run."""
        progress(self.counted["items"])
        saved = time.monotonic()
        request = self.request
        for items in shards(request.corpus, SHARD, limit=request.items, skip=self.counted["items"]):
            for batch in batches(
                request.lens.subject,
                items,
                request.categories,
                length=request.length,
                tokens=request.batch_tokens,
                padded=request.lens.takes_padding,
            ):
                self._see(batch)
                progress(len(next(iter(batch.groups.values())).lengths))
            for study, counter in self._counters:
                with named(study, "shard"):
                    counter.shard()
            self.counted["items"] += len(items)
            if time.monotonic() - saved > SAVE:
                self._save()
                saved = time.monotonic()
        self.counted["finished"] = True
        self._save()

    def _see(self, batch: Batch) -> None:
        number, whole = batch.number, True
        blocks: list[Seen] = []

        def on_block(block: Block) -> None:
            nonlocal whole
            self.counted["error"] = max(self.counted["error"], block.error)
            tgt, src = batch.groups.get(block.tgt), batch.groups.get(block.src)
            if tgt is None or src is None or block.weights.shape[2:] != (tgt.ids.shape[1], src.ids.shape[1]):
                self.counted["left_out"][f"{block.kind} L{block.layer}"] = "its queries or keys are no tokens"
                return
            seen = seen_block(self._asked, block, tgt, src, number)
            mass = self.counted["mass"].setdefault(block.kind, [0.0, 0])
            mass[0], mass[1] = mass[0] + float(seen.mass.sum()), mass[1] + seen.mass.size
            if seen.causal and block.kind not in self.counted["causal"]:
                self.counted["causal"].append(block.kind)
            if block.no_transformed is not None:
                whole = False
                self.counted["untransformed"][f"{block.kind} L{block.layer}"] = block.no_transformed
            for study, counter in self._counters:
                if block.no_transformed is None or not study.needs.transformed:
                    with named(study, "see"), _unwritten(study, seen):
                        counter.see(seen)
            if self._whole_pass:
                blocks.append(seen)

        output = self.request.lens.observe(
            batch.encoded, on_block, fields=self._fields, hidden_states=self._hidden_states
        )
        for study, counter in self._counters:
            with named(study, "see_pass"):
                if whole or not study.needs.transformed:
                    counter.see_pass(Pass(self._asked, batch, output, tuple(blocks)))
        for side, group in batch.groups.items():
            self.counted["tokens"] += int(group.lengths.sum())
            self.counted["squares"] += int((group.lengths**2).sum())
            self._count_uncategorised(side, group)

    def _count_uncategorised(self, side: str, group: Group) -> None:
        """Special tokens in "other", by id: a reader of that category must know of them."""
        ids = group.ids[group.special & (group.categories == len(self.request.categories.listed))]
        counts = self.counted["uncategorised"].setdefault(side, {})
        for token, count in zip(*np.unique(ids, return_counts=True), strict=True):
            counts[str(token)] = counts.get(str(token), 0) + int(count)

    def settled(self) -> dict[str, Statistic]:
        """The statistics, complete up to now."""
        for study, counter in self._counters:
            with named(study, "settle"):
                counter.settle()
        return self.statistics

    def facts(self) -> Facts:
        """The facts of the run, with what was counted so far."""
        counted, lens = self.counted, self.request.lens
        tokenizer = lens.subject.tokenizer
        notes = [
            *self.request.corpus.notes,
            *(f"{block} is left out: {reason}." for block, reason in sorted(counted["left_out"].items())),
            *(f"{wire.kind} L{wire.layer} is left out: {wire.reason}." for wire in lens.wires if wire.reason),
            *self._without_transformed(),
            *(
                f"The attention weights of a query add up to {total / size:.2f} on average ({kind} attention): the "
                "rest goes to a learned sink and to no token. Shares of the attention are of what tokens receive; "
                "attention sinks are judged by α itself."
                for kind, (total, size) in counted["mass"].items()
                if size and total / size < 0.99
            ),
        ]
        uncategorised = {
            kind: dict(zip(spelled(tokenizer, [int(i) for i in counts]), counts.values(), strict=True))
            for kind, (_, side) in SIDES.items()
            if (counts := counted["uncategorised"].get(side))
        }
        return replace(
            self._asked,
            items=counted["items"],
            tokens=counted["tokens"],
            squares=counted["squares"],
            error=counted["error"],
            causal=tuple(counted["causal"]),
            uncategorised=uncategorised,
            notes=tuple(notes),
        )

    def _without_transformed(self) -> list[str]:
        """Which studies leave out the blocks that have no f(x), and why."""
        blocks: dict[str, list[str]] = {}
        for block, reason in self.counted["untransformed"].items():
            blocks.setdefault(reason, []).append(block)
        titles = listing([f"“{study.title}”" for study in self.request.studies if study.needs.transformed])
        leave = f" {titles} {'leaves' if titles.count('“') == 1 else 'leave'} them out." if titles else ""
        return [
            f"‖f(x)‖ does not exist in {listing(sorted(names))}: {reason}. Contributions ‖αf(x)‖ do.{leave}"
            for reason, names in blocks.items()
        ]

    def left(self) -> str:
        """What an interruption leaves, and how to continue."""
        return left(self.file, self.saved, self.request.items)

    def _save(self) -> None:
        if self.file is not None:
            statistics.write(self.file, self.settled(), {**self.counted, "identity": self.request.identity})
            self.saved = self.counted["items"]


@contextmanager
def _unwritten(study: Study[Any], seen: Seen) -> Iterator[None]:
    """A study of the user's own may not write over what it is shown: the others would count its numbers as theirs."""
    if is_ours(study):
        yield
        return
    visible = [] if seen.visible is None else [seen.visible]
    tensors = [seen.weights, *visible, *seen.block.kept.values(), *seen.kept.values()]

    def state() -> list[int]:
        arrays = (zlib.crc32(array.tobytes()) for array in (seen.norms, seen.received))
        return [*(tensor._version for tensor in tensors), *arrays]

    before = state()
    yield
    if state() != before:
        raise StudyError(
            "It wrote over what it was shown, which the other studies read too.",
            do="work on a copy, as in seen.weights.clone() or seen.norms.copy().",
        )


def spelled(tokenizer: Any | None, ids: list[int]) -> tuple[str, ...]:
    """Token ids as the tokenizer writes them; without one they stand for themselves."""
    tokenizer = text_tokenizer(tokenizer)
    if tokenizer is None or not hasattr(tokenizer, "convert_ids_to_tokens"):
        return tuple(str(i) for i in ids)
    return tuple(str(token) for token in tokenizer.convert_ids_to_tokens(ids))
