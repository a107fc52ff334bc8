"""A corpus gives back what was written, whatever the format, as often as it is asked."""

import bz2
import csv
import gc
import gzip
import io
import json
import lzma
import os
import threading
from itertools import count, islice

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from normlens.corpora import Item, corpus, survey

text = st.text(st.characters(codec="utf-8", exclude_characters="\r\n\0\ufeff"), min_size=1).filter(str.strip)
texts = st.lists(text, min_size=1, max_size=5)
pairs = st.lists(st.tuples(text, text), min_size=1, max_size=5)
in_one_folder = settings(suppress_health_check=[HealthCheck.function_scoped_fixture])


def found(source, **options):
    return [item.texts for item in corpus(source, **options)]


def write_table(path, rows):
    with path.open("w", encoding="utf-8", newline="") as file:
        csv.writer(file).writerows(rows)


@in_one_folder
@given(texts=texts)
def test_texts_survive_every_format(tmp_path, texts):
    expected = [(text,) for text in texts]
    (tmp_path / "a.txt").write_text("\n\n".join(texts), encoding="utf-8", newline="")
    (tmp_path / "a.jsonl").write_text("\n".join(json.dumps({"text": t, "n": 1}) for t in texts))
    (tmp_path / "bare.ndjson").write_text("\n".join(json.dumps(t) for t in texts))
    (tmp_path / "a.json").write_text(json.dumps([{"text": t} for t in texts]))
    write_table(tmp_path / "a.csv", [("id", "text"), *((n, t) for n, t in enumerate(texts))])
    for name in ("a.txt", "a.jsonl", "bare.ndjson", "a.json", "a.csv"):
        assert found(tmp_path / name) == expected, name
    assert found(tmp_path / "a.txt", split="paragraph") == expected
    assert found(texts) == found(iter(texts)) == expected


@in_one_folder
@given(pairs=pairs)
def test_pairs_survive_every_format(tmp_path, pairs):
    (tmp_path / "a.jsonl").write_text("\n".join(json.dumps({"text": pair}) for pair in pairs))
    (tmp_path / "b.jsonl").write_text("\n".join(json.dumps({"text": a, "text_pair": b}) for a, b in pairs))
    (tmp_path / "c.jsonl").write_text("\n".join(json.dumps({"q": a, "a": b}) for a, b in pairs))
    (tmp_path / "d.json").write_text(json.dumps(pairs))
    write_table(tmp_path / "e.csv", [("text", "text_pair"), *pairs])
    (tmp_path / "f.txt").write_text("\n".join(text for pair in pairs for text in pair), encoding="utf-8", newline="")
    assert found(tmp_path / "a.jsonl") == found(tmp_path / "b.jsonl") == found(tmp_path / "d.json") == pairs
    assert found(tmp_path / "c.jsonl", column="q", pair_column="a") == pairs
    assert found(tmp_path / "e.csv") == found(tmp_path / "f.txt", pairs=True) == pairs
    assert found(pairs) == found([list(pair) for pair in pairs]) == pairs


def test_a_field_or_column_called_label_holds_the_label(tmp_path):
    (tmp_path / "a.jsonl").write_text('{"text": "good", "label": 1}\n{"text": "bad"}\n')
    (tmp_path / "a.csv").write_text("text,label\ngood,1\nbad\n")
    (tmp_path / "b.csv").write_text("good,label\nbad,1\n")
    for source in (tmp_path / "a.jsonl", tmp_path / "a.csv", [{"text": "good", "label": "1"}, {"text": "bad"}]):
        assert [(item.texts[0], item.label) for item in corpus(source)] == [("good", "1"), ("bad", None)]
    assert [item.label for item in corpus(tmp_path / "b.csv", column=0)] == [None, None], "its first row is no heading"


