"""Studies as a user names them: ours by name, the user's own by file or module."""

from __future__ import annotations

import importlib.util
import sys
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


def list_of_studies() -> str:
    """Every study with its title, for --help."""
    width = max(map(len, STUDIES))
    return "studies:\n" + "".join(f"  {name:{width}}  {one.title}\n" for name, one in STUDIES.items()) + "\n"


def _own(name: str) -> Any:
    """An instance of a class in a file or a module."""
    place, _, kind = name.rpartition(":")
    module = _module(place)
    if not hasattr(module, kind):
        raise StudyError(f"There is no class '{kind}' in {place}.", do="give file.py:Class or package.module:Class.")
    try:
        return getattr(module, kind)()
    except Exception as error:
        got = f"{type(error).__name__}: {error}"
        raise StudyError(f"{name} cannot be made.", got=got, do="give a class whose instances need nothing.") from error


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
            f"The studies in '{place}' cannot be read.",
            got=f"{type(error).__name__}: {error}",
            do="give a file.py that is there and runs, or a module that can be imported.",
        ) from error
