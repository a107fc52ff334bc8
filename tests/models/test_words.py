"""Pieces spell words, whatever marks the tokenizer uses."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from normlens.models.sides import Side
from normlens.models.words import spell, word_ids

CASES = {
    "WordPiece": (["[CLS]", "un", "##likely", "tale", "[SEP]"], [1, 0, 0, 0, 1], ("unlikely", "tale")),
    "sentencepiece": (["▁Un", "lik", "ely", "▁tale", "</s>"], [0, 0, 0, 0, 1], ("Unlikely", "tale")),
    "byte-level": (["The", "Ġun", "likely", "Ġtale"], [0, 0, 0, 0], ("The", "unlikely", "tale")),
    "end of word": (["un", "likely</w>", "tale</w>"], [0, 0, 0], ("unlikely", "tale")),
    "joiner": (["un@@", "likely", "tale"], [0, 0, 0], ("unlikely", "tale")),
    "a special token cuts": (["a", "[SEP]", "##b"], [0, 1, 0], ("a", "b")),
    "only special": (["<s>", "</s>"], [1, 1], ()),
}


@pytest.mark.parametrize("name", CASES)
def test_pieces_become_words(name):
    tokens, special, words = CASES[name]
    flags = tuple(bool(flag) for flag in special)
    side = Side("text", tuple(range(len(tokens))), tuple(tokens), flags, word_ids(tokens, flags))
    assert side.words == words


@given(tokens=st.lists(st.text(min_size=1, max_size=6), max_size=12), data=st.data())
def test_every_piece_belongs_to_one_word_and_words_count_up(tokens, data):
    special = data.draw(st.lists(st.booleans(), min_size=len(tokens), max_size=len(tokens)))
    ids = word_ids(tokens, special)
    numbers = [number for number in ids if number is not None]
    assert [number is None for number in ids] == special
    assert sorted(set(numbers)) == list(range(len(set(numbers))))
    assert numbers == sorted(numbers)


def test_a_lone_mark_stays_visible():
    assert spell(["▁"]) == "▁"
