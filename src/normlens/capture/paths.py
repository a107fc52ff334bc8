"""Which states of a block are its residual sum, its norm and the end of its layer: read once, on the probe.

    residual    o + x                      normed    N(o + x), where the layer goes on with the normed vector
    joined      what the feed-forward block is added to, with what it adds, before any norm behind it
    output      the end of the layer: the feed-forward block added, and normed where the layer goes on with that

A later pass keeps the states of these numbers, and they must have come about in the same way.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from normlens.capture.labels import ALONE, NORM_WORDS, Followed, Linear, Term
from normlens.capture.routed import is_routed

Scope = str  # one of SCOPES
SCOPES = ("residual", "normed", "encoder", "joined", "output")
RERUN = "rerun"  # for value zeroing: the end of the layer, computed anew for other outputs of the attention
NEAREST = "nearest"  # for ALTI: normed where there is such a state, else residual
ADDED = "added"  # for routes: the sum with the feed-forward block, behind the attention or beside it
NO_NORM = "no norm follows the sum with the residual in this block"
NO_FEEDFORWARD = "no feed-forward block was seen to follow it"
NO_LAYER = "nothing is added to what it writes: no residual, so no layer stands behind it"
PARALLEL = "the feed-forward block runs beside the attention"
BESIDE = "something that is made beside the attention is added"
ROUTED = "a mixture of experts would route a changed token anew"
NO_SUM = "no sum with a residual was seen behind the attention output"


@dataclass(frozen=True, slots=True)
class Path:
    """The states of a block by scope, and why a scope does not exist."""

    numbers: dict[Scope, int] = field(default_factory=dict)
    spellings: dict[Scope, tuple[str, ...]] = field(default_factory=dict)
    reasons: dict[Scope, str] = field(default_factory=dict)
    errors: dict[Scope, float] = field(default_factory=dict)  # how exactly its terms rebuilt it on the probe

    def has(self, scope: Scope) -> bool:
        return scope in self.numbers

    @property
    def alone(self) -> bool:
        """Whether no layer stands behind the attention, as in a pooling head."""
        return self.reasons.get("residual") == NO_LAYER

    def missing(self, scope: Scope) -> str | None:
        """Why a scope that the layer has cannot be split; None when it can, or when the layer has no such part."""
        reason = None if self.has(scope) else self.reasons.get(scope, "it was not seen on the probe")
        return None if reason in (NO_NORM, NO_FEEDFORWARD) else reason


NO_PATH = Path(
    reasons=dict.fromkeys((*SCOPES, NEAREST, ADDED, RERUN), "its output matrix writes no rows that can be followed")
)


def paths(blocks: Sequence[Followed]) -> dict[int, Path]:
    """The path of every block of a pass, by its order."""
    found = {block.order: _Read(block) for block in blocks}
    for read in found.values():
        read.settle([other for other in found.values() if other is not read])
    return {order: read.path() for order, read in found.items()}


class _Read:
    """One block: its states, and what is made of them."""

    def __init__(self, followed: Followed) -> None:
        self.followed = followed
        self.states = [state for state, _ in followed.states]
        self.sum = next((one for one in self.states if _residual(one) and not self._goes_on(one)), None)
        self.joined = None if self.sum is None else next((one for one in self._from(self.sum) if _joins(one)), None)
        self.after_sum = self._normed(self.sum)
        self.after_join = self._normed(self.joined) if self.joined is not self.sum else self.after_sum
        self.sum_is_normed: bool | None = None
        self.end_is_normed: bool | None = None
        self.strangers_are_companions = False  # the first block shows no earlier one that would tell what they are
        if self.sum is not None:
            self.sum_is_normed = self._evidence(self.sum, self.after_sum)
        if self.joined is not None and self.joined is not self.sum:
            line = _line(self.joined)
            self.sum_is_normed = self.after_sum is not None and self.after_sum.number in line
            self.end_is_normed = self._evidence(self.joined, self.after_join)

    def settle(self, others: Sequence[_Read]) -> None:
        """What the block itself does not show, because it is the last: as in the others, else as after its sum."""
        if self.sum is None:
            return
        if self.sum_is_normed is None:
            self.sum_is_normed = self._like(others, "sum_is_normed")
        known = {one.joined.spelling for one in others if one.joined is not None and not one.joined.holds("stranger")}
        if self.joined is not None:
            self.strangers_are_companions = _named(self.joined) in known
        if self.end_is_normed is None and self.joined is not None and self.joined is not self.sum:
            alike = self._like(others, "end_is_normed")
            self.end_is_normed = self.sum_is_normed if alike is None else alike

    def path(self) -> Path:
        path = Path()
        if self.sum is None:
            reason = NO_SUM if any(map(self._meets_residual, self.followed.met)) else NO_LAYER
            path.reasons.update(dict.fromkeys((*SCOPES, NEAREST, ADDED, RERUN), reason))
            return path
        self._set(path, "residual", self.sum)
        if self.sum_is_normed and self.after_sum is not None:
            self._set(path, "normed", self.after_sum)
            self._set(path, NEAREST, self.after_sum)
        elif self.sum_is_normed is None:
            path.reasons[NEAREST] = path.reasons["normed"] = (
                "the pass does not show whether the norm behind the sum belongs to this block"
            )
        else:
            self._set(path, NEAREST, self.sum)
            path.reasons["normed"] = NO_NORM
        if self.joined is None:
            end = self.after_sum if path.has("normed") else self.sum
            self._set(path, "encoder", end)
            self._set(path, RERUN, end)
            path.reasons.update(dict.fromkeys(("joined", ADDED, "output"), NO_FEEDFORWARD))
            return path
        parallel = self.joined is self.sum
        end_is_normed = self.sum_is_normed if parallel else self.end_is_normed
        end = self.after_join if end_is_normed and self.after_join is not None else self.joined
        self._set(path, "encoder", end)
        unsplit = next((reason for term in end.terms if (reason := self._unsplit(term)) is not None), None)
        if unsplit is None:
            self._set(path, "output", end)
            self._set(path, ADDED, self.joined)
        else:
            path.reasons["output"] = path.reasons[ADDED] = f"what joins next cannot be split: {unsplit}"
        if unsplit is None and not any(map(is_routed, end.terms)):
            self._set(path, RERUN, end)
        else:
            path.reasons[RERUN] = path.reasons.get("output", ROUTED)
        if parallel:
            path.reasons["joined"] = PARALLEL
        elif unsplit is None:
            self._set(path, "joined", self.joined)
        else:
            path.reasons["joined"] = path.reasons["output"]
        return path

    def _goes_on(self, state: Linear) -> bool:
        """Whether what a sum is made from is read elsewhere too: then a position was added, and no residual."""
        line = _line(state)
        sums = [one for one in self.states if one.number in line and one.spelling[-1] not in ALONE]
        beside = [one.number for one in self.states if state.number not in _line(one)]
        return sum(self.followed.read[number] for number in beside) > len(sums)

    def _meets_residual(self, number: int | None) -> bool:
        """Whether a sum of a state and something older may be a residual: the state is read nowhere else."""
        state = next((one for one in self.states if one.number == number), None)
        return state is None or max(self.followed.read[before] for before in _line(state)) < 2

    def _unsplit(self, term: Term) -> str | None:
        """Why a term that joins next cannot be split among tokens; None when it can."""
        if term.source.kind == "other":
            return term.source.reason
        if term.source.kind == "stranger" and not self.strangers_are_companions:
            return BESIDE
        if term.source.network is None:
            return None
        read = term.source.network.reads
        if sum(one.source.kind == "attention" for one in read.terms) != 1:
            return "a feed-forward block does not read the attention output once"
        return "a feed-forward block reads what another one wrote" if _joins(read) else None

    def _set(self, path: Path, scope: Scope, state: Linear | None) -> None:
        assert state is not None
        if sum(term.source.kind == "attention" for term in state.terms) != 1:
            path.reasons[scope] = "the attention output is added to itself"
            return
        path.numbers[scope], path.spellings[scope] = state.number, state.spelling

    def _evidence(self, bare: Linear, normed: Linear | None) -> bool | None:
        """Whether the model goes on with the normed state: it is what a later block takes as its residual."""
        if normed is None:
            return False
        used = set(self.followed.used)
        if normed.number in used:
            return True
        return False if bare.number in used or set(self.followed.added) & {bare.number} else None

    def _like(self, others: Sequence[_Read], what: str) -> bool | None:
        known = [getattr(one, what) for one in others if one.sum is not None and _named(one.sum) == _named(self.sum)]
        known = [one for one in known if one is not None]
        return max(set(known), key=known.count) if known else None

    def _from(self, state: Linear) -> list[Linear]:
        return [one for one in self.states if one.number >= state.number]

    def _normed(self, state: Linear | None) -> Linear | None:
        """The last of the states that a norm made of this one, step by step."""
        if state is None:
            return None
        normed = {state.number: False}
        for one in self._from(state):
            before = None if one.parent is None else one.parent.number
            if before in normed and one.spelling[-1] in NORM_WORDS and _joins(one) == _joins(state):
                normed[one.number] = normed[before] or one.spelling[-1] in ("norm", "layer_norm", "rms_norm")
        whole = [one for one in self.states if normed.get(one.number)]
        return whole[-1] if whole else None


def _named(state: Linear | None) -> tuple[str, ...]:
    """How a state came about, with what the first block of a model cannot tell named as in the others."""
    return () if state is None else tuple(word.replace("stranger", "companion") for word in state.spelling)


def _residual(state: Linear) -> bool:
    return state.holds("residual")


def _joins(state: Linear) -> bool:
    return state.holds("feedforward", "other", "companion", "stranger")


def _line(state: Linear) -> set[int]:
    """The numbers of the states from which a state was made, in a row."""
    numbers: set[int] = set()
    current: Linear | None = state
    while current is not None:
        numbers.add(current.number)
        current = current.parent
    return numbers
