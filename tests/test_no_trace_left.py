"""The user's model is left exactly as it was found: after a trace, an exception, an interrupt, and in threads."""

import threading

import pytest
import torch
from transformers import AttentionInterface

import normlens as nl
from normlens import probes


def state(model):
    """Everything about a model that a tap could leave a mark on."""
    return {
        "training": [module.training for module in model.modules()],
        "hooks": [
            (len(m._forward_hooks), len(m._forward_pre_hooks), len(m._backward_hooks), "forward" in vars(m))
            for m in model.modules()
        ],
        "config": model.config.to_dict(),
        "implementation": model.config._attn_implementation,
        "parameters": {name: (id(p), p.requires_grad, p._version) for name, p in model.named_parameters()},
        "interface": dict(AttentionInterface()),
        "modes": torch.overrides._get_current_function_mode_stack(),
    }


@pytest.fixture
def built():
    return probes.build("bert")


def test_after_loading_and_tracing(built):
    before = state(built.model)
    inputs = built.probes[0].inputs
    keys = {name: (id(value), value.clone()) for name, value in inputs.items()}
    lens = nl.load(built.model)
    lens.trace(inputs)
    assert state(built.model) == before
    for name, (identity, value) in keys.items():
        assert id(inputs[name]) == identity
        assert torch.equal(inputs[name], value)


@pytest.mark.parametrize("error", [RuntimeError("boom"), KeyboardInterrupt()], ids=["exception", "interrupt"])
def test_after_an_exception_in_the_middle_of_the_model(built, error):
    lens, inputs = nl.load(built.model), built.probes[0].inputs
    layer = built.model.encoder.layer[1]

    def fail(*_):
        raise error

    handle = layer.register_forward_pre_hook(fail)
    before = state(built.model)
    with pytest.raises(type(error)):
        lens.trace(inputs)
    assert state(built.model) == before
    handle.remove()
    assert lens.trace(inputs).error < 1e-5


def test_an_interrupt_while_a_block_is_reduced(built):
    lens, before = nl.load(built.model), state(built.model)

    def stop(_):
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        lens.each_block(stop, built.probes[0].inputs)
    assert state(built.model) == before


def test_a_kernel_outside_torch_is_put_back(built, monkeypatch):
    """A model set to flash attention runs eager attention while it is watched, and flash attention afterwards."""
    lens = nl.load(built.model)
    built.model.config._attn_implementation = "flash_attention_2"
    trace = lens.trace(built.probes[0].inputs)
    assert built.model.config._attn_implementation == "flash_attention_2"
    assert trace.error < 1e-5


def test_threads_do_not_see_each_other(built):
    """One thread traces, another runs the plain model: both get what they would get alone."""
    lens, inputs = nl.load(built.model), built.probes[0].inputs
    with torch.no_grad():
        alone = built.model(**inputs).last_hidden_state
    expected = lens.trace(inputs).blocks[0].summed_norms
    failures = []

    def plain():
        for _ in range(20):
            with torch.no_grad():
                if not torch.equal(built.model(**inputs).last_hidden_state, alone):
                    failures.append("plain")

    def traced():
        for _ in range(20):
            if not torch.equal(lens.trace(inputs).blocks[0].summed_norms, expected):
                failures.append("traced")

    threads = [threading.Thread(target=job) for job in (plain, traced, traced)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert failures == []


def test_a_compiled_model_is_read_without_its_compiler(built):
    lens = nl.load(torch.compile(built.model))
    assert lens.trace(built.probes[0].inputs).error < 1e-5


def test_no_mark_of_the_tap_outlives_the_pass():
    class Caching(torch.nn.Module):
        def __init__(self):
            super().__init__()
            torch.manual_seed(0)
            self.attention = torch.nn.MultiheadAttention(8, 2, batch_first=True)
            self.register_buffer("seen", torch.zeros(1, 4, 8))
            self.eval()

        def forward(self, x):
            self.seen[:] = x
            return x + self.attention(x, x, x)[0]

    model, x = Caching(), torch.randn(1, 4, 8)
    lens = nl.load(model, probe={"x": x})
    lens.trace({"x": x})
    for tensor in (x, *model.buffers(), *model.parameters()):
        assert not [name for name in vars(tensor) if name.startswith("_normlens")]
