"""Tokens are removed many sets at a time as they would be one at a time, by hand."""

import pytest
import torch
from transformers import (
    BertConfig,
    BertForSequenceClassification,
    BloomConfig,
    BloomForCausalLM,
    GPT2Config,
    GPT2LMHeadModel,
    LlamaConfig,
    LlamaForCausalLM,
    MarianConfig,
    MarianMTModel,
    OPTConfig,
    OPTForCausalLM,
)

import normlens as nl
from normlens.attribution import REMOVALS, AttributionError, Question, logits_without, without
from normlens.models import ready

IDS, FED = [2, 7, 4, 9, 5, 3], [1, 8, 6, 4]
SMALL = {"vocab_size": 12, "hidden_size": 12, "num_hidden_layers": 2, "num_attention_heads": 3, "intermediate_size": 16}


def bert():
    return BertForSequenceClassification(BertConfig(**SMALL, num_labels=3, initializer_range=0.4))


def llama():
    return LlamaForCausalLM(LlamaConfig(**SMALL, initializer_range=0.4))


def gpt2():
    return GPT2LMHeadModel(GPT2Config(vocab_size=12, n_embd=12, n_layer=2, n_head=3, initializer_range=0.4))


def marian():
    sides = {f"{side}_{name}": number for side in ("encoder", "decoder") for name, number in SIZES.items()}
    return MarianMTModel(MarianConfig(vocab_size=12, d_model=12, init_std=0.4, scale_embedding=True, **sides, **ENDS))


SIZES = {"layers": 2, "attention_heads": 3, "ffn_dim": 16}
ENDS = {"pad_token_id": 11, "eos_token_id": 0, "decoder_start_token_id": 11}
MODELS = {"bert": bert, "llama": llama, "gpt2": gpt2, "marian": marian}


@pytest.fixture(scope="module", params=MODELS)
def question(request):
    torch.manual_seed(1)
    lens = nl.load(MODELS[request.param]().eval())
    inputs = {"input_ids": torch.tensor([IDS])}
    row = {"bert": None, "marian": 2}.get(request.param, 4)
    if request.param == "marian":
        inputs["decoder_input_ids"] = torch.tensor([FED])
    return Question(lens, ready(lens.subject, inputs), row, ((2, 1.0), (1, -1.0)))


def some_sets(question):
    """Nothing, every single token but the one that is read, and pairs of them."""
    read = [] if question.row is None else [question.sources - (question.written or len(IDS)) + question.row]
    read += [] if question.row is None else list(range(read[0] + 1, question.sources))
    free = [place for place in range(question.sources) if place not in (*read, 0)]
    sets = torch.zeros(1 + 2 * len(free), question.sources, dtype=torch.bool)
    for number, place in enumerate(free):
        sets[1 + number, place] = True
        sets[1 + len(free) + number, [place, free[number - 2]]] = True
    return sets


def by_hand(question, gone, by):
    """One set at a time."""
    model, fed = question.watcher.subject.model, question.written is not None
    ids = [torch.tensor(IDS), *([torch.tensor(FED)] if fed else [])]
    names = ["input_ids", "decoder_input_ids"][: len(ids)]
    parts = gone.split([len(part) for part in ids])
    row = question.row
    if by == "delete":
        row = None if row is None else int((~parts[-1][: row + 1]).sum()) - 1
        inputs = {name: part[~out][None] for name, part, out in zip(names, ids, parts, strict=True)}
    else:
        inputs = {name: part[None] for name, part in zip(names, ids, strict=True)}
    if by == "mask":
        masks = ["attention_mask", "decoder_attention_mask"]
        inputs |= {name: (~out).long()[None] for name, out in zip(masks, parts, strict=False)}
    if by == "mean":
        tables = [model.get_encoder().embed_tokens, model.get_decoder().embed_tokens] if fed else []
        tables = tables or [model.get_input_embeddings()]
        embedded = [table(part) for table, part in zip(tables, ids, strict=True)]
        for table, one, out in zip(tables, embedded, parts, strict=True):
            one[out] = table(torch.arange(12)).mean(dim=0)
        if fed:
            embedded[0] *= model.get_encoder().embed_scale  # which the decoder does by itself
        inputs = {"inputs_embeds": embedded[0][None]} | ({"decoder_inputs_embeds": embedded[1][None]} if fed else {})
    logits = model(**inputs).logits[0]
    return logits if row is None else logits[row]


@pytest.mark.parametrize("by", ["mask", "delete", "mean"])
def test_many_sets_are_removed_as_each_alone(question, by):
    sets = some_sets(question)
    found = logits_without(question, sets, by=by)
    with torch.no_grad():
        for gone, row in zip(sets, found, strict=True):
            torch.testing.assert_close(row, by_hand(question, gone, by), atol=1e-5, rtol=1e-4)
    assert found[1:].sub(found[0]).abs().amax(dim=1).min() > 1e-4  # each removal changes something


