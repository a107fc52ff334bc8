"""Run docs/tutorial.ipynb and make it a page of the documentation: a hook of mkdocs.yml.

The notebook is stored without outputs; each build runs it anew, so the page shows what the code does now. Its cells are
plain Python without magics, so no Jupyter is needed.
"""

import ast
import contextlib
import io
import json
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files
from mkdocs.structure.pages import Page

NOTEBOOK = Path(__file__).resolve().parent.parent / "docs" / "tutorial.ipynb"
NAME = "tutorial.md"
_html: dict[
    str, str
] = {}  # what stands for each placeholder of the page; mkdocs calls the two hooks one after the other


@dataclass(frozen=True, slots=True)
class Cell:
    """One cell of the notebook, and what running it wrote and returned."""

    kind: str  # "markdown" or "code"
    source: str
    text: str = ""
    html: str = ""


def run(path: Path = NOTEBOOK) -> Iterator[Cell]:
    """Run the cells in order, in an empty folder; a cell that fails stops the run with its error."""
    notebook = json.loads(path.read_text(encoding="utf-8"))
    names: dict[str, Any] = {}
    for cell in notebook["cells"]:
        kind, source = cell["cell_type"], "".join(cell["source"])
        yield _ran(source, names) if kind == "code" else Cell(kind, source)


def on_files(files: Files, *, config: MkDocsConfig) -> Files:
    """Add the page."""
    with tempfile.TemporaryDirectory() as folder, contextlib.chdir(folder):
        cells = list(run())
    _html.clear()
    parts = ["---\nhide: [toc]\n---"]  # the views need the width
    for number, cell in enumerate(cells):
        parts.append(f"```python\n{cell.source}\n```" if cell.kind == "code" else cell.source)
        if cell.text:
            parts.append(f"```text\n{cell.text}\n```")
        if cell.html:
            _html[f'<p id="output-{number}"></p>'] = f'<div class="output">{cell.html}</div>'
            parts.append(f'<p id="output-{number}"></p>')
    parts.append(f"[This page as a notebook]({NOTEBOOK.name})")
    files.append(File.generated(config, NAME, content="\n\n".join(parts) + "\n"))
    return files


def on_page_markdown(markdown: str, *, page: Page, config: MkDocsConfig, files: Files) -> str:
    """Links to the notebook, right in the repository, lead to its page here."""
    return markdown if page.file.src_uri == NAME else markdown.replace(f"({NOTEBOOK.name})", f"({NAME})")


def on_page_content(html: str, *, page: Page, config: MkDocsConfig, files: Files) -> str:
    """Put the views and tables into the finished page: Markdown would take them apart."""
    if page.file.src_uri == NAME:
        for placeholder, output in _html.items():
            html = html.replace(placeholder, output)
    return html


def _ran(source: str, names: dict[str, Any]) -> Cell:
    """Run one cell; as in a notebook, its last expression is shown."""
    body = ast.parse(source).body
    last = ast.Expression(body.pop().value) if body and isinstance(body[-1], ast.Expr) else None
    with contextlib.redirect_stdout(io.StringIO()) as written:
        exec(compile(ast.Module(body, []), "cell", "exec"), names)
        value = eval(compile(last, "cell", "eval"), names) if last else None
    html = value._repr_html_() if hasattr(value, "_repr_html_") else ""
    shown = "" if value is None or html else repr(value)
    return Cell("code", source, "\n".join(filter(None, [written.getvalue().rstrip(), shown])), html)
