"""`normlens serve`: the explorer, in a browser."""

from __future__ import annotations

import argparse
import secrets
import sys
import webbrowser
from pathlib import Path
from typing import Any

from normlens.explorer import Limits, Settings, allowed, serve

EXAMPLES = """examples:
  normlens serve --open                                    # the embedded models, in your browser
  normlens serve --model bert-base-uncased --model ./mine  # these two and no other
  normlens serve --report first                            # with the report in the folder first
  normlens serve --host 0.0.0.0 --token auto               # for others too; the link printed holds the token
"""


def register(commands: Any) -> None:
    """Add the command to the parser."""
    limits = Limits()
    parser = commands.add_parser(
        "serve",
        description="Open an explorer in the browser: type a text, pick a model, and see weights against norms. Each "
        "model runs in a process of its own, which starts when the model is first asked for.",
        epilog=EXAMPLES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument(
        "--model", action="append", default=[], metavar="M",
        help="hub id or folder that may be run; again for more; without it, the embedded MiniLM and translators",
    )  # fmt: skip
    parser.add_argument("--preload", action="store_true", help="load every model now, not when it is first asked for")
    parser.add_argument("--report", type=Path, metavar="DIR", help="show the report in this folder beside the views")
    parser.add_argument("--open", action="store_true", help="open the page in a browser")
    address = parser.add_argument_group("address")
    address.add_argument("--host", default="127.0.0.1", metavar="H", help="default 127.0.0.1: this computer alone")
    address.add_argument("--port", type=_port, default=8377, metavar="P", help="default 8377; 0 is any free one")
    address.add_argument("--token", metavar="T", help="needed for another host: 'auto', or 16 characters and more")
    address.add_argument(
        "--allow-host", action="append", default=[], metavar="NAME", help="a further name browsers may call it by"
    )
    group = parser.add_argument_group("limits")
    group.add_argument(
        "--max-tokens", type=_positive, default=limits.tokens, metavar="N", help=f"of a text (default {limits.tokens})"
    )
    group.add_argument(
        "--queue", type=_positive, default=limits.queue, metavar="N", help=f"runs that wait (default {limits.queue})"
    )
    group.add_argument(
        "--memory", type=_gigabytes, default=limits.memory / 1e9, metavar="GB",
        help=f"of each worker, its model included (default {limits.memory / 1e9:.0f})",
    )  # fmt: skip
    parser.set_defaults(run=run)


def run(options: argparse.Namespace) -> int:
    """Serve until interrupted."""
    limits = Limits(tokens=options.max_tokens, queue=options.queue, memory=int(options.memory * 1e9))
    settings = Settings(
        models=allowed(options.model),
        host=options.host,
        port=options.port,
        token=secrets.token_urlsafe(24) if options.token == "auto" else options.token,
        names=tuple(options.allow_host),
        report=options.report,
        preload=options.preload,
        limits=limits,
    )

    def ready(link: str) -> None:
        print(f"Explorer: {link}", flush=True)
        print(f"normlens: {', '.join(one.name for one in settings.models)}; Ctrl-C ends it", file=sys.stderr)
        if options.open:
            webbrowser.open(link)

    serve(settings, ready)
    print("normlens: the explorer has stopped", file=sys.stderr)
    return 0


def _positive(text: str) -> int:
    if not text.isdigit() or not 0 < int(text) < 10**9:
        raise argparse.ArgumentTypeError(f"{text!r} is not a whole number above 0")
    return int(text)


def _gigabytes(text: str) -> float:
    try:
        number = float(text)
    except ValueError:
        number = 0.0
    if not 0.5 <= number < 1e6:
        raise argparse.ArgumentTypeError(f"{text!r} is not a number of gigabytes from 0.5, which torch alone takes")
    return number


def _port(text: str) -> int:
    if not text.isdigit() or int(text) > 65535:
        raise argparse.ArgumentTypeError(f"{text!r} is not a port: a number from 0 to 65535")
    return int(text)
