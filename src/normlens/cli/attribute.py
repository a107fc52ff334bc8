"""`normlens attribute`: what drove a prediction."""

from __future__ import annotations

import argparse
import json
import sys
from dataclasses import asdict
from functools import partial
from pathlib import Path
from typing import Any

from normlens.attribution import METHODS, Attribution, Passage, rows
from normlens.cli.arguments import positive
from normlens.cli.options import add_model, load_from
from normlens.cli.outputs import check_suffixes, colorful, columns
from normlens.models import CLASSIFIER, default_text
from normlens.views import DRAWN, either, visible_line

EPILOG = """examples:
  normlens attribute "The film was not bad."                    # the bundled classifier
  normlens attribute "The film was not bad." --model my-classifier --html film.html
  normlens attribute "The film was not bad." --model my-classifier --target negative
  normlens attribute "The film was not bad." --model my-classifier --target positive --rather-than negative
  normlens attribute "The keys to the cabinet" --model gpt2 --target are --rather-than is
  normlens attribute "Once upon a time" --model gpt2 --write 12 --html story.html
  normlens attribute "Das Haus ist alt." --model Helsinki-NLP/opus-mt-de-en --answer "The house is old."
"""


def register(commands: Any) -> None:
    """Add the command to the parser."""
    parser = commands.add_parser(
        "attribute",
        description="What drove a prediction: a score for each token of a text, for a class, for the next token, or "
        "for each token of an answer or a translation; in the terminal, or as a page, a drawing or a table.",
        epilog=f"methods:\n{_methods()}\n\n{EPILOG}",
    )
    parser.add_argument("text", nargs="?", help="the text, or - for standard input (default: a bundled sentence)")
    parser.add_argument("--pair", metavar="TEXT", help="a second text, for a model that reads two")
    parser.add_argument(
        "--target", metavar="T", help="class or token to explain, by name or number (default: what the model predicts)"
    )
    parser.add_argument("--rather-than", metavar="T", help="explain why --target and not this class or token")
    parser.add_argument(
        "--answer",
        metavar="TEXT",
        help="text that the model writes, each of whose tokens is explained; with --target, what is written so far",
    )
    parser.add_argument("--write", type=positive, metavar="N", help="let the model write an answer of N tokens")
    parser.add_argument(
        "--position", type=int, metavar="N", help="position of the prediction, for a model that fills gaps or tags"
    )
    parser.add_argument("--by", choices=METHODS, metavar="METHOD", help=f"one of {', '.join(METHODS)}")
    parser.add_argument(
        "--sum",
        choices=("sentences", "lines"),
        help="also add the scores up over the sentences or the lines of the text",
    )
    parser.add_argument("--json", action="store_true", help="print the scores as JSON, nothing else")
    files = parser.add_argument_group("files")
    files.add_argument("--html", type=Path, metavar="F", help="also write a page, one file that works offline")
    files.add_argument("--figure", type=Path, metavar="F", help=f"also write a drawing: {either(DRAWN)}")
    files.add_argument("--table", type=Path, metavar="F", help="also write every score: .csv or .parquet")
    add_model(parser, default="the bundled classifier of film reviews")
    parser.set_defaults(run=run, check=partial(_check, parser))


def _check(parser: argparse.ArgumentParser, options: argparse.Namespace) -> None:
    if options.rather_than is not None and options.target is None:
        parser.error("--rather-than needs --target")
    if options.write is not None and (options.answer is not None or options.target is not None):
        parser.error("--write is for an answer of the model's own: leave out --answer and --target")


def run(options: argparse.Namespace) -> int:
    """Attribute, print, write."""
    check_suffixes(options, {"html": (".html",), "figure": DRAWN, "table": (".csv", ".parquet")})
    text = sys.stdin.read() if options.text == "-" else default_text() if options.text is None else options.text
    target = options.target if options.rather_than is None else (options.target, options.rather_than)
    found = load_from(options, options.model or CLASSIFIER).attribute(
        (text, options.pair) if options.pair else text,
        target,
        by=options.by,
        answer=options.write if options.answer is None else options.answer,
        position=options.position,
    )
    passages = () if options.sum is None else found.passages(_passages(options.sum, text))
    if options.json:
        print(json.dumps(summary(found, passages), ensure_ascii=False))
    else:
        print(found.show(color=colorful(), width=min(100, columns())), end="")
        if passages:
            print(_sums(passages))
    for what, path in {"Page": options.html, "Figure": options.figure, "Table": options.table}.items():
        if path is not None:
            print(f"{what}: {found.save(path)}", file=sys.stderr)
    return 0


def summary(found: Attribution, passages: tuple[Passage, ...] = ()) -> dict[str, Any]:
    """Everything about an attribution, as plain data."""
    return {
        "method": found.method,
        "prediction": found.prediction[0],
        "target": found.target[0],
        "logit": found.logit.item(),
        "unowned": found.unowned.item(),
        "error": found.error,
        "passages": [asdict(one) for one in passages],
        "scores": [{name: value for name, value in row.items() if name != "text"} for row in rows(found)],
        "signature": str(found.signature),
    }


def _passages(by: str, text: str) -> list[str] | None:
    """The lines of a text; None for its sentences."""
    return [line for line in text.splitlines() if line.strip()] if by == "lines" else None


def _sums(passages: tuple[Passage, ...]) -> str:
    lines = [f"{one.score:+9.3g}  {_cut(visible_line(one.text), 80)}" for one in passages]
    return "\n".join([f"{'score':>9}  passage", *lines])


def _cut(line: str, length: int) -> str:
    return line if len(line) <= length else f"{line[: length - 1]}…"


def _methods() -> str:
    return "\n".join(f"  {name:{max(map(len, METHODS))}}  {one.says}" for name, one in METHODS.items())
