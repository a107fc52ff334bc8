"""Two files are read side by side, as often as wanted; what is no parallel text is refused with its line."""

import bz2
import gzip
import lzma
import os

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from normlens.errors import NormlensError
from normlens.nmt import TextError, parallel
from normlens.nmt.text import read, survey, with_text

line = st.text(st.characters(codec="utf-8", exclude_characters="\r\n\0\ufeff"), max_size=9)
PACK = {"": bytes, ".gz": gzip.compress, ".xz": lzma.compress, ".bz2": bz2.compress}


def two(folder, source, target, suffix=""):
    for name, content in (("a.de", source), ("a.en", target)):
        content = content if isinstance(content, bytes) else content.encode()
        (folder / f"{name}{suffix}").write_bytes(PACK[suffix](content))
    return parallel(folder / f"a.de{suffix}", folder / f"a.en{suffix}")


@settings(max_examples=10, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(lines=st.lists(st.tuples(line, line), min_size=1, max_size=6), end=st.sampled_from(["\n", "\r\n"]))
def test_lines_come_back_in_pairs_whatever_the_packing_and_the_line_ends(tmp_path, lines, end):
    for suffix in PACK:
        both = two(tmp_path, *("".join(pair[at] + end for pair in lines) for at in (0, 1)), suffix)
        assert list(both) == list(both) == [(source.strip(), target.strip()) for source, target in lines]


def test_a_last_line_without_its_end_counts(tmp_path):
    assert list(two(tmp_path, "eins\nzwei", "one\ntwo\n")) == [("eins", "one"), ("zwei", "two")]


def test_a_pair_with_an_empty_side_is_left_out_and_counted(tmp_path):
    both = two(tmp_path, "eins\n\ndrei\n \n", "one\ntwo\n\n\n")
    assert list(with_text(both)) == [("eins", "one")]
    found = survey(both)
    assert (found.pairs, found.left_out) == (1, 3)


def test_the_digest_knows_the_text_and_not_the_place(tmp_path):
    plain = survey(two(tmp_path, "eins\nzwei\n", "one\ntwo\n")).digest
    assert survey(two(tmp_path, "eins\r\nzwei", "one\r\ntwo\r\n", ".xz")).digest == plain
    assert survey([("eins", "one"), ("zwei", "two")]).digest == plain
    assert survey([("zwei", "two"), ("eins", "one")]).digest != plain
    assert survey([("eins", "onez"), ("wei", "two")]).digest != plain


BAD = {
    "longer source": ("1\n2\n3\n4\n", "a\nb\n", r"a\.de:3: .*no such line.*\n.*4 lines in .*a\.de', 2 in .*a\.en'"),
    "longer target": ("1\n2\n", "a\nb\nc\n", r"a\.en:3: .*no such line.*\n.*2 lines in .*a\.de', 3 in .*a\.en'"),
    "one empty file": ("", "a\n", r"a\.en:1: .*no such line"),
    "two empty files": ("", "", "no text in .*a.de and .*a.en"),
    "blank lines alone": ("\n\n", " \n\n", "2 pairs, each with an empty side"),
    "another encoding": ("1\nä\n".encode("latin-1"), "a\nb\n", r"a\.de:2: not text in utf-8"),
    "another encoding of the target": ("1\n2\n", "a\nä\n".encode("latin-1"), r"a\.en:2: not text in utf-8"),
    "a binary file": (b"\x7fELF\0\0", "a\n", "seems binary"),
    "the same text": ("a\nb\n", "a\nb\n", "the same text"),
}


@pytest.mark.parametrize("name", BAD)
def test_what_is_no_parallel_text_is_refused(tmp_path, name):
    source, target, said = BAD[name]
    with pytest.raises(NormlensError, match=said):
        survey(both := two(tmp_path, source, target), both.describe())


def test_some_equal_lines_are_no_harm():
    assert survey([("Tom", "Tom"), ("eins", "one")]).pairs == 2


def test_one_file_for_both_sides_is_refused_before_it_is_read(tmp_path):
    (tmp_path / "a.de").write_text("eins\n")
    (tmp_path / "link").symlink_to(tmp_path / "a.de")
    for other in ("a.de", "link"):
        with pytest.raises(TextError, match="the same text"):
            parallel(tmp_path / "a.de", tmp_path / other)


def test_a_missing_file_is_named(tmp_path):
    (tmp_path / "a.de").write_text("eins\n")
    with pytest.raises(NormlensError, match=r"no file '.*nowhere\.en'"):
        survey(parallel(tmp_path / "a.de", tmp_path / "nowhere.en"))


def test_a_packed_file_that_is_cut_short_is_refused(tmp_path):
    (tmp_path / "a.de").write_text("eins\n")
    (tmp_path / "a.en.gz").write_bytes(gzip.compress(b"one\n" * 99)[:-9])
    with pytest.raises(NormlensError, match="cut short"):
        survey(parallel(tmp_path / "a.de", tmp_path / "a.en.gz"))


def test_what_can_be_read_only_once_is_refused(tmp_path):
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(TextError, match="pipe"):
        parallel(tmp_path / "pipe", tmp_path / "a.en")
    with pytest.raises(TextError, match="only once"):
        survey(iter([("eins", "one")]))


@pytest.mark.parametrize(("count", "held"), [(2, 1), (60, 3), (100, 5), (20_000, 1000), (30_000, 1000)])
def test_the_last_pairs_are_held_back(count, held):
    pairs = [(f"s{n}", f"t{n}") for n in range(count)]
    text = read(pairs, None)
    assert text.held == pairs[-held:]
    assert list(text.training()) == pairs[:-held]


def test_pairs_to_validate_on_leave_the_others_alone():
    pairs, valid = [("eins", "one"), ("", "two")], [("drei", "three"), ("vier", "")]
    text = read(pairs, valid)
    assert list(text.training()) == pairs[:1]
    assert text.held == valid[:1]


def test_one_pair_is_not_enough():
    with pytest.raises(TextError, match="not enough"):
        read([("eins", "one")], None)
