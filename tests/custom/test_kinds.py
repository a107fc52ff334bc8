"""What looks at what is told by where queries and keys come from, not by lengths."""

import pytest
import torch
from proving import check
from textbook import Expected, Textbook
from transformers import (
    BartConfig,
    BartForConditionalGeneration,
    MarianConfig,
    MarianMTModel,
    T5Config,
    T5ForConditionalGeneration,
)

import normlens as nl

SHARED = {"vocab_size": 60, "pad_token_id": 0, "bos_token_id": 1, "eos_token_id": 2, "decoder_start_token_id": 2}
BART = {"d_model": 8, "encoder_layers": 2, "decoder_layers": 2, "encoder_attention_heads": 2}
BART |= {"decoder_attention_heads": 2, "encoder_ffn_dim": 8, "decoder_ffn_dim": 8, "init_std": 0.5}
T5 = {"d_model": 8, "d_kv": 4, "d_ff": 8, "num_layers": 2, "num_decoder_layers": 2, "num_heads": 2}
TRANSLATORS = {
    "bart": lambda: BartForConditionalGeneration(BartConfig(**SHARED, **BART, max_position_embeddings=20)),
    "marian": lambda: MarianMTModel(MarianConfig(**SHARED, **BART, max_position_embeddings=20)),
    "t5": lambda: T5ForConditionalGeneration(T5Config(**SHARED, **T5)),
}
KINDS = {(kind, layer) for kind in ("encoder", "decoder", "cross") for layer in (0, 1)}


def translator(name, *, tied=False):
    with torch.random.fork_rng():
        torch.manual_seed(0)
        model = TRANSLATORS[name]().eval()
    model.set_attn_implementation("eager")
    if tied:
        for above, below in zip(model.get_decoder().layers, model.get_encoder().layers, strict=True):
            above.self_attn = below.self_attn
            above.self_attn.is_decoder = False
    return model


def pair(source, target):
    return {"input_ids": torch.arange(5, 5 + source)[None], "decoder_input_ids": torch.arange(30, 30 + target)[None]}


def each_once(attentions):
    """A module that stands in two places of a model is listed twice by transformers for one run."""
    return [one for one, before in zip(attentions, (None, *attentions), strict=False) if one is not before]


def agrees_with_the_model(trace, model, inputs):
    """Every block carries the weights that the model itself returns under that name."""
    with torch.no_grad():
        own = model(**inputs, output_attentions=True)
    returned = {kind: each_once(own[f"{kind}_attentions"]) for kind in ("encoder", "decoder", "cross")}
    assert {(block.kind, block.layer) for block in trace.blocks} == KINDS
    assert len(trace.blocks) == len(KINDS)
    for block in trace.blocks:
        torch.testing.assert_close(block.weights, returned[block.kind][block.layer])


@pytest.mark.parametrize("name", TRANSLATORS)
@pytest.mark.parametrize("probe", [pair(5, 5), pair(5, 3)], ids=["equal probe", "unequal probe"])
def test_cross_attention_is_told_also_when_source_and_target_are_equally_long(name, probe):
    model = translator(name)
    lens = nl.load(model, probe=probe)
    for inputs in (pair(5, 5), pair(4, 6), pair(4, 4)):
        agrees_with_the_model(lens.trace(inputs), model, inputs)


@pytest.mark.parametrize("probe", [pair(5, 5), pair(5, 3)], ids=["equal probe", "unequal probe"])
def test_a_decoder_that_shares_the_encoders_attention_is_still_the_decoder(probe):
    model = translator("bart", tied=True)
    lens = nl.load(model, probe=probe)
    for inputs in (pair(5, 5), pair(4, 6)):
        agrees_with_the_model(lens.trace(inputs), model, inputs)


class LooksElsewhere(Textbook):
    """Queries from x, keys and values from a memory."""

    def forward(self, x, memory):
        q, k, v = self.split(self.q(x)), self.split(self.k(memory)), self.split(self.v(memory))
        return x + self.close(self.mix(self.weigh(self.score(q, k)), v), x)

    def by_definition(self, x, memory):
        q, k, v = (self.split(part).double() for part in (self.q(x), self.k(memory), self.v(memory)))
        weights = torch.softmax(torch.einsum("bhid,bhjd->bhij", q, k) / self.dim**0.5, -1)
        sent = torch.einsum("bhjd,mhd->bhjm", v, self.out.weight.double().unflatten(1, (self.heads, self.dim)))
        return [Expected(weights, sent)]


@pytest.mark.parametrize("probe_length", [4, 7])
def test_looking_at_a_memory_as_long_as_the_text_is_looking_elsewhere(probe_length):
    model = LooksElsewhere()
    lens = nl.load(model, probe=_looks(4, probe_length))
    for inputs in (_looks(4, 4), _looks(4, 7)):
        (block,) = lens.trace(inputs).blocks
        assert (block.kind, block.layer) == ("cross", 0)
        assert block.src != block.tgt
        with torch.no_grad():
            check([block], model.by_definition(**inputs))


def test_looking_at_the_text_itself_under_another_name_is_decided_once():
    """The same tensor given twice: what it is called may be argued about, the numbers and the name stay."""
    model, inputs = LooksElsewhere(), _looks(4, 4)
    inputs["memory"] = inputs["x"]
    lens = nl.load(model, probe=_looks(4, 7))
    first, second = lens.trace(inputs).blocks[0], lens.trace(inputs).blocks[0]
    assert (first.kind, first.layer) == (second.kind, second.layer)
    with torch.no_grad():
        check([first], model.by_definition(**inputs))


def _looks(tgt, src):
    return Textbook.inputs((2, tgt)) | {"memory": Textbook.inputs((2, src), seed=5)["x"]}
