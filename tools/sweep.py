"""Prove every model type: the command behind `make sweep`.

Each type is built small in its own process, with a limit on time and on memory, and every probe is examined. One line
per type goes to build/sweep.jsonl, so an interrupted sweep goes on where it stopped; docs/models.md is written from it.

    python tools/sweep.py [--only bert,gpt2] [--fresh] [--retry] [--build-only] [--into FOLDER]
"""

import argparse
import fcntl
import json
import multiprocessing
import resource
import sys
import time
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
WORKERS, SECONDS, BYTES = 2, 120.0, 8 * 2**30


@dataclass(frozen=True, slots=True)
class Block:
    """What the proof said of one attention block."""

    name: str
    exact: bool
    error: float | None
    reason: str | None
    own: str = "not tried"  # whether the model's own attentions agree
    own_reason: str = ""


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
        whole = "exact" if self.padding != "differs" else f"exact for texts one by one: {self.padding_reason}"
        return "; ".join(dict.fromkeys(missed)) or self.reason or whole

    @property
    def own(self) -> str:
        """How many blocks agree with the attentions the model returns, and what it returns for the others."""
        if not self.blocks:
            return "–"
        agree = sum(block.own == "agrees" for block in self.blocks)
        why = "; ".join(dict.fromkeys(block.own_reason for block in self.blocks if block.own_reason))
        return f"{agree} of {len(self.blocks)}" + (f": {why}" if why else "")

    @property
    def padded(self) -> str:
        """Whether a padded text gives what it gives alone."""
        if not self.blocks:
            return "–"
        return self.padding + (f": {self.padding_reason}" if self.padding_reason else "")


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
    path = (options.into or ROOT / "build") / (BUILT if options.build_only else RESULTS)
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
        for count, row in enumerate(_sweep(todo, versions, examined=not options.build_only), start=1):
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
    page.write_text(_page([done[kind] for kind in probes.model_types() if kind in done]))
    return 0


def _sweep(todo: list[str], versions: str, *, examined: bool) -> Iterator[Row]:
    context = multiprocessing.get_context("fork")  # the imports are paid once, before the fork
    waiting, running = list(reversed(todo)), list[Job]()
    while waiting or running:
        while waiting and len(running) < WORKERS:
            kind = waiting.pop()
            receiving, sending = context.Pipe(duplex=False)
            process = context.Process(target=_work, args=(kind, versions, examined, sending))
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
        elif spent > SECONDS:
            job.process.kill()
            row = replace(lost, reason=f"took longer than {SECONDS:.0f} s")
        elif job.process.is_alive():
            return None
        else:
            row = replace(lost, reason=f"its process ended with code {job.process.exitcode}")
    except EOFError:
        job.process.join(timeout=5)
        row = replace(lost, reason=f"its process ended with code {job.process.exitcode}")
    job.process.join(timeout=5)
    return row


def _work(kind: str, versions: str, examined: bool, sending: Connection) -> None:
    transformers.logging.set_verbosity_error()
    resource.setrlimit(resource.RLIMIT_AS, (BYTES, BYTES))
    started = time.monotonic()
    found: dict[str, Any] = {}
    try:
        built = probes.build(kind)
        found["model"] = type(built.model).__name__
        found["shrunk"] = built.shrunk
        found["parameters"] = sum(parameter.numel() for parameter in built.model.parameters())
        found["probes"] = tuple(f"{probe.path}({', '.join(probe.inputs)})" for probe in built.probes)
        if examined:
            found |= _examined(built)
    except probes.TinyError as error:
        found["reason"] = error.reason
    except MemoryError:
        found["reason"] = f"needs more than {BYTES // 2**30} GiB of memory"
    except Exception as error:
        found["reason"] = f"{type(error).__name__}: {' '.join(str(error).split())[:200]}"
    sending.send(Row(kind, versions, examined, seconds=round(time.monotonic() - started, 1), **found))


def _examined(built: probes.Tiny) -> dict[str, Any]:
    from normlens.capture import examine  # the proof; not needed for --build-only

    blocks: dict[str, Block] = {}
    examinations: list[Any] = []
    for probe in built.probes:
        part = built.model.get_submodule(probe.path) if probe.path else built.model
        examination = examine(part, probe.inputs)
        examinations.append(examination)
        for block in examination.blocks:
            name = f"{probe.path}.{block.name}".strip(".")
            reason = block.reason or examination.reason
            if name not in blocks or blocks[name].exact:
                blocks[name] = Block(name, reason is None, block.error, reason, block.own, block.own_reason)
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


def _page(rows: list[Row]) -> str:
    exact = sum(row.status == "exact" for row in rows)
    singly = sum(row.status.startswith("exact for texts one by one") for row in rows)
    partly = sum(not row.status.startswith("exact") and any(block.exact for block in row.blocks) for row in rows)
    bare = sum(row.model is not None and row.examined and not row.blocks for row in rows)
    refused = sum(bool(row.blocks) and not any(block.exact for block in row.blocks) for row in rows)
    unbuilt = sum(row.model is None for row in rows)
    blocks = [block for row in rows for block in row.blocks if block.exact]
    agree = sum(block.own == "agrees" for block in blocks)
    head = f"""# Models

Written by `make sweep` ({rows[0].versions if rows else "nothing swept yet"}): every model type that transformers
registers is built small with random weights, run on made-up inputs, and each of its attention blocks is taken apart
and put together again. A block is exact when the parts rebuild its output, and when the attention weights that the
model itself returns, if it returns any, are the same cell by cell.

{len(rows)} model types: {exact} exact, {singly} exact for texts one by one, {partly} partly exact, {refused} refused,
{bare} without attention that can be seen, {unbuilt} not built. Of {len(blocks)} exact blocks {agree} agree with the
attentions their model returns; for the others it returns none, or something else.
Padding changes nothing in {sum(row.padding == "equal" for row in rows)} types: a text in a padded batch gives what it
gives alone.
{sum(bool(row.changed) for row in rows)} types change something about themselves while they run; it is put back.

| type | model | exact blocks | own attentions | padded = alone | status |
|---|---|---|---|---|---|
"""
    return head + "\n".join(_line(row) for row in rows) + "\n"


def _line(row: Row) -> str:
    cells = (row.type, row.model or "–", _blocks(row), row.own, row.padded, row.status)
    return f"| {' | '.join(cell.replace('|', '/') for cell in cells)} |"


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
    parser.add_argument("--into", type=Path, help="folder for results and page, in place of build/ and docs/")
    return parser.parse_args()


if __name__ == "__main__":
    sys.exit(main())
