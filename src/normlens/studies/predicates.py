"""Predicates over pairs of tokens: which keys of a query are meant, declared once and read by every study of pairs.

The relevance of a predicate P for a head (R. Li et al. 2022) is the mean over texts and queries i of

    Σ_j α[i,j] · 1[P(i,j)]

A predicate of the user's own is a function of two tokens, or a `Predicate` whose test takes a whole block:

    TargetsStudy(own={"same_letter": lambda query, key: query.text[:1] == key.text[:1]}, offsets=(-2, 2))
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import torch
from jaxtyping import Bool, Int
from torch import Tensor

from normlens.corpora import bare
from normlens.studies.batches import Group
from normlens.studies.fingerprint import fingerprint
from normlens.studies.marks import punctuation, sentences
from normlens.studies.seen import Seen
from normlens.studies.study import StudyError


@dataclass(frozen=True, slots=True)
class Token:
    """A token as a function of the user's own sees it."""

    text: str  # without the marks of the tokenizer
    id: int
    position: int
    word: int | None  # the number of its word; None for special tokens
    sentence: int  # the number of its sentence, by our rule
    special: bool


@dataclass(frozen=True, slots=True, repr=False, eq=False)
class Predicate:
    """Which keys of a query are meant."""

    name: str
    reading: str  # as part of a sentence: "the previous token"
    test: Callable[[Seen], Tensor]  # true where a key is meant; any of (batch, tgt, src) may be 1 wide
    any_side: bool = False  # also where queries and keys are of different texts, which have no common positions
    of_block: bool = False  # its test may read the block, so it is asked in every layer
    source: str = ""  # of a function of the user's own: what tells it from another of its name

    def __repr__(self) -> str:
        return f"{self.name} of {self.source}" if self.source else self.name

    def mask(self, seen: Seen) -> Bool[Tensor, "batch tgt src"]:
        """The pairs that are meant, among all of a batch."""
        shape = (len(seen.src.ids), *seen.weights.shape[2:])
        if not self.source:
            return self.test(seen).expand(shape)
        try:
            mask = torch.as_tensor(self.test(seen), dtype=torch.bool).cpu()
            return mask.expand(shape)
        except StudyError:
            raise
        except Exception as error:
            raise StudyError(
                f"The predicate '{self.name}' failed.",
                got=f"{type(error).__name__}: {error}",
                do=f"let it return truth values that fit {shape}, (batch, query, key).",
            ) from error


Own = Callable[..., Any] | Predicate  # a function of (query, key), or a predicate
NO_FUNCTIONS: Mapping[str, Own] = {}


def offset(step: int) -> Predicate:
    """The key so many tokens after the query, or before it where `step` is negative."""
    places = f"{abs(step)} place{'s' if abs(step) > 1 else ''} {'after' if step > 0 else 'before'}"
    return Predicate(f"offset_{step}", f"the token {places}" if step else "the token itself", partial(_offset, step))


def neighbours(width: int) -> Predicate:
    """Keys at most `width` tokens away, the token itself included."""
    reading = f"tokens at most {width} away"
    return Predicate("neighbours", reading, lambda seen: (_distances(seen).abs() <= width)[None])


def _distances(seen: Seen) -> Int[Tensor, "tgt src"]:
    queries, keys = seen.weights.shape[2:]
    return torch.arange(keys) - torch.arange(queries)[:, None]


def _offset(step: int, seen: Seen) -> Bool[Tensor, "1 tgt src"]:
    return (_distances(seen) == step)[None]


def _first(seen: Seen) -> Bool[Tensor, "1 1 src"]:
    return (torch.arange(seen.weights.shape[3]) == 0)[None, None]


def _copies(group: Group) -> Bool[Tensor, "batch tgt src"]:
    """Pairs of the same token id, special tokens and padding left out."""
    ids, plain = torch.from_numpy(group.ids), torch.from_numpy((group.categories >= 0) & ~group.special)
    return (ids[:, :, None] == ids[:, None]) & plain[:, :, None] & plain[:, None]


def _duplicate(seen: Seen) -> Bool[Tensor, "batch tgt src"]:
    return seen.src.once("copies", _copies) & (_distances(seen) != 0)


def _induction(seen: Seen) -> Bool[Tensor, "batch tgt src"]:
    """Keys whose predecessor is an earlier copy of the query."""
    earlier = seen.src.once("copies", _copies) & (_distances(seen) < 0)
    after = torch.zeros_like(earlier)
    after[:, :, 1:] = earlier[:, :, :-1]
    return after & (_distances(seen) != 0)


def _same_sentence(seen: Seen) -> Bool[Tensor, "batch tgt src"]:
    sentence = torch.from_numpy(sentences(seen.src))
    return sentence[:, :, None] == sentence[:, None]


