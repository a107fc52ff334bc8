"""Two directions are made one as the published heuristics say, and a file gives back the links written into it."""

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from normlens.alignment.links import (
    SYMMETRISATIONS,
    Alignment,
    LinksError,
    grow_diag,
    grow_diag_final_and,
    intersection,
    reverse,
    symmetrised,
    union,
)
from normlens.alignment.pharaoh import read_pharaoh, to_pharaoh, write_pharaoh

words = st.integers(0, 6)
grids = st.frozensets(st.tuples(words, words), max_size=20)
confident = st.dictionaries(st.tuples(words, words), st.floats(0, 1), max_size=12)
in_one_folder = settings(suppress_health_check=[HealthCheck.function_scoped_fixture])


def links(text):
    return frozenset((int(a), int(b)) for a, b in (token.split("-") for token in text.split()))


@pytest.mark.parametrize("how", list(SYMMETRISATIONS))
def test_what_both_say_is_kept_and_what_neither_says_is_never_added(how):
    @given(forward=grids, backward=grids)
    def check(forward, backward):
        got = SYMMETRISATIONS[how](forward, backward)
        assert intersection(forward, backward) <= got <= union(forward, backward)
        assert got == SYMMETRISATIONS[how](forward, backward)

    check()


@given(forward=grids, backward=grids)
def test_the_final_step_only_adds_links_between_words_without_any(forward, backward):
    grown, final = grow_diag(forward, backward), grow_diag_final_and(forward, backward)
    added = sorted(final - grown)
    assert grown <= final
    assert not {s for s, _ in added} & {s for s, _ in grown}
    assert not {t for _, t in added} & {t for _, t in grown}
    assert len({s for s, _ in added}) == len({t for _, t in added}) == len(added)


@given(one=grids)
def test_directions_that_agree_stay_as_they_are(one):
    assert all(how(one, one) == one for how in SYMMETRISATIONS.values())


@given(one=grids)
def test_a_direction_without_links_leaves_no_ground_to_grow_from(one):
    nothing = frozenset()
    assert intersection(one, nothing) == grow_diag(one, nothing) == grow_diag(nothing, one) == nothing
    assert union(one, nothing) == one
    assert grow_diag_final_and(nothing, nothing) == nothing


def test_a_grid_worked_by_hand():
    """Both say 0-0 and 1-1. 1-2 and 2-1 touch 1-1 and help a new word; 0-1 touches it and helps none.

    3-3 touches nothing that was grown, so it waits for the final step; then 4-3 finds word 3 taken.
    """
    forward, backward = links("0-0 1-1 0-1 1-2 3-3"), links("0-0 1-1 2-1 4-3")
    assert intersection(forward, backward) == links("0-0 1-1")
    assert union(forward, backward) == links("0-0 0-1 1-1 1-2 2-1 3-3 4-3")
    assert grow_diag(forward, backward) == links("0-0 1-1 1-2 2-1")
    assert grow_diag_final_and(forward, backward) == links("0-0 1-1 1-2 2-1 3-3")


def test_growth_follows_a_diagonal_both_ways_until_nothing_is_added():
    chain = links("0-0 1-1 2-2 3-3 4-4")
    assert grow_diag(chain, links("2-2")) == chain
    assert grow_diag(reverse(links("0-4 1-3 2-2 3-1 4-0")), links("2-2")) == links("0-4 1-3 2-2 3-1 4-0")
    assert grow_diag(links("0-0 2-2"), links("0-0")) == links("0-0")


def test_the_final_step_asks_source_to_target_first():
    forward, backward = links("0-0 3-3"), links("0-0 3-4 4-3")
    assert grow_diag_final_and(forward, backward) == links("0-0 3-3")
    assert grow_diag_final_and(backward, forward) == links("0-0 3-4 4-3")


def as_published(forward, backward, size=7):
    """The heuristic of Koehn et al. (2005) as loops over every cell, pass after pass."""
    both, cells = forward & backward, [(s, t) for t in range(size) for s in range(size)]
    got, changed = set(both), True
    around = ((-1, 0), (0, -1), (1, 0), (0, 1), (-1, -1), (-1, 1), (1, -1), (1, 1))

    def free(s, t):
        return s not in {a for a, _ in got}, t not in {b for _, b in got}

    while changed:
        changed = False
        for s, t in cells:
            for down, right in around if (s, t) in got else ():
                near = s + right, t + down
                if near in forward | backward and any(free(*near)):
                    got.add(near)
                    changed = True
    grown = frozenset(got)
    for direction in (forward, backward):
        for cell in cells:
            if cell in direction and all(free(*cell)):
                got.add(cell)
    return grown, frozenset(got)


