"""`normlens serve`: the explorer, in a browser."""

from __future__ import annotations

import argparse
import secrets
import sys
import webbrowser
from pathlib import Path
from typing import Any

from normlens.cli.arguments import gigabytes, port, positive
from normlens.explorer import Limits, ServerError, Settings, allowed, serve

PAGE = "report.html"
EXAMPLES = """examples:
  normlens serve --open                                    # the bundled models, in your browser
  normlens serve --model bert-base-uncased --model ./mine  # these two models only
  normlens serve --corpus texts.txt --out first            # also the studies of a corpus, a tab each
  normlens serve --corpus texts.txt --studies heads --out heads   # also the profile of every head
  normlens serve --corpus first                            # the same report again, without running it
  normlens serve --host 0.0.0.0 --token auto               # for other computers too; the printed link holds the token
"""


def register(commands: Any) -> None:
    """Add the command to the parser."""
    limits = Limits()
    parser = commands.add_parser(
        "serve",
        description="The explorer, in a browser: type a text, choose a model, and see attention weights beside "
        "contributions. Each model runs in a process of its own, which starts at the first request for it.",
        epilog=EXAMPLES,
    )
    parser.add_argument(
        "--model", action="append", default=[], metavar="M",
        help="hub id or folder that may be run; may be repeated (default: the bundled MiniLM and translation models)",
    )  # fmt: skip
    parser.add_argument(
        "--preload", action="store_true", help="load every model at the start, not at the first request for it"
    )
    parser.add_argument(
        "--corpus", metavar="F",
        help="also show the studies of a corpus, a tab each: the folder of a report that `normlens report` wrote, or a "
        "corpus, on which the first model is run now (with --out)",
    )  # fmt: skip
    parser.add_argument("--out", type=Path, metavar="DIR", help="folder for the report of --corpus")
    parser.add_argument(
        "--studies", metavar="S,S",
        help="studies of that report, as in `normlens report` (default: the paper's four), or 'heads' for the profile "
        "of every head",
    )  # fmt: skip
    parser.add_argument("--open", action="store_true", help="open the page in a browser")
    address = parser.add_argument_group("address")
    address.add_argument(
        "--host", default="127.0.0.1", metavar="H", help="address to listen on (default: 127.0.0.1, this computer only)"
    )
    address.add_argument("--port", type=port, default=8377, metavar="P", help="port (default: 8377; 0: any free one)")
    address.add_argument("--token", metavar="T", help="secret for other computers: 'auto', or at least 16 characters")
    address.add_argument(
        "--allow-host",
        action="append",
        default=[],
        metavar="NAME",
        help="another host name that browsers may use; may be repeated",
    )
    group = parser.add_argument_group("limits")
    group.add_argument(
        "--max-tokens",
        type=positive,
        default=limits.tokens,
        metavar="N",
        help=f"tokens of a text (default: {limits.tokens})",
    )
    group.add_argument(
        "--queue",
        type=positive,
        default=limits.queue,
        metavar="N",
        help=f"runs that may wait (default: {limits.queue})",
    )
    group.add_argument(
        "--memory", type=gigabytes, default=limits.memory / 1e9, metavar="GB",
        help=f"memory of each worker, its model included (default: {limits.memory / 1e9:.0f})",
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
        report=None if options.corpus is None else _report(options),
        preload=options.preload,
        limits=limits,
    )

    def ready(link: str) -> None:
        print(f"Explorer: {link}", flush=True)
        print(f"normlens: {', '.join(model.name for model in settings.models)}; Ctrl-C ends it", file=sys.stderr)
        if options.open:
            webbrowser.open(link)

    serve(settings, ready)
    print("normlens: the explorer has stopped", file=sys.stderr)
    return 0


def _report(options: argparse.Namespace) -> Path:
    """The folder of the report: the one that was named, or one that is written now."""
    if (Path(options.corpus) / PAGE).is_file():
        return Path(options.corpus)
    if options.out is None:
        raise ServerError(
            f"'{options.corpus}' is no folder of a report, so the studies are run on it, and they need a folder.",
            do="give one with --out DIR; or name the folder that `normlens report` wrote.",
        )
    from normlens.cli.progress import Progress
    from normlens.cli.studies import studies_from
    from normlens.corpora import corpus
    from normlens.lens import load
    from normlens.studies import heads, report

    studies = None if options.studies == "heads" else studies_from(options.studies)
    with Progress(resumed=False) as progress:
        lens, texts = load(options.model[0] if options.model else None), corpus(options.corpus)
        if studies is None:
            heads(lens, texts, out=options.out, progress=progress)
        else:
            report(lens, texts, studies=studies, out=options.out, progress=progress)
    return options.out
