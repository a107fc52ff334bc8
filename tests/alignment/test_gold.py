"""Gold is read as it was meant, in every way of writing it, or refused with the line that is wrong."""

from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from normlens.alignment.gold import Gold, open_gold, read_gold
from normlens.alignment.links import LinksError
from normlens.errors import NormlensError

words = st.integers(0, 9)
links = st.frozensets(st.tuples(words, words), max_size=8)
in_one_folder = settings(suppress_health_check=[HealthCheck.function_scoped_fixture])


@pytest.fixture(scope="module")
def rwth():
    """The gold of the paper, which is not part of the package."""
    path = Path(__file__).parents[2].parent / "shared" / "data" / "rwth-de-en.talp"
    if not path.is_file():
        pytest.skip("the data to try normlens on is not beside the repository")
    return path


def gold(sure, possible=frozenset()):
    return Gold(frozenset(sure), frozenset(possible))


def row(links, mark="-", first=0, swap=False):
    return " ".join(f"{(t if swap else s) + first}{mark}{(s if swap else t) + first}" for s, t in sorted(links))


@in_one_folder
@given(
    golds=st.lists(st.builds(Gold, links, links), min_size=1, max_size=5).filter(lambda g: any(o.possible for o in g)),
    first=st.sampled_from([0, 1]),
    swap=st.booleans(),
)
def test_gold_survives_either_format_numbering_and_direction(tmp_path, golds, first, swap):
    talp, sure, possible = (tmp_path / name for name in ("a.talp", "sure.txt", "possible.txt"))
    talp.write_text(
        "".join(f"{row(g.sure, '-', first, swap)} {row(g.possible - g.sure, 'p', first, swap)}\n" for g in golds)
    )
    assert read_gold(talp, first=first, reverse=swap) == golds
    sure.write_text("".join(row(g.sure, "-", first, swap) + "\n" for g in golds))
    possible.write_text("".join(row(g.possible, "-", first, swap) + "\n" for g in golds))
    if any(g.sure for g in golds):
        assert read_gold(sure, possible=possible, format="pharaoh", first=first, reverse=swap) == golds


def test_a_sure_link_is_possible_too():
    assert gold({(0, 0)}, {(1, 1)}).possible == {(0, 0), (1, 1)}


def test_talp_counts_from_one_and_pharaoh_from_zero(tmp_path):
    (tmp_path / "a").write_text("1-1 2p3\n")
    (tmp_path / "b.txt").write_text("0-0\n")
    (tmp_path / "c.txt").write_text("1-2\n")
    (tmp_path / "d.talp").write_text("1-1\n")
    assert read_gold(tmp_path / "a") == [gold({(0, 0)}, {(1, 2)})]
    assert read_gold(tmp_path / "b.txt", possible=tmp_path / "c.txt") == [gold({(0, 0)}, {(1, 2)})]
    assert read_gold(tmp_path / "c.txt", format="pharaoh") == [gold({(1, 2)})]
    assert read_gold(tmp_path / "c.txt", format="talp") == [gold({(0, 1)})]
    assert read_gold(tmp_path / "d.talp") == [gold({(0, 0)})]
    assert [open_gold(tmp_path / name).first for name in ("a", "b.txt", "d.talp")] == [1, 0, 1]
    assert [open_gold(tmp_path / name).format for name in ("a", "b.txt", "d.talp")] == ["talp", "pharaoh", "talp"]


def test_a_blank_line_is_a_sentence_without_links_and_windows_line_ends_are_no_text(tmp_path):
    (tmp_path / "a.talp").write_bytes(b"\xef\xbb\xbf1-1 \r\n\r\n  \r\n2p1\r\n")
    expected = [gold({(0, 0)}), gold(()), gold(()), gold((), {(1, 0)})]
    assert read_gold(tmp_path / "a.talp", sources=[1, 0, 5, 2], targets=[1, 0, 5, 1]) == expected