def test_what_is_explained_is_the_difference_of_the_wanted_logits(question):
    sets = some_sets(question)[:3]
    logits = logits_without(question, sets)
    torch.testing.assert_close(without(question, sets), logits[:, 2] - logits[:, 1])


def test_tokens_after_the_row_that_is_read_change_nothing(question):
    if question.row is None:
        pytest.skip("an encoder reads every token")
    sets = torch.zeros(2, question.sources, dtype=torch.bool)
    sets[1, -1] = True
    for by in ("mask", "delete", "mean"):
        plain, without_last = logits_without(question, sets, by=by)
        torch.testing.assert_close(plain, without_last, atol=1e-5, rtol=1e-5)


def test_the_mask_token_takes_the_place_of_what_is_removed(minilm):
    torch.manual_seed(0)
    model = BertForSequenceClassification(BertConfig(**(SMALL | {"vocab_size": 30522}), initializer_range=0.4)).eval()
    lens = nl.load(model, minilm.subject.tokenizer)
    inputs = dict(minilm.subject.tokenizer("not a bad film", return_tensors="pt"))
    question = Question(lens, ready(lens.subject, inputs), None, ((0, 1.0),))
    gone = torch.tensor([[False, True, False, True, False, False]])
    ids = inputs["input_ids"].masked_fill(gone, minilm.subject.tokenizer.mask_token_id)
    with torch.no_grad():
        expected = model(**(inputs | {"input_ids": ids})).logits
    torch.testing.assert_close(logits_without(question, gone, by="mask_token"), expected)


class Forgetful(BertForSequenceClassification):
    """A classifier whose head reads the mean over all tokens, hidden ones too."""

    def forward(self, input_ids=None, attention_mask=None, **inputs):
        states = self.bert(input_ids, attention_mask=attention_mask, **inputs).last_hidden_state
        return type("Output", (), {"logits": self.classifier(states.mean(dim=1))})()


def test_a_model_that_reads_hidden_tokens_is_refused():
    torch.manual_seed(0)
    model = Forgetful(BertConfig(**SMALL, initializer_range=0.4)).eval()
    lens = nl.load(BertForSequenceClassification(BertConfig(**SMALL)).eval())
    lens.subject = type(lens.subject)(model, None, "forgetful", "0")
    question = Question(lens, ready(lens.subject, {"input_ids": torch.tensor([IDS])}), None, ((0, 1.0),))
    gone = torch.tensor([[False, True, False, False, False, False]])
    with pytest.raises(AttributionError, match="hidden from attention still change the logits"):
        logits_without(question, gone, by="mask")
    assert logits_without(question, gone, by="delete").shape == (1, 2)


def test_what_cannot_be_removed_is_refused(question):
    everything = torch.ones(1, question.sources, dtype=torch.bool)
    for by in ("mask", "delete"):
        with pytest.raises(AttributionError, match="no token would be left"):
            without(question, everything, by=by)
    with pytest.raises(AttributionError, match="no mask token"):
        without(question, everything, by="mask_token")
    with pytest.raises(AttributionError, match="sets are of"):
        without(question, everything[:, :-1])
    with pytest.raises(AttributionError, match="choose among mask") as refused:
        without(question, everything, by="nothing")
    assert all(name in refused.value.do for name in REMOVALS)


@pytest.mark.parametrize("name", ["opt", "bloom"])
def test_a_model_that_counts_positions_by_its_mask_is_refused(name):
    """What stands behind a hidden token would move up, as if the token had been deleted."""
    torch.manual_seed(0)
    ids = {"pad_token_id": 0, "bos_token_id": 1, "eos_token_id": 2, "vocab_size": 20}
    size = {"hidden_size": 16, "num_hidden_layers": 2, "num_attention_heads": 2}
    models = {
        "opt": lambda: OPTForCausalLM(OPTConfig(**size, **ids, word_embed_proj_dim=16, ffn_dim=24, init_std=0.5)),
        "bloom": lambda: BloomForCausalLM(
            BloomConfig(hidden_size=16, n_layer=2, n_head=2, **ids, initializer_range=0.5)
        ),
    }
    lens = nl.load(models[name]().eval())
    with pytest.raises(nl.NormlensError, match="counts positions by its mask"):
        lens.attribute([[5, 9, 7, 8, 6, 12]], by="leave_one_out")
    lens.attribute([[5, 9, 7, 8, 6, 12]], by="leave_one_out_deleted")


def test_rounding_is_not_taken_for_positions_that_move():
    """In half precision hiding and deleting a token hardly differ."""
    torch.manual_seed(0)
    lens = nl.load(bert().to(torch.bfloat16).eval())
    lens.attribute([IDS], by="leave_one_out")
