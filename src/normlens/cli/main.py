"""The command `normlens` and its subcommands.

A user never sees a traceback for bad input, nor for an interruption. The module of a command, and torch behind it, is
imported when that command is run.
"""

from __future__ import annotations

import argparse
import errno
import os
import re
import shlex
import shutil
import sys
from collections.abc import Sequence
from importlib import import_module
from textwrap import fill
from typing import Any

from normlens.cli.arguments import keep_inputs
from normlens.errors import NormlensError, nearest
from normlens.version import __version__

COMMANDS = {  # each is a module of its name here, whose register(commands) adds its parser
    "show": "attention weights and contributions of one text, in the terminal or as a page",
    "attribute": "what drove a prediction: a score for each token of one text",
    "report": "every study of a corpus, with figures and tables on one page",
    "study": "one study of a corpus, or one of your own, in the terminal",
    "heads": "the profile of every head: what it attends to, what contributes, its pattern and role",
    "faithful": "which method of attribution to trust on a model, measured by removing tokens",
    "segment": "cut a text where attention says so, and score the cuts where they are known",
    "sinks": "which tokens are attention sinks, and whether they contribute",
    "align": "word alignments from a translation model, and their error against gold links",
    "aer": "alignment error rate of a file of word links, with intervals and a paired test",
    "nmt": "train a translation model on parallel text, and translate with it",
    "reproduce": "run a paper's experiments again and print its numbers beside the measured ones",
    "serve": "the explorer, in a browser",
    "doctor": "check whether every attention block of a model is exact",
}
EPILOG = """examples:
  normlens show                                    # the bundled MiniLM on a bundled sentence
  normlens show "The cat sat on the mat." --html cat.html
  normlens show --model bert-base-uncased "First text." --pair "Second text."
  normlens attribute "The film was not bad." --model my-classifier   # what drove the prediction
  normlens report --corpus texts.txt --out first   # every study of a corpus, as one page
  normlens study categories --corpus texts.txt     # one of them, in the terminal
  normlens heads --corpus texts.txt --out heads    # what each head does, as a table and a page
  normlens sinks --corpus texts.txt                # attention sinks, head by head
  normlens faithful texts.txt --model M            # which attribution to trust on this model
  normlens segment story.txt                       # a text, cut where attention says so
  normlens align --source a.de --target a.en       # word alignments from the bundled translation models
  normlens aer links.txt --gold gold.talp          # error rate of a file of word links
  normlens nmt train --source a.de --target a.en --out de-en
  normlens serve --open                            # the explorer, in your browser
  normlens doctor bert-base-uncased                # is every block of this model exact?
  normlens doctor llama --tiny                     # the same for an architecture, without its weights

`normlens COMMAND --help` explains a command.
"""


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command. 0: done, 1: refused, or not written, with a reason, 2: misused, 130: interrupted."""
    arguments = sys.argv[1:] if arguments is None else arguments
    try:
        options = parse(arguments)
        status = options.run(options)
        sys.stdout.flush()
        return status
    except NormlensError as error:
        width = shutil.get_terminal_size().columns if sys.stderr.isatty() else None
        print(laid_out(error, width), file=sys.stderr)
        return 1
    except KeyboardInterrupt as stopped:
        print("\n".join(["normlens: interrupted", *getattr(stopped, "__notes__", ())]), file=sys.stderr)
        return 130
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 0
    except OSError as error:
        if error.errno != errno.ENOSPC:
            raise
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        print(f"normlens: the output could not be written: {error.strerror}.", file=sys.stderr)
        return 1


def laid_out(error: NormlensError, width: int | None = None) -> str:
    """The parts of an error, each on a line of its own, wrapped when a width is given."""
    text = f"normlens: {error}"
    if width is None:
        return text
    return "\n".join(
        fill(line, width, subsequent_indent="    ", break_long_words=False, break_on_hyphens=False)
        for line in text.splitlines()
    )


class Parser(argparse.ArgumentParser):
    """A parser, and subparsers of its kind, that accept no abbreviated flags and print examples as they are."""

    def __init__(self, **settings: Any) -> None:
        super().__init__(
            **{"formatter_class": argparse.RawDescriptionHelpFormatter, "allow_abbrev": False} | settings,
        )
        self.description = self.description and fill(self.description, _width(), break_on_hyphens=False)


def parse(arguments: Sequence[str]) -> argparse.Namespace:
    """The options of a command, checked; `options.run(options)` runs it."""
    parser = Parser(
        prog="normlens",
        description="Norm-based analysis of attention: for each token, the attention weight α beside the norm "
        "‖αf(x)‖ of its contribution, exact, for any transformers model.",
        epilog=EPILOG,
    )
    parser.add_argument("--version", action="version", version=f"normlens {__version__}")
    commands = parser.add_subparsers(title="commands", metavar="COMMAND", required=True)
    if not arguments:
        arguments = ["--help"]
    asked = arguments[0]
    for name, what in COMMANDS.items():
        if name == asked:
            import_module(f"normlens.cli.{name}").register(commands)
        else:
            commands.add_parser(name, help=what)
    options, rest = parser.parse_known_args(arguments)
    if rest:
        command = commands.choices[arguments[0]]
        flags = re.findall(r"--[a-z-]+", command.format_usage())
        hint = nearest(rest[0].partition("=")[0], flags)
        if not hint and hasattr(options, "corpus") and not rest[0].startswith("-"):
            hint = f"Give a corpus with --corpus, as in: --corpus {shlex.quote(rest[0])}"
        command.error(f"unrecognized arguments: {shlex.join(rest)}" + (f"\n  Do: {hint.strip()}" if hint else ""))
    if hasattr(options, "check"):
        options.check(options)
    keep_inputs(options)
    return options


def _width() -> int:
    return shutil.get_terminal_size().columns - 2


if __name__ == "__main__":
    sys.exit(main())
