"""How the API reference reads our code: an extension of griffe, named in mkdocs.yml."""

import ast
import re
from collections.abc import Iterator
from typing import Any

import griffe


class Reference(griffe.Extension):
    """Fields are described by the comment behind them, and a door means what it imports."""

    def on_attribute_instance(self, *, node: ast.AST | griffe.ObjectNode, attr: griffe.Attribute, **_: Any) -> None:
        """Take `heads: int  # how many` as a field with the docstring "How many."."""
        is_field = isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name) and attr.parent.is_class
        comment = re.search(r"  # (.+)$", attr.lines[-1]) if is_field and attr.lines else None
        if comment and attr.docstring is None:
            text = comment[1]
            first = text[0].upper() if text[0].isascii() else text[0]
            attr.docstring = griffe.Docstring(f"{first}{text[1:]}.", parent=attr, lineno=attr.lineno)

    def on_package(self, *, pkg: griffe.Module, loader: griffe.GriffeLoader, **_: Any) -> None:
        """Take `normlens.alignment.align` as the function that the room imports, not as the file of the same name."""
        rooms = [module for module in _modules(pkg) if module.is_init_module]
        hidden = [
            (room, name, loader.modules_collection[path])
            for room in rooms
            for name, path in room.imports.items()
            if path.startswith(f"{pkg.path}.") and (file := _files(room).get(name)) and path != file.path
        ]
        through = tuple(f"{room.path}.{name}." for room, name, _ in hidden)
        for member in (member for room in rooms for member in room.members.values()):
            if member.is_alias and member.target_path.startswith(through):
                member.resolve_target()  # while the path still leads through the file
        for room, name, meant in hidden:
            room.members[name] = griffe.Alias(name, meant, parent=room)


def _modules(module: griffe.Module) -> Iterator[griffe.Module]:
    yield module
    for file in _files(module).values():
        yield from _modules(file)


def _files(module: griffe.Module) -> dict[str, griffe.Module]:
    """The modules inside; `module.modules` would resolve every alias to find out what it is."""
    return {name: member for name, member in module.members.items() if not member.is_alias and member.is_module}
