"""The bundled gold set is sound: its three files agree, and its links point at words."""

import re
from pathlib import Path

import pytest

FOLDER = Path(__file__).parents[2] / "src" / "normlens" / "alignment" / "bundled"


def lines(name):
    return (FOLDER / name).read_text(encoding="utf-8").removesuffix("\n").split("\n")


GERMAN, ENGLISH = ([line.split(" ") for line in lines(name)] for name in ("sample.de", "sample.en"))
LINKS = [
    [
        (int(i), kind, int(j))
        for i, kind, j in (re.fullmatch(r"(\d+)([-p])(\d+)", link).groups() for link in line.split(" "))
    ]
    for line in lines("sample.talp")
]
NUMBERS = range(1, len(LINKS) + 1)


def of_line(number):
    return GERMAN[number - 1], ENGLISH[number - 1], LINKS[number - 1]


def unlinked(words, side):
    return sum(len(one) - len({link[side] for link in links}) for one, links in zip(words, LINKS, strict=True))


def test_the_three_files_run_in_parallel():
    assert len(GERMAN) == len(ENGLISH) == len(LINKS) >= 40


@pytest.mark.parametrize("words", [GERMAN, ENGLISH], ids=["German", "English"])
def test_no_sentence_comes_twice_and_no_word_is_empty(words):
    assert len({tuple(one) for one in words}) == len(words)
    assert all(re.fullmatch(r"\S+", word) for one in words for word in one)


@pytest.mark.parametrize("number", NUMBERS)
def test_every_link_joins_two_words_of_its_sentences(number):
    german, english, links = of_line(number)
    assert all(1 <= i <= len(german) and 1 <= j <= len(english) for i, _, j in links)


@pytest.mark.parametrize("number", NUMBERS)
def test_a_link_is_sure_or_possible_and_listed_once_in_order(number):
    pairs = [(i, j) for i, _, j in of_line(number)[2]]
    assert pairs == sorted(set(pairs))


@pytest.mark.parametrize("number", NUMBERS)
def test_the_closing_mark_is_surely_linked_to_the_closing_mark(number):
    german, english, links = of_line(number)
    assert german[-1] == english[-1]
    assert german[-1] in {".", "?", "!"}
    assert (len(german), "-", len(english)) in links


@pytest.mark.parametrize("number", NUMBERS)
def test_some_word_is_surely_linked_too(number):
    german, _, links = of_line(number)
    assert any(kind == "-" and i < len(german) for i, kind, _ in links)


@pytest.mark.parametrize(("words", "side"), [(GERMAN, 0), (ENGLISH, 2)], ids=["German", "English"])
def test_few_words_stay_without_a_link(words, side):
    """Written down when the set was made: 37 of 972 German words and 12 of 981 English ones, most of them commas."""
    assert unlinked(words, side) / sum(map(len, words)) < 0.05


def test_the_readme_counts_what_is_there():
    readme = (FOLDER / "README.md").read_text(encoding="utf-8")
    kinds = [kind for links in LINKS for _, kind, _ in links]
    assert f"| sentence pairs | {len(GERMAN)} | {len(ENGLISH)} |" in readme
    assert f"| words and punctuation marks | {sum(map(len, GERMAN))} | {sum(map(len, ENGLISH))} |" in readme
    assert f"| without any link | {unlinked(GERMAN, 0)} | {unlinked(ENGLISH, 2)} |" in readme
    assert f"{kinds.count('-')} sure links and {kinds.count('p')} possible ones" in readme
