"""Bad input gets a sentence that says what to do, and leaves the model as it was."""

import pytest
import torch
from transformers import BertConfig, BertModel, GPT2Config, GPT2Model

import normlens as nl


def bert(**changes):
    torch.manual_seed(0)
    options = {"vocab_size": 60, "hidden_size": 16, "num_hidden_layers": 2, "num_attention_heads": 2}
    return BertModel(BertConfig(**options | {"intermediate_size": 16, "max_position_embeddings": 12} | changes))


@pytest.mark.parametrize("text", ["", "   ", "\n\n", ["fine", ""], [], ("a", "")])
def test_empty_text(minilm, text):
    with pytest.raises(nl.InputError, match="empty"):
        minilm.trace(text)


def test_a_text_longer_than_the_positions(minilm):
    long = "word " * 600
    with pytest.raises(nl.InputError, match=r"602 tokens are more than the 512 positions"):
        minilm.trace(long)
    assert len(minilm.trace(long, truncate=True, layers=0).tokens[0]) == 512


def test_more_ids_than_positions():
    lens = nl.load(bert().eval())
    with pytest.raises(nl.InputError, match="13 tokens are more than the 12 positions"):
        lens.trace(list(range(13)))


@pytest.mark.parametrize("ids", [[1, 2, 60], [1, -1, 2], [[1, 2], [3, 99]]])
def test_ids_out_of_range(ids):
    lens = nl.load(bert().eval())
    with pytest.raises(nl.InputError, match="the model knows ids 0 to 59"):
        lens.trace(ids)


def test_a_model_in_training_mode():
    model = bert().train()
    with pytest.raises(nl.LoadError, match=r"training mode[\s\S]*model.eval\(\)"):
        nl.load(model)
    assert model.training
    lens = nl.load(model.eval())
    model.train()
    with pytest.raises(nl.ReconstructionError, match="training mode"):
        lens.trace([1, 2, 3])
    assert model.training


def test_nan_weights():
    model = bert().eval()
    with torch.no_grad():
        model.encoder.layer[1].attention.self.value.weight[0, 0] = float("nan")
    with pytest.raises(
        nl.LoadError, match=r"NaN in 1 of its parameters, first in 'encoder.layer.1.attention.self.value"
    ):
        nl.load(model)


def test_weights_that_turn_nan_after_loading():
    model = bert().eval()
    lens = nl.load(model)
    with torch.no_grad():
        model.embeddings.word_embeddings.weight.fill_(float("nan"))
    with pytest.raises(nl.ReconstructionError, match="only to nan"):
        lens.trace([1, 2, 3])


def test_an_unknown_name():
    with pytest.raises(nl.LoadError, match=r"not a local folder[\s\S]*leave the name out for the bundled MiniLM"):
        nl.load("no-such-owner/no-such-model")


def test_a_folder_without_weights(tmp_path):
    bert().config.save_pretrained(tmp_path)
    with pytest.raises(nl.LoadError, match=r"folder[\s\S]*the folder holds: config.json[\s\S]*save_pretrained"):
        nl.load(tmp_path)


def test_an_empty_folder(tmp_path):
    with pytest.raises(nl.LoadError, match="the folder holds: nothing"):
        nl.load(tmp_path)


def test_pickled_weights_are_not_read_unless_asked(tmp_path):
    model = bert().eval()
    model.config.save_pretrained(tmp_path)
    torch.save(model.state_dict(), tmp_path / "pytorch_model.bin")
    with pytest.raises(nl.LoadError, match="weights='any'"):
        nl.load(tmp_path)
    assert len(nl.load(tmp_path, weights="any").wires) == 2


def test_a_tokenizer_of_another_model(minilm):
    with pytest.raises(nl.LoadError, match=r"tokenizer[\s\S]*30522[\s\S]*60"):
        nl.load(bert().eval(), minilm.subject.tokenizer)


def test_a_tokenizer_without_the_special_tokens_of_the_model(minilm):
    """GPT-2 ends a text with id 50256; the vocabulary of MiniLM ends at 30521."""
    model = GPT2Model(GPT2Config(n_embd=8, n_layer=1, n_head=2)).eval()
    with pytest.raises(nl.LoadError, match="50256"):
        nl.load(model, minilm.subject.tokenizer)


def test_text_without_a_tokenizer():
    with pytest.raises(nl.InputError, match="without a tokenizer"):
        nl.load(bert().eval()).trace("hello")


@pytest.mark.parametrize("data", [None, 3.5, object(), [1.5, 2.0], ["a", ("b", "c")], [["a"]]])
def test_things_that_are_no_input(minilm, data):
    with pytest.raises(nl.InputError):
        minilm.trace(data)


def test_both_a_text_and_a_source(minilm):
    with pytest.raises(nl.InputError, match="one thing"):
        minilm.trace("a", source="b")


def test_source_and_target_on_a_model_with_one_side(minilm):
    with pytest.raises(nl.InputError, match="has one side"):
        minilm.trace(source="a", target="b")


def test_generation_from_a_model_that_cannot(minilm):
    with pytest.raises(nl.InputError, match="does not generate"):
        minilm.trace_generation("a")


@pytest.mark.parametrize(
    ("option", "value"), [("layers", 6), ("heads", [0, 12]), ("fields", ("weight",)), ("layers", [])]
)
def test_layers_heads_and_fields_that_do_not_exist(minilm, option, value):
    with pytest.raises(nl.InputError):
        minilm.trace("a", **{option: value})


def test_a_model_without_attention():
    class Plain(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.layer = torch.nn.Linear(3, 3)

        def forward(self, x):
            return self.layer(x)

    with pytest.raises(nl.ReconstructionError, match="no softmax attention was seen"):
        nl.load(Plain().eval(), probe={"x": torch.ones(1, 3)})


def test_padding_alone():
    lens = nl.load(bert().eval())
    with pytest.raises(nl.InputError, match="padding alone"):
        lens.trace({"input_ids": torch.ones(1, 3, dtype=torch.long), "attention_mask": torch.zeros(1, 3)})


def test_options_of_loading_do_not_touch_an_object():
    model = GPT2Model(GPT2Config(n_embd=8, n_layer=1, n_head=2, vocab_size=20)).eval()
    with pytest.raises(nl.LoadError, match="not for a model object"):
        nl.load(model, dtype=torch.float16)
    assert next(model.parameters()).dtype == torch.float32
