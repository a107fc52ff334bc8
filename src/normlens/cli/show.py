"""`normlens show`: the attention of one text."""

from __future__ import annotations

import argparse
import json
import sys
from pathlib import Path
from typing import Any, get_args

from normlens import views
from normlens.cli.options import add_model, load_from
from normlens.cli.outputs import check_suffixes, colorful, columns
from normlens.errors import first_line
from normlens.lens import Lens, Trace
from normlens.models import InputError, default_text
from normlens.views import DRAWN, Hidden, View

EPILOG = """examples:
  normlens show                                             # the bundled MiniLM on a bundled sentence
  normlens show "The cat sat on the mat." --html cat.html
  normlens show "The cat sat on the mat." --view lines --layer 2 --head 3 --figure cat.svg
  normlens show "The nurse said he slept." --against "The nurse said she slept." --html difference.html
  normlens show --model google/vit-base-patch16-224 --image cat.jpg --view picture --html cat.html
"""


def register(commands: Any) -> None:
    """Add the command to the parser."""
    parser = commands.add_parser(
        "show",
        description="Run one text through a model and print, for each token, how much attention it receives and "
        "how much it contributes; or write this as a page, a picture or a table.",
        epilog=EPILOG,
    )
    parser.add_argument("text", nargs="?", help="the text, or - for standard input (default: a bundled sentence)")
    parser.add_argument("--pair", metavar="TEXT", help="a second text, as in [CLS] text [SEP] pair [SEP]")
    parser.add_argument(
        "--target", metavar="TEXT", help="translation given to the decoder of a sequence-to-sequence model"
    )
    parser.add_argument("--image", type=Path, metavar="F", help="an image instead of a text, for a vision model")
    parser.add_argument("--truncate", action="store_true", help="cut a text that is longer than the model takes")
    parser.add_argument("--against", metavar="TEXT", help="show the difference from this text instead")
    parser.add_argument("--against-model", metavar="M", help="show the difference from the same text in this model")
    parser.add_argument(
        "--maps", action="store_true", help="also print the maps of one layer, queries down, keys across"
    )
    parser.add_argument("--json", action="store_true", help="print the summary of each token as JSON only")
    files = parser.add_argument_group("files")
    files.add_argument(
        "--html", type=Path, metavar="F", help="also write the interactive view, one file that works offline"
    )
    files.add_argument("--figure", type=Path, metavar="F", help="also write a figure for a paper: .svg, .pdf or .png")
    files.add_argument("--table", type=Path, metavar="F", help="also write every number: .csv or .parquet")
    files.add_argument("--save", type=Path, metavar="F", help="also write the trace: .safetensors")
    view = parser.add_argument_group(
        "what --html and --figure show; --layer, --head and --pin also apply to the terminal"
    )
    view.add_argument("--view", choices=get_args(View), default="heat", help="kind of view (default: heat)")
    view.add_argument(
        "--layer", type=int, metavar="N", help="layer, from 0 (default: the middle one; all in the table)"
    )
    view.add_argument("--head", type=int, metavar="N", help="head, from 0 (default: all heads)")
    view.add_argument(
        "--hide", action="append", choices=get_args(Hidden), default=[], help="tokens to leave out; may be repeated"
    )
    view.add_argument("--words", action="store_true", help="join subwords into words")
    view.add_argument("--pin", metavar="TOKEN", help="select this token as the query: what it attends to")
    add_model(parser)
    parser.set_defaults(run=run)


def run(options: argparse.Namespace) -> int:
    """Trace, print, write."""
    forms = {"html": (".html",), "figure": DRAWN, "table": (".csv", ".parquet"), "save": (".safetensors",)}
    check_suffixes(options, forms)
    lens = load_from(options)
    trace = _traced(lens, options, options.text)
    view = _view(options)
    if options.against is not None or options.against_model is not None:
        return _compare(lens, trace, options, view)
    figure = trace.figure(**view)
    if options.json:
        print(json.dumps(summary(trace, figure), ensure_ascii=False))
    else:
        chosen = {"layer": options.layer, "head": options.head, "pin": options.pin, "maps": options.maps}
        print(trace.show(**chosen, color=colorful(), width=columns()))
    _write(figure, {"View": options.html, "Figure": options.figure})
    _write(trace, {"Table": options.table, "Trace": options.save})
    return 0


def _compare(lens: Lens, trace: Trace, options: argparse.Namespace, view: dict[str, Any]) -> int:
    if options.table or options.save or options.json:
        raise InputError(
            "--table, --save and --json are for one text; a difference has --html and --figure.",
            do="leave them out, or run the command once for each text or model.",
        )
    other = lens if options.against_model is None else load_from(options, options.against_model)
    text = options.text if options.against is None else options.against
    figure = trace.figure().minus(_traced(other, options, text).figure()).looking(**view)
    print(views.summary(figure))
    _write(figure, {"View": options.html, "Figure": options.figure})
    return 0


def _write(shown: views.Figure | Trace, files: dict[str, Path | None]) -> None:
    """Save under each name that was given, and print where."""
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
            do="leave it out, or give a second text of the same side with --pair.",
        )
    return lens.trace(source=text, target=options.target, truncate=options.truncate)


def _image(path: Path) -> Any:
    try:
        from PIL import Image, UnidentifiedImageError
    except ImportError as error:
        raise InputError(
            "Images need Pillow, which is not installed.",
            do="pip install pillow",
        ) from error
    try:
        return Image.open(path).convert("RGB")
    except (OSError, UnidentifiedImageError) as error:
        raise InputError(
            f"'{path}' cannot be read as an image.",
            got=first_line(error),
            do="give the path of a .png, .jpg or other image.",
        ) from error


def _view(options: argparse.Namespace) -> dict[str, Any]:
    view: dict[str, Any] = {"view": options.view, "hide": options.hide}
    if options.layer is not None:
        view["layers"] = options.layer
    if options.head is not None:
        view["heads"] = options.head
    if options.words:
        view["unit"] = "words"
    if options.pin is not None:
        view["pin"] = options.pin
    return view


def summary(trace: Trace, figure: views.Figure) -> dict[str, Any]:
    """Per token: the attention it receives and its share of the contributions, means over what the figure chooses."""
    groups = [
        {
            "kind": received.kind,
            "side": received.side.name,
            "tokens": received.side.tokens,
            "weight": received.weight.tolist(),
            "transformed_norm": None if received.transformed is None else received.transformed.tolist(),
            "norm_share": received.norm.tolist(),
        }
        for received in views.received(figure, figure.look)
    ]
    return {"signature": str(trace.signature), "error": trace.error, "attention": groups}
