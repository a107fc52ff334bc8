"""Raw and tokenised text, any case and any Unicode form give the same subwords."""

import re
import sys
import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from normlens.nmt import PRESETS, LibraryMissing, train
from normlens.nmt.subwords import SubwordError, train_subwords

LINES = [
    "Ja, das Mädchen sagt: „Größe ist nicht alles!“ (So ist es.)",
    "Die Straße nach München, 3.500 Meter lang, kostet 20 % mehr.",
    "Können wir's heute -- oder morgen -- hören? L'été, c'est [fini].",
]
MARKS = ",.!?:;()[]%\"'„“”«»–-"
SAME = {
    "tokenised": ("Ja, das (Mädchen) sagt: nicht!", "ja , das ( mädchen ) sagt : nicht !"),
    "case": ("Das Mädchen", "DAS MÄDCHEN"),
    "Unicode form": (unicodedata.normalize("NFC", "Größe hören"), unicodedata.normalize("NFD", "Größe hören")),
    "ß is ss": ("Straße", "Strasse"),
    "capital ß": ("STRAẞE", "strasse"),
    "double quotes": ("„alles“", '" alles "'),
    "other quotes": ("«alles»", "“alles”"),
    "apostrophe": ("wir’s", "wir ' s"),
    "dashes": ("heute – morgen", "heute - morgen"),
    "white space": ("ja das", " ja\u00a0\u00a0das\t"),
    "a tab": ("ja das", "ja\tdas"),
    "soft hyphen": ("Mädchen", "Mäd\u00adchen"),
    "full width": ("alles", "ａｌｌｅｓ"),
}


@pytest.fixture(scope="session")
def subwords(tmp_path_factory):
    """Text to pieces, by a model that was trained on the lines above."""
    import sentencepiece

    prefix = tmp_path_factory.mktemp("subwords") / "toy"
    pieces = train_subwords(LINES * 20, prefix, size=120)
    model = sentencepiece.SentencePieceProcessor(model_file=str(prefix.with_suffix(".spm")))
    return prefix.with_suffix(".spm"), pieces, lambda text: model.encode(text, out_type=str)


@pytest.mark.parametrize("name", SAME)
def test_two_ways_to_write_a_text_give_the_same_pieces(subwords, name):
    one, other = SAME[name]
    assert subwords[2](one) == subwords[2](other)


@given(text=st.text(st.sampled_from("abeghlmnrstuäöüßÄÖÜÉé 035" + MARKS), max_size=40))
def test_what_a_word_tokeniser_does_changes_nothing(subwords, text):
    apart = re.sub(f"([{re.escape(MARKS)}])", r" \1 ", text)
    assert subwords[2](text) == subwords[2](apart.lower()) == subwords[2](unicodedata.normalize("NFD", apart).upper())


def test_words_that_differ_stay_different(subwords):
    assert subwords[2]("Maße") == subwords[2]("Masse")  # the price of ß = ss
    assert subwords[2]("horen") != subwords[2]("hören")
    assert subwords[2]("ja. das") != subwords[2]("ja das")


def test_punctuation_is_never_glued_to_a_word(subwords):
    _, pieces, _ = subwords
    glued = [p for p in pieces if re.search(f"[{re.escape(MARKS)}]", p) and re.search(r"\w", p)]
    assert glued == []
    assert len(set(pieces)) == len(pieces) == 117  # 120 with </s>, <unk> and <pad>


def test_a_subword_file_tells_no_path_and_depends_on_the_text_alone(subwords, tmp_path):
    train_subwords(LINES * 20, tmp_path / "other", size=120)
    assert (tmp_path / "other.spm").read_bytes() == subwords[0].read_bytes()
    assert [path.name for path in tmp_path.iterdir()] == ["other.spm"]
    for name in (b"rules.tsv", b"other", str(tmp_path).encode()):
        assert name not in subwords[0].read_bytes()


def test_a_vocabulary_larger_than_the_text_is_as_large_as_the_text_allows(tmp_path):
    assert 100 < len(train_subwords(LINES, tmp_path / "x", size=5000)) < 500


@pytest.mark.parametrize(("size", "said"), [(20, r"needs \d+ for its letters"), (2, "too small for any text")])
def test_too_few_subwords_are_refused_with_how_many_it_takes(tmp_path, size, said):
    with pytest.raises(SubwordError, match=said):
        train_subwords(LINES, tmp_path / "x", size=size)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("library", ["sentencepiece", "sacrebleu"])
def test_a_missing_library_names_the_extra(monkeypatch, library, tmp_path):
    monkeypatch.setitem(sys.modules, library, None)
    with pytest.raises(LibraryMissing, match=rf"{library}[^\n]*\n.*normlens\[nmt\]"):
        train([("eins", "one")] * 9, tmp_path / "out", recipe=PRESETS["small"])
    assert not (tmp_path / "out").exists()
