"""Any sequence-to-sequence model of transformers translates, line by line, without a word of its own."""

from itertools import count, islice

import pytest

from normlens.models import LoadError
from normlens.models.quiet import quiet
from normlens.nmt import load_translator, translate
from normlens.nmt.translate import bleu, closed_up

WORDS = ["<pad>", "</s>", "<unk>", "<s>", *"abcdefgh", ",", "."]


@pytest.fixture(scope="module", params=["t5", "bart"])
def folder(request, tmp_path_factory):
    """A tiny model of another family, with a tokenizer of a few letters."""
    import transformers
    from tokenizers import Tokenizer, models, pre_tokenizers

    one = Tokenizer(models.WordLevel({word: n for n, word in enumerate(WORDS)}, unk_token="<unk>"))
    one.pre_tokenizer = pre_tokenizers.Whitespace()
    marks = {"pad_token": "<pad>", "eos_token": "</s>", "unk_token": "<unk>", "bos_token": "<s>"}
    tokens = transformers.PreTrainedTokenizerFast(tokenizer_object=one, **marks)
    ids = {"pad_token_id": 0, "eos_token_id": 1, "bos_token_id": 3, "decoder_start_token_id": 0}
    size = {"vocab_size": len(WORDS), "d_model": 16}
    if request.param == "t5":
        config = transformers.T5Config(**size, **ids, d_kv=8, d_ff=16, num_layers=1, num_heads=2)
    else:
        layers = {f"{side}_{name}": n for side in ("encoder", "decoder") for name, n in
                  (("layers", 1), ("attention_heads", 2), ("ffn_dim", 16))}  # fmt: skip
        config = transformers.BartConfig(**size, **ids, **layers, max_position_embeddings=24)
    path = tmp_path_factory.mktemp("other") / request.param
    with quiet():
        transformers.AutoModelForSeq2SeqLM.from_config(config).eval().save_pretrained(path)
        tokens.save_pretrained(path)
    return path


@pytest.mark.parametrize("beams", [1, 3])
def test_any_family_translates_in_silence(folder, beams, capfd):
    model, tokens = load_translator(folder)
    lines = ["a b c", "", "h g f", "h , g"]
    found = list(translate(model, tokens, lines, beams=beams, batch=2))
    assert len(found) == 4
    assert found[1] == ""
    assert found == [text for line in lines for text in translate(model, tokens, [line], beams=beams)]
    assert capfd.readouterr() == ("", "")


def test_lines_come_out_before_the_last_has_come_in(folder):
    model, tokens = load_translator(folder)
    endless = ("a b" for _ in count())
    assert len(list(islice(translate(model, tokens, endless, beams=1, batch=2), 5))) == 5


def test_a_line_longer_than_the_model_is_cut_and_told(folder, capfd):
    model, tokens = load_translator(folder)
    told = []
    lines = ["a", "", "a " * 60, "a b c d e f g h a b c"]
    found = list(translate(model, tokens, lines, beams=1, batch=3, cut=lambda *one: told.append(one)))
    assert len(found) == 4
    assert told == ([(3, 24)] if "bart" in folder.name else [])  # T5 has no end
    assert capfd.readouterr() == ("", "")


def test_what_cannot_translate_is_refused(tmp_path, folder):
    import shutil

    from normlens.models.default import default_folder

    with pytest.raises(LoadError, match="not a sequence-to-sequence model"):
        load_translator(default_folder())
    with pytest.raises(LoadError, match="cannot be loaded"):
        load_translator(str(tmp_path / "nowhere"))
    shutil.copytree(folder, tmp_path / "m")
    for path in (tmp_path / "m").glob("*token*"):
        path.unlink()
    with pytest.raises(LoadError, match="tokenizer"):
        load_translator(tmp_path / "m")


@pytest.mark.parametrize(
    ("apart", "closed"),
    [
        ("ja , das ist ' s ( so ) .", "ja, das ist's (so)."),
        ("20 % mehr ; nein !", "20% mehr; nein!"),
        ("co - operation [ 1 ]", "co-operation [1]"),
        ("nothing to do", "nothing to do"),
    ],
)
def test_punctuation_goes_back_to_its_word(apart, closed):
    assert closed_up(apart) == closed


def test_bleu_knows_no_case_and_no_more_than_words():
    reference = ["The cat sat on the mat.", "A dog barked at the moon."]
    assert bleu([text.upper() for text in reference], reference) == pytest.approx(100)
    assert bleu(["the cat sat on the mat .", "a dog barked at the moon ."], reference) == pytest.approx(100)
    assert bleu(["no", "nothing"], reference) == 0
