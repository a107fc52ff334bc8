"""`normlens nmt`: train a translation model on parallel text, and translate with it."""

from __future__ import annotations

import argparse
import io
import sys
from pathlib import Path
from typing import Any

import torch

from normlens.cli.arguments import languages, positive
from normlens.cli.progress import TrainingProgress, write_lines
from normlens.corpora import file_lines, lines
from normlens.nmt import PRESETS, RecipeError, TextError, Watch, load_translator, parallel, tailored, train, translate

EXAMPLES = """examples:
  normlens nmt train --source europarl.de.xz --target europarl.en.xz --languages de-en --out de-en
  normlens nmt train --source europarl.de.xz --target europarl.en.xz --languages de-en --out de-en --resume
  echo "Das Haus ist klein." | normlens nmt translate --model de-en
"""
TRAIN = """examples:
  normlens nmt train --source a.de --target a.en --out de-en             # the small preset, for two CPU cores
  normlens nmt train --source a.de --target a.en --out de-en --resume    # continue from the last validation
  normlens nmt train --source a.de.gz --target a.en.gz --valid-source b.de --valid-target b.en --out de-en
  normlens nmt train --source a.de --target a.en --out try --updates 200 --every 50    # a short try first
  normlens nmt train --source b.de --target b.en --out better --start de-en --rate 2e-3    # train it further
  normlens nmt train --source a.de --target a.en --out big --preset paper --device cuda
"""
TRANSLATE = """examples:
  normlens nmt translate --model de-en                             # type a line, get its translation
  normlens nmt translate --model de-en news.de --out news.en
  xzcat news.de.xz | normlens nmt translate --model de-en --beams 1 - > news.en
"""
SIZES = ("vocabulary", "layers", "width", "heads")
NUMBERS = {
    "updates": (int, "updates of the training"),
    "vocabulary": (int, "subwords per language"),
    "layers": (int, "layers of the encoder, and again of the decoder"),
    "width": (int, "width of the model, a multiple of the heads"),
    "heads": (int, "attention heads of a layer"),
    "tokens": (int, "subwords of one update, of the longer side"),
    "longest": (int, "leave out pairs of more words on a side"),
    "rate": (float, "peak of the learning rate"),
    "warmup": (int, "updates until the peak; at most a tenth of all, unless given"),
    "cooldown": (float, "share of the updates, at the end, over which the rate falls to 0"),
    "every": (int, "updates between two validations; each saves the training"),
}


def register(commands: Any) -> None:
    """Add the command to the parser."""
    parser = commands.add_parser(
        "nmt",
        description="Train a translation model on raw parallel text, and translate with it.",
        epilog=EXAMPLES,
    )
    jobs = parser.add_subparsers(title="commands", metavar="COMMAND", required=True)
    _register_train(jobs)
    _register_translate(jobs)


def run_train(options: argparse.Namespace) -> int:
    """Train, with a bar and a line for every validation."""
    recipe = tailored(PRESETS[options.preset], **{name: getattr(options, name) for name in NUMBERS})
    valid = (options.valid_source, options.valid_target)
    if None in valid and valid != (None, None):
        raise TextError(
            "Validation needs both sides, --valid-source and --valid-target.",
            do="give both, or neither to hold back the last pairs.",
        )
    sized = [f"--{name}" for name in SIZES if getattr(options, name) is not None]
    if options.start is not None and sized:
        raise RecipeError(
            f"With --start the sizes are those of the model, so {' and '.join(sized)} cannot be given.",
            do=f"leave out {' and '.join(sized)}, or --start to train from fresh weights.",
        )
    if options.threads is not None:
        torch.set_num_threads(options.threads)
    with TrainingProgress() as progress:
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
            watch=Watch(progress.noted, progress.updated, progress.validated),
        )
    print(f"Model: {options.out}", file=sys.stderr)
    return 0


