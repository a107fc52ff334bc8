"""What tells a function or a class of the user's own from another of its name, so that only the same run is resumed."""

from __future__ import annotations

import hashlib
import inspect
import re
import uuid
from collections.abc import Callable
from types import CodeType, ModuleType
from typing import Any


def fingerprint(function: Callable[..., Any]) -> str:
    """Module, name and a digest of the source and of the values that it uses.

    Where these cannot be read, the digest is new every time, so a run with this function is never resumed.
    """
    name = f"{getattr(function, '__module__', '')}.{getattr(function, '__qualname__', type(function).__name__)}"
    try:
        text = _text(function, set())
    except (OSError, TypeError, ValueError):
        text = uuid.uuid4().hex
    return f"{name}@{hashlib.sha256(text.encode()).hexdigest()[:8]}"


def _text(function: Any, known: set[int]) -> str:
    """The source of a function and of those that it calls, with the values of defaults, closures and globals."""
    if id(function) in known:
        return ""
    known.add(id(function))
    source = inspect.getsource(function)
    if not inspect.isfunction(function):
        return source
    outside, code = inspect.getclosurevars(function), function.__code__
    values = {
        **outside.globals,
        **outside.nonlocals,
        "()": (function.__defaults__, function.__kwdefaults__),
        "{}": (code.co_code.hex(), code.co_names, [c for c in code.co_consts if not isinstance(c, CodeType)]),
    }  # the code too, since one line of source may hold several functions
    return source + "".join(f"{name}={_value(value, known)}\n" for name, value in sorted(values.items()))


def _value(value: Any, known: set[int]) -> str:
    if isinstance(value, ModuleType):
        return value.__name__
    if inspect.isfunction(value) or inspect.isclass(value):
        return _text(value, known)
    if isinstance(value, set | frozenset):
        value = sorted(value, key=repr)
    if isinstance(value, re.Pattern):
        value = (value.pattern, value.flags)
    text = repr(value)
    if " at 0x" in text or "..." in text:
        raise ValueError("a value whose text does not say what it is")
    return text
