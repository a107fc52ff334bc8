"""Studies as a user names them: ours by name, the user's own by file or module."""

from __future__ import annotations

import importlib.util
import inspect
import sys
from collections.abc import Mapping, Sequence
from importlib import import_module
from pathlib import Path
from typing import Any

from normlens.studies import DEFAULT, STUDIES, Study, StudyError, chosen


def studies_from(text: str | None) -> tuple[Study[Any], ...]:
    """Studies by name, and the user's own as file.py:Class or package.module:Class, separated by commas."""
    if text is None:
        return chosen(DEFAULT)
    names = [name.strip() for name in text.split(",") if name.strip()]
    return chosen([_own(name) if ":" in name else name for name in names])


def study_from_settings(text: str, settings: Sequence[str]) -> tuple[Study[Any], ...]:
    """One study, made with the arguments NAME=VALUE instead of its defaults."""
    studies = studies_from(text)
    if not settings:
        return studies
    kind = type(studies[0])
    known = {name: parameter.default for name, parameter in inspect.signature(kind).parameters.items()}
    arguments = {}
    for setting in settings:
        name, equals, value = setting.partition("=")
        if len(studies) > 1 or not equals or name not in known:
            raise StudyError(
                f"--set {setting} sets nothing of the study '{text}'.",
                do=f"give --set NAME=VALUE, where NAME is {' or '.join(known)}." if known else "leave it out.",
            )
        arguments[name] = _value(setting, value, known[name])
    return chosen([kind(**arguments)])


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
        raise StudyError(f"--set {setting} has a value of another type.", do=f"its default is {default!r}.") from error


def list_of_studies() -> str:
    """Every study with its title, for --help."""
    width = max(map(len, STUDIES))
    return "studies:\n" + "".join(f"  {name:{width}}  {one.title}\n" for name, one in STUDIES.items()) + "\n"


def _own(name: str) -> Any:
    """An instance of a class in a file or a module."""
    made = _member(name, "class")
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
