"""What the words of a sentence are.

Room: text to words. No model.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

from normlens.models import InputError

Splitter = Callable[[str], list[str]]
MARKS = re.compile(r"\w+(?:[.,]\d+)*|[^\w\s]", re.UNICODE)


def splitter(name: Splitter | str) -> Splitter:
    """A function from text to words: your own, or one of

    whitespace       words are what stands between spaces: text that is tokenised already
    punctuation      marks stand alone: "Ja, das!" is Ja , das !
    moses:LANGUAGE   the Moses tokenizer of the sacremoses package, e.g. moses:de
    """
    if not isinstance(name, str):
        return name
    if name == "whitespace":
        return str.split
    if name == "punctuation":
        return MARKS.findall
    kind, _, language = name.partition(":")
    if kind == "moses":
        return _moses(language or "en")
    raise InputError(
        f"There is no word splitter '{name}'.",
        do=(
            "choose whitespace, punctuation or moses:LANGUAGE, or from Python give a function from a text to its words."
        ),
    )


def _moses(language: str) -> Splitter:
    try:
        from sacremoses import MosesTokenizer
    except ImportError as error:
        raise InputError(
            "The Moses tokenizer needs the sacremoses package, which is not installed.",
            do="pip install sacremoses, or split words by 'punctuation'.",
        ) from error
    tokenizer: Any = MosesTokenizer(lang=language)
    return lambda text: tokenizer.tokenize(text, escape=False)
