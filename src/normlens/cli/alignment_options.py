"""Arguments of `normlens align`: how it reads, and what it is compared with."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any, get_args

from normlens.alignment import Combine, Rows


def add_choices(group: Any) -> None:
    """How maps are read and links are cut."""
    group.add_argument("--measure", choices=("norms", "weights"), help="‖Σ α f(x)‖ (default) or α, mean over heads")
    group.add_argument(
        "--position",
        choices=get_args(Rows),
        help="whose rows they are: the decoder's input (AWI) or output (AWO), both, or as they agree (default: auto)",
    )
    group.add_argument(
        "--layers",
        type=_layers,
        default="auto",
        metavar="L",
        help="auto: as they agree (default); norm: that of the largest mean norm; all; or 0,1,2",
    )
    group.add_argument("--reverse-layers", type=_layers, metavar="L", help="of the reverse model, if they differ")
    group.add_argument("--head", type=int, metavar="H", help="one head instead of all")
    group.add_argument("--combine", choices=get_args(Combine), help="how two directions become one (default: soft)")
    group.add_argument("--min-confidence", type=float, metavar="X", help="leave out links of less confidence")
    group.add_argument(
        "--second-link",
        type=float,
        metavar="X",
        help="link a word to a second one of at least X times the strength of its best (default: 0.8; 1: one to one)",
    )


def add_comparison(group: Any) -> None:
    """What the links are compared with."""
    group.add_argument("--gold", type=Path, metavar="F", help="gold links: talp, or Pharaoh")
    group.add_argument("--possible", type=Path, metavar="F", help="possible links, when the gold is Pharaoh")
    group.add_argument("--first", type=int, choices=(0, 1), help="the gold's first word (default: talp 1, pharaoh 0)")
    group.add_argument("--gold-reverse", action="store_true", help="the gold is written target-source")
    group.add_argument("--gradients", type=_list, default=(), metavar="G", help="saliency, smoothgrad, or both: a,b")
    group.add_argument("--aligners", type=_list, default=(), metavar="A", help="fast_align, hmm, ibm4, eflomal: a,b")
    group.add_argument("--train-source", type=Path, metavar="F", help="text that these aligners learn from as well")
    group.add_argument("--train-target", type=Path, metavar="F", help="its translation")
    group.add_argument("--train-limit", type=int, metavar="N", help="the first N pairs of it")
    group.add_argument(
        "--report", type=Path, default=Path("alignment-report"), metavar="DIR", help="folder of the report"
    )


def _layers(text: str) -> Any:
    if text in ("auto", "norm", "all"):
        return text
    try:
        return tuple(int(number) for number in text.split(","))
    except ValueError:
        raise argparse.ArgumentTypeError(f"{text!r} is not auto, norm, all, or layers such as 0,1,2") from None


def _list(text: str) -> tuple[str, ...]:
    return tuple(part.strip() for part in text.split(",") if part.strip())
