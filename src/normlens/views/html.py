"""A figure as HTML: one page that stands alone, or the same page inside a notebook.

Drawing is done by the real JavaScript modules in assets/, joined into one script in the order in
which they import each other. Nothing is fetched (a content security policy in the page forbids it), nothing is random:
the same figure gives the same text.

In a notebook the page stands in an `<iframe srcdoc>`: each output is its own document. A script in the output itself
would share ids, styles and keys with the notebook and meet itself when shown twice; a frame on a file needs the
notebook to serve that file (compare pyvis#116, blank in VS Code). Where frames are taken out (GitHub does) the text
table beneath remains, and where scripts are off the page shows the same table, so an output need never be blank.
"""

import base64
import html
import json
import re
from functools import cache
from importlib.resources import files

from normlens.views.figure import Figure
from normlens.views.payload import packed
from normlens.views.text import summary, visible_line

IMPORT = re.compile(r'^import \{[^}]*\} from "\./(\w+\.js)";\n', re.MULTILINE)


def page(figure: Figure) -> str:
    """One self-contained HTML page."""
    pack = packed(figure)
    letters = (base64.b64encode(chunk).decode("ascii") for chunk in pack.chunks)
    chunks = (
        f'<script type="application/octet-stream" id="chunk-{number}">{text}</script>'
        for number, text in enumerate(letters)
    )
    parts = {
        "title": html.escape(visible_line(figure.title)),
        "summary": html.escape(summary(figure)),
        "data": json.dumps(pack.header, separators=(",", ":")).replace("<", "\\u003c"),
        "chunks": "\n".join(chunks),
        "style": asset("view.css"),
        "script": "".join(_plain(name) for name in _modules("page.js")),
    }
    return re.sub(r"\{\{(\w+)\}\}", lambda slot: parts[slot[1]], asset("view.html"))


def fragment(figure: Figure) -> str:
    """The page for a notebook's `_repr_html_`; may be shown any number of times in one document."""
    title = html.escape(f"normlens: {visible_line(figure.title)}")
    return (
        f'<iframe title="{title}" srcdoc="{html.escape(page(figure))}" '
        'style="width:100%;height:860px;border:0;display:block"></iframe>'
        f'<details><summary>the same as text</summary><pre style="line-height:1.2">{html.escape(summary(figure))}</pre>'
        "</details>"
    )


@cache
def asset(name: str) -> str:
    """One of the files in assets/."""
    return files("normlens.views").joinpath("assets", name).read_text(encoding="utf-8")


@cache
def _modules(name: str) -> tuple[str, ...]:
    """A module and all it imports, each after what it needs."""
    before = [one for other in IMPORT.findall(asset(name)) for one in _modules(other)]
    return (*dict.fromkeys(before), name)


def _plain(name: str) -> str:
    """A module as a part of one script: without import and export, which only whole files may have, and comments."""
    return re.sub(r"^export |^ *//.*\n", "", IMPORT.sub("", asset(name)), flags=re.MULTILINE)
