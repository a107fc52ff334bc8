"""Small random models and questions of them, for the methods that write a pass down as linear steps."""

import torch
from transformers import (
    BertConfig,
    BertForSequenceClassification,
    GPT2Config,
    GPT2LMHeadModel,
    LlamaConfig,
    LlamaForCausalLM,
)
from transformers.models.llama.modeling_llama import apply_rotary_pos_emb

from normlens import models
from normlens.attribution import Question
from normlens.lens import Lens

SIZES = {"hidden_size": 16, "num_hidden_layers": 3, "num_attention_heads": 2, "intermediate_size": 32}
SIZES |= {"vocab_size": 40}
IDS = torch.tensor([[5, 9, 31, 7, 22, 9, 13]])


def random(model):
    """Weights and biases far from those a model begins with, where every bias is 0."""
    generator = torch.Generator().manual_seed(1)
    with torch.no_grad():
        for parameter in model.parameters():
            noise = 0.25 * torch.randn(parameter.shape, generator=generator)
            parameter.copy_(noise if parameter.ndim > 1 else parameter + noise)
        for name, buffer in model.named_buffers():
            if name == "final_logits_bias":
                buffer.copy_(torch.randn(buffer.shape, generator=generator))
    return model.eval()


def bert(kind=BertForSequenceClassification, **more):
    return random(kind(BertConfig(**SIZES, num_labels=3, **more)))


def gpt2(model=GPT2LMHeadModel, **more):
    sizes = {"n_embd": 16, "n_layer": 3, "n_head": 2, "vocab_size": 40, "eos_token_id": 1, "bos_token_id": 1}
    return random(model(GPT2Config(**sizes, **more)))


def llama():
    return random(LlamaForCausalLM(LlamaConfig(**SIZES, num_key_value_heads=1)))


def rotated_by(model):
    """Turns queries and keys by their positions, and repeats the head that the keys share."""

    def rotated(query, key):
        cos, sin = model.model.rotary_emb(query[None], torch.arange(len(query))[None])
        turned = [x.unflatten(-1, (-1, 8)).transpose(0, 1)[None] for x in (query, key)]
        query, key = apply_rotary_pos_emb(*turned, cos, sin)
        return (x[0].expand(2, -1, -1).transpose(0, 1).flatten(1) for x in (query, key))

    return rotated


def asked(model, inputs, row=None, wanted=((1, 1.0),)):
    lens = Lens(models.subject(model))
    return Question(lens, models.ready(lens.subject, inputs), row, wanted)
