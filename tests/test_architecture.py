"""Rooms flow one way: left never imports right."""

import ast
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent / "src" / "normlens"
FLOW = [
    "errors",
    "version",
    "signature",
    "picture",
    "statistics",
    "models",
    "corpora",
    "tiny",
    "capture",
    "decompose",
    "nmt",
    "views",
    "lens",
    "alignment",
    "studies",
    "reports",
    "reproduction",
    "server",
    "cli",
    "__main__",
]


def rooms_imported(path):
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        modules = [node.module or ""] if isinstance(node, ast.ImportFrom) else []
        modules += [name.name for name in node.names] if isinstance(node, ast.Import) else []
        if isinstance(node, ast.ImportFrom) and node.module == "normlens":
            modules += [f"normlens.{name.name}" for name in node.names]
        for module in modules:
            parts = module.split(".")
            if parts[0] == "normlens" and len(parts) > 1:
                yield parts[1]


@pytest.mark.parametrize("path", sorted(ROOT.rglob("*.py")), ids=lambda path: str(path.relative_to(ROOT)))
def test_imports_flow_one_way(path):
    room = path.relative_to(ROOT).parts[0].removesuffix(".py")
    if room == "__init__":
        return
    for other in rooms_imported(path):
        assert FLOW.index(other) <= FLOW.index(room), f"{path} ({room}) must not know about {other}"


def test_every_room_has_its_place():
    rooms = {p.name.removesuffix(".py") for p in ROOT.iterdir() if p.suffix == ".py" or (p / "__init__.py").exists()}
    assert rooms - {"__init__"} == set(FLOW)
