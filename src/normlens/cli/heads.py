"""`normlens heads`: the profile of every head."""

from __future__ import annotations

import argparse
import json
import shutil
import sys
from typing import Any

from normlens.cli.arguments import natural
from normlens.cli.options import add_corpus, add_model, corpus_from, load_from, run_options
from normlens.cli.progress import Progress
from normlens.cli.study import add_output
from normlens.errors import nearest
from normlens.exhibits import DASH, Column, Row, Table, bullet, text_table
from normlens.studies import LOSSES, Report, StudyError, heads
from normlens.views import visible_line

EXAMPLES = """examples:
  normlens heads                                               # the bundled MiniLM on the bundled text
  normlens heads --corpus wiki.txt --limit 200 --out heads     # also the page, with a small map of every head
  normlens heads --model gpt2 --corpus wiki.txt --sort induction_norms
  normlens heads --model gpt2 --corpus wiki.txt --json > heads.json   # every column of every head
"""
IN_ORDER = ("layer", "head", "head_name", "kind")
SHOWN = (
    "difference",
    "importance",
    "role",
    "pattern_weights",
    "pattern_norms",
)  # in the terminal, where they are there
ROWS, ROLE = 24, 56  # heads, and letters of a role


def register(commands: Any) -> None:
    """Add the command to the parser."""
    parser = commands.add_parser(
        "heads",
        description="One row for each head: what it attends to and what contributes, its pattern, which tokens it "
        "makes alike, whether it has a sink, and how much the loss depends on it. The terminal shows a few columns; "
        "--out and --json have all.",
        epilog=EXAMPLES,
    )
    parser.add_argument(
        "--sort", default="layer", metavar="COLUMN", help="column to sort by, the largest first (default: layer)"
    )
    parser.add_argument(
        "--rows", type=natural, default=ROWS, metavar="N", help=f"heads to print (default: {ROWS}; 0: all of them)"
    )
    parser.add_argument("--loss", choices=LOSSES, help="loss of the importance (default: what the model was made for)")
    add_output(parser)
    add_corpus(parser)
    add_model(parser)
    parser.set_defaults(run=run)


def run(options: argparse.Namespace) -> int:
    """Study, print, write."""
    lens, corpus = load_from(options), corpus_from(options)
    with Progress(resumed=options.resume) as progress:
        report = heads(lens, corpus, loss=options.loss, out=options.out, progress=progress, **run_options(options))
    rows, unsorted = report.heads, None
    try:
        rows = in_order(rows, options.sort)
    except StudyError as error:  # said after the heads, which took a run
        unsorted, options.sort = error, "layer"
    if options.json:
        print(json.dumps({"signature": str(report.findings.run.signature), "heads": rows}, ensure_ascii=False))
    else:
        print(_text(report, rows, options))
    if options.out is not None:
        print(f"Report: {options.out / 'report.html'}", file=sys.stderr)
    if unsorted is not None:
        raise unsorted
    return 0


def in_order(rows: list[dict[str, Any]], column: str) -> list[dict[str, Any]]:
    """Rows by a column: numbers from the largest on, texts by the alphabet, heads without a value last."""
    if column not in rows[0]:
        raise StudyError(
            f"There is no column '{column}' to sort by.",
            do=f"{nearest(column, rows[0])}Choose among {', '.join(rows[0])}.",
        )
    if column in IN_ORDER:
        return rows
    there = [row for row in rows if row[column] is not None]
    is_text = any(isinstance(row[column], str) for row in there)
    there.sort(key=lambda row: row[column], reverse=not is_text)
    return there + [row for row in rows if row[column] is None]


def _text(report: Report, rows: list[dict[str, Any]], options: argparse.Namespace) -> str:
    """Sentences, then a few columns of some heads, as wide as the terminal."""
    forms: dict[str, Column] = {
        column.name: column for profile in report.findings.heads.values() for column in profile.headed
    }
    several = len(report.findings.heads) > 1
    asked = () if options.sort in (*IN_ORDER, *SHOWN) else (options.sort,)
    there = [name for name in (*asked, *SHOWN) if any(row[name] is not None for row in rows)]
    columns = [
        *([Column("kind", "kind", "text")] if several else []),
        Column("head_name", "head", "text"),
        *(Column("role", "role", "text", write=_short) if name == "role" else forms[name] for name in there),
    ]
    title = "Every head" if options.sort in IN_ORDER else f"Every head by {options.sort}"
    width = shutil.get_terminal_size((110, 0)).columns
    table = text_table(Table("heads", title, rows, tuple(columns)), options.rows or None, width)
    run, document = report.findings.run, report.findings.document()
    sentences = [line for article in document.chapters[0].articles for line in article.section.sentences]
    lines = [f"{visible_line(run.model)} on {visible_line(run.corpus)}", *map(bullet, [*sentences, *run.notes])]
    more = f"  All heads: --rows 0. All {len(rows[0])} columns: --json, or --out DIR for the page and its tables."
    return "\n".join([*lines, "", table + more, "", visible_line(str(run.signature))])


def _short(row: Row) -> str:
    role = str(row["role"] or DASH)
    return role if len(role) <= ROLE else role[: ROLE - 1] + "…"
