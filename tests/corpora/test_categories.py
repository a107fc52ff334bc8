"""Every token has exactly one category, in any tokenizer."""

import re

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from normlens.corpora import (
    Categories,
    Category,
    CategoryError,
    default_categories,
    make_categories,
    parse_category,
)
from normlens.models import Side, encode
from normlens.models.sides import text_side

SENTENCE = "The cat sat, slept."
names = st.text(st.characters(codec="ascii", exclude_characters="="), min_size=1).filter(
    lambda name: name.strip() and name != "other"
)
lists = st.sets(st.sampled_from(["a", "b", ",", ".", "##c", "Ġd"]), min_size=1)
kinds = st.one_of(
    st.builds(lambda tokens: {"tokens": frozenset(tokens)}, lists),
    st.sampled_from([{"pattern": "[a-c]"}, {"pattern": ".*"}]),
    st.sampled_from([{"place": "first"}, {"place": "special"}, {"place": "punctuation"}]),
)


def side(*tokens, special=()):
    count = range(len(tokens))
    return Side("text", tuple(count), tokens, tuple(t in special for t in tokens), tuple(count))


def named(categories, side):
    return [categories.names[number] for number in categories.of(side)]


def of_text(subject, text=SENTENCE):
    ids = subject.tokenizer(text)["input_ids"]
    one = text_side("text", subject.tokenizer, ids)
    return dict(zip(one.tokens, named(default_categories(subject), one), strict=True))


@given(
    listed=st.lists(st.tuples(names, kinds), max_size=4, unique_by=lambda one: one[0]),
    tokens=st.lists(st.sampled_from(["a", "##c", "Ġd", "▁,", ".", "[SEP]", "—", "", "▁"]), max_size=8),
)
def test_categories_partition_the_tokens(listed, tokens):
    categories = Categories(tuple(Category(name, **kind) for name, kind in listed))
    one = side(*tokens, special={"[SEP]"})
    numbers = categories.of(one)
    assert numbers.dtype == np.int8
    assert numbers.shape == (len(tokens),)
    for position, number in enumerate(numbers):
        claims = [c.claims(one.tokens[position], position, one.special[position]) for c in categories.listed]
        assert number == [*claims, True].index(True)
    assert categories.names[-1] == "other"


def test_the_first_that_claims_a_token_has_it():
    stops, marks = Category("stops", frozenset({"."})), Category("marks", place="punctuation")
    assert named(Categories((stops, marks)), side(".", ";")) == ["stops", "marks"]
    assert named(Categories((marks, stops)), side(".", ";")) == ["marks", "marks"]


def test_marks_of_the_tokenizer_do_not_hide_a_token():
    comma = Categories((Category("comma", frozenset({","})), Category("digits", pattern="[0-9]+")))
    assert named(comma, side(",", "Ġ,", "▁,", "##,", ",</w>", ",@@")) == ["comma"] * 6
    assert named(comma, side("12", "##12", "Ġ1", "1a", "Ġ")) == ["digits"] * 3 + ["other"] * 2


def test_a_raw_token_is_found_as_it_is_written():
    assert named(Categories((Category("inner", frozenset({"##ly"})),)), side("##ly", "ly")) == ["inner", "other"]


def test_places():
    places = Categories(
        (Category("1st", place="first"), Category("special", place="special"), Category("marks", place="punctuation"))
    )
    one = side("a", "a", "[SEP]", "...", "âĢĶ", "ĠâĢĶ", "¿", "##", "$", "Ġ", special={"[SEP]"})
    assert named(places, one) == ["1st", "other", "special", *["marks"] * 5, "other", "other"]


def test_bert_has_the_four_of_the_paper(minilm):
    categories = default_categories(minilm.subject)
    assert categories.names == ("[CLS]", "[SEP]", "comma & period", "other")
    (one,) = encode(minilm.subject, ("A cat, or [MASK] (dog).", "Yes! \U0001f9ff")).sides
    got = dict(zip(one.tokens, named(categories, one), strict=True))
    assert got["[CLS]"] == "[CLS]"
    assert got["[SEP]"] == "[SEP]"
    assert got[","] == got["."] == "comma & period"
    assert {got[token] for token in ("cat", "[MASK]", "[UNK]", "(", ")", "!")} == {"other"}


def test_roberta_names_them_its_own_way(byte_level, wrapped, subject_of):
    tokenizer = wrapped(
        byte_level, cls_token="<s>", bos_token="<s>", sep_token="</s>", eos_token="</s>", unk_token="<unk>"
    )
    subject = subject_of(tokenizer, is_encoder_decoder=False)
    assert default_categories(subject).names == ("<s>", "</s>", "comma & period", "other")
    got = of_text(subject, "<s>The cat, and , a dog.</s>")
    assert got["<s>"] == "<s>"
    assert got["</s>"] == "</s>"
    assert {got[","], got["Ġ,"], got["."]} == {"comma & period"}


def test_a_decoder_parks_attention_on_its_first_position(byte_level, wrapped, subject_of):
    tokenizer = wrapped(byte_level, bos_token="<|begin|>", eos_token="<|end|>")
    subject = subject_of(tokenizer, is_encoder_decoder=False)
    assert default_categories(subject).names == ("first position", "<|begin|>", "<|end|>", "comma & period", "other")
    got = of_text(subject, "The cat, and a dog.<|end|>")
    assert next(iter(got.values())) == "first position"
    assert got["<|end|>"] == "<|end|>"
    assert got[","] == "comma & period"


