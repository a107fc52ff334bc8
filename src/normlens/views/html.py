"""A figure as HTML: one page that stands alone, or the same page inside a notebook.

Room: figure to HTML. Drawing is done by the real JavaScript files in assets/, put into the page as they are. Nothing
is fetched (a content security policy in the page forbids it), nothing is random: the same figure gives the same text.

In a notebook the page stands in an `<iframe srcdoc>`: each output is its own document. A script in the output itself
would share ids, styles and keys with the notebook and meet itself when shown twice; a frame on a file needs the
notebook to serve that file (compare pyvis#116, blank in VS Code). Where frames are taken out (GitHub does) the text
table beneath remains, and where scripts are off the page shows the same table, so an output need never be blank.
"""

import html
import json
import re
from functools import cache
from importlib.resources import files

from normlens.views.figure import Figure
from normlens.views.payload import payload
from normlens.views.text import summary, visible_line

SCRIPTS = ("inflate.js", "data.js", "color.js", "heatmap.js", "bars.js", "controls.js", "view.js")


def page(figure: Figure) -> str:
    """One self-contained HTML page."""
    parts = {
        "title": html.escape(visible_line(figure.title)),
        "summary": html.escape(summary(figure)),
        "data": json.dumps(payload(figure), separators=(",", ":")).replace("<", "\\u003c"),
        "style": _asset("view.css"),
        "script": "".join(_asset(name) for name in SCRIPTS),
    }
    return re.sub(r"\{\{(\w+)\}\}", lambda slot: parts[slot[1]], _asset("view.html"))


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
def _asset(name: str) -> str:
    return files("normlens.views").joinpath("assets", name).read_text(encoding="utf-8")
