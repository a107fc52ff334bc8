"""Studies as a user names them: ours by name, the user's own by file or module."""

from __future__ import annotations

import argparse
import importlib.util
import inspect
import sys
from collections.abc import Mapping, Sequence
from importlib import import_module
from pathlib import Path
from typing import Any

from normlens.errors import nearest
from normlens.studies import DEFAULT, STUDIES, Study, StudyError, chosen


def studies_from(text: str | None, settings: Sequence[str] = ()) -> tuple[Study[Any], ...]:
    """Studies by name, and the user's own as file.py:Class or package.module:Class, separated by commas.

    A setting NAME=VALUE, or STUDY.NAME=VALUE, is an argument of the study that has it, instead of its default.
    """
    names = [name.strip() for name in (text or "").split(",") if name.strip()] if text is not None else DEFAULT
    studies = chosen([_own(name) if ":" in name else name for name in names])
    known = {study.name: inspect.signature(type(study)).parameters for study in studies}
    arguments: dict[str, dict[str, Any]] = {}
    for setting in settings:
        name, equals, value = setting.partition("=")
        owner, _, argument = name.rpartition(".")
        owners = [study for study in known if argument in known[study] and owner in ("", study)]
        if not equals or len(owners) != 1:
            names = [f"{study}.{one}" if len(known) > 1 else one for study in known for one in known[study]]
            raise StudyError(
                f"--set {setting} sets nothing of {', '.join(known)}.",
                do=nearest(name, names) + f"Give --set NAME=VALUE, where NAME is {' or '.join(names)}."
                if names
                else "leave it out.",
            )
        arguments.setdefault(owners[0], {})[argument] = _value(setting, value, known[owners[0]][argument].default)
    return chosen([type(one)(**arguments[one.name]) if one.name in arguments else one for one in studies])


def _value(setting: str, text: str, default: Any) -> Any:
    """The text in the type of the argument's default value; as it is where that says nothing."""
    try:
        if isinstance(default, bool):
            return {"yes": True, "no": False}[text]
        if isinstance(default, int | float):
            return type(default)(text)
        if isinstance(default, tuple):
            parts = [part.strip() for part in text.split(",")]
            return tuple(type(default[0])(part) if default else part for part in parts)
        if isinstance(default, Mapping):
            parts = [part.strip() for part in text.split(",")]
            return {part.rpartition(":")[2]: _member(part, "function") for part in parts}
        return text
    except (ValueError, KeyError) as error:
        example = {True: "yes", False: "no"}[default] if isinstance(default, bool) else _written(default)
        raise StudyError(
            f"--set {setting} has a value of another type.", do=f"give one as its default: {example}."
        ) from error


def _written(default: Any) -> str:
    return ",".join(map(str, default)) if isinstance(default, tuple) else str(default)


def add_settings(parser: argparse.ArgumentParser) -> None:
    """Arguments of the studies."""
    parser.add_argument(
        "--set",
        action="append",
        default=[],
        dest="settings",
        metavar="NAME=VALUE",
        help="an argument of a study, several values as a,b,c; STUDY.NAME=VALUE where several have it; may be repeated",
    )


def list_of_studies() -> str:
    """Every study with its title, for --help."""
    width = max(map(len, STUDIES))
    return "studies:\n" + "".join(f"  {name:{width}}  {one.title}\n" for name, one in STUDIES.items()) + "\n"


def _own(name: str) -> Any:
    """An instance of a class in a file or a module."""
    made = _member(name, "class")
    if not isinstance(made, type):
        raise StudyError(
            f"{name} is no class, so it is no study.",
            got=f"a {type(made).__name__}.",
            do="give file.py:Class; a function over pairs of tokens goes to `normlens study targets --set own=...`.",
        )
    try:
        return made()
    except Exception as error:
        got = f"{type(error).__name__}: {error}"
        raise StudyError(f"{name} cannot be made.", got=got, do="give a class whose instances need nothing.") from error


def _member(name: str, kind: str) -> Any:
    """A class or a function, named with its file or module."""
    place, colon, member = name.rpartition(":")
    form = kind.capitalize() if kind == "class" else kind
    do = f"give file.py:{form} or package.module:{form}."
    if not colon:
        raise StudyError(f"'{name}' does not name a {kind} and its file.", do=do)
    module = _module(place)
    if not hasattr(module, member):
        raise StudyError(f"There is no {kind} '{member}' in {place}.", do=do)
    return getattr(module, member)


def _module(place: str) -> Any:
    try:
        if not place.endswith(".py"):
            return import_module(place)
        spec = importlib.util.spec_from_file_location(Path(place).stem, place)
        assert spec is not None
        assert spec.loader is not None
        module = importlib.util.module_from_spec(spec)
        sys.modules.setdefault(spec.name, module)  # where dataclasses look for the names of their fields
        spec.loader.exec_module(module)
        return module
    except Exception as error:
        raise StudyError(
            f"'{place}' cannot be read.",
            got=f"{type(error).__name__}: {error}",
            do="give a file.py that is there and runs, or a module that can be imported.",
        ) from error
