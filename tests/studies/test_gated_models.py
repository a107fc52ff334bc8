"""Studies of models that gate, scale or normalise what their heads write: contributions for every pair, no ‖f‖."""

import copy

import numpy as np
import pytest
import torch
from transformers import AutoModelForCausalLM

import normlens as nl
from normlens import probes

NEED_F = ("dispersion", "correlation", "frequency", "forgetting")
OTHERS = ("categories", "sinks", "similarity", "distances", "patterns")


@pytest.fixture(scope="module")
def loaded(minilm):
    def load(kind):
        config = copy.deepcopy(probes.build(kind).model.config)
        config.vocab_size, config.pad_token_id, config.bos_token_id, config.eos_token_id = 30522, 0, None, None
        torch.manual_seed(0)
        return nl.load(AutoModelForCausalLM.from_config(config).eval(), minilm.subject.tokenizer)

    return load


@pytest.mark.parametrize("kind", ["afmoe", "bitnet"])
def test_what_needs_the_norm_of_f_says_why_it_has_none(loaded, texts, kind):
    shown = nl.report(loaded(kind), texts, studies=(*NEED_F, *OTHERS)).show()
    assert "‖f(x)‖ does not exist in self L0" in shown
    assert "before its output matrix" in shown
    for name in NEED_F:
        assert f"The study '{name}' counted nothing." in shown
    for name in OTHERS:
        assert f"The study '{name}' counted nothing." not in shown


def test_a_scale_for_each_head_leaves_every_study(loaded, texts):
    shown = nl.report(loaded("granite_swa"), texts, studies=(*NEED_F, *OTHERS)).show()
    assert "does not exist" not in shown
    assert "counted nothing" not in shown


@pytest.mark.parametrize("kind", ["afmoe", "bitnet", "granite_swa"])
def test_shares_of_contributions_are_those_of_every_pair(loaded, texts, kind):
    lens = loaded(kind)
    found = nl.report(lens, texts, studies=("categories",), length=128).findings.results["categories"]["self"]
    per_text = [
        [block.weighted_norms[0].double().sum().item() / block.weights.shape[2] / block.weights.shape[1]
         for block in lens.trace(text).blocks]
        for text in texts
    ]  # fmt: skip
    ours = np.nansum(found.norms, axis=0).mean(axis=1)
    np.testing.assert_allclose(ours, np.mean(per_text, axis=0), rtol=1e-5)