def test_a_token_that_also_means_unknown_is_no_category(byte_level, wrapped, subject_of):
    """GPT-2 has one token for begin, end and unknown."""
    tokenizer = wrapped(byte_level, bos_token="<|end|>", eos_token="<|end|>", unk_token="<|end|>")
    names = default_categories(subject_of(tokenizer)).names
    assert names == ("first position", "comma & period", "other")


def test_a_translator_has_its_end_and_its_start(sentence_pieces, wrapped, subject_of):
    tokenizer = wrapped(sentence_pieces, eos_token="</s>", pad_token="<pad>", unk_token="<unk>")
    subject = subject_of(tokenizer, is_encoder_decoder=True, decoder_start_token_id=0)
    assert default_categories(subject).names == ("</s>", "<pad>", "comma & period", "other")
    got = of_text(subject, "<pad>The cat, and , a dog.</s>")
    assert (got["<pad>"], got["</s>"]) == ("<pad>", "</s>")
    assert {value for token, value in got.items() if token.strip("▁") in (",", ".")} == {"comma & period"}


def test_a_translator_with_an_unknown_start_has_only_its_end(sentence_pieces, wrapped, subject_of):
    tokenizer = wrapped(sentence_pieces, eos_token="</s>")
    for config in ({}, {"decoder_start_token_id": 10**6}):
        subject = subject_of(tokenizer, is_encoder_decoder=True, **config)
        assert default_categories(subject).names == ("</s>", "comma & period", "other")


def test_without_a_tokenizer_there_is_only_the_first_position(subject_of):
    categories = default_categories(subject_of(None))
    assert named(categories, side("0", "1")) == ["first position", "other"]


WRITTEN = {
    r"stops=.,!,\,": Category("stops", frozenset({".", "!", ","})),
    "the words = the, a": Category("the words", frozenset({"the", "a"})),
    "digits=/[0-9]+/": Category("digits", pattern="[0-9]+"),
    "sink=@first": Category("sink", place="first"),
    "marks=@punctuation": Category("marks", place="punctuation"),
    "equals==": Category("equals", frozenset({"="})),
    "slash=/": Category("slash", frozenset({"/"})),
    r"odd=\/a\/,\@x,\\": Category("odd", frozenset({"/a/", "@x", "\\"})),
}


@pytest.mark.parametrize("text", WRITTEN)
def test_a_category_can_be_written_in_a_line(text):
    assert parse_category(text) == WRITTEN[text]
    assert parse_category(str(WRITTEN[text])) == WRITTEN[text]


@pytest.mark.parametrize("text", ["", "stops", "=a", "stops=", "stops=a,,b", "stops=,", "sink=@last", "digits=//"])
def test_a_line_that_is_no_category_shows_how_to_write_one(text):
    with pytest.raises(CategoryError, match="NAME=token,token"):
        parse_category(text)


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: parse_category("other=a"), "'other'"),
        (lambda: parse_category("digits=/[0-9/"), "not a regular expression"),
        (lambda: Category("empty"), "has no tokens, no pattern and no place"),
        (lambda: Category(" ", frozenset("a")), "cannot have the name"),
        (lambda: Categories((Category("a", frozenset("a")), Category("a", frozenset("b")))), "the same name: a"),
        (
            lambda: Categories(tuple(Category(str(n), frozenset("a")) for n in range(128))),
            r"at most 127 categories.\n  Got: 128",
        ),
    ],
)
def test_categories_that_cannot_sort_are_refused(make, message):
    with pytest.raises(CategoryError, match=message):
        make()


def test_categories_come_from_whatever_a_user_has(minilm):
    subject = minilm.subject
    stops = Category("stops", frozenset({".", ","}))
    assert make_categories(None, subject) == default_categories(subject)
    assert make_categories(Categories((stops,)), subject) == make_categories([stops], subject) == Categories((stops,))
    given = {"stops": [".", ","], "digits": re.compile("[0-9]+"), "sink": "@first"}
    assert make_categories(given, subject).names == ("stops", "digits", "sink", "other")
    assert make_categories(given, subject).listed[0] == stops


def test_a_pattern_must_match_the_whole_token_without_its_marks_and_case_counts():
    assert named(Categories((parse_category("the=/the/"),)), side("the", "Ġthe", "##the", "then", "The")) == [
        *["the"] * 3, *["other"] * 2,
    ]  # fmt: skip
    assert named(Categories((parse_category("the=/(?i)the.*/"),)), side("The", "then", "bathe")) == [
        *["the"] * 2, "other",
    ]  # fmt: skip


@pytest.mark.parametrize("pattern", [re.compile("the", re.IGNORECASE), re.compile("(?i)the")])
def test_flags_of_a_pattern_count(minilm, pattern):
    categories = make_categories({"article": pattern}, minilm.subject)
    assert named(categories, side("The", "the", "then")) == ["article", "article", "other"]


@pytest.mark.parametrize("value", [",", 3, None, re.compile(b"a")])
def test_a_category_given_by_something_else_is_refused(minilm, value):
    with pytest.raises(CategoryError, match="neither a list of tokens, a pattern nor a place"):
        make_categories({"a": value}, minilm.subject)
    with pytest.raises(CategoryError, match="empty token"):
        make_categories({"a": ["x", ""]}, minilm.subject)
