"""The command line: one subcommand per question.

Room: arguments in, exit code out. A user never sees a traceback for bad input, nor for an interruption. The module of a
command, and torch behind it, is imported when that command is asked for.
"""

from __future__ import annotations

import argparse
import os
import shlex
import sys
from collections.abc import Sequence
from importlib import import_module
from typing import Any

from normlens.errors import NormlensError
from normlens.version import __version__

COMMANDS = {  # each is a module of its name here, whose register(commands) adds its parser
    "show": "weights against norms for one text, in the terminal, as a page, as a table",
    "report": "what attention takes from a whole corpus: figures, tables and words in one page",
    "study": "one question asked of a corpus: dispersion, categories, correlation or frequency",
    "align": "word alignments out of a translation model, or two; with gold also how good they are",
    "aer": "alignment error rate of a file of word links, with intervals and a paired test",
    "nmt": "train a translation model from parallel text, and translate with it",
    "reproduce": "run a paper's experiments again and print its numbers beside ours",
    "serve": "the explorer in a browser: type a text, pick a model, look around",
    "doctor": "prove a model, block by block",
}
EPILOG = """examples:
  normlens show                                    # the embedded model on the embedded text
  normlens show "The cat sat on the mat." --html cat.html
  normlens show --model bert-base-uncased "First text." --pair "Second text."
  normlens report --corpus texts.txt --out first   # every study of a corpus, as one page
  normlens study categories --corpus texts.txt     # one of them, in the terminal
  normlens align --source a.de --target a.en       # word alignments out of a translation model
  normlens aer links.txt --gold gold.talp          # how good a file of word links is
  normlens nmt train --source a.de --target a.en --out de-en
  normlens serve --open                            # the explorer, in your browser
  normlens doctor bert-base-uncased                # is every block of this model exact?
  normlens doctor llama --tiny                     # the same for an architecture, without its weights
"""


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command. 0: done, 1: refused with a reason, 2: misused, 130: interrupted."""
    arguments = sys.argv[1:] if arguments is None else arguments
    try:
        options = parse(arguments)
        return options.run(options)
    except NormlensError as error:
        print(f"normlens: {error}", file=sys.stderr)
        return 1
    except KeyboardInterrupt as stopped:
        print("\n".join(["normlens: interrupted", *getattr(stopped, "__notes__", ())]), file=sys.stderr)
        return 130
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 0


class Parser(argparse.ArgumentParser):
    """A parser, and subparsers of its kind, that take no flag for a longer one."""

    def __init__(self, **settings: Any) -> None:
        super().__init__(**settings, allow_abbrev=False)


def parse(arguments: Sequence[str]) -> argparse.Namespace:
    """The options of a command, checked; `options.run(options)` runs it."""
    parser = Parser(
        prog="normlens",
        description="What attention in a Transformer really moves: α against ‖α·f(x)‖, exact, for any model.",
        epilog=EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--version", action="version", version=f"normlens {__version__}")
    commands = parser.add_subparsers(title="commands", metavar="COMMAND", required=True)
    asked = arguments[0] if arguments else None
    for name, what in COMMANDS.items():
        if name == asked:
            import_module(f"normlens.cli.{name}").register(commands)
        else:
            commands.add_parser(name, help=what)
    options, rest = parser.parse_known_args(arguments)
    if rest:
        file = next((one for one in rest if not one.startswith("-")), None)
        hint = f"\n  A corpus is given with --corpus, as in: --corpus {shlex.quote(file)}" if file else ""
        parser.error(f"unrecognized arguments: {shlex.join(rest)}" + (hint if hasattr(options, "corpus") else ""))
    if hasattr(options, "check"):
        options.check(options)
    return options


if __name__ == "__main__":
    sys.exit(main())
