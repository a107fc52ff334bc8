"""`normlens show`: one text, looked at."""

from __future__ import annotations

import argparse
import json
import os
import shutil
import sys
from pathlib import Path
from typing import Any, get_args

from normlens import views
from normlens.cli.options import add_model, load_from
from normlens.lens import Lens, Trace
from normlens.models import InputError, default_text
from normlens.views.files import DRAWN
from normlens.views.look import Hidden, View

EPILOG = """examples:
  normlens show "The cat sat on the mat." --html cat.html
  normlens show "The cat sat on the mat." --view lines --layer 2 --head 3 --figure cat.svg
  normlens show "The nurse said he slept." --against "The nurse said she slept." --html difference.html
  normlens show --model google/vit-base-patch16-224 --image cat.jpg --view picture --html cat.html
"""


def register(commands: Any) -> None:
    """Add the command to the parser."""
    parser = commands.add_parser(
        "show",
        description="Trace one text and show, token by token, how much weight it draws and how much it really gives.",
        epilog=EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("text", nargs="?", help="the text; '-' reads it from standard input; without it, a sample")
    parser.add_argument("--pair", metavar="TEXT", help="a second text: [CLS] text [SEP] pair [SEP]")
    parser.add_argument("--target", metavar="TEXT", help="translation to force on a sequence-to-sequence model")
    parser.add_argument("--image", type=Path, metavar="F", help="an image instead of a text, for a vision model")
    parser.add_argument("--truncate", action="store_true", help="cut a text that is longer than the model")
    parser.add_argument("--against", metavar="TEXT", help="show the difference to this text instead")
    parser.add_argument("--against-model", metavar="M", help="show the difference to the same text in this model")
    parser.add_argument("--json", action="store_true", help="print the per-token summary as JSON, nothing else")
    files = parser.add_argument_group("files")
    files.add_argument("--html", type=Path, metavar="F", help="also write the interactive view, one file, offline")
    files.add_argument("--figure", type=Path, metavar="F", help="also write a picture for a paper: .svg, .pdf or .png")
    files.add_argument("--table", type=Path, metavar="F", help="also write every number, as .csv or .parquet")
    files.add_argument("--save", type=Path, metavar="F", help="also write the trace, as .safetensors")
    look = parser.add_argument_group(
        "what is looked at in --html and --figure; --layer and --head also in the terminal"
    )
    look.add_argument("--view", choices=get_args(View), default="heat", help="of the files (default: heat)")
    look.add_argument("--layer", type=int, metavar="N", help="layer, from 0 (default: the middle one)")
    look.add_argument("--head", type=int, metavar="N", help="head, from 0 (default: all heads)")
    look.add_argument(
        "--hide", action="append", choices=get_args(Hidden), default=[], help="leave tokens out; repeat it"
    )
    look.add_argument("--words", action="store_true", help="join the pieces of words")
    look.add_argument("--pin", metavar="TOKEN", help="what this token receives, and from whom; exact in the page")
    add_model(parser)
    parser.set_defaults(run=run)


def run(options: argparse.Namespace) -> int:
    """Trace, print, write."""
    _check_files(options)
    lens = load_from(options)
    trace = _traced(lens, options, options.text)
    look = _look(options)
    if options.against is not None or options.against_model is not None:
        return _compare(lens, trace, options, look)
    figure = trace.figure(**look)
    if options.json:
        print(json.dumps(summary(trace), ensure_ascii=False))
    else:
        print(trace.show(layer=options.layer, head=options.head, color=_colorful(), width=_width()))
    _write(figure, {"View": options.html, "Figure": options.figure})
    _write(trace, {"Table": options.table, "Trace": options.save})
    return 0


def _check_files(options: argparse.Namespace) -> None:
    """Refuse a name that does not fit before the work, not after it."""
    forms = {
        "html": (".html",),
        "figure": DRAWN,
        "table": (".csv", ".parquet"),
        "save": (".safetensors",),
    }
    for name, suffixes in forms.items():
        path = getattr(options, name)
        if path is not None and path.suffix not in suffixes:
            raise InputError(
                f"--{name} {path}: this does not say its form.",
                do=f"end it in {' or '.join(suffixes)}.",
            )


def _compare(lens: Lens, trace: Trace, options: argparse.Namespace, look: dict[str, Any]) -> int:
    if options.table or options.save or options.json:
        raise InputError(
            "--table, --save and --json are for one text; a difference has --html and --figure.",
            do="run it twice, once for each text or model.",
        )
    other = lens if options.against_model is None else load_from(options, options.against_model)
    text = options.text if options.against is None else options.against
    figure = trace.figure().minus(_traced(other, options, text).figure()).looking(**look)
    print(views.summary(figure))
    _write(figure, {"View": options.html, "Figure": options.figure})
    return 0


def _write(shown: views.Figure | Trace, files: dict[str, Path | None]) -> None:
    """Save under each name that was given, and say where."""
    for what, path in files.items():
        if path is not None:
            print(f"{what}: {shown.save(path)}", file=sys.stderr)


def _traced(lens: Lens, options: argparse.Namespace, text: str | None) -> Trace:
    if options.image is not None:
        return lens.trace(_image(options.image))
    text = sys.stdin.read() if text == "-" else default_text() if text is None else text
    if options.target is None:
        return lens.trace((text, options.pair) if options.pair else text, truncate=options.truncate)
    if not lens.subject.is_seq2seq:
        raise InputError(
            f"--target is for sequence-to-sequence models; '{lens.subject.name}' has one side.",
            do="leave it out; a second text of the same side is given with --pair.",
        )
    return lens.trace(source=text, target=options.target, truncate=options.truncate)


def _image(path: Path) -> Any:
    try:
        from PIL import Image, UnidentifiedImageError
    except ImportError as error:
        raise InputError(
            "Images need Pillow, which is not installed.",
            do="pip install pillow.",
        ) from error
    try:
        return Image.open(path).convert("RGB")
    except (OSError, UnidentifiedImageError) as error:
        raise InputError(
            f"'{path}' cannot be read as an image: {error}.",
            do="give a .png, .jpg or the like.",
        ) from error


def _look(options: argparse.Namespace) -> dict[str, Any]:
    look: dict[str, Any] = {"view": options.view, "hide": options.hide}
    if options.layer is not None:
        look["layers"] = options.layer
    if options.head is not None:
        look["heads"] = options.head
    if options.words:
        look["unit"] = "words"
    if options.pin is not None:
        look["pin"] = options.pin
    return look


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
