"""`normlens doctor`: is every attention block of this model exact?"""

from __future__ import annotations

import argparse
import json
from typing import Any

from normlens.cli.options import add_model
from normlens.lens import diagnose, tiny_subject
from normlens.models import subject


def register(commands: Any) -> None:
    """Add the command to the parser."""
    parser = commands.add_parser(
        "doctor",
        description="Run a small padded input with and without the tap, rebuild every attention block from its parts, "
        "and say which blocks are exact and why the others are not. Exit code 0 only when all are.",
    )
    parser.add_argument("name", nargs="?", metavar="MODEL", help="hub id or folder; with --tiny also a model type")
    parser.add_argument(
        "--tiny", action="store_true", help="read the configuration only, and prove it small and random"
    )
    parser.add_argument("--json", action="store_true", help="print JSON")
    add_model(parser)
    parser.set_defaults(run=run)


def run(options: argparse.Namespace) -> int:
    """Prove and print."""
    name = options.name or options.model
    if options.tiny and name:
        one = tiny_subject(name, revision=options.revision, trust_remote_code=options.trust_remote_code)
    else:
        one = subject(
            name,
            revision=options.revision,
            dtype=options.dtype,
            device=options.device,
            weights="any" if options.any_weights else "safetensors",
            trust_remote_code=options.trust_remote_code,
        )
    diagnosis = diagnose(one)
    print(json.dumps(diagnosis.to_json()) if options.json else diagnosis)
    return 0 if diagnosis.healthy else 1
