"""Prove every model type: the command behind `make sweep`.

Each type is built small in its own process, with a limit on time and on memory, and every probe is examined. One line
per type goes to build/sweep.jsonl, so an interrupted sweep goes on where it stopped; docs/models.md is written from it.

    python tools/sweep.py [--only bert,gpt2] [--fresh] [--retry] [--build-only] [--dtype bfloat16] [--into FOLDER]

With a dtype, results go to build/sweep-DTYPE.jsonl; the page has their counts beside those of single precision.
"""

import argparse
import fcntl
import json
import multiprocessing
import re
import resource
import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Iterator
from dataclasses import asdict, dataclass, field, replace
from importlib import metadata
from multiprocessing.connection import Connection, wait
from pathlib import Path
from typing import Any

import torch
import transformers

from normlens import probes

ROOT = Path(__file__).resolve().parent.parent
RESULTS, BUILT = "sweep.jsonl", "built.jsonl"  # the second for --build-only
SINGLE, OTHERS = "float32", ("bfloat16", "float16")
WORKERS, SECONDS, BYTES = 2, 120, 8 * 2**30
IDLE = 10  # times the seconds of computing that a type may take by the clock, on a machine with other work to do
SINGLY = "exact for texts one by one"
PARTS = {"residual": "residual", "normed": "norm", "output": "feed-forward"}  # of a layer, behind its attention
RESULTS_MEAN = {
    "exact": "every attention block is exact",
    "exact one by one": "every block is exact, but padding changes numbers: the texts of a batch are run one by one",
    "partly exact": "some blocks are exact; the others are left out, with the reason",
    "refused": "no block can be split exactly; the notes say why",
    "no attention": "no softmax attention was seen",
    "not built": "no small model could be built and run, so nothing is known",
}


@dataclass(frozen=True, slots=True)
class Block:
    """What the proof said of one attention block."""

    name: str
    exact: bool
    error: float | None
    reason: str | None
    own: str = "not tried"  # whether the model's own attentions agree
    own_reason: str = ""
    layer: dict[str, str] = field(default_factory=dict)  # parts of its layer that cannot be split, and why
    alone: bool = False  # no layer stands behind it


@dataclass(frozen=True, slots=True)
class Row:
    """What the sweep found out about one model type."""

    type: str
    versions: str
    examined: bool  # False for --build-only
    model: str | None = None  # class name, None when it could not be built
    shrunk: str | None = None
    parameters: int = 0
    probes: tuple[str, ...] = ()  # path of the part and the names of its inputs
    blocks: tuple[Block, ...] = ()
    reason: str | None = None
    padding: str = "not tried"  # whether a padded text gives what it gives alone, in every probe that tried
    padding_reason: str = ""
    stand_in: str | None = None
    changed: tuple[str, ...] = ()  # what the model changes about itself while it runs
    seconds: float = 0.0
    commit: str = ""  # of normlens, when it was run

    @property
    def result(self) -> str:
        """One of `RESULTS_MEAN`; the status says why."""
        if self.model is None:
            return "not built"
        if not self.blocks:
            return "no attention"
        if self.status == "exact":
            return "exact"
        if self.status.startswith(SINGLY):
            return "exact one by one"
        return "partly exact" if any(block.exact for block in self.blocks) else "refused"

    @property
    def status(self) -> str:
        """One readable sentence, or `exact`."""
        if self.model is None:
            return f"not built: {self.reason}"
        if not self.examined:
            return "built"
        if not self.blocks:
            return self.reason or "no attention"
        missed = [block.reason or f"error {block.error}" for block in self.blocks if not block.exact]
        whole = "exact" if self.padding != "differs" else f"{SINGLY}: {self.padding_reason}"
        return "; ".join(dict.fromkeys(missed)) or self.reason or whole

    @property
    def own(self) -> str:
        """How many blocks agree with the attentions the model returns."""
        return f"{sum(block.own == 'agrees' for block in self.blocks)} of {len(self.blocks)}" if self.blocks else "–"

    def whole(self, part: str) -> bool:
        """Whether attention and this part of the layer are exact, or absent, in every block; no layer at all is not."""
        return self.result.startswith("exact") and not any(part in block.layer for block in self.blocks)

    @property
    def is_whole(self) -> bool:
        """Whether every block is exact to the end of its layer."""
        return all(self.whole(part) for part in PARTS)

    @property
    def is_headed(self) -> bool:
        """Whether every block that has a layer is exact to its end, and some have none, such as a pooling head."""
        return not self.is_whole and replace(self, blocks=tuple(one for one in self.blocks if not one.alone)).is_whole

    @property
    def layer(self) -> str:
        """What is exact behind the attention of every block."""
        if not any(block.exact for block in self.blocks):
            return "–"
        if self.is_headed:
            return f"{', '.join(PARTS.values())}; {sum(block.alone for block in self.blocks)} without a layer"
        return ", ".join(word for part, word in PARTS.items() if self.whole(part)) or "–"

    @property
    def padded(self) -> str:
        """Whether a text has the same numbers in a padded batch as alone."""
        return self.padding if self.blocks else "–"

    @property
    def notes(self) -> str:
        """Why a type is not exact, what it returns for its own attentions, and why padding differs or was not tried."""
        why = self.status.removeprefix("not built: ") if not self.status.startswith("exact") else ""
        own = "; ".join(dict.fromkeys(block.own_reason for block in self.blocks if block.own_reason))
        padding = self.padding_reason if self.blocks else ""
        reasons = dict.fromkeys(reason for block in self.blocks if block.exact for reason in block.layer.values())
        named = {"": why, "Layer: ": "; ".join(reasons), "Own attentions: ": own, "Padding: ": padding}
        return ". ".join(name + text for name, text in named.items() if text)


