"""Frequent tokens have small ranks, whoever counted."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from normlens.corpora import CorpusError, frequency

counts = st.lists(st.integers(0, 5), min_size=1, max_size=12).filter(any)


@given(counts=counts)
def test_a_rank_is_one_more_than_the_number_of_more_frequent_tokens(counts):
    ranks = frequency.from_counts(np.array(counts)).ranks
    seen = [rank for rank, count in zip(ranks, counts, strict=True) if count]
    for rank, count in zip(ranks, counts, strict=True):
        assert rank == (1 + sum(other > count for other in counts) if count else max(seen) + 1)


def test_ties_share_a_rank_and_the_next_one_skips():
    found = frequency.from_counts(np.array([7, 3, 0, 3, 1, 0]))
    assert found.ranks.tolist() == [1, 2, 5, 2, 4, 5]
    assert not found.excluded.any()


@pytest.mark.parametrize("counts", [[], [0, 0], [1, -1]])
def test_no_counts_no_ranks(counts):
    with pytest.raises(CorpusError, match="no counts"):
        frequency.from_counts(np.array(counts, dtype=np.int64))


def test_a_file_of_ranks(tmp_path):
    (tmp_path / "ranks.txt").write_text("1\t90\t2\n2 5 0\n2 5 4\n\n")
    found = frequency.from_file(tmp_path / "ranks.txt", 6)
    assert found.source == "ranks.txt"
    assert found.ranks.tolist() == [2, 3, 1, 3, 2, 3]
    assert found.ranks.dtype == np.int64
    assert not found.excluded.any()


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("1 9 0\n2 8\n", r"ranks\.txt:2: not a line of `rank count token_id`"),
        ("1 9 zero\n", r"ranks\.txt:1: not a line of `rank count token_id`"),
        ("0 9 1\n", "ranks from 1"),
        ("1 9 -1\n", "not a line of `rank count token_id`"),
        ("1 9 0\n2 8 5\n", "no token id 5: the vocabulary has ids 0 to 4"),
        ("1 9 0\n2 8 0\n", "ranked twice"),
        ("\n", "no ranks in"),
    ],
)
def test_a_bad_file_of_ranks_is_refused(tmp_path, content, message):
    (tmp_path / "ranks.txt").write_text(content)
    with pytest.raises(CorpusError, match=message):
        frequency.from_file(tmp_path / "ranks.txt", 5)


def test_a_missing_file_of_ranks_is_refused(tmp_path):
    with pytest.raises(CorpusError, match="no file"):
        frequency.from_file(tmp_path / "ranks.txt", 5)


def test_the_ranks_of_the_authors(shared, minilm):
    """Figures of the file that the paper's authors published: see its first and last lines."""
    found = frequency.from_file(shared / "bert-uncased-ranks.txt", 30522)
    ids = {"the": 1, ".": 2, ",": 3, "[SEP]": 28, "[CLS]": 50, "[UNK]": 168, "[unused5]": 29087}
    for token, rank in ids.items():
        assert found.ranks[minilm.subject.tokenizer.convert_tokens_to_ids(token)] == rank
    assert (found.ranks == 29086).sum() == 24
    assert (found.ranks == 29087).sum() == 30522 - 29109


def test_counting_ranks_as_the_authors_did(shared):
    path = shared / "bert-uncased-ranks.txt"
    counts = np.zeros(30522, dtype=np.int64)
    for line in path.read_text().splitlines():
        _, count, token = map(int, line.split())
        counts[token] = count
    np.testing.assert_array_equal(frequency.from_counts(counts).ranks, frequency.from_file(path, 30522).ranks)


def test_the_vocabulary_of_bert_is_ordered_by_frequency(minilm):
    tokenizer = minilm.subject.tokenizer
    found = frequency.from_vocabulary(tokenizer)
    rank = dict(zip(tokenizer.convert_ids_to_tokens(range(len(tokenizer))), found.ranks.tolist(), strict=True))
    assert [rank[token] for token in (",", ".", "[SEP]", "[CLS]")] == [1, 2, 3, 4]
    assert 4 < rank["the"] < rank["of"] < rank["##ing"]
    out = set(np.array(tokenizer.convert_ids_to_tokens(range(len(tokenizer))))[found.excluded])
    assert {"[PAD]", "[UNK]", "[MASK]", "a", "##s", ";", "的"} <= out
    assert not {"the", ",", ".", "[CLS]", "[SEP]", "##ly"} & out
    assert found.ranks[found.excluded].min() > found.ranks[~found.excluded].max()


def test_entries_that_were_left_free_take_no_rank(minilm, sentence_pieces, wrapped):
    tokenizer = minilm.subject.tokenizer
    found = frequency.from_vocabulary(tokenizer)
    assert found.ranks[tokenizer.convert_tokens_to_ids("the")] == 5
    assert found.excluded[tokenizer.convert_tokens_to_ids(["[unused0]", "[unused993]"])].all()
    pieces = wrapped(sentence_pieces, eos_token="</s>")
    free = ["<unused7>", "<|reserved_special_token_7|>", "madeupword0007"]
    pieces.add_tokens([*free, "unused", "[reserve]"])
    excluded = frequency.from_vocabulary(pieces).excluded
    assert excluded[pieces.convert_tokens_to_ids(free)].all()
    assert not excluded[pieces.convert_tokens_to_ids(["unused", "[reserve]"])].any()


def test_kept_tokens_follow_the_order_of_the_vocabulary(minilm):
    found = frequency.from_vocabulary(minilm.subject.tokenizer)
    rest = found.ranks[~found.excluded & (found.ranks > 4)]
    assert (np.diff(rest) == 1).all()


def test_a_tokenizer_without_sep_and_cls_uses_its_end_and_beginning(byte_level, sentence_pieces, wrapped):
    pieces = wrapped(sentence_pieces, eos_token="</s>", bos_token="<s>", pad_token="<pad>", unk_token="<unk>")
    bytewise = wrapped(byte_level, bos_token="<|end|>", eos_token="<|end|>")
    for tokenizer, top in ((pieces, (",", ".", "</s>", "<s>")), (bytewise, (",", ".", "<|end|>"))):
        found = frequency.from_vocabulary(tokenizer)
        ids = tokenizer.convert_tokens_to_ids(list(top))
        assert found.ranks[ids].tolist() == list(range(1, len(top) + 1))
        assert not found.excluded[ids].any()
        assert found.excluded[tokenizer.convert_tokens_to_ids("a")]
        kept = np.sort(found.ranks[~found.excluded & (found.ranks > len(top))])
        assert kept.tolist() == list(range(len(top) + 1, len(top) + 1 + len(kept)))


def test_without_a_vocabulary_there_is_no_order():
    with pytest.raises(CorpusError, match="no vocabulary"):
        frequency.from_vocabulary(None)
