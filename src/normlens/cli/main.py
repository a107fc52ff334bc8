"""The command line: one subcommand per question.

Room: arguments in, exit code out. A user never sees a traceback for bad input.
"""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Sequence

from normlens.cli import aer, align, doctor, nmt, report, reproduce, show, study
from normlens.errors import NormlensError
from normlens.version import __version__

EPILOG = """examples:
  normlens show                                    the embedded model on the embedded text
  normlens show "The cat sat on the mat." --html cat.html
  normlens show --model bert-base-uncased "First text." --pair "Second text."
  normlens report --corpus texts.txt --out first   every study of a corpus, as one page
  normlens study categories --corpus texts.txt     one of them, in the terminal
  normlens align --source a.de --target a.en       word alignments out of a translation model
  normlens aer links.txt --gold gold.talp          how good a file of word links is
  normlens nmt train --source a.de --target a.en --out de-en
  normlens doctor bert-base-uncased                is every block of this model exact?
  normlens doctor llama --tiny                     the same for an architecture, without its weights
"""


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command. 0: done, 1: refused with a reason, 2: misused, 130: interrupted."""
    parser = argparse.ArgumentParser(
        prog="normlens",
        description="What attention in a Transformer really moves: α against ‖α·f(x)‖, exact, for any model.",
        epilog=EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--version", action="version", version=f"normlens {__version__}")
    commands = parser.add_subparsers(title="commands", metavar="COMMAND", required=True)
    for command in (show, report, study, align, aer, nmt, reproduce, doctor):
        command.register(commands)
    options = parser.parse_args(arguments)
    try:
        return options.run(options)
    except NormlensError as error:
        print(f"normlens: {error}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        print("normlens: interrupted", file=sys.stderr)
        return 130
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 0


if __name__ == "__main__":
    sys.exit(main())