@dataclass(slots=True)
class Job:
    """One type under way in its own process."""

    type: str
    process: Any
    answer: Connection
    started: float = field(default_factory=time.monotonic)


def main() -> int:
    """Sweep, then write the page."""
    options = _options()
    torch.set_num_threads(1)
    versions = f"transformers {transformers.__version__}, normlens {_version()}"
    folder = options.into or ROOT / "build"
    path = folder / (BUILT if options.build_only else _results(options.dtype))
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("a") as results:
        try:
            fcntl.flock(results, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            print(f"another sweep is writing {path}; wait for it, or end it", file=sys.stderr)
            return 1
        known = {row.type: row for row in _rows(path) if row.versions == versions}
        done = {} if options.fresh else known
        wanted = options.only.split(",") if options.only else list(probes.model_types())
        todo = [kind for kind in wanted if options.only or kind not in done or (options.retry and not done[kind].model)]
        for count, row in enumerate(_sweep(todo, versions, options), start=1):
            done[row.type] = row
            results.write(json.dumps(asdict(row)) + "\n")
            results.flush()
            print(
                f"{count}/{len(todo)} {row.type}: {_blocks(row)} {row.status[:110]} ({row.seconds:.1f} s)", flush=True
            )
    if options.build_only:
        print(f"{sum(row.model is not None for row in done.values())} of {len(done)} built")
        return 0
    page = (options.into or ROOT / "docs") / "models.md"
    page.parent.mkdir(exist_ok=True)
    found = {dtype: _known(folder / _results(dtype), versions) for dtype in (SINGLE, *OTHERS)}
    found[options.dtype] = [done[kind] for kind in probes.model_types() if kind in done]
    page.write_text(_page(found.pop(SINGLE), {dtype: rows for dtype, rows in found.items() if rows}))
    return 0


def _results(dtype: str) -> str:
    return RESULTS if dtype == SINGLE else RESULTS.replace(".", f"-{dtype}.")


def _known(path: Path, versions: str) -> list[Row]:
    """The newest line of every type."""
    newest = {row.type: row for row in _rows(path) if row.versions == versions} if path.exists() else {}
    return [newest[kind] for kind in probes.model_types() if kind in newest]


def _sweep(todo: list[str], versions: str, options: argparse.Namespace) -> Iterator[Row]:
    examined = not options.build_only
    context = multiprocessing.get_context("fork")  # the imports are paid once, before the fork
    waiting, running = list(reversed(todo)), list[Job]()
    while waiting or running:
        while waiting and len(running) < options.workers:
            kind = waiting.pop()
            receiving, sending = context.Pipe(duplex=False)
            process = context.Process(target=_work, args=(kind, versions, options.dtype, examined, sending))
            process.start()
            sending.close()
            running.append(Job(kind, process, receiving))
        wait([job.answer for job in running], timeout=0.5)
        for job in list(running):
            row = _answer(job, versions, examined)
            if row is not None:
                running.remove(job)
                yield row


def _answer(job: Job, versions: str, examined: bool) -> Row | None:
    spent = time.monotonic() - job.started
    lost = Row(job.type, versions, examined, seconds=round(spent, 1))
    try:
        if job.answer.poll():
            row = job.answer.recv()
        elif spent > IDLE * SECONDS:
            job.process.kill()
            row = replace(lost, reason=f"took longer than {IDLE * SECONDS} s")
        elif job.process.is_alive():
            return None
        else:
            row = replace(lost, reason=_ended(job))
    except EOFError:
        row = replace(lost, reason=_ended(job))
    job.process.join(timeout=5)
    return row


def _ended(job: Job) -> str:
    job.process.join(timeout=5)
    if job.process.exitcode == -signal.SIGXCPU:
        return f"took longer than {SECONDS} s of computing"
    return f"its process ended with code {job.process.exitcode}"


def _work(kind: str, versions: str, dtype: str, examined: bool, sending: Connection) -> None:
    transformers.logging.set_verbosity_error()
    resource.setrlimit(resource.RLIMIT_AS, (BYTES, BYTES))
    resource.setrlimit(resource.RLIMIT_CPU, (SECONDS, SECONDS + 5))
    started = time.monotonic()
    found: dict[str, Any] = {}
    try:
        built = probes.build(kind)
        found["model"] = type(built.model).__name__
        found["shrunk"] = built.shrunk
        found["parameters"] = sum(parameter.numel() for parameter in built.model.parameters())
        found["probes"] = tuple(f"{probe.path}({', '.join(probe.inputs)})" for probe in built.probes)
        if examined:
            found |= _examined(built, getattr(torch, dtype))
    except probes.TinyError as error:
        found["reason"] = error.reason
    except MemoryError:
        found["reason"] = f"needs more than {BYTES // 2**30} GiB of memory"
    except Exception as error:
        found["reason"] = f"{type(error).__name__}: {' '.join(str(error).split())[:200]}"
    seconds = round(time.monotonic() - started, 1)
    sending.send(Row(kind, versions, examined, seconds=seconds, commit=_commit(), **found))


def _examined(built: probes.Tiny, dtype: torch.dtype = torch.float32) -> dict[str, Any]:
    from normlens.capture import examine  # the proof; not needed for --build-only

    if dtype != torch.float32:
        built.model.to(dtype)

    blocks: dict[str, Block] = {}
    examinations: list[Any] = []
    for probe in built.probes:
        part = built.model.get_submodule(probe.path) if probe.path else built.model
        examination = examine(part, _cast(probe.inputs, dtype))
        examinations.append(examination)
        for block in examination.blocks:
            name = f"{probe.path}.{block.name}".strip(".")
            reason = block.reason or examination.reason
            if name not in blocks or blocks[name].exact:
                layer = {part: why for part in PARTS if (why := block.path.missing(part)) is not None}
                blocks[name] = Block(
                    name, reason is None, block.error, reason, block.own, block.own_reason, layer, block.path.alone
                )
    reasons = [one.reason for one in examinations if one.reason]
    padding = _worst(examinations)
    return {
        "blocks": tuple(blocks.values()),
        "reason": "; ".join(dict.fromkeys(reasons)) or None,
        "padding": padding.padding,
        "padding_reason": padding.padding_reason,
        "stand_in": next((one.stand_in for one in examinations if one.stand_in), None),
        "changed": tuple(dict.fromkeys(name for one in examinations for name in one.changed)),
    }


def _cast(value: Any, dtype: torch.dtype) -> Any:
    """Inputs in the precision of the model; whole numbers stay as they are."""
    if isinstance(value, torch.Tensor):
        return value.to(dtype) if value.dtype == torch.float32 else value
    if isinstance(value, dict):
        return {name: _cast(one, dtype) for name, one in value.items()}
    return type(value)(_cast(one, dtype) for one in value) if type(value) in (list, tuple) else value


def _worst(examinations: list[Any]) -> Any:
    """The examination whose word on padding counts: one that found a difference, else one that tried."""
    return min(examinations, key=lambda one: ("differs", "equal", "not tried").index(one.padding))


def _rows(path: Path) -> Iterator[Row]:
    for line in path.read_text().splitlines():
        row = json.loads(line)
        whole = {name: tuple(value) if isinstance(value, list) else value for name, value in row.items()}
        yield Row(**whole | {"blocks": tuple(Block(**block) for block in row["blocks"])})


def _blocks(row: Row) -> str:
    return f"{sum(block.exact for block in row.blocks)} of {len(row.blocks)}" if row.blocks else "–"


def _page(rows: list[Row], others: dict[str, list[Row]] | None = None) -> str:
    counts = Counter(row.result for row in rows)
    blocks = [block for row in rows for block in row.blocks if block.exact]
    agree = sum(block.own == "agrees" for block in blocks)
    summary = [f"| {result} | {counts[result]} | {meaning} |" for result, meaning in RESULTS_MEAN.items()]
    return f"""---
hide: [toc]
---

# Models

Written by `make sweep` ({rows[0].versions if rows else "nothing swept yet"}). Every model type that
transformers registers is built small with random weights and run on made-up inputs. Each of its attention blocks is
split into the contributions of its tokens. A block is exact when two things hold. The contributions add up to its
output. The attention weights that the model itself returns, if it returns any, are the same cell by cell.

| result | types | meaning |
|---|---:|---|
{chr(10).join(summary)}
| **all** | **{len(rows)}** | |

Of {len(blocks)} exact blocks, {agree} agree with the attentions that their model returns. For the others it
returns none, or something else. In {sum(row.padding == "equal" for row in rows)} types, a text has the same numbers
in a padded batch as alone. {sum(bool(row.changed) for row in rows)} types change something about themselves while
they run; it is put back.

Behind the attention, the residual and the feed-forward block are split in the same way
([every part of a layer](layers.md)). Of the {sum(row.result.startswith("exact") for row in rows)} types with exact
attention:

| every block of | types |
|---|---:|
{chr(10).join(_parts(rows))}
{_commits(rows)}{"".join(_other(dtype, half) for dtype, half in (others or {}).items())}
## Every model type

<div class="models" markdown="1">

| type | result | model class | exact blocks | layer | own attentions | padded = alone | notes |
|---|---|---|---|---|---|---|---|
{chr(10).join(map(_line, rows))}

</div>
"""


def _parts(rows: list[Row]) -> list[str]:
    """How many types are exact in each part of the layer, and in all of it."""
    lines = [f"| {word}, or none was seen | {sum(row.whole(part) for row in rows)} |" for part, word in PARTS.items()]
    lines.append(f"| **the whole layer** | **{sum(row.is_whole for row in rows)}** |")
    headed = sum(row.is_headed for row in rows)
    return [
        *lines,
        f"| the whole layer where there is one; a pooling head or the like has none, not counted above | {headed} |",
    ]


def _commits(rows: list[Row]) -> str:
    """At which commits the types were run, where that is known."""
    counts = Counter(row.commit for row in rows if row.commit)
    named = ", ".join(f"{count} at {commit}" for commit, count in counts.most_common())
    return f"\nTypes were run at these commits of normlens: {named}.\n" if named else ""


def _other(dtype: str, rows: list[Row]) -> str:
    """The counts in another precision."""
    counts = Counter(row.result for row in rows)
    results = [f"| {result} | {counts[result]} |" for result in RESULTS_MEAN]
    return f"""
## In {dtype}

The same models and inputs, converted (`python tools/sweep.py --dtype {dtype}`). Contributions rebuild the output within
the tolerance of the precision.

| in {dtype} | types |
|---|---:|
{chr(10).join(results)}
| all | {len(rows)} |

Of those with exact attention:

| in {dtype}, every block of | types |
|---|---:|
{chr(10).join(_parts(rows))}
{_commits(rows)}"""


def _line(row: Row) -> str:
    cells = (row.type, row.result, row.model or "–", _blocks(row), row.layer, row.own, row.padded, row.notes)
    return f"| {' | '.join(_escaped(cell) for cell in cells)} |"


def _escaped(cell: str) -> str:
    """A cell in which nothing is Markdown or HTML; an underscore inside a name is neither."""
    return re.sub(r"[\\`*\[\]<>&|]|(?<![A-Za-z0-9])_|_(?![A-Za-z0-9])", lambda found: f"&#{ord(found[0])};", cell)


def _commit() -> str:
    """The commit of normlens that runs; with a star where files differ from it."""

    def said(*words: str) -> str:
        return subprocess.run(["git", *words], cwd=ROOT, capture_output=True, text=True, check=False).stdout.strip()

    return said("rev-parse", "--short", "HEAD") + ("*" if said("status", "--porcelain", "src") else "")


def _version() -> str:
    try:
        return metadata.version("normlens")
    except metadata.PackageNotFoundError:
        return "unreleased"


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", help="model types, separated by commas")
    parser.add_argument("--fresh", action="store_true", help="every type again; the newest line of a type counts")
    parser.add_argument("--retry", action="store_true", help="also again the types that could not be built")
    parser.add_argument("--build-only", action="store_true", help="build and run, do not examine")
    parser.add_argument("--dtype", choices=(SINGLE, *OTHERS), default=SINGLE, help="precision of model and inputs")
    parser.add_argument("--workers", type=int, default=WORKERS, help="types at a time")
    parser.add_argument("--into", type=Path, help="folder for results and page, in place of build/ and docs/")
    return parser.parse_args()


if __name__ == "__main__":
    sys.exit(main())
