"""Rooms flow one way, left never imports right, and each is entered through its door."""

import ast
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent / "src" / "normlens"
FLOW = (
    "errors files version signature picture statistics models corpora algebra capture measures views probes "
    "exhibits attribution lens studies alignment nmt papers explorer cli __main__"
).split()


def modules_imported(path):
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        modules = [node.module or ""] if isinstance(node, ast.ImportFrom) else []
        modules += [name.name for name in node.names] if isinstance(node, ast.Import) else []
        if isinstance(node, ast.ImportFrom) and node.module == "normlens":
            modules += [f"normlens.{name.name}" for name in node.names]
        yield from (module.split(".")[1:] for module in modules if module.startswith("normlens."))


@pytest.mark.parametrize("path", sorted(ROOT.rglob("*.py")), ids=lambda path: str(path.relative_to(ROOT)))
def test_imports_flow_one_way(path):
    room = path.relative_to(ROOT).parts[0].removesuffix(".py")
    if room == "__init__":
        return
    for other, *_ in modules_imported(path):
        assert FLOW.index(other) <= FLOW.index(room), f"{path} ({room}) must not know about {other}"


@pytest.mark.parametrize("path", sorted(ROOT.rglob("*.py")), ids=lambda path: str(path.relative_to(ROOT)))
def test_a_room_is_entered_through_its_door(path):
    room = path.relative_to(ROOT).parts[0].removesuffix(".py")
    for other, *files in modules_imported(path):
        is_room = (ROOT / other).is_dir()
        assert other == room or not (is_room and files) or room == "__main__", (
            f"{path} ({room}) reaches behind the door of {other}: import {files} from normlens.{other}"
        )


def test_every_room_has_its_place():
    rooms = {p.name.removesuffix(".py") for p in ROOT.iterdir() if p.suffix == ".py" or (p / "__init__.py").exists()}
    assert rooms - {"__init__"} == set(FLOW)


ARRAYS = {"Tensor", "ndarray", "Float", "Int", "Bool", "Shaped"}


def words(node):
    return {getattr(part, "id", getattr(part, "attr", "")) for part in ast.walk(node)}


def names_of_arrays():
    """Tensor, Float ..., and the names the project gives to types made of them."""
    top = [node for path in ROOT.rglob("*.py") for node in ast.parse(path.read_text(encoding="utf-8")).body]
    aliases = [
        node for node in top if isinstance(node, ast.Assign) and isinstance(node.value, ast.Subscript | ast.BinOp)
    ]
    return ARRAYS | {node.targets[0].id for node in aliases if words(node.value) & ARRAYS}


def dataclasses_in(path):
    """The dataclasses of a file and what their decorators say."""
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        for said in getattr(node, "decorator_list", ()):
            if isinstance(node, ast.ClassDef) and "dataclass" in words(said):
                yield node, {word.arg: word.value for word in getattr(said, "keywords", ())}


def test_records_of_arrays_are_compared_by_identity():
    """`==` between two of them would ask an array whether it is true, which it cannot say."""
    arrays = names_of_arrays()
    for path in sorted(ROOT.rglob("*.py")):
        for node, said in dataclasses_in(path):
            holds = any(words(part.annotation) & arrays for part in node.body if isinstance(part, ast.AnnAssign))
            by_identity = "eq" in said and ast.literal_eval(said["eq"]) is False
            assert by_identity or not holds, f"{path.relative_to(ROOT)}: {node.name} holds arrays; say eq=False"
