"""The names users type. A change here is a change of a promise."""

import ast
import importlib
import inspect
import subprocess
import sys
from pathlib import Path

import pytest

import normlens as nl

NAMES = {
    "Aligned", "Attribution", "Block", "Faithfulness", "InputError", "Lens", "LoadError", "NormlensError",
    "ReconstructionError", "Report", "Study", "Trace", "align", "faithfulness", "heads", "importance", "load",
    "measure", "open", "report", "segment", "shorten",
}  # fmt: skip


def alone(job):
    """What Python code prints in a process of its own."""
    return subprocess.run([sys.executable, "-c", job], capture_output=True, text=True, check=True).stdout.strip()


def test_the_map_is_small_and_complete():
    public = {name for name in dir(nl) if not name.startswith("_") and not inspect.ismodule(getattr(nl, name))}
    assert public == NAMES


def test_what_type_checkers_read_is_what_is_fetched():
    tree = ast.parse(Path(nl.__file__).read_text(encoding="utf-8"))
    (block,) = (node for node in tree.body if isinstance(node, ast.If))
    read = {alias.asname: node.module for node in block.body for alias in node.names}
    assert read.keys() == NAMES
    for name, module in read.items():
        assert getattr(nl, name) is getattr(importlib.import_module(module), name)


def test_a_name_that_is_not_there_is_an_attribute_error():
    assert not hasattr(nl, "colours")
    with pytest.raises(AttributeError, match="'normlens' has no attribute 'colours'"):
        nl.colours  # noqa: B018


def test_no_module_hides_a_public_name_whatever_is_imported_first():
    """`normlens.studies.report` is a module as well as a function in it, and the like."""
    first = "import normlens.alignment.align, normlens.studies.report, normlens.lens.lens, normlens.models.load"
    kinds = f"[type(getattr(normlens, name)).__name__ == 'module' for name in {sorted(NAMES)}]"
    assert alone(f"{first}; print(any({kinds}), normlens.align.__module__)") == "False normlens.alignment.align"


def test_everything_public_says_what_it_is():
    for name in NAMES:
        assert getattr(nl, name).__doc__, name
    for owner in (nl.Aligned, nl.Attribution, nl.Lens, nl.Trace, nl.Block, nl.Report):
        for name, member in vars(owner).items():
            if not name.startswith("_") and (callable(member) or isinstance(member, property)):
                plain = name in {"encoder_attention", "decoder_attention", "words", "target_words", "label"}
                assert member.__doc__ or plain, f"{owner.__name__}.{name}"


def test_importing_normlens_imports_nothing_heavy():
    heavy = "('torch', 'transformers', 'numpy', 'pandas', 'matplotlib', 'IPython')"
    assert alone(f"import sys, normlens; print([m for m in {heavy} if m in sys.modules])") == "[]"


def test_using_normlens_imports_no_optional_library():
    optional = "('pandas', 'matplotlib', 'IPython')"
    used = "import sys, normlens as nl; nl.load, nl.report, nl.align"
    assert alone(f"{used}; print([m for m in {optional} if m in sys.modules])") == "[]"
