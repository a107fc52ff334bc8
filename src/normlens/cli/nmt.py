"""`normlens nmt`: train a translation model from parallel text, and try it."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path
from typing import Any

import torch

from normlens.cli.lines import LinesError, lines_from, write_lines
from normlens.cli.training import Bar
from normlens.nmt import PRESETS, RecipeError, TextError, Watch, load_translator, parallel, tailored, train, translate

EXAMPLES = """examples:
  normlens nmt train --source europarl.de.xz --target europarl.en.xz --languages de-en --out de-en
  normlens nmt train --source europarl.de.xz --target europarl.en.xz --languages de-en --out de-en --resume
  echo "Das Haus ist klein." | normlens nmt translate --model de-en
"""
TRAIN = """examples:
  normlens nmt train --source a.de --target a.en --out de-en             # the small preset, for two CPU cores
  normlens nmt train --source a.de --target a.en --out de-en --resume    # go on from the last validation
  normlens nmt train --source a.de.gz --target a.en.gz --valid-source b.de --valid-target b.en --out de-en
  normlens nmt train --source a.de --target a.en --out try --updates 200 --every 50    # a short try first
  normlens nmt train --source b.de --target b.en --out better --start de-en --rate 2e-3    # train it further
  normlens nmt train --source a.de --target a.en --out big --preset paper --device cuda
"""
TRANSLATE = """examples:
  normlens nmt translate --model de-en                             # type a line, read its translation
  normlens nmt translate --model de-en news.de --out news.en
  xzcat news.de.xz | normlens nmt translate --model de-en --beams 1 - > news.en