@pytest.mark.parametrize(("suffix", "pack"), [(".gz", gzip), (".xz", lzma), (".bz2", bz2)])
def test_packed_files_read_like_unpacked_ones(tmp_path, suffix, pack):
    with pack.open(tmp_path / f"a.jsonl{suffix}", "wt") as file:
        file.write('{"text": "one"}\n{"text": "two"}\n')
    assert found(tmp_path / f"a.jsonl{suffix}") == [("one",), ("two",)]


def test_line_ends_and_byte_order_marks_are_no_text(tmp_path):
    for name, encoding in (("a.txt", "utf-8-sig"), ("b.txt", "utf-16"), ("c.txt", "utf-8")):
        (tmp_path / name).write_bytes("one\r\n\r\n \r\ntwo\r\n".encode(encoding))
        assert found(tmp_path / name) == [("one",), ("two",)]
    (tmp_path / "d.csv").write_bytes("text,n\r\none,1\r\n".encode("utf-8-sig"))
    assert found(tmp_path / "d.csv") == [("one",)]


def test_lines_longer_than_a_block_stay_whole(tmp_path):
    long = "ü" * 100_001
    (tmp_path / "a.txt").write_text(f"{long}\nshort\n{long}", encoding="utf-8")
    assert found(tmp_path / "a.txt") == [(long,), ("short",), (long,)]


def test_an_item_says_where_it_stands(tmp_path):
    (tmp_path / "a.txt").write_text("\none\ntwo\n\n\nthree\nfour")
    assert [item.where for item in corpus(tmp_path / "a.txt")] == ["a.txt:2", "a.txt:3", "a.txt:6", "a.txt:7"]
    assert list(corpus(tmp_path / "a.txt", split="paragraph")) == [
        Item(("one\ntwo",), None, "a.txt:2"),
        Item(("three\nfour",), None, "a.txt:6"),
    ]


def test_a_folder_is_its_visible_texts_in_order(tmp_path):
    (tmp_path / "b.txt").write_text("second")
    (tmp_path / "a.jsonl").write_text('"first"')
    (tmp_path / "sub").mkdir()
    (tmp_path / "sub" / "c.md").write_text("third")
    (tmp_path / ".hidden").write_text("hidden")
    (tmp_path / "picture.png").write_bytes(b"\x89PNG\r\n\x1a\n\0\0\0")
    opened = corpus(tmp_path)
    assert [(item.texts, item.where) for item in opened] == [
        (("first",), "a.jsonl:1"),
        (("second",), "b.txt:1"),
        (("third",), "sub/c.md:1"),
    ]
    assert opened.notes == ["picture.png was left out: it seems binary"]


def test_an_odd_last_text_is_left_out_of_the_pairs_and_said_once():
    opened = corpus(["a", "b", "c"], pairs=True)
    assert [item.texts for item in opened] == [item.texts for item in opened] == [("a", "b")]
    assert opened.notes == ["texts[2] was left out: it has no second text to make a pair with"]


def test_rows_without_text_are_left_out_and_said(tmp_path):
    write_table(tmp_path / "a.csv", [("id", "text"), (1, "one"), (2, " "), (3, "three")])
    opened = corpus(tmp_path / "a.csv")
    assert [item.texts for item in opened] == [("one",), ("three",)]
    assert opened.notes == ["a.csv: 1 without text left out"]


def test_columns_go_by_name_or_by_number(tmp_path):
    (tmp_path / "a.tsv").write_text('"Look," she said.\t"Schau', encoding="utf-8")
    assert found(tmp_path / "a.tsv", column=0, pair_column="1") == [('"Look," she said.', '"Schau')]
    (tmp_path / "b.csv").write_text("id;body\n1;one, two\n", encoding="utf-8")
    assert found(tmp_path / "b.csv", column="body") == [("one, two",)]
    (tmp_path / "c.csv").write_text("sentence\none\n", encoding="utf-8")
    only = corpus(tmp_path / "c.csv")
    assert [item.texts for item in only] == [("one",)]
    assert only.notes == ["c.csv: its only column is read, and its first row taken as the name: 'sentence'"]


