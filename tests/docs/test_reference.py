"""The reference has every public name, and the tutorial is stored as it should be."""

import functools
import inspect
import json
import re
from pathlib import Path

import griffe
import pytest

import normlens as nl
from reference import Reference

DOCS = Path(__file__).parent.parent.parent / "docs"
NAMED = set(re.findall(r"^::: normlens\.(\S+)$", (DOCS / "api.md").read_text(encoding="utf-8"), re.MULTILINE))


def test_every_name_of_the_public_map_is_in_the_reference():
    assert {name for names in nl._ROOMS.values() for name in names} <= NAMED


def test_every_name_that_an_example_uses_of_a_room_is_in_the_reference():
    examples = "".join(
        example
        for page in DOCS.glob("*.md")
        for example in re.findall(r"```python\n(.*?)```", page.read_text(encoding="utf-8"), re.DOTALL)
    )
    used = {f"{room}.{name}" for room, name in re.findall(r"\b(corpora|nmt)\.([a-zA-Z_]+)", examples)}
    assert used
    assert used <= NAMED


def read(package, folder):
    extensions = griffe.load_extensions(Reference)
    return griffe.load(package, search_paths=[folder], extensions=extensions, allow_inspection=False)


@pytest.mark.slow
def test_a_public_name_is_what_a_user_gets_also_where_a_file_has_that_name():
    package = read("normlens", DOCS.parent / "src")
    for name in NAMED:
        value = functools.reduce(getattr, name.split("."), nl)
        kind = "class" if inspect.isclass(value) else "function" if inspect.isfunction(value) else "attribute"
        assert package[name].kind.value == kind, name


def test_the_comment_behind_a_field_is_what_the_reference_says_of_it(tmp_path):
    (tmp_path / "counted.py").write_text(
        "LIMIT: int = 3  # no field\n"
        "class Counted:\n"
        "    heads: int  # how many, from 1\n"
        "    weight: float  # α\n"
        "    plain: str\n",
        encoding="utf-8",
    )
    module = read("counted", tmp_path)
    said = {name: field.docstring and field.docstring.value for name, field in module["Counted"].members.items()}
    assert said == {"heads": "How many, from 1.", "weight": "α.", "plain": None}
    assert module["LIMIT"].docstring is None


def test_the_notebook_holds_no_outputs_and_needs_no_magics():
    notebook = json.loads((DOCS / "tutorial.ipynb").read_text(encoding="utf-8"))
    code = [cell for cell in notebook["cells"] if cell["cell_type"] == "code"]
    assert code
    for cell in code:
        assert cell["outputs"] == []
        assert cell["execution_count"] is None
        compile("".join(cell["source"]), "cell", "exec")
