"""Arguments that several commands share."""

from __future__ import annotations

import argparse
import sys
import warnings

from normlens.lens import Lens, PartlyExact, load


def add_model(parser: argparse.ArgumentParser, *, embedded: str = "the embedded MiniLM") -> None:
    """Which model, from where, in which precision, on which device."""
    group = parser.add_argument_group("model")
    group.add_argument("--model", metavar="M", help=f"hub id or folder; without it, {embedded}")
    group.add_argument("--revision", metavar="R", help="branch, tag or commit on the hub")
    group.add_argument("--dtype", choices=("float32", "float16", "bfloat16"), help="precision; as stored by default")
    group.add_argument("--device", metavar="D", help="a torch device, such as cpu, cuda or mps")
    group.add_argument("--any-weights", action="store_true", help="also read weights that are not safetensors")
    group.add_argument("--trust-remote-code", action="store_true", help="run code that comes with the model")


def load_from(options: argparse.Namespace, model: str | None = None) -> Lens:
    """The lens these options ask for, or that of another model loaded alike.

    Refused blocks become a note on stderr, not a Python warning.
    """
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always", PartlyExact)
        lens = load(
            model or options.model,
            revision=options.revision,
            dtype=options.dtype,
            device=options.device,
            weights="any" if options.any_weights else "safetensors",
            trust_remote_code=options.trust_remote_code,
        )
    for warning in caught:
        if issubclass(warning.category, PartlyExact):
            print(f"normlens: {warning.message}", file=sys.stderr)
    return lens
