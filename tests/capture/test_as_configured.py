"""The model that is proved is the model as the user configured it, with the attention the user chose."""

import threading

import pytest
import torch
from transformers import AttentionInterface, AttentionMaskInterface
from transformers.integrations.sdpa_attention import sdpa_attention_forward
from transformers.masking_utils import sdpa_mask

import normlens as nl
from normlens import probes
from normlens.capture import examine


def scores(query, key, attention_mask, scaling):
    masked = query @ key.mT * scaling
    if attention_mask is None:
        return masked
    added = torch.zeros(attention_mask.shape).masked_fill(~attention_mask, -1e9)
    return masked + (added if attention_mask.dtype == torch.bool else attention_mask)


def sharper(module, query, key, value, attention_mask, scaling=None, dropout=0.0, **_):
    """Written in torch: twice as sharp as eager attention."""
    weights = torch.softmax(2 * scores(query, key, attention_mask, scaling or query.shape[-1] ** -0.5), -1)
    return (weights @ value).transpose(1, 2).contiguous(), weights


class Kernel(torch.autograd.Function):
    """What runs inside is no torch call that anybody can watch."""

    @staticmethod
    def forward(ctx, module, query, key, value, mask, factor, options):
        with torch._C.DisableTorchFunction():
            return sdpa_attention_forward(module, query * factor, key, value, mask, **options)[0]


def kernel(factor):
    def opaque(module, query, key, value, attention_mask, **options):
        options = {name: options[name] for name in ("scaling", "dropout", "is_causal") if name in options}
        return Kernel.apply(module, query, key, value, attention_mask, factor, options), None

    return opaque


@pytest.fixture
def bert():
    built = probes.build("bert")
    added = {"sharper": sharper, "opaque": kernel(1.0), "opaque_sharper": kernel(2.0)}
    for name, function in added.items():
        AttentionInterface.register(name, function)
        AttentionMaskInterface.register(name, sdpa_mask)
    yield built
    for name in added:
        del AttentionInterface._global_mapping[name]
        del AttentionMaskInterface._global_mapping[name]


def test_attention_that_a_user_wrote_in_torch_is_read_itself(bert):
    bert.model.set_attn_implementation("sharper")
    inputs = bert.probes[0].inputs
    lens = nl.load(bert.model, probe=inputs)
    assert lens.examination.exact
    assert lens.examination.stand_in is None
    with torch.no_grad():
        own = bert.model(**inputs, output_attentions=True).attentions
    for block, expected in zip(lens.trace(inputs).blocks, own, strict=True):
        torch.testing.assert_close(block.weights[0], expected[0])
    assert [block.own for block in lens.examination.blocks] == ["agrees", "agrees"]


def test_a_stand_in_is_compared_where_the_residual_hides_nothing(bert):
    """Small weights make the output nearly the residual: what W_O returns still differs."""
    with torch.no_grad():
        for layer in bert.model.encoder.layer:
            for matrix in (layer.attention.self.query, layer.attention.self.key, layer.attention.output.dense):
                matrix.weight.mul_(0.02)
    bert.model.set_attn_implementation("opaque_sharper")
    examination = examine(bert.model, bert.probes[0].inputs)
    assert not examination.exact
    assert examination.stand_in is None
    bert.model.set_attn_implementation("opaque")
    lens = nl.load(bert.model, probe=bert.probes[0].inputs)
    assert lens.examination.stand_in == "eager"
    assert "attention:eager in place of its own" in str(lens.signature)


def test_attention_that_replaces_a_shipped_one_is_the_user_s(bert):
    own = AttentionInterface._global_mapping["sdpa"]
    bert.model.set_attn_implementation("sdpa")
    try:
        AttentionInterface.register("sdpa", kernel(2.0))
        with pytest.raises(nl.ReconstructionError, match=r"'sdpa' cannot be read[\s\S]*allowed"):
            nl.load(bert.model, probe=bert.probes[0].inputs)
    finally:
        AttentionInterface.register("sdpa", own)


def test_eager_attention_stands_in_where_its_output_agrees(bert):
    bert.model.set_attn_implementation("opaque")
    lens = nl.load(bert.model, probe=bert.probes[0].inputs)
    assert lens.examination.stand_in == "eager"
    assert lens.examination.exact
    assert len(lens.trace(bert.probes[0].inputs).blocks) == 2
    assert bert.model.config._attn_implementation == "opaque"


def test_a_stand_in_that_changes_the_output_is_refused_with_both_numbers(bert):
    bert.model.set_attn_implementation("opaque_sharper")
    with pytest.raises(nl.ReconstructionError, match=r"'opaque_sharper' cannot be read[\s\S]*e-\d\d \(allowed 1e-04\)"):
        nl.load(bert.model, probe=bert.probes[0].inputs)
    assert bert.model.config._attn_implementation == "opaque_sharper"


def test_a_stand_in_must_agree_in_every_pass(bert):
    bert.model.set_attn_implementation("opaque")
    lens = nl.load(bert.model, probe=bert.probes[0].inputs)
    bert.model.set_attn_implementation("opaque_sharper")
    with pytest.raises(nl.NormlensError, match=r"stands in for 'opaque_sharper'[\s\S]*differs"):
        lens.trace(bert.probes[0].inputs)


def test_a_user_s_attention_without_a_mask_is_proved_as_it_runs(bert):
    """transformers gives no mask to an implementation that has none registered, so padding is attended to."""
    del AttentionMaskInterface._global_mapping["sharper"]
    bert.model.set_attn_implementation("sharper")
    try:
        examination = examine(bert.model, bert.probes[0].inputs)
    finally:
        AttentionMaskInterface.register("sharper", sdpa_mask)
    assert examination.exact
    assert examination.padding == "differs"


def test_threads_lose_no_block_while_another_attention_stands_in(bert):
    bert.model.set_attn_implementation("opaque")
    inputs = bert.probes[0].inputs
    lens = nl.load(bert.model, probe=inputs)
    expected = lens.trace(inputs).blocks[1].summed_norms
    counts, failures = [], []

    def traced():
        try:
            for _ in range(30):
                trace = lens.trace(inputs)
                counts.append(len(trace.blocks))
                assert torch.equal(trace.blocks[1].summed_norms, expected)
        except Exception as error:
            failures.append(repr(error))

    threads = [threading.Thread(target=traced) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert failures == []
    assert counts == [2] * 120
    assert bert.model.config._attn_implementation == "opaque"


def test_a_trace_within_a_trace_is_no_deadlock(bert):
    bert.model.set_attn_implementation("opaque")
    inputs = bert.probes[0].inputs
    lens = nl.load(bert.model, probe=inputs)
    assert lens.each_block(lambda _: len(lens.trace(inputs).blocks), inputs) == [2, 2]
    assert bert.model.config._attn_implementation == "opaque"


def test_an_examination_listens_to_its_own_thread_only(bert):
    """Another thread runs the same model all the while; names and verdicts stay those of this thread."""
    inputs, over, failures = bert.probes[0].inputs, threading.Event(), []

    def plain():
        while not over.is_set():
            try:
                with torch.no_grad():
                    bert.model(**inputs)
            except Exception as error:
                failures.append(repr(error))

    thread = threading.Thread(target=plain)
    thread.start()
    try:
        names = {tuple(block.name for block in examine(bert.model, inputs).blocks) for _ in range(10)}
    finally:
        over.set()
        thread.join()
    assert names == {tuple(f"encoder.layer.{layer}.attention.self" for layer in range(2))}
    assert failures == []