def run_translate(options: argparse.Namespace) -> int:
    """Translate line by line, as the lines come."""
    typed = options.file == "-" and sys.stdin.isatty()
    name = "stdin" if options.file == "-" else options.file
    text = (
        lines(Unbuffered(sys.stdin.buffer), name, options.encoding)
        if options.file == "-"
        else file_lines(Path(options.file), options.encoding)
    )
    model, tokens = load_translator(options.model, device=options.device)

    def cut(line: int, longest: int) -> None:
        print(f"normlens: {name}:{line}: cut to {longest} subwords, the most that the model takes", file=sys.stderr)

    batch = 1 if typed else options.batch
    translations = translate(model, tokens, text, beams=options.beams, batch=batch, cut=cut)
    if options.out is None:
        for line in translations:
            print(line, flush=True)
    else:
        write_lines(translations, options.out)
        print(f"Translation: {options.out}", file=sys.stderr)
    return 0


class Unbuffered(io.BufferedIOBase):
    """A stream that returns what it has instead of waiting for as much as was asked for."""

    def __init__(self, stream: Any) -> None:
        self.stream = stream

    def read(self, size: int | None = -1, /) -> bytes:
        return self.stream.read1(-1 if size is None else size)


def _register_train(jobs: Any) -> None:
    parser = jobs.add_parser(
        "train",
        help="train a translation model on two files of sentences",
        description="Train a Marian Transformer. Line n of one file is the translation of line n of the other; files "
        "may be packed as .gz, .xz or .bz2. DIR always holds the best model so far, which transformers loads.",
        epilog=TRAIN,
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
        "--valid-limit", type=positive, default=500, metavar="N", help="pairs translated for BLEU (default: 500)"
    )
    group.add_argument(
        "--languages",
        type=languages,
        default="source-target",
        metavar="L",
        help="names of the languages, such as de-en",
    )
    group.add_argument("--encoding", default="utf-8", metavar="E", help="encoding of the files (default: utf-8)")
    group = parser.add_argument_group("recipe")
    group.add_argument(
        "--preset", choices=PRESETS, default="small", help="defaults of the numbers below (default: small)"
    )
    for name, (kind, says) in NUMBERS.items():
        defaults = ", ".join(f"{preset} {getattr(recipe, name)}" for preset, recipe in PRESETS.items())
        group.add_argument(f"--{name}", type=kind, metavar="N" if kind is int else "X", help=f"{says} ({defaults})")
    group.add_argument("--seed", type=int, default=0, metavar="N", help="seed of weights and order (default: 0)")
    group = parser.add_argument_group("run")
    group.add_argument(
        "--out", type=Path, required=True, metavar="DIR", help="folder of the model; it is created if it does not exist"
    )
    group.add_argument(
        "--start", type=Path, metavar="DIR", help="start from the subwords and weights of an earlier training"
    )
    group.add_argument("--resume", action="store_true", help="continue an interrupted training")
    group.add_argument("--threads", type=positive, metavar="N", help="CPU threads (default: torch's choice)")
    group.add_argument("--device", default="cpu", metavar="D", help="a torch device, such as cuda (default: cpu)")
    parser.set_defaults(run=run_train)


def _register_translate(jobs: Any) -> None:
    parser = jobs.add_parser(
        "translate",
        help="translate lines with a trained model, or with any sequence-to-sequence model",
        description="Translate a file, or standard input, line by line, as the lines come. An empty line stays empty.",
        epilog=TRANSLATE,
    )
    parser.add_argument(
        "file", nargs="?", default="-", metavar="FILE", help="one sentence a line (default: standard input)"
    )
    parser.add_argument("--model", required=True, metavar="DIR", help="folder of a trained model, or a hub id")
    parser.add_argument("--beams", type=positive, default=4, metavar="N", help="beams of the search (default: 4)")
    parser.add_argument("--batch", type=positive, default=64, metavar="N", help="lines of a batch (default: 64)")
    parser.add_argument("--out", type=Path, metavar="F", help="file of the translations (default: standard output)")
    parser.add_argument("--encoding", default="utf-8", metavar="E", help="encoding of the file (default: utf-8)")
    parser.add_argument("--device", default="cpu", metavar="D", help="a torch device, such as cuda (default: cpu)")
    parser.set_defaults(run=run_translate)
