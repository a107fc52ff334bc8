"""The bundled translation models load without a network, are exact, and align the bundled sample."""

import pytest

from normlens.alignment import align, choose, default_lens, default_sample, score
from normlens.alignment.bundled import FOLDER


@pytest.fixture(scope="module")
def both():
    return default_lens("de-en"), default_lens("en-de")


def test_every_block_of_both_models_is_exact(both):
    for lens in both:
        assert lens.wires
        assert all(wire.exact for wire in lens.wires)


def test_they_are_small_and_say_where_they_come_from():
    for languages in ("de-en", "en-de"):
        assert sum(path.stat().st_size for path in (FOLDER / languages).iterdir()) < 10_000_000
        assert "Europarl" in (FOLDER / languages / "README.md").read_text(encoding="utf-8")


def test_the_two_directions_together_are_better_than_either(both):
    sample = default_sample("de-en")
    sources, targets = zip(*sample.pairs, strict=True)
    forward, backward = both
    ahead = score(align(forward, sources, targets), sample.golds).aer
    behind = score([one.reversed() for one in align(backward, targets, sources)], sample.golds).aer
    together = score(align(forward, sources, targets, reverse=backward), sample.golds).aer
    assert together < min(ahead, behind)


def test_the_sample_turns_round():
    forward, backward = default_sample("de-en"), default_sample("en-de")
    assert [(target, source) for source, target in forward.pairs] == backward.pairs
    assert {(t, s) for s, t in forward.golds[0].sure} == backward.golds[0].sure


def test_a_trace_names_the_tokens_of_each_side_in_its_own_language(both):
    """These tokenizers have two vocabularies, in which one id means two things."""
    trace = both[0].trace(source="Die Katze schläft.", target="The cat sleeps.")
    assert trace.words == [("die", "katze", "schläft", ".")]
    assert trace.target_words == [("the", "cat", "sleeps", ".")]


def test_swapped_sides_are_told_also_where_the_bundled_sample_helps_to_choose(both):
    pairs = default_sample("de-en").pairs
    swapped = [(target, source) for source, target in pairs[:30]]
    assert "source and target may be swapped" in choose(*both, [*swapped, *pairs], own=30).forward.why
    assert "swapped" not in choose(*both, [*pairs[:30], *pairs], own=30).forward.why