@pytest.mark.parametrize(
    ("text", "options", "said"),
    [
        ("", {}, "'gold' holds no links"),
        ("\n \n", {}, "'gold' holds no links"),
        ("1-1\n\n1-1 0p2", {"format": "talp"}, "gold:3: '0p2' names word 0"),
        ("1-1\n2-0", {"first": 1}, "gold:2: '2-0' names word 0"),
        ("0-0\n0-1", {"sources": [1, 1], "targets": [1, 1]}, "gold:2: '0-1' names target word 1, .* has 1 words"),
        ("1p1\n3p1", {"sources": [1, 2]}, "gold:2: '3p1' names source word 3, .* has 2 words, counted from 1"),
        ("1p1\n1p3", {"sources": [1, 2], "reverse": True}, "gold:2: '1p3' names source word 3"),
        ("0-0\n0-0", {"sources": [1]}, "gold has 2 lines for 1 source sentences: line 2 has no partner"),
        ("0-0\n\n0-0", {"targets": [1, 1]}, "lines for 2 target sentences: line 3 .*\n.*1 blank line in gold"),
        ("0-0\n0-0 1p2", {"format": "pharaoh"}, "gold:2: mixed formats: '1p2'"),
        ("0-0\nS-0", {}, "gold:2: 'S-0' is no link"),
        ("0-0\n0-0-0", {}, "gold:2: '0-0-0' is no link"),
        ("0-0\n-1-0", {}, "gold:2: '-1-0' is no link"),
        ("0-0 99999999999-1", {}, "gold:1: '99999999999-1' is no link"),
        ("0-0\n0-0:0.5", {}, "gold:2: '0-0:0.5' has a confidence"),
        ("1-1 2-2", {}, "does not show whether its words are counted from 0 or from 1"),
    ],
)
def test_bad_gold_is_refused_with_its_line(tmp_path, text, options, said):
    (tmp_path / "gold").write_text(text)
    with pytest.raises(LinksError, match=said):
        read_gold(tmp_path / "gold", **options)


@pytest.mark.parametrize(
    ("sure", "possible", "options", "said"),
    [
        ("0-0\n0-0", "0-0", {}, "possible has 1 lines for 2 lines of sure: line 2 has no partner"),
        ("0-0\n0-0", "\n0p1", {}, "possible:2: mixed formats: '0p1'"),
        ("0-0\n0p1", "\n\n", {}, "sure:2: mixed formats: '0p1' is talp"),
        ("1-1", "1-2", {"format": "talp"}, "sure: mixed formats: it is talp"),
        ("0-0\n0-0", "0-0\n0-1", {"targets": [1, 1]}, "possible:2: '0-1' names target word 1"),
        ("0-0", "0-0:1", {}, "possible:1: '0-0:1' has a confidence"),
    ],
)
def test_possible_links_must_fit_the_sure_ones(tmp_path, sure, possible, options, said):
    (tmp_path / "sure").write_text(sure)
    (tmp_path / "possible").write_text(possible)
    with pytest.raises(LinksError, match=said):
        read_gold(tmp_path / "sure", possible=tmp_path / "possible", **options)


@pytest.mark.parametrize("content", ["0-0\n1-1 ü\n".encode("latin-1"), b"0-0\n\x00\x01", "0-0".encode("utf-32")])
def test_what_is_no_text_is_refused(tmp_path, content):
    (tmp_path / "gold").write_bytes(content)
    with pytest.raises(LinksError, match="of links like 0-0 1-2"):
        read_gold(tmp_path / "gold")


def test_a_wrong_byte_is_refused_with_its_line(tmp_path):
    (tmp_path / "gold").write_bytes(b"0-0\n0-0\xa01-1\n")
    with pytest.raises(LinksError, match="gold:2: not text in utf-8"):
        read_gold(tmp_path / "gold")


def test_a_missing_file_is_said(tmp_path):
    with pytest.raises(NormlensError, match="There is no file"):
        read_gold(tmp_path / "gold")


def test_the_gold_of_the_paper(rwth):
    sources, targets = (
        [len(line.split()) for line in rwth.with_suffix(suffix).read_text("utf-8").splitlines()]
        for suffix in (".de", ".en")
    )
    golds = read_gold(rwth, sources=sources, targets=targets)
    assert len(golds) == 508
    assert sum(len(one.sure) for one in golds) == 9613
    assert sum(len(one.possible - one.sure) for one in golds) == 921
    with pytest.raises(LinksError, match="talp:1: '11-9' names target word 11, and that sentence has 9 words"):
        read_gold(rwth, sources=sources, targets=targets, reverse=True)
