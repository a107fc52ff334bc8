"""A text in a padded batch gives what it gives alone, and a model for which that is not so says it."""

import pytest
import torch
from torch import nn

from normlens import probes
from normlens.capture import examine


@pytest.mark.parametrize("kind", "bert roberta gpt2 llama t5 bart xlnet deberta clip".split())
def test_padding_changes_nothing(kind):
    built = probes.build(kind)
    examination = examine(built.model, built.probes[0].inputs)
    assert (examination.padding, examination.padding_reason) == ("equal", "")
    assert examination.batches


def test_on_either_side():
    built = probes.build("bert")
    inputs = {name: value.flip(1) for name, value in built.probes[0].inputs.items()}
    inputs["position_ids"] = (inputs["attention_mask"].cumsum(1) - 1).clamp_min(0)
    assert examine(built.model, inputs).batches


class Without(nn.Module):
    """A model that takes no mask, or takes one and ignores it."""

    def __init__(self, kind, **settings):
        super().__init__()
        self.inner = probes.build(kind).model
        self.config = self.inner.config
        self.config.pad_token_id = 0
        self.eval()


class Unmasked(Without):
    def forward(self, input_ids):
        return self.inner(input_ids)


class Ignoring(Without):
    def forward(self, input_ids, attention_mask):
        return self.inner(input_ids)


IDS = torch.tensor([[101, 102, 103, 104, 105], [106, 107, 108, 0, 0]])


@pytest.mark.parametrize("inputs", [{"input_ids": IDS}, {"input_ids": IDS, "attention_mask": (IDS != 0).long()}])
def test_a_model_that_reads_padding_as_tokens_is_found_out(inputs):
    examination = examine((Unmasked if len(inputs) == 1 else Ignoring)("bert"), inputs)
    assert examination.exact
    assert examination.padding == "differs"
    assert "other numbers than alone" in examination.padding_reason
    assert not examination.batches


def test_a_causal_model_needs_no_mask_for_padding_at_the_end():
    assert examine(Unmasked("gpt2"), {"input_ids": IDS}).batches


def test_inputs_that_are_no_batch_of_padded_texts_say_why():
    vit, bert = probes.build("vit"), probes.build("bert")
    assert examine(vit.model, vit.probes[0].inputs).padding_reason == "the probe holds no batch of texts"
    examination = examine(bert.model, {"input_ids": IDS[:1]})
    assert (examination.padding, examination.padding_reason) == ("not tried", "no text of the probe is padded")
    assert not examination.batches
