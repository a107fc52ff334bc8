"""The categories of a run: the paper's four where the tokenizer has them, or those a user names."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any, get_args

from normlens.corpora.categories import Categories, Category, CategoryError, Place
from normlens.models import Subject, text_tokenizer

FIRST = Category("first position", place="first")
COMMA_AND_PERIOD = Category("comma & period", frozenset({",", "."}))
SYNTAX = (
    "write NAME=token,token or NAME=/regular expression/ or NAME=@first, @special, @punctuation; "
    r"a comma as a token is written \, as in stops=.,!,\,"
)


def default_categories(subject: Subject) -> Categories:
    """The paper's [CLS], [SEP], comma & period, other, under the names that this model's tokenizer gives them.

    In a decoder without such tokens the first position receives much of the attention, so it is the first category.
    """
    tokenizer: Any = text_tokenizer(subject.tokenizer)
    if tokenizer is None or not hasattr(tokenizer, "convert_ids_to_tokens"):
        return Categories((FIRST,))
    marks = _declared(tokenizer, "cls_token", "sep_token")
    front = () if marks or subject.is_seq2seq else (FIRST,)
    if not marks or subject.is_seq2seq:
        marks += _declared(tokenizer, "bos_token", "eos_token")
    if subject.is_seq2seq:
        marks += _start_of_decoder(subject, tokenizer)
    others = _declared(tokenizer, "unk_token", "mask_token")
    own = tuple(Category(mark, frozenset({mark})) for mark in dict.fromkeys(marks) if mark not in others)
    return Categories((*front, *own, COMMA_AND_PERIOD))


def make_categories(spec: Categories | Sequence[Category] | Mapping[str, Any] | None, subject: Subject) -> Categories:
    """Categories from what a user gives: nothing for the default, or name -> tokens, re.Pattern or "@first"."""
    if spec is None:
        return default_categories(subject)
    if isinstance(spec, Categories):
        return spec
    if isinstance(spec, Mapping):
        return Categories(tuple(_category(name, value) for name, value in spec.items()))
    return Categories(tuple(spec))


def parse_category(text: str) -> Category:
    r"""A category as it is written on the command line: NAME=tok,tok or NAME=/regex/ or NAME=@first.

    >>> sorted(parse_category(r"stops=.,\,").tokens)
    [',', '.']
    """
    name, sign, value = (part.strip() for part in text.partition("="))
    if not (name and sign and value):
        raise CategoryError("This is not a category.", got=repr(text), do=SYNTAX)
    if value.startswith("@"):
        return Category(name, place=_place(name, value))
    if len(value) > 1 and value.startswith("/") and value.endswith("/"):
        if value == "//":
            raise CategoryError(f"Category {name!r} has an empty pattern.", got=repr(text), do=SYNTAX)
        return Category(name, pattern=value[1:-1])
    apart = re.sub(r"\\(.)|,", lambda found: found[1] or "\0", value)
    return Category(name, _tokens(name, [token.strip() for token in apart.split("\0")]))


def _category(name: str, value: Any) -> Category:
    if isinstance(value, re.Pattern) and isinstance(value.pattern, str):
        return Category(name, pattern=_with_flags(value))
    if isinstance(value, str) and value.startswith("@"):
        return Category(name, place=_place(name, value))
    if isinstance(value, str) or not isinstance(value, (Sequence, frozenset, set)):
        raise CategoryError(
            f"Category {name!r} is neither a list of tokens, a pattern nor a place.",
            got=f"{value!r:.60}",
            do="give a list of tokens [',', '.'], a pattern re.compile('[0-9]+'), or '@first', '@special', "
            "'@punctuation'.",
        )
    return Category(name, _tokens(name, value))


def _tokens(name: str, tokens: Any) -> frozenset[str]:
    if not all(isinstance(token, str) and token for token in tokens):
        raise CategoryError(
            f"Category {name!r} lists an empty token, or one that is not text.", got=repr(list(tokens)), do=SYNTAX
        )
    return frozenset(tokens)


def _place(name: str, value: str) -> Place:
    place: Any = value.removeprefix("@")
    if place not in get_args(Place):
        raise CategoryError(f"Category {name!r} has an unknown place.", got=repr(value), do=SYNTAX)
    return place


def _with_flags(pattern: re.Pattern[str]) -> str:
    """The pattern with its flags written into it."""
    if re.compile(pattern.pattern).flags == pattern.flags:
        return pattern.pattern
    letters = {re.IGNORECASE: "i", re.MULTILINE: "m", re.DOTALL: "s", re.VERBOSE: "x", re.ASCII: "a"}
    return f"(?{''.join(letter for flag, letter in letters.items() if pattern.flags & flag)}:{pattern.pattern})"


def _declared(tokenizer: Any, *names: str) -> tuple[str, ...]:
    """The tokens declared under these names, those that are."""
    return tuple(str(token) for name in names if (token := getattr(tokenizer, name, None)))


def _start_of_decoder(subject: Subject, tokenizer: Any) -> tuple[str, ...]:
    for settings in (subject.config, getattr(subject.model, "generation_config", None)):
        start = getattr(settings, "decoder_start_token_id", None)
        if isinstance(start, int):
            token = tokenizer.convert_ids_to_tokens(start)
            return () if token is None else (str(token),)
    return ()