def test_mappings_are_read_like_json():
    assert found([{"body": "a", "id": 1}], column="body") == [("a",)]
    assert found([{"text": "a", "text_pair": None}]) == [("a",)]


def test_standard_input_can_be_read_again(monkeypatch):
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO("one\r\nzwölf\n".encode())))
    opened = corpus("-")
    assert opened.describe() == "stdin"
    assert survey(opened).items == 2
    assert list(opened) == [Item(("one",), None, "stdin:1"), Item(("zwölf",), None, "stdin:2")]


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="this system has no named pipes")
def test_a_pipe_can_be_read_again(tmp_path):
    os.mkfifo(tmp_path / "pipe")
    writer = threading.Thread(target=(tmp_path / "pipe").write_text, args=("one\ntwo\n",))
    writer.start()
    opened = corpus(tmp_path / "pipe")
    assert survey(opened) == survey(corpus(["one", "two"]))
    assert [item.texts for item in opened] == [("one",), ("two",)]
    writer.join()


def test_an_endless_stream_is_drawn_on_no_further_than_needed():
    drawn = []
    opened = corpus(f"text {n}" for n in count() if drawn.append(n) is None)
    assert survey(opened, limit=3).items == 3
    assert [item.texts for item in islice(opened, 4)] == [(f"text {n}",) for n in range(4)]
    assert drawn == [0, 1, 2, 3]


def test_two_readers_of_one_stream_do_not_disturb_each_other():
    opened = corpus(iter("abcdef"))
    assert [(a.texts[0], b.texts[0]) for a, b in zip(opened, opened, strict=True)] == [(c, c) for c in "abcdef"]


def test_a_stream_that_broke_stays_broken():
    def texts():
        yield "one"
        raise ValueError("gone")

    opened = corpus(texts())
    for _ in range(2):
        with pytest.raises(ValueError, match="gone"):
            list(opened)


def test_what_was_kept_is_closed_with_the_corpus():
    opened = corpus(iter(["x" * 2_000_000]))
    list(opened)
    kept = opened.start.__self__._kept
    assert not kept.closed
    del opened
    gc.collect()
    assert kept.closed


def test_a_survey_knows_the_content_wherever_it_lies(tmp_path):
    (tmp_path / "a.txt").write_text("one\ntwo\n")
    (tmp_path / "b.jsonl").write_text('"one"\n"two"\n')
    first, second = survey(corpus(tmp_path / "a.txt")), survey(corpus(tmp_path / "b.jsonl"))
    assert first == second
    assert len(first.digest) == 12
    assert survey(corpus(["one two"])) != first
    assert survey(corpus([("one", "two")])).digest != first.digest
    assert survey(corpus(tmp_path / "a.txt"), limit=1) == survey(corpus(["one"]))


def test_a_corpus_has_a_short_name(tmp_path):
    (tmp_path / "a.txt").write_text("one")
    assert corpus(tmp_path / "a.txt").describe() == "a.txt"
    assert corpus(tmp_path).describe() == f"{tmp_path.name}/"
    assert corpus(["a"]).describe() == "1 text"
    assert corpus(["a", "b"]).describe() == "2 texts"
    assert corpus(iter("ab")).describe() == "a stream of texts"
    same = corpus(["a"])
    assert corpus(same) is same


def test_the_wikipedia_pairs(shared):
    items = list(corpus(shared / "wiki-pairs.jsonl"))
    assert len(items) == 1581
    assert all(len(item.texts) == 2 for item in items)


def test_the_everyday_pairs_keep_their_quotation_marks(shared):
    items = list(islice(corpus(shared / "tatoeba-de-en.tsv.xz", column=0, pair_column=1), 12_000))
    assert items[11156].texts == ('"Schau!" sagte sie.', '"Look," she said.')