@settings(max_examples=200)
@given(forward=grids, backward=grids)
def test_looking_around_each_link_once_is_enough(forward, backward):
    assert (grow_diag(forward, backward), grow_diag_final_and(forward, backward)) == as_published(forward, backward)


def test_a_long_sentence_grows_quickly():
    chain = frozenset((n, n) for n in range(2000))
    assert grow_diag_final_and(chain, frozenset({(1999, 1999)})) == chain


@given(links=confident)
def test_reversing_twice_changes_nothing(links):
    one = Alignment.of(links)
    assert one.reversed().reversed() == one
    assert one.reversed().hard == reverse(one.hard)


def test_the_confidence_of_a_symmetrised_link_is_the_mean_of_both_directions():
    forward, backward = Alignment.of({(0, 0): 0.5, (1, 1): 0.5}), Alignment.of({(0, 0): 1.0})
    assert symmetrised(forward, backward, "intersection") == Alignment(((0, 0),), (0.75,))
    assert symmetrised(forward, backward) == Alignment(((0, 0), (1, 1)), (0.75, 0.25))
    with pytest.raises(LinksError, match="no symmetrisation 'gdfa'"):
        symmetrised(forward, backward, "gdfa")


def test_links_ascend_and_each_has_a_confidence():
    assert Alignment.of(links("2-0 0-1")) == Alignment(((0, 1), (2, 0)), (1.0, 1.0))
    for wrong in (((1, 0), (0, 0)), ((0, 0), (0, 0))):
        with pytest.raises(LinksError, match="do not ascend"):
            Alignment(wrong, (1.0, 1.0))
    with pytest.raises(LinksError, match="2 links has 1 conf"):
        Alignment(((0, 0), (1, 1)), (1.0,))


@in_one_folder
@given(sentences=st.lists(confident, min_size=1, max_size=5))
def test_links_survive_a_file(tmp_path, sentences):
    alignments = [Alignment.of(one) for one in sentences]
    for confidence in (False, True):
        write_pharaoh(alignments, tmp_path / "a.txt", confidence=confidence)
        got = read_pharaoh(tmp_path / "a.txt")
        assert [one.links for one in got] == [one.links for one in alignments]
        expected = [one.confidence if confidence else (1.0,) * len(one.links) for one in alignments]
        assert all(a.confidence == pytest.approx(b, rel=0.005) for a, b in zip(got, expected, strict=True))


def test_what_is_written_is_pharaoh(tmp_path):
    one = Alignment(((0, 0), (1, 2)), (0.93, 1.0))
    assert to_pharaoh(one) == "0-0 1-2"
    assert to_pharaoh(one, confidence=True) == "0-0:0.93 1-2:1"
    assert to_pharaoh(one, first=1) == "1-1 2-3"
    write_pharaoh([one, Alignment((), ())], tmp_path / "a.txt")
    assert (tmp_path / "a.txt").read_bytes() == b"0-0 1-2\n\n"
    with pytest.raises(LinksError, match="no folder"):
        write_pharaoh([one], tmp_path / "none" / "a.txt")


def test_a_file_may_count_from_one_the_other_way_round_with_windows_line_ends(tmp_path):
    (tmp_path / "a.txt").write_bytes(b"1-1 3-2\r\n\r\n2-1 2-1\r\n")
    got = read_pharaoh(tmp_path / "a.txt", first=1, reverse=True, sources=[2, 0, 1], targets=[3, 0, 2])
    assert [one.links for one in got] == [((0, 0), (1, 2)), (), ((0, 1),)]


@pytest.mark.parametrize(
    ("text", "options", "said"),
    [
        ("0-0\n1", {}, "a.txt:2: '1' is no link"),
        ("0-0\n0-0 0--1", {}, "a.txt:2: '0--1' is no link"),
        ("0-0:1.5", {}, "a.txt:1: '0-0:1.5' is no link"),
        ("0-0:nan", {}, "a.txt:1: '0-0:nan' is no link"),
        ("0-0:x", {}, "a.txt:1: '0-0:x' is no link"),
        ("\n0p1", {}, "a.txt:2: a possible link, '0p1'"),
        ("1-1 0-1", {"first": 1}, "a.txt:1: '0-1' names word 0"),
        ("\n0-2", {"sources": [1, 1], "targets": [1, 2]}, "a.txt:2: '0-2' names target word 2, .* has 2 words"),
        ("0-0", {"sources": [1, 1]}, "a.txt has 1 lines for 2 source sentences: line 2 has no partner"),
        ("0-0\n\n", {"targets": [1]}, "a.txt has 2 lines for 1 target sentences: .*\n.*1 blank line in a.txt"),
    ],
)
def test_bad_lines_are_refused_with_their_number(tmp_path, text, options, said):
    (tmp_path / "a.txt").write_text(text)
    with pytest.raises(LinksError, match=said):
        read_pharaoh(tmp_path / "a.txt", **options)
