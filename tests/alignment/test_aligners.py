"""Statistical aligners learn a small language of its own from its sentence pairs alone, and refuse text in words."""

import random
import subprocess
import sys

import pytest

from normlens.alignment import available, eflomal, statistical
from normlens.alignment.statistical import AlignerError, ThotMissing

NAMES = ["fast_align", "hmm", "ibm4", "eflomal"]
NOUNS = [f"noun{number}" for number in range(30)]
VERBS = [f"verb{number}" for number in range(15)]


def toy(count, seed=0):
    """`die noun verb [die noun]`: every word has one translation, `die` has none, and the verb comes last."""
    random_ = random.Random(seed)
    sources, targets, golds = [], [], []
    for _ in range(count):
        verb, nouns = random_.choice(VERBS), random_.sample(NOUNS, random_.choice([1, 2, 3]))
        source, gold = ["Die", nouns[0], verb], [(1, 0)]
        target = [nouns[0].upper()]
        for noun in nouns[1:]:
            source += ["die", noun]
            gold.append((len(source) - 1, len(target)))
            target.append(noun.upper())
        gold.append((2, len(target)))
        sources.append(source)
        targets.append([*target, verb.upper() + "x"])
        golds.append(frozenset(gold))
    return sources, targets, golds


def need(name):
    reason = available()[name]
    if reason is not None:
        pytest.skip(str(reason))


def share(found, golds):
    """Share of the gold links found, and share of the links found that are gold."""
    hits = sum(len(one & gold) for one, gold in zip(found, golds, strict=True))
    return hits / sum(map(len, golds)), hits / max(1, sum(map(len, found)))


@pytest.mark.parametrize("name", NAMES)
def test_an_aligner_learns_the_language_both_ways(name):
    need(name)
    sources, targets, golds = toy(200)
    steps = []
    forward, backward = statistical(name, sources, targets, progress=lambda *step: steps.append(step))
    assert share(forward, golds)[0] > 0.9
    assert share(backward, golds)[0] > 0.9
    assert share([one & other for one, other in zip(forward, backward, strict=True)], golds)[1] > 0.9
    assert [done for done, _ in steps] == list(range(steps[-1][1] + 1))


@pytest.mark.parametrize("name", NAMES)
def test_more_text_teaches_but_is_not_answered(name):
    need(name)
    sources, targets, golds = toy(5)
    also = list(zip(*toy(300, seed=1)[:2], strict=True))
    forward, backward = statistical(name, sources, targets, also=also)
    assert len(forward) == len(backward) == 5
    assert share(forward, golds)[0] > 0.9


@pytest.mark.parametrize("name", NAMES)
def test_words_may_be_anything_a_word_can_be(name):
    need(name)
    odd = ["NULL", "a b", "\n", "|||", "1-1", "<s>", "ß", "emoji 🙂", ""]
    sources, targets, golds = toy(200)
    sources, targets = (
        [[odd[sum(map(ord, w.lower())) % 9] + w for w in s] for s in side] for side in (sources, targets)
    )
    for found in statistical(name, sources, targets):
        assert share(found, golds)[0] > 0.9


def test_lower_case_is_a_choice():
    need("fast_align")
    sources, targets, _ = toy(30)
    shouted = [[word.upper() for word in source] if number % 2 else source for number, source in enumerate(sources)]
    assert statistical("fast_align", shouted, targets) == statistical("fast_align", sources, targets)
    assert statistical("fast_align", shouted, targets, lowercase=False) != statistical("fast_align", sources, targets)


def test_iterations_are_those_of_the_last_model():
    need("hmm")
    sources, targets, _ = toy(20)
    steps = []
    statistical("hmm", sources, targets, iterations=2, progress=lambda *step: steps.append(step))
    assert steps[-1] == (14, 14)


@pytest.mark.parametrize(
    ("name", "sources", "targets", "said"),
    [
        ("giza", [["a"]], [["b"]], "no statistical aligner 'giza'"),
        ("hmm", [["a"], ["b"]], [["b"]], "2 source sentences and 1"),
        ("hmm", [["a"], []], [["b"], ["c"]], "Pair 2 has 0 source and 1 target"),
        ("hmm", [["a"] * 201], [["b"]], "Pair 1 has 201 words"),
        ("eflomal", [["a"]], [["b"] * 257], "Pair 1 has 257 words"),
        ("hmm", ["a b"], ["c d"], "is a text, not words"),
    ],
)
def test_text_that_cannot_be_aligned_is_refused_in_words(name, sources, targets, said):
    with pytest.raises(AlignerError, match=said):
        statistical(name, sources, targets)


def test_an_empty_added_pair_is_named_as_such():
    with pytest.raises(AlignerError, match="Pair 1 of the added text has 1 source and 0 target"):
        statistical("hmm", [["a"]], [["b"]], also=[(["a"], [])])


def test_zero_iterations_are_refused():
    with pytest.raises(AlignerError, match="0 iterations"):
        statistical("hmm", [["a"]], [["b"]], iterations=0)


def test_no_pairs_have_no_links():
    assert statistical("hmm", [], []) == ([], [])


def test_a_missing_library_is_named_with_its_extra(monkeypatch):
    monkeypatch.setitem(sys.modules, "thot", None)
    monkeypatch.setitem(sys.modules, "thot.alignment", None)
    assert "normlens[aligners]" in str(available()["ibm4"])
    with pytest.raises(ThotMissing, match=r"normlens\[aligners\]"):
        statistical("ibm4", [["a"]], [["b"]])


def test_a_missing_eflomal_is_named(monkeypatch):
    monkeypatch.setattr("shutil.which", lambda *args, **options: None)
    assert "pip install eflomal" in str(available()["eflomal"])
    with pytest.raises(eflomal.EflomalError, match="not on the path"):
        statistical("eflomal", [["a"]], [["b"]])


def test_an_eflomal_that_fails_says_why(monkeypatch):
    monkeypatch.setattr("shutil.which", lambda *args, **options: "eflomal-align")
    failed = subprocess.CompletedProcess([], 1, "", "Segmentation fault")
    monkeypatch.setattr("subprocess.run", lambda *args, **options: failed)
    with pytest.raises(eflomal.EflomalError, match=r"code 1 and no links.*\n.*Segmentation fault"):
        statistical("eflomal", [["a"]], [["b"]])


def test_eflomal_is_called_and_never_imported(monkeypatch):
    """Its licence is the GPL, ours is not: with the import forbidden it still runs."""
    need("eflomal")
    monkeypatch.setitem(sys.modules, "eflomal", None)
    assert statistical("eflomal", [["a"]] * 9, [["b"]] * 9)[0][0] == {(0, 0)}