"""
SIZES = ("vocabulary", "layers", "width", "heads")
NUMBERS = {
    "updates": (int, "steps of the training"),
    "vocabulary": (int, "subwords per language"),
    "layers": (int, "layers of the encoder, and again of the decoder"),
    "width": (int, "width of the model, a multiple of the heads"),
    "heads": (int, "attention heads of a layer"),
    "tokens": (int, "subwords of one update, of the longer side"),
    "longest": (int, "pairs of more words on a side are left out"),
    "rate": (float, "peak of the learning rate"),
    "warmup": (int, "updates until the peak; at most a tenth of all, unless given"),
    "cooldown": (float, "share of the updates, at the end, over which the rate falls to 0"),
    "every": (int, "updates between two validations, which save"),
}


def register(commands: Any) -> None:
    """Add the command to the parser."""
    parser = commands.add_parser(
        "nmt",
        description="Train a translation Transformer from raw parallel text, and try it.",
        epilog=EXAMPLES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    jobs = parser.add_subparsers(title="commands", metavar="COMMAND", required=True)
    _register_train(jobs)
    _register_translate(jobs)


def run_train(options: argparse.Namespace) -> int:
    """Train, with a bar, and a line for every validation."""
    recipe = tailored(PRESETS[options.preset], **{name: getattr(options, name) for name in NUMBERS})
    valid = (options.valid_source, options.valid_target)
    if None in valid and valid != (None, None):
        raise TextError(
            "Validation needs both sides.",
            do="give --valid-source and --valid-target, or neither.",
        )
    sized = [f"--{name}" for name in SIZES if getattr(options, name) is not None]
    if options.start is not None and sized:
        raise RecipeError(
            f"A model to start from has its own sizes, so {' and '.join(sized)} cannot be given.",
            do="leave the sizes out, or train from fresh weights.",
        )
    if options.threads is not None:
        torch.set_num_threads(options.threads)
    with Bar() as bar:
        train(
            parallel(options.source, options.target, encoding=options.encoding),
            options.out,
            recipe=recipe,
            valid=None if None in valid else parallel(*valid, encoding=options.encoding),
            valid_limit=options.valid_limit,
            languages=options.languages,
            seed=options.seed,
            device=options.device,
            start=options.start,
            resume=options.resume,
            watch=Watch(bar.told, bar.updated, bar.validated),
        )
    print(f"Model: {options.out}", file=sys.stderr)
    return 0


def run_translate(options: argparse.Namespace) -> int:
    """Translate line by line, as the lines come."""
    given = lines_from(options.file, encoding=options.encoding)
    if options.out is not None and options.out.exists() and options.out.resolve() == Path(options.file).resolve():
        raise LinesError(
            f"'{options.out}' is the text itself.",
            do="write to another file.",
        )
    model, tokens = load_translator(options.model, device=options.device)

    def cut(line: int, longest: int) -> None:
        print(f"normlens: {given.name}:{line}: longer than the model; cut to {longest} subwords", file=sys.stderr)

    batch = 1 if given.typed else options.batch
    done = translate(model, tokens, given.lines, beams=options.beams, batch=batch, cut=cut)
    if options.out is None:
        for text in done:
            print(text, flush=True)
    else:
        write_lines(done, options.out)
        print(f"Translation: {options.out}", file=sys.stderr)
    return 0


def _register_train(jobs: Any) -> None:
    parser = jobs.add_parser(
        "train",
        help="a translation model from two files of sentences",
        description="Train a Marian Transformer from fresh weights. Line n of one file is the translation of line n of "
        "the other; files may be packed as .gz, .xz or .bz2. DIR is a model that transformers loads: the best so far.",
        epilog=TRAIN,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    group = parser.add_argument_group("text")
    group.add_argument(
        "--source", type=Path, required=True, metavar="F", help="sentences to translate from, one a line"
    )
    group.add_argument("--target", type=Path, required=True, metavar="F", help="their translations, line by line")
    group.add_argument(
        "--valid-source",
        type=Path,
        metavar="F",
        help="sentences to validate on (default: the last 1000 pairs, at most 5 %% of all, are held back)",
    )
    group.add_argument("--valid-target", type=Path, metavar="F", help="their translations")
    group.add_argument(
        "--valid-limit", type=_positive, default=500, metavar="N", help="pairs translated for BLEU (default: 500)"
    )
    group.add_argument(
        "--languages", type=_languages, default="source-target", metavar="L", help="their names, such as de-en"
    )
    group.add_argument("--encoding", default="utf-8", metavar="E", help="of the files (default: utf-8)")
    group = parser.add_argument_group("recipe")
    group.add_argument("--preset", choices=PRESETS, default="small", help="what the numbers below are, unless given")
    for name, (kind, says) in NUMBERS.items():
        defaults = ", ".join(f"{preset} {getattr(recipe, name)}" for preset, recipe in PRESETS.items())
        group.add_argument(f"--{name}", type=kind, metavar="N" if kind is int else "X", help=f"{says} ({defaults})")
    group.add_argument("--seed", type=int, default=0, metavar="N", help="for weights and order (default: 0)")
    group = parser.add_argument_group("run")
    group.add_argument("--out", type=Path, required=True, metavar="DIR", help="folder for the model; it is made")
    group.add_argument(
        "--start", type=Path, metavar="DIR", help="begin from the subwords and weights of a model trained before"
    )
    group.add_argument("--resume", action="store_true", help="go on with a training that was interrupted")
    group.add_argument("--threads", type=_positive, metavar="N", help="CPU threads (default: as torch decides)")
    group.add_argument("--device", default="cpu", metavar="D", help="a torch device, such as cuda (default: cpu)")
    parser.set_defaults(run=run_train)


def _register_translate(jobs: Any) -> None:
    parser = jobs.add_parser(
        "translate",
        help="translate lines with a trained model, or with any sequence-to-sequence model",
        description="Translate a file, or standard input, line by line, as the lines come. An empty line stays empty.",
        epilog=TRANSLATE,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("file", nargs="?", default="-", metavar="FILE", help="one sentence a line; - or nothing: stdin")
    parser.add_argument("--model", required=True, metavar="DIR", help="folder that was trained, or a hub id")
    parser.add_argument("--beams", type=_positive, default=4, metavar="N", help="width of the search (default: 4)")
    parser.add_argument("--batch", type=_positive, default=64, metavar="N", help="lines at once (default: 64)")
    parser.add_argument("--out", type=Path, metavar="F", help="write there instead of to standard output")
    parser.add_argument("--encoding", default="utf-8", metavar="E", help="of the file (default: utf-8)")
    parser.add_argument("--device", default="cpu", metavar="D", help="a torch device, such as cuda (default: cpu)")
    parser.set_defaults(run=run_translate)


def _positive(text: str) -> int:
    if not text.isdecimal() or int(text) < 1:
        raise argparse.ArgumentTypeError(f"{text!r} is no whole number above 0")
    return int(text)


def _languages(text: str) -> tuple[str, str]:
    source, dash, target = text.partition("-")
    if not (source and dash and target):
        raise argparse.ArgumentTypeError(f"{text!r} does not name two languages, such as de-en")
    return source, target
