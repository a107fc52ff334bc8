"""Every piece belongs to the word it was cut from, whichever tokenizer cut it and however awkward the word."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tokenizers import Tokenizer, decoders, models, pre_tokenizers, trainers
from transformers import AutoTokenizer, PreTrainedTokenizerFast

from normlens.models import Speller
from normlens.models.default import default_folder
from normlens.nmt.model import tokenizer
from normlens.nmt.subwords import train_subwords, write_vocabulary

AWKWARD = (
    "Don't say “unbelievably”, it's 3,5 % — or 1.000.000! 😀 naïve ﬁne x²  Ärger\u00ad los — \u200b 中文 … ok".split()
)
LINES = ["the house is old, and it's small.", "we say 'no' to 3.5 % of them!", *[" ".join(AWKWARD)] * 2] * 20
characters = st.characters(exclude_categories=("Cs", "Cc", "Z"))
words = st.lists(st.text(characters, min_size=1).filter(lambda word: word.split() == [word]), min_size=1)


def _fast(model, trainer, pre, decoder):
    book = Tokenizer(model)
    book.pre_tokenizer, book.decoder = pre, decoder
    book.train_from_iterator(LINES, trainer)
    return PreTrainedTokenizerFast(tokenizer_object=book, unk_token="<unk>", pad_token="<pad>")


@pytest.fixture(scope="module")
def marian(tmp_path_factory):
    folder = tmp_path_factory.mktemp("spm")
    for side, name in (("source", "vocab.json"), ("target", "target_vocab.json")):
        write_vocabulary(train_subwords(LINES, folder / side, size=120), folder / name)
    return tokenizer(folder, source="de", target="en")


@pytest.fixture(scope="module")
def spellers(marian):
    special = ["<unk>", "<pad>"]
    byte_level = _fast(
        models.BPE(),
        trainers.BpeTrainer(
            vocab_size=400,
            special_tokens=special,
            initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
            show_progress=False,
        ),
        pre_tokenizers.ByteLevel(add_prefix_space=False),
        decoders.ByteLevel(),
    )
    unigram = _fast(
        models.Unigram(),
        trainers.UnigramTrainer(vocab_size=120, special_tokens=special, unk_token="<unk>", show_progress=False),
        pre_tokenizers.Metaspace(),
        decoders.Metaspace(),
    )
    bpe = _fast(
        models.BPE(unk_token="<unk>"),
        trainers.BpeTrainer(vocab_size=150, special_tokens=special, show_progress=False),
        pre_tokenizers.Metaspace(),
        decoders.Metaspace(),
    )
    return {
        "wordpiece": AutoTokenizer.from_pretrained(default_folder()),
        "byte-level": byte_level,
        "unigram": unigram,
        "bpe": bpe,
        "marian": marian,
    }


KINDS = ["wordpiece", "byte-level", "unigram", "bpe", "marian"]


def cut_alone(book, kind, sentence):
    """The pieces of each word by itself, as it stands in a sentence: with the space before it."""
    pieces = []
    for number, word in enumerate(sentence):
        text = f" {word}" if kind == "byte-level" and number else word
        pieces += [(piece, number) for piece in book(text, add_special_tokens=False)["input_ids"]]
    return pieces


def spelled(book, sentence):
    one = Speller(book, as_target=False)([sentence])[0]
    assert one.count == len(sentence)
    return [(piece, word) for piece, word in zip(one.ids, one.words, strict=True) if word is not None]


@pytest.mark.parametrize("kind", KINDS)
def test_awkward_words_keep_their_pieces(spellers, kind):
    assert spelled(spellers[kind], AWKWARD) == cut_alone(spellers[kind], kind, AWKWARD)


@pytest.mark.parametrize("kind", KINDS)
@given(sentence=words)
def test_any_words_keep_their_pieces(spellers, kind, sentence):
    found = spelled(spellers[kind], sentence)
    assert [word for _, word in found] == sorted(word for _, word in found)
    special = set(spellers[kind].all_special_tokens) & set(sentence)  # the space before one is a piece of its own
    if kind != "byte-level" and not special:  # byte-level looks over word ends, so a word alone may be cut otherwise
        assert found == cut_alone(spellers[kind], kind, sentence)


def test_a_marian_sentence_is_the_words_of_it(marian):
    line = "the house is old, and it's small."
    one = Speller(marian, as_target=False)([line.split()])[0]
    assert list(one.ids) == marian(line)["input_ids"]
    assert one.words[-1] is None


def test_a_target_is_spelled_with_the_subwords_of_the_target(marian):
    marian.target_encoder = {piece: index + 1000 for piece, index in marian.encoder.items()}
    (one,) = Speller(marian, as_target=True)([["house"]])
    assert min(one.ids[:-1]) >= 1000


def test_a_word_without_pieces_is_still_a_word(spellers):
    one = Speller(spellers["wordpiece"], as_target=False)([["a", "\u00ad", "b"]])[0]
    assert one.count == 3
    assert one.words == (None, 0, 2, None)
