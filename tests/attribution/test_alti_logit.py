"""ALTI-Logit: against every pair of tokens written out, and what it adds up to."""

from copy import deepcopy

import pytest
import slow_alti_logit as slow
import torch
from small_models import IDS, asked, bert, gpt2, llama, random, rotated_by
from transformers import BertForMaskedLM, BloomConfig, BloomForCausalLM, GPT2ForSequenceClassification

from normlens.attribution.alti_logit import ROWS

COMPUTE = ROWS[0].compute


def checked(found, expected):
    torch.testing.assert_close(found.values.double(), expected.detach(), rtol=1e-4, atol=1e-5)
    assert float(found.values.sum()) + found.unowned == pytest.approx(found.adds_up_to, abs=1e-5)


@pytest.mark.parametrize("row", [-1, 3])
def test_gpt2_is_that_written_out(row):
    model = gpt2()
    expected = slow.gpt2(deepcopy(model).double(), IDS[0], row, 1)
    checked(COMPUTE(asked(model, {"input_ids": IDS}, row=row)), expected)


def test_llama_is_that_written_out():
    model = llama()
    exact = deepcopy(model).double()
    expected = slow.llama(exact, IDS[0], -1, 1, rotated_by(exact))
    checked(COMPUTE(asked(model, {"input_ids": IDS}, row=-1)), expected)


def test_what_no_token_owns_is_what_biases_and_feed_forward_blocks_add():
    """With both of them nothing, the scores alone are the logit."""
    model = gpt2()
    with torch.no_grad():
        for layer in model.transformer.h:
            layer.mlp.c_proj.weight.zero_()
            for bias in (layer.mlp.c_proj.bias, layer.attn.c_proj.bias):
                bias.zero_()
        model.transformer.ln_f.bias.zero_()
    found = COMPUTE(asked(model, {"input_ids": IDS}, row=-1))
    assert found.unowned == pytest.approx(0, abs=1e-5)
    assert found.adds_up_to == pytest.approx(float(model(IDS).logits[0, -1, 1].detach()), abs=1e-5)


def test_padding_changes_nothing():
    model = gpt2(pad_token_id=0, model=GPT2ForSequenceClassification)
    padded = {"input_ids": torch.cat([IDS, torch.zeros(1, 3, dtype=torch.long)], 1)}
    padded["attention_mask"] = (padded["input_ids"] > 0).long()
    alone, beside = (COMPUTE(asked(model, inputs)) for inputs in ({"input_ids": IDS}, padded))
    torch.testing.assert_close(beside.values, alone.values, rtol=1e-4, atol=1e-5)


def test_a_head_with_an_activation_is_shared_out():
    found = COMPUTE(asked(bert(BertForMaskedLM), {"input_ids": IDS}, row=2))
    assert bool(found.values.any())
    assert float(found.values.sum()) + found.unowned == pytest.approx(found.adds_up_to, abs=1e-5)


def test_heads_may_share_the_axis_of_the_texts():
    """Bloom multiplies (text · head, query, key) with (text · head, key, size)."""
    model = random(BloomForCausalLM(BloomConfig(hidden_size=16, n_layer=2, n_head=2, vocab_size=40)))
    (method,) = ROWS
    found = method.compute(asked(model, {"input_ids": IDS}, row=6))
    logit = model(IDS).logits[0, 6, 1].item()
    assert found.values.sum().item() + found.unowned == pytest.approx(logit, abs=1e-4)
    assert found.values.abs().min() > 0
