"""What a study is: one question asked of a corpus, in one file.

A study says what it counts of every attention block, what it found, and how that is told. The loop adds, saves, resumes
and shows; the report page, the terminal, the tables, `--help`, the docs and the explorer read it from here.

    class Sharpness(Study):
        name, title = "sharpness", "How sharp is each head?"

        def see(self, seen):
            sharpest = seen.weights.amax(-1).movedim(1, -1).cpu().numpy()  # (batch, tgt, head)
            return {"max": Moments.of(sharpest[seen.real_queries])}

        def result(self, sums, run):
            layers, moments = sums.by_layer("max")
            return {layer: m.mean for layer, m in zip(layers, moments)}

        def section(self, result, run):
            rows = [{"layer": layer, "sharpest": float(mean.max())} for layer, mean in result.items()]
            return Section([f"{len(rows)} layers were measured."], [Table("sharpness", "Sharpest head", rows)])
"""

from __future__ import annotations

import inspect
import traceback
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Generic, Protocol, TypeVar, get_args, runtime_checkable

from normlens.corpora import Corpus
from normlens.errors import NormlensError
from normlens.exhibits import Section
from normlens.lens import Lens
from normlens.statistics import Moments, Statistic
from normlens.studies.per_head import PerHead
from normlens.studies.seen import Facts, Pass, Seen
from normlens.studies.sums import Sums

R = TypeVar("R")


class StudyError(NormlensError):
    """A study that cannot be run as asked."""


@dataclass(frozen=True, slots=True)
class Needs:
    """What a study asks of every pass, beside attention weights and ‖f(x)‖, which are always there."""

    quantities: tuple[str, ...] = ()  # names of measures, ours or the user's: `seen["name"]`
    hidden_states: bool = False  # of the model's output, for `see_pass`
    whole_pass: bool = False  # every block of a batch at once, for `see_pass`
    ranks: bool = False  # frequency ranks of tokens: `run.ranks`
    transformed: bool = False  # ‖f(x)‖ itself: blocks in which f(x) alone does not exist are left out


@runtime_checkable
class Counter(Protocol):
    """Counts in bulk, for studies that would be slow block by block."""

    def see(self, seen: Seen) -> None:
        """A block of a batch, as soon as it exists."""

    def see_pass(self, passed: Pass) -> None:
        """A batch is through the model."""

    def shard(self) -> None:
        """A shard is over: the run may be continued from here, so whatever waits must be counted now."""

    def settle(self) -> None:
        """The sums are about to be read."""


class Study(Generic[R]):
    """One question asked of a corpus. Every study is a subclass and overrides what it needs."""

    name: str  # of the study on the command line and of its files
    title: str  # a heading
    question: str = ""  # what is asked, in a few sentences
    caution: str = ""  # what a reader must mind
    method: tuple[str, ...] = ()  # how it is computed, paragraph by paragraph
    paper: str = ""  # where it comes from
    causal: str = (  # what follows where a query sees only earlier keys
        "This attention is causal: a query sees only itself and earlier tokens. Each query spreads its attention over "
        "the keys it can see and every query counts equally, so early tokens receive attention from more queries."
    )
    headlines: int = 1  # sentences that go to the top of the report
    needs: Needs = Needs()

    def __str__(self) -> str:
        """Its name, and the arguments that it was made with where they are not the defaults."""
        defaults = {name: parameter.default for name, parameter in inspect.signature(type(self)).parameters.items()}
        chosen = {name: getattr(self, name, default) for name, default in defaults.items()}
        told = [f"{name}={value!r}" for name, value in chosen.items() if repr(value) != repr(defaults[name])]
        return f"{self.name}({', '.join(told)})" if told else self.name

    def prepared(self, corpus: Corpus, lens: Lens, length: int) -> Corpus:
        """The texts that the study reads: the corpus as it is, or one that is made of it. Such a study runs alone."""
        return corpus

    def see(self, seen: Seen) -> Mapping[str, Statistic]:
        """What one attention block of one batch adds, by name."""
        return {}

    def see_pass(self, passed: Pass) -> Mapping[tuple[str, int], Mapping[str, Statistic]]:
        """What a whole pass adds, by (kind, layer) and name."""
        return {}

    def counter(self, sums: Sums, run: Facts) -> Counter:
        """Who counts: by default `see` and `see_pass`, added up."""
        return _Adding(self, sums)

    def result(self, sums: Sums, run: Facts) -> R:
        """What was counted for one kind of attention, `sums.kind`, as a result."""
        raise NotImplementedError(f"the study {self.name!r} has no result()")

    def per_head(self, result: R) -> PerHead | None:
        """What the result says of every head: columns of the profile of the heads."""
        return None

    def section(self, result: R, run: Facts) -> Section:
        """The result as sentences, tables and figures."""
        raise NotImplementedError(f"the study {self.name!r} has no section()")


class _Adding:
    def __init__(self, study: Study[Any], sums: Sums) -> None:
        self.study, self.sums = study, sums

    def see(self, seen: Seen) -> None:
        self._add(seen.kind, seen.layer, self.study.see(seen))

    def see_pass(self, passed: Pass) -> None:
        for (kind, layer), statistics in self.study.see_pass(passed).items():
            self._add(kind, layer, statistics)

    def _add(self, kind: str, layer: int, statistics: Mapping[str, Statistic]) -> None:
        sums = self.sums.of(kind)
        for name, statistic in statistics.items():
            _check_adds(name, sums.get(f"{layer}/{name}"), statistic)
            sums.add(f"{layer}/{name}", statistic)

    def shard(self) -> None:
        pass

    def settle(self) -> None:
        pass


def _check_adds(name: str, before: Any, statistic: Any) -> None:
    """Statistics of one name must be of one type and one shape, or numpy would stretch one to fit the other."""
    if not isinstance(statistic, get_args(Statistic)):
        kinds = ", ".join(kind.__name__ for kind in get_args(Statistic))
        raise StudyError(
            f"'{name}' is no statistic.", got=f"{statistic!r:.80}", do=f"give one of {kinds}, of normlens.statistics."
        )
    if before is None:
        return
    if type(before) is not type(statistic):
        got = f"{type(before).__name__}, then {type(statistic).__name__}"
        raise StudyError(f"'{name}' is not of the same type in every batch.", got=got)
    if isinstance(statistic, Moments) and before.count.shape != statistic.count.shape:
        raise StudyError(
            f"'{name}' does not have the same shape in every batch.",
            got=f"{before.count.shape}, then {statistic.count.shape}",
            cause="an axis of tokens or of sequences, which differ from batch to batch, is left in it.",
            do="put what is counted on the first axis of Moments.of, and what is told apart, such as heads, behind it.",
        )


def is_ours(study: Study[Any]) -> bool:
    """Whether a study came with normlens, and was not written by a user."""
    return type(study).__module__.startswith("normlens.")


@contextmanager
def named(study: Study[Any], method: str) -> Iterator[None]:
    """Whatever goes wrong inside is said with the study and the method it went wrong in."""
    try:
        yield
    except NormlensError as error:
        where = f"The study '{study.name}'" if is_ours(study) else f"The study '{study.name}' failed in {method}()"
        what = f"{where}: {error.what}"
        raise StudyError(what, got=error.got, cause=error.cause, do=error.do) from error
    except Exception as error:
        last = traceback.extract_tb(error.__traceback__)[-1]
        raise StudyError(
            f"The study '{study.name}' failed in {method}().",
            got=f"{type(error).__name__}: {error} ({Path(last.filename).name}, line {last.lineno})",
            do=f"mend {type(study).__name__}.{method}, or leave the study out.",
        ) from error
