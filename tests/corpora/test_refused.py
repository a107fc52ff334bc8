"""What cannot be read is refused, and the message says where, why and what to do."""

import gzip

import pytest

from normlens.corpora import CorpusError, corpus, survey

FILES = {
    "missing": (None, "a.txt", {}, "no file or folder"),
    "empty": (b"", "a.txt", {}, r"no text in the corpus \(a\.txt\)"),
    "blank": (b"\n \n\r\n", "a.txt", {}, r"no text in the corpus \(a\.txt\)"),
    "empty list": (b"[]", "a.json", {}, r"no text in the corpus \(a\.json\)"),
    "only a header": (b"text\n", "a.csv", {}, r"no text in the corpus \(a\.csv\)"),
    "zeros": (b"PK\3\4\0\0", "a.txt", {}, "seems binary"),
    "undecodable": (b"\x89PNG\r\n\x1a\n\xff\x01", "a.txt", {}, "seems binary"),
    "UTF-16 unmarked": ("one".encode("utf-16-le"), "a.txt", {}, "--encoding utf-16 .*encoding='utf-16'"),
    "latin": ("one\nzwölf".encode("latin-1"), "a.txt", {}, r"a\.txt:2: not text in utf-8.*\n.*0xf6 at byte offset 6"),
    "latin, what to do": (b"\xf6", "a.txt", {}, "(?s)--encoding latin-1 .*encoding='latin-1'"),
    "UTF-16 asked for, without its mark": (b"one", "a.txt", {"encoding": "utf-16"}, r"a\.txt:1: not text in utf-16"),
    "punycode": (b"a-\n", "a.txt", {"encoding": "punycode"}, r"a\.txt:1: not text in punycode"),
    "cut character": ("ö".encode()[:1], "a.txt", {}, "unexpected end"),
    "far away": (b"a\n" * 70_000 + b"\xff\n", "a.txt", {}, r"a\.txt:70001: .*\n.*byte offset 140000"),
    "unknown encoding": (b"a", "a.txt", {"encoding": "klingon"}, "no text encoding 'klingon'"),
    "no encoding of text": (b"a", "a.txt", {"encoding": "hex"}, "no text encoding 'hex'"),
    "not packed": (b"plain", "a.txt.gz", {}, "cannot be read"),
    "cut packing": (gzip.compress(b"text " * 99)[:-9], "a.txt.gz", {}, "cut short"),
    "garbled packing": (b"plain", "a.txt.xz", {}, "cannot be read"),
    "garbled packing too": (b"plain", "a.txt.bz2", {}, "cannot be read"),
    "column of plain text": (b"a", "a.txt", {"column": "text"}, "(?s)has no columns.*leave out --column"),
    "malformed line": (b'"one"\n{"text": "tw', "a.jsonl", {}, r"a\.jsonl:2: not JSON"),
    "nested without end": (b"[" * 100_000, "a.jsonl", {}, "a.jsonl:1: not JSON"),
    "missing field": (
        b'{"title": "t", "body": "b"}',
        "a.jsonl",
        {},
        "(?s)no field 'text'.\n  Got: title, body.*--column",
    ),
    "missing pair": (b'{"text": "t"}', "a.jsonl", {"pair_column": "b"}, "no field 'b'"),
    "no fields": (b'"bare"', "a.jsonl", {"column": "body"}, "this item has no fields"),
    "not a text": (b'{"text": 3}', "a.jsonl", {}, "neither a text nor a pair"),
    "three texts": (b'["a", "b", "c"]', "a.jsonl", {}, "neither a text nor a pair"),
    "half an emoji": (b'"a\\ud83d"', "a.jsonl", {}, "character 1 is half of a surrogate pair"),
    "lines in .json": (b'"one"\n"two"\n', "a.json", {}, r"rename the file to \.jsonl"),
    "an object in .json": (b'{"data": []}', "a.json", {}, "not a list of texts"),
    "no column": (b"id,body\n1,one\n", "a.csv", {}, "(?s)no column 'text'.\n  Got: 0: 'id', 1: 'body'.*--column"),
    "no such column": (b"id,text\n1,one\n", "a.csv", {"column": "body"}, "Got: 0: 'id', 1: 'text'"),
    "no such number": (b"id\ttext\n1\tone\n", "a.tsv", {"column": 2}, "no column '2'"),
    "short row": (b"id,text\n1,one\n2\n", "a.csv", {}, r"a\.csv:3: no column 1: the row has 1"),
    "open quotation": (b'id,text\n1,"one\n2,two\n', "a.csv", {}, "never closed"),
    "pairs of pairs": (b'["a", "b"]\n', "a.jsonl", {"pairs": True}, "(?s)already a pair.*leave out --pairs"),
    "one for a pair": (b"one\n", "a.txt", {"pairs": True}, "two for --pairs"),
}


@pytest.mark.parametrize("name", FILES)
def test_a_bad_file_is_refused(tmp_path, name):
    content, file, options, message = FILES[name]
    if content is not None:
        (tmp_path / file).write_bytes(content)
    with pytest.raises(CorpusError, match=message):
        survey(corpus(tmp_path / file, **options))


def test_another_encoding_reads_what_utf8_refuses(tmp_path):
    (tmp_path / "a.txt").write_bytes("zwölf".encode("latin-1"))
    assert [item.texts for item in corpus(tmp_path / "a.txt", encoding="latin-1")] == [("zwölf",)]


def test_a_folder_without_texts_is_refused(tmp_path):
    (tmp_path / "picture.png").write_bytes(b"\x89PNG\0")
    (tmp_path / ".hidden.txt").write_text("hidden")
    with pytest.raises(CorpusError, match="no corpus file in the folder"):
        corpus(tmp_path)


@pytest.mark.parametrize("source", [b"bytes", {"text": "a"}])
def test_what_is_no_list_of_texts_is_refused(source):
    with pytest.raises(CorpusError, match="is not a corpus"):
        corpus(source)


@pytest.mark.parametrize("source", ["A text, not a path. " * 50, "one\ntwo"])
def test_a_text_in_place_of_a_path_is_told_so(source):
    with pytest.raises(CorpusError, match="write it to a file, or in Python give it in a list"):
        corpus(source)


def test_an_empty_list_is_refused_at_the_end_of_a_pass():
    with pytest.raises(CorpusError, match=r"no text in the corpus \(an empty list\)"):
        list(corpus([]))


def test_a_limit_must_leave_something():
    with pytest.raises(CorpusError, match=r"limit must be at least 1 \(got 0\)"):
        survey(corpus(["a"]), limit=0)
