"""Words and relations: read as they are written, or refused with the line."""

import json

import pytest

from normlens.corpora import CorpusError, Labels, corpus, survey
from normlens.corpora.read import Corpus

ENGLISH = """\
# sent_id = 1
# text = The cat can't sleep.
1\tThe\tthe\tDET\tDT\t_\t2\tdet\t_\t_
2\tcat\tcat\tNOUN\tNN\t_\t5\tnsubj\t_\t_
3-4\tcan't\t_\t_\t_\t_\t_\t_\t_\t_
3\tca\tcan\tAUX\tMD\t_\t5\taux\t_\t_
4\tn't\tnot\tPART\tRB\t_\t5\tadvmod\t_\t_
4.1\tghost\t_\t_\t_\t_\t_\t_\t_\t_
5\tsleep\tsleep\tVERB\tVB\t_\t0\troot\t_\tSpaceAfter=No
6\t.\t.\tPUNCT\t.\t_\t5\tpunct\t_\t_
"""
FRENCH = """\
1\tbout\tbout\tNOUN\t_\t_\t0\troot\t_\t_
2-3\tdu\t_\t_\t_\t_\t_\t_\t_\t_
2\tde\tde\tADP\t_\t_\t4\tcase\t_\t_
3\tle\tle\tDET\t_\t_\t4\tdet\t_\t_
4\tmonde\tmonde\tNOUN\t_\t_\t1\tnmod\t_\t_
"""


@pytest.fixture
def treebank(tmp_path):
    path = tmp_path / "two.conllu"
    path.write_text(f"{ENGLISH}\n\n{FRENCH}")
    return path


def test_a_sentence_is_its_text_with_the_place_of_every_word(treebank):
    english, french = corpus(treebank)
    assert english.texts == ("The cat can't sleep.",)
    words = [english.texts[0][start:end] for start, end in english.labels.spans]
    assert words == ["The", "cat", "ca", "n't", "sleep", "."]
    assert ("det", 1, 0) in english.labels.pairs
    assert [relation for relation, _, _ in english.labels.pairs] == ["det", "nsubj", "aux", "advmod", "punct"]
    assert (english.where, french.where) == ("two.conllu:1", "two.conllu:13")


def test_words_that_are_written_as_one_have_the_same_place(treebank):
    _, french = corpus(treebank)
    assert french.texts == ("bout du monde",)
    assert french.labels.spans == ((0, 4), (5, 7), (5, 7), (8, 13))


def test_words_and_pairs_in_json_are_labels_too(tmp_path):
    line = {"words": ["the", "cat"], "pairs": [["det", 1, 0]]}
    expected = Labels(((0, 3), (4, 7)), (("det", 1, 0),))
    (tmp_path / "a.jsonl").write_text(json.dumps(line))
    for source in (tmp_path / "a.jsonl", [line], iter([line])):
        (item,) = corpus(source)
        assert (item.texts, item.labels) == (("the cat",), expected)
    (unlabelled,) = corpus([{"text": "a", "words": ["b"]}])
    assert (unlabelled.texts, unlabelled.labels) == (("a",), None)


def test_another_relation_makes_another_corpus(tmp_path):
    digests = []
    for relation in ("det", "amod"):
        digests.append(survey(corpus([{"words": ["the", "cat"], "pairs": [[relation, 1, 0]]}])).digest)
    assert len({*digests, survey(corpus(["the cat"])).digest}) == 3


@pytest.mark.parametrize(
    ("line", "told"),
    [
        ("1 The the DET", r"bad.conllu:2: .*10 columns.*got 1"),
        ("2\tThe\t_\t_\t_\t_\t_\t_\t_\t_", "is number 2, expected 1"),
        ("x\tThe\t_\t_\t_\t_\t_\t_\t_\t_", "'x' is not the number"),
        ("1\tThe\t_\t_\t_\t_\t2\tdet\t_\t_", "'2' is not the number of another word"),
        ("1\tThe\t_\t_\t_\t_\t1\tdet\t_\t_", "'1' is not the number of another word"),
        ("1\tThe\t_\t_\t_\t_\tdet\t2\t_\t_", "'det' is not the number of another word"),
        ("1-2\tdu\t_\t_\t_\t_\t_\t_\t_\t_\n1\tde\t_\t_\t_\t_\t_\t_\t_\t_", "words that are not there"),
    ],
)
def test_a_wrong_line_is_named(tmp_path, line, told):
    (tmp_path / "bad.conllu").write_text(f"# a comment\n{line}\n")
    with pytest.raises(CorpusError, match=told):
        list(corpus(tmp_path / "bad.conllu"))


@pytest.mark.parametrize(
    ("value", "told"),
    [
        ({"words": "the cat"}, "not a list of words"),
        ({"words": []}, "not a list of words"),
        ({"words": ["a", " "]}, "not a list of words"),
        ({"words": ["a", "b"], "pairs": [["det", 0, 2]]}, "not a labelled pair of the 2 words"),
        ({"words": ["a", "b"], "pairs": [["det", 0, True]]}, "not a labelled pair"),
        ({"words": ["a", "b"], "pairs": [["det", 0]]}, "not a labelled pair"),
        ({"words": ["a", "b"], "pairs": 3}, "not a labelled pair"),
    ],
)
def test_wrong_words_and_pairs_are_refused(value, told):
    with pytest.raises(CorpusError, match=told):
        list(corpus([value]))


def test_labelled_sentences_cannot_be_joined_to_pairs_and_have_no_columns(treebank):
    with pytest.raises(CorpusError, match="labelled, so it cannot be half of a pair"):
        list(corpus(treebank, pairs=True))
    with pytest.raises(CorpusError, match="read as CoNLL-U, which has no columns"):
        list(corpus(treebank, column="text"))


def test_a_file_of_comments_alone_has_no_text(tmp_path):
    (tmp_path / "a.conllu").write_text("# nothing\n\n# else\n")
    opened: Corpus = corpus(tmp_path / "a.conllu")
    with pytest.raises(CorpusError, match="There is no text"):
        list(opened)