def _of_keys(marks: Callable[[Group], Any]) -> Callable[[Seen], Tensor]:
    return lambda seen: torch.from_numpy(marks(seen.src))[:, None]


PREDICATES = {
    predicate.name: predicate
    for predicate in (
        Predicate("current", "the token itself", partial(_offset, 0)),
        Predicate("previous", "the previous token", partial(_offset, -1)),
        Predicate("next", "the next token", partial(_offset, 1)),
        Predicate("first", "the first token", _first, any_side=True),
        Predicate("special", "special tokens", _of_keys(lambda group: group.special), any_side=True),
        Predicate("punctuation", "punctuation", _of_keys(punctuation), any_side=True),
        Predicate("duplicate", "other copies of the token", _duplicate),
        Predicate("induction", "tokens after an earlier copy of the token", _induction),
        Predicate("same_sentence", "tokens of the same sentence", _same_sentence),
    )
}


def pair_masks(seen: Seen, predicates: Iterable[Predicate]) -> Bool[Tensor, "batch tgt src predicate"]:
    """The pairs that each predicate means; where sides differ, those that need no common positions."""
    same = seen.block.tgt == seen.block.src
    return torch.stack([each.mask(seen) for each in predicates if same or each.any_side], dim=-1)


def own_predicates(own: Mapping[str, Any]) -> dict[str, Predicate]:
    """Functions of two tokens, or predicates, by the names that the user chose."""
    if not isinstance(own, Mapping):
        raise StudyError("own must map names to functions.", got=repr(own)[:80], do="give own={'name': function}.")
    predicates = {}
    for name, given in own.items():
        if not str(name).isidentifier() or name in PREDICATES or str(name).startswith("offset_"):
            raise StudyError(
                f"A predicate cannot be called '{name}'.",
                do=f"give it a name of letters, digits and _ that is none of {', '.join(PREDICATES)} or offset_.",
            )
        if isinstance(given, Predicate):
            predicates[name] = replace(given, name=name, of_block=True, source=given.source or fingerprint(given.test))
        elif callable(given):
            test = partial(_by_pairs, name, given)
            reading = f"keys of '{name}'"
            predicates[name] = Predicate(name, reading, test, any_side=True, source=fingerprint(given))
        else:
            raise StudyError(
                f"The predicate '{name}' is no function.", got=repr(given)[:80], do="give a function of (query, key)."
            )
    return predicates


def offsets_of(offsets: Sequence[Any]) -> tuple[int, ...]:
    """Offsets as whole numbers, also from the command line."""
    try:
        steps = tuple(int(str(step)) for step in offsets)
    except ValueError as error:
        raise StudyError("offsets must be whole numbers.", got=str(offsets), do="give, for instance, -2,2.") from error
    if len(set(steps)) < len(steps):
        raise StudyError("An offset is given twice.", got=str(steps))
    return steps


def tokens_of(group: Group) -> list[list[Token]]:
    """Every sequence as tokens for a function of the user's own."""
    return group.once("tokens", _tokens)


def _tokens(group: Group) -> list[list[Token]]:
    numbers = sentences(group).tolist()
    return [
        [
            Token(bare(text), *rest)
            for text, *rest in zip(
                side.tokens, side.ids, range(len(side.ids)), side.word_ids, row, side.special, strict=False
            )
        ]
        for side, row in zip(group.sides, numbers, strict=True)
    ]


def _by_pairs(name: str, function: Callable[[Token, Token], Any], seen: Seen) -> Bool[Tensor, "batch tgt src"]:
    """The function, called once for every pair of real tokens, whatever the layer."""
    where = f"{name} {id(function)} of {seen.block.tgt} {seen.block.src}"
    return seen.src.once(where, lambda _: _pairs_by(name, function, seen))


def _pairs_by(name: str, function: Callable[[Token, Token], Any], seen: Seen) -> Bool[Tensor, "batch tgt src"]:
    mask = torch.zeros(len(seen.src.ids), *seen.weights.shape[2:], dtype=torch.bool)
    for row, (queries, keys) in enumerate(zip(tokens_of(seen.tgt), tokens_of(seen.src), strict=True)):
        truths = [[_asked(name, function, query, key) for key in keys] for query in queries]
        mask[row, : len(queries), : len(keys)] = torch.tensor(truths)
    return mask


def _asked(name: str, function: Callable[[Token, Token], Any], query: Token, key: Token) -> bool:
    try:
        return bool(function(query, key))
    except Exception as error:
        raise StudyError(
            f"The predicate '{name}' failed.",
            got=f"{type(error).__name__}: {error}, for query '{query.text}' ({query.position}) and key '{key.text}' "
            f"({key.position})",
            do="mend the function; it is called with every pair of tokens, special ones included.",
        ) from error
