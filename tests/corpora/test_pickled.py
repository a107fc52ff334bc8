"""A pickle gives its tokens and runs nothing."""

import os
import pickle
import tracemalloc

import numpy as np
import pytest

from normlens.corpora import CorpusError, Item, corpus

SEQUENCES = [{"tokens": ["[CLS]", "a", "[SEP]", "b", "[SEP]"]}, {"tokens": ["[CLS]", "c", "[SEP]"], "more": 1.5}]

# What Python 2.7 writes for [{'tokens': ['[CLS]', 'caf\xe9']}] with protocol 0, 1 and 2: byte strings.
PYTHON_2 = {
    0: b"(lp0\n(dp1\nS'tokens'\np2\n(lp3\nS'[CLS]'\np4\naS'caf\\xe9'\np5\nasa.",
    1: b"]q\x00}q\x01U\x06tokensq\x02]q\x03(U\x05[CLS]q\x04U\x04caf\xe9q\x05esa.",
    2: b"\x80\x02]q\x00}q\x01U\x06tokensq\x02]q\x03(U\x05[CLS]q\x04U\x04caf\xe9q\x05esa.",
}


class Malice:
    def __init__(self, call, *given):
        self.plan = (call, given)

    def __reduce__(self):
        return self.plan


def read(tmp_path, content):
    (tmp_path / "a.pkl").write_bytes(content)
    return list(corpus(tmp_path / "a.pkl"))


@pytest.mark.parametrize("protocol", [0, 1, 2, 3, 4, 5])
def test_tokens_come_out_of_every_protocol(tmp_path, protocol):
    assert read(tmp_path, pickle.dumps(SEQUENCES, protocol)) == [
        Item((), ("[CLS]", "a", "[SEP]", "b", "[SEP]"), "a.pkl[0]"),
        Item((), ("[CLS]", "c", "[SEP]"), "a.pkl[1]"),
    ]


@pytest.mark.parametrize("protocol", PYTHON_2)
def test_byte_strings_of_python_2_are_latin_1(tmp_path, protocol):
    assert read(tmp_path, PYTHON_2[protocol]) == [Item((), ("[CLS]", "café"), "a.pkl[0]")]


# What Python 2.7 writes for [{'attns': numpy.zeros((1, 2), 'float16'), 'tokens': [u'[CLS]']}] with protocol 2.
CLARK = (
    b"\x80\x02]q\x00}q\x01(U\x05attnsq\x02cnumpy.core.multiarray\n_reconstruct\nq\x03cnumpy\nndarray\nq\x04K\x00\x85q\x05"
    b"U\x01bq\x06\x87q\x07Rq\x08(K\x01K\x01K\x02\x86q\tcnumpy\ndtype\nq\nU\x02f2q\x0bK\x00K\x01\x87q\x0cRq\r(K\x03U\x01<q\x0e"
    b"NNNJ\xff\xff\xff\xffJ\xff\xff\xff\xffK\x00tq\x0fb\x89U\x04\x00\x00\x00\x00q\x10tq\x11bU\x06tokensq\x12]q\x13"
    b"X\x05\x00\x00\x00[CLS]q\x14aua."
)


def test_the_attention_maps_in_clark_et_als_file_are_passed_over(tmp_path):
    assert read(tmp_path, CLARK) == [Item((), ("[CLS]",), "a.pkl[0]")]


@pytest.mark.parametrize("protocol", [0, 1, 2, 3, 4, 5])
def test_arrays_of_every_protocol_are_passed_over(tmp_path, protocol):
    maps = np.random.default_rng(0).random((12, 12, 9, 9)).astype("float16")
    content = pickle.dumps([{"attns": maps, "tokens": ["[CLS]", "a"]}, {"tokens": ["b"], "attns": maps[0]}], protocol)
    assert [item.tokens for item in read(tmp_path, content)] == [("[CLS]", "a"), ("b",)]


def test_arrays_are_not_kept(tmp_path):
    """Clark et al.'s are four gigabytes. Sixty megabytes here, in strings of Python 2."""
    inside = b"T" + (4 << 20).to_bytes(4, "little") + bytes(4 << 20)
    one = CLARK[CLARK.index(b"}q\x01") : -2].replace(b"U\x04\x00\x00\x00\x00", inside)
    (tmp_path / "a.pkl").write_bytes(b"\x80\x02](" + 15 * one + b"e.")
    tracemalloc.start()
    assert len(list(corpus(tmp_path / "a.pkl"))) == 15
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 20 << 20


@pytest.mark.parametrize("protocol", [0, 1, 2, 4])
def test_a_malicious_pickle_is_refused_and_nothing_runs(tmp_path, protocol):
    trace = tmp_path / "ran"
    for call, given in ((os.system, f"touch {trace}"), (eval, f"open({str(trace)!r}, 'w')"), (os.mkdir, str(trace))):
        content = pickle.dumps([{"tokens": [Malice(call, given)]}], protocol)
        with pytest.raises(CorpusError, match="nothing that a pickle names is run"):
            read(tmp_path, content)
        assert not trace.exists()


def test_the_same_pickle_would_have_run(tmp_path):
    pickle.loads(pickle.dumps(Malice(os.mkdir, str(tmp_path / "ran"))))
    assert (tmp_path / "ran").exists()


@pytest.mark.parametrize(
    "content", [b"cos\nsystem\n(S'true'\ntR.", b"(S'true'\nios\nsystem\n.", b"\x80\x02\x82\x01)R."]
)
def test_every_way_to_name_a_function_is_refused(tmp_path, content):
    with pytest.raises(CorpusError):
        read(tmp_path, content)


def test_a_reference_to_the_outside_is_refused(tmp_path):
    with pytest.raises(CorpusError, match="outside itself"):
        read(tmp_path, b"(lp0\nPelsewhere\na.")


WHOLE = pickle.dumps(SEQUENCES, 2)


@pytest.mark.parametrize("content", [b"", b"garbage", b"\x80\xff", WHOLE[:-1], WHOLE[:20], b"\0" + WHOLE, b"h\x07."])
def test_a_damaged_pickle_is_refused(tmp_path, content):
    with pytest.raises(CorpusError, match="damaged"):
        read(tmp_path, content)


@pytest.mark.parametrize(
    ("value", "message"),
    [
        ({"tokens": ["a"]}, r"not a list of sequences.\n  Got: a dict"),
        (["a"], r"a\.pkl\[0\]: there is no list of tokens"),
        ([{"words": ["a"]}], "keys 'words'"),
        ([{"tokens": "a b"}], "no list of tokens"),
        ([{"tokens": ["a", 1]}], "no list of tokens"),
        ([], "no text in"),
    ],
)
def test_a_pickle_of_something_else_is_refused(tmp_path, value, message):
    with pytest.raises(CorpusError, match=message):
        read(tmp_path, pickle.dumps(value, 2))


def test_ready_tokens_make_no_pairs(tmp_path):
    (tmp_path / "a.pkl").write_bytes(WHOLE)
    with pytest.raises(CorpusError, match="already tokens"):
        list(corpus(tmp_path / "a.pkl", pairs=True))
