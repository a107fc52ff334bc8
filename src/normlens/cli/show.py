"""`normlens show`: one text, looked at."""

from __future__ import annotations

import argparse
import json
import os
import shutil
import sys
from pathlib import Path
from typing import Any

from normlens import views
from normlens.cli.options import add_model, load_from
from normlens.lens import Trace
from normlens.models import InputError, default_text


def register(commands: Any) -> None:
    """Add the command to the parser."""
    parser = commands.add_parser(
        "show",
        description="Trace one text and show, token by token, how much weight it draws and how much it really gives.",
    )
    parser.add_argument("text", nargs="?", help="the text; '-' reads it from standard input; without it, a sample")
    parser.add_argument("--pair", metavar="TEXT", help="a second text: [CLS] text [SEP] pair [SEP]")
    parser.add_argument("--target", metavar="TEXT", help="translation to force on a sequence-to-sequence model")
    parser.add_argument(
        "--layer", type=int, metavar="N", help="layer of the heat map, from 0 (default: the middle one)"
    )
    parser.add_argument("--head", type=int, metavar="N", help="head of the heat map, from 0 (default: all heads)")
    parser.add_argument("--truncate", action="store_true", help="cut a text that is longer than the model")
    parser.add_argument("--html", type=Path, metavar="F", help="also write the interactive view, one file, offline")
    parser.add_argument("--table", type=Path, metavar="F", help="also write every number, as .csv or .parquet")
    parser.add_argument("--save", type=Path, metavar="F", help="also write the trace, as .safetensors")
    parser.add_argument("--json", action="store_true", help="print the per-token summary as JSON, nothing else")
    add_model(parser)
    parser.set_defaults(run=run)


def run(options: argparse.Namespace) -> int:
    """Trace, print, write."""
    text = sys.stdin.read() if options.text == "-" else options.text or default_text()
    lens = load_from(options)
    if options.target is not None:
        if not lens.subject.is_seq2seq:
            raise InputError(
                f"--target is for sequence-to-sequence models; '{lens.subject.name}' has one side.\n"
                "  Do: leave it out; a second text of the same side is given with --pair."
            )
        trace = lens.trace(source=text, target=options.target, truncate=options.truncate)
    else:
        trace = lens.trace((text, options.pair) if options.pair else text, truncate=options.truncate)
    if options.json:
        print(json.dumps(summary(trace), ensure_ascii=False))
    else:
        print(trace.show(layer=options.layer, head=options.head, color=_colorful(), width=_width()))
    for name in ("html", "table", "save"):
        path = getattr(options, name)
        if path is not None:
            print(
                f"{'View' if name == 'html' else 'Table' if name == 'table' else 'Trace'}: {trace.save(path)}",
                file=sys.stderr,
            )
    return 0


def summary(trace: Trace) -> dict[str, Any]:
    """Per token looked at: the weight it draws and its share of what is moved, averaged over heads, queries, layers."""
    groups = [
        {
            "kind": got.kind,
            "side": got.side.name,
            "tokens": got.side.tokens,
            "weight": got.weight.tolist(),
            "transformed_norm": got.transformed.tolist(),
            "norm_share": got.norm.tolist(),
        }
        for got in views.received(trace.figure())
    ]
    return {"signature": str(trace.signature), "error": trace.error, "attention": groups}


def _colorful() -> bool:
    return sys.stdout.isatty() and "NO_COLOR" not in os.environ


def _width() -> int:
    return shutil.get_terminal_size((100, 24)).columns
