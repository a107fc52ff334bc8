"""`normlens doctor`: whether every attention block of a model is exact, and why not."""

from __future__ import annotations

import argparse
import json
from typing import Any

from normlens.cli.options import add_model
from normlens.exhibits import Row, Table, text_table
from normlens.lens import Diagnosis, diagnose, tiny_subject
from normlens.models import subject

EXAMPLES = """examples:
  normlens doctor                                # the bundled MiniLM
  normlens doctor bert-base-uncased
  normlens doctor llama --tiny                   # an architecture, without its weights
"""


def register(commands: Any) -> None:
    """Add the command to the parser."""
    parser = commands.add_parser(
        "doctor",
        description="Run a small padded input with and without the tap, rebuild every attention block from its parts, "
        "and print which blocks are exact and why the others are not. The exit code is 0 only if all are.",
        epilog=EXAMPLES,
    )
    parser.add_argument(
        "name",
        nargs="?",
        metavar="MODEL",
        help="hub id or folder; with --tiny also a model type (default: the bundled MiniLM)",
    )
    parser.add_argument(
        "--tiny", action="store_true", help="build the architecture small, with random weights, from its configuration"
    )
    parser.add_argument("--json", action="store_true", help="print JSON only")
    add_model(parser)
    parser.set_defaults(run=run)


def run(options: argparse.Namespace) -> int:
    """Examine and print."""
    name = options.name or options.model
    if options.tiny and name:
        examined = tiny_subject(name, revision=options.revision, trust_remote_code=options.trust_remote_code)
    else:
        examined = subject(
            name,
            revision=options.revision,
            dtype=options.dtype,
            device=options.device,
            weights="any" if options.any_weights else "safetensors",
            trust_remote_code=options.trust_remote_code,
        )
    diagnosis = diagnose(examined)
    print(json.dumps(diagnosis.to_json()) if options.json else _shown(diagnosis))
    return 0 if diagnosis.healthy else 1


def _shown(diagnosis: Diagnosis) -> str:
    """What holds for the model, then the proof of every block."""
    rows: list[Row] = [{**row} for row in diagnosis.rows()]
    return f"{diagnosis}\n\n{text_table(Table('blocks', '', rows), rows=None, line=None)}"
