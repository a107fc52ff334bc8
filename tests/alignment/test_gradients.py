"""Saliency is what a slow loop over target pieces finds: one piece, one sentence, one noisy copy at a time."""

import math
import threading

import numpy as np
import pytest
import torch
from transformers import (
    BartConfig,
    BartForConditionalGeneration,
    BertConfig,
    BertModel,
    MarianConfig,
    MarianMTModel,
    T5Config,
    T5ForConditionalGeneration,
)
from translators import PAIRS, PIECES, tokens

import normlens as nl
from normlens.alignment.gradients import SHARD, GradientError, each_saliency, forced

PLAIN = {"samples": 0}
SMOOTH = {"samples": 3, "noise": 0.3, "seed": 5}
FAMILIES = {
    "marian": (
        MarianMTModel,
        MarianConfig(
            d_model=8,
            scale_embedding=True,
            encoder_layers=2,
            decoder_layers=2,
            encoder_attention_heads=2,
            decoder_attention_heads=2,
            encoder_ffn_dim=8,
            decoder_ffn_dim=8,
            max_position_embeddings=40,
            init_std=0.4,
            vocab_size=len(PIECES),
            pad_token_id=0,
            eos_token_id=1,
            decoder_start_token_id=0,
            forced_eos_token_id=None,
        ),
    ),
    "bart": (
        BartForConditionalGeneration,
        BartConfig(
            d_model=8,
            scale_embedding=True,
            encoder_layers=2,
            decoder_layers=2,
            encoder_attention_heads=2,
            decoder_attention_heads=2,
            encoder_ffn_dim=8,
            decoder_ffn_dim=8,
            max_position_embeddings=40,
            init_std=0.4,
            vocab_size=len(PIECES),
            pad_token_id=0,
            bos_token_id=1,
            eos_token_id=1,
            decoder_start_token_id=1,
            forced_eos_token_id=None,
        ),
    ),
    "t5": (
        T5ForConditionalGeneration,
        T5Config(
            d_model=8,
            d_kv=4,
            d_ff=8,
            num_layers=2,
            num_heads=2,
            initializer_factor=2.0,
            vocab_size=len(PIECES),
            pad_token_id=0,
            eos_token_id=1,
            decoder_start_token_id=0,
        ),
    ),
}


@pytest.fixture(scope="module")
def tokenizer():
    """Words of one or two pieces, and </s> at the end."""
    return tokens()


@pytest.fixture(params=FAMILIES)
def lens(request, tokenizer):
    """In double precision: g · x of T5 is a small difference of large numbers."""
    kind, config = FAMILIES[request.param]
    torch.manual_seed(0)
    return nl.load(kind(config).eval().double(), tokenizer)


@pytest.fixture
def marian(tokenizer):
    kind, config = FAMILIES["marian"]
    torch.manual_seed(0)
    return nl.load(kind(config).eval(), tokenizer)


def spelled(lens, words):
    encoding = lens.subject.tokenizer(" ".join(words))
    return encoding["input_ids"], encoding.word_ids()


def embeddings(model, ids):
    """What the encoder takes as inputs_embeds: Marian multiplies behind its table, Bart in it, T5 nowhere."""
    factor = math.sqrt(model.config.d_model) if isinstance(model, MarianMTModel) else 1.0
    with torch.no_grad():
        return model.get_encoder().get_input_embeddings()(torch.tensor([ids])) * factor


def chance(model, embedded, prefix, piece):
    given = torch.tensor([[model.config.decoder_start_token_id, *prefix]])
    return model(inputs_embeds=embedded, decoder_input_ids=given).logits[0, -1].log_softmax(dim=-1)[piece]


def slow(lens, pair, *, samples, noise=0.0, seed=0):
    """Both forms, by the definitions."""
    model, ((source, source_words), (target, target_words)) = lens.subject.model, [spelled(lens, side) for side in pair]
    clean, draw = embeddings(model, source), np.random.default_rng([seed, *source])
    pieces = {form: np.zeros((len(target), len(source))) for form in ("li", "ding")}
    for _ in range(max(samples, 1)):
        embedded = clean
        if samples:
            normal = torch.from_numpy(draw.standard_normal((len(source), clean.shape[-1]), dtype=np.float32))
            embedded = clean + noise * (clean.max() - clean.min()) * normal.to(clean)
        for step, piece in enumerate(target):
            leaf = embedded.clone().requires_grad_()
            (slope,) = torch.autograd.grad(chance(model, leaf, target[:step], piece), leaf)
            rows = {"li": slope[0].abs().mean(dim=1), "ding": (slope[0] * clean[0]).sum(dim=1).clamp(min=0)}
            for form, row in rows.items():
                pieces[form][step] += (row / max(float(row.sum()), 1e-30)).numpy() / max(samples, 1)
    maps = {form: np.zeros((len(pair[1]), len(pair[0]) + 1)) for form in pieces}
    for form, cells in pieces.items():
        for step, row in enumerate(target_words):
            for place, column in enumerate(source_words):
                if row is not None:
                    maps[form][row, -1 if column is None else column] += cells[step, place] / target_words.count(row)
    return maps


def same(one, other, tolerance=1e-6):
    assert one.keys() == other.keys() == {"li", "ding"}
    for form in one:
        np.testing.assert_allclose(one[form], other[form], atol=tolerance, err_msg=form)


def marks(model):
    """Everything about a model that a gradient could leave a mark on."""
    return {
        "hooks": [
            (len(m._forward_hooks), len(m._forward_pre_hooks), len(m._backward_hooks), "forward" in vars(m))
            for m in model.modules()
        ],
        "parameters": {name: (id(p), p.requires_grad, p.grad, p._version) for name, p in model.named_parameters()},
        "training": [module.training for module in model.modules()],
    }


@pytest.mark.parametrize("options", [PLAIN, SMOOTH], ids=["plain", "smooth"])
def test_every_cell_is_what_a_slow_loop_finds(lens, options):
    for pair, found in zip(PAIRS, each_saliency(lens, PAIRS, **options), strict=True):
        same(found, slow(lens, pair, **options))


def test_ding_is_the_slope_along_a_weight_on_each_embedding(marian):
    """By finite differences, without any gradient: each embedding a little longer and a little shorter."""
    pair = ("das ein alt".split(), "the".split())
    (found,) = each_saliency(marian, [pair], **PLAIN)
    model, (source, _), (target, _) = marian.subject.model.double(), *(spelled(marian, side) for side in pair)
    clean, row = embeddings(model, source), []
    for place in range(len(source)):
        step = torch.zeros(len(source), 1, dtype=torch.float64)
        step[place] = 1e-4
        ends = [chance(model, clean * (1 + sign * step), [], target[0]).item() for sign in (1, -1)]
        row.append(max(0.0, (ends[0] - ends[1]) / 2e-4))
    assert 0 < sum(value > 0 for value in row) < len(row)
    np.testing.assert_allclose(found["ding"][0], np.array(row) / sum(row), atol=1e-4)


def test_rows_are_shares(lens):
    for found in each_saliency(lens, PAIRS, **SMOOTH):
        np.testing.assert_allclose(found["li"].sum(axis=1), 1, atol=1e-5)
        assert (found["ding"] >= 0).all()
        assert (found["ding"].sum(axis=1) <= 1 + 1e-5).all()


def test_the_seed_decides_the_noise_and_nothing_else_does(marian):
    once, again, other = (list(each_saliency(marian, PAIRS, samples=2, seed=seed)) for seed in (1, 1, 2))
    backwards = list(each_saliency(marian, PAIRS[::-1], samples=2, seed=1))[::-1]
    for first, second, third, elsewhere in zip(once, again, other, backwards, strict=True):
        same(first, second, 0)
        same(first, elsewhere, 1e-5)
        assert np.abs(first["li"] - third["li"]).max() > 1e-3


def test_without_noise_or_samples_it_is_plain_saliency(marian):
    plain = list(each_saliency(marian, PAIRS, samples=0))
    for options in ({"samples": 30, "noise": 0.0}, {"samples": 1, "noise": 0.0, "seed": 3}, {"samples": 0, "seed": 9}):
        for one, other in zip(plain, each_saliency(marian, PAIRS, **options), strict=True):
            same(one, other, 0)


@pytest.mark.parametrize("tokens", [1, 17, 60, 100_000])
def test_the_size_of_batches_changes_nothing(lens, tokens):
    whole = each_saliency(lens, PAIRS, **SMOOTH)
    for one, other in zip(whole, each_saliency(lens, PAIRS, batch_tokens=tokens, **SMOOTH), strict=True):
        same(one, other)


def test_what_cannot_be_read_is_left_out_by_its_number(marian):
    pairs = [PAIRS[1]] * (SHARD + 2)
    pairs[1], pairs[SHARD + 1] = ([], ["the"]), (["das"] * 50, ["the"])
    said = {}
    found = list(each_saliency(marian, pairs, samples=0, left_out=said.__setitem__))
    assert [index for index, maps in enumerate(found) if maps is None] == [1, SHARD + 1]
    assert said == {1: "the source is empty", SHARD + 1: "the source has 51 pieces, the model takes 40"}
    assert list(each_saliency(marian, [])) == []


def test_the_model_is_left_as_it_was_found(lens):
    frozen = next(lens.subject.model.parameters()).requires_grad_(False)
    before = marks(lens.subject.model)
    list(each_saliency(lens, PAIRS, **SMOOTH))
    assert marks(lens.subject.model) == before
    assert not frozen.requires_grad


@pytest.mark.parametrize("where", ["get_encoder", "get_decoder"])
def test_the_model_is_left_as_it_was_found_after_an_exception(lens, where):
    def fail(*_):
        raise KeyboardInterrupt

    model = lens.subject.model
    handle = list(getattr(model, where)().modules())[-1].register_forward_hook(fail)
    before = marks(model)
    with pytest.raises(KeyboardInterrupt):
        list(each_saliency(lens, PAIRS, **PLAIN))
    assert marks(model) == before
    handle.remove()
    same(next(each_saliency(lens, PAIRS, **PLAIN)), slow(lens, PAIRS[0], **PLAIN))


@pytest.mark.parametrize("mode", [torch.no_grad, torch.inference_mode])
def test_a_caller_without_gradients_gets_the_same(lens, mode):
    with mode():
        found = list(each_saliency(lens, PAIRS, **SMOOTH))
        assert not torch.is_grad_enabled()
    for one, other in zip(found, each_saliency(lens, PAIRS, **SMOOTH), strict=True):
        same(one, other, 0)


def test_the_short_way_through_the_output_layer_is_the_long_way(lens, monkeypatch):
    short = list(each_saliency(lens, PAIRS, **SMOOTH))
    monkeypatch.setattr(lens.subject.model, "get_output_embeddings", lambda: None)
    for one, other in zip(short, each_saliency(lens, PAIRS, **SMOOTH), strict=True):
        same(one, other)


def test_other_threads_see_no_noise(marian):
    """One thread runs the plain model while another changes embeddings: it gets what it would get alone."""
    model, ids = marian.subject.model, torch.tensor([[3, 6, 7, 1]])
    inputs = {"input_ids": ids, "attention_mask": torch.ones_like(ids)}
    outputs = {"decoder_input_ids": torch.tensor([[0, 10]]), "decoder_attention_mask": torch.ones(1, 2, dtype=int)}
    alone, seen = model(**inputs, **outputs).logits, []

    def change(clean):
        thread = threading.Thread(target=lambda: seen.append(model(**inputs, **outputs).logits))
        thread.start()
        thread.join()
        return clean + 1

    forced(model, inputs | outputs, torch.tensor([[10, 1]]), change)
    assert torch.equal(seen[0], alone)


def test_a_model_with_one_side_is_refused_at_once(tokenizer):
    config = BertConfig(
        hidden_size=8, num_hidden_layers=1, num_attention_heads=2, intermediate_size=8, vocab_size=len(PIECES)
    )
    lens = nl.load(BertModel(config).eval(), tokenizer)
    with pytest.raises(nl.InputError, match="not a sequence-to-sequence model"):
        each_saliency(lens, PAIRS)


def test_a_model_without_its_output_layer_is_refused(marian, tokenizer):
    bare = nl.load(marian.subject.model.model, tokenizer)
    before = marks(bare.subject.model)
    with pytest.raises(GradientError, match="no output layer"):
        next(each_saliency(bare, PAIRS))
    assert marks(bare.subject.model) == before


def test_a_model_in_training_is_refused_at_once(marian):
    marian.subject.model.train()
    with pytest.raises(GradientError, match="training mode"):
        each_saliency(marian, PAIRS)


@pytest.mark.parametrize("wrong", [{"samples": -1}, {"noise": -0.1}, {"noise": math.nan}, {"seed": -1}])
def test_impossible_settings_are_refused_at_once(marian, wrong):
    with pytest.raises(GradientError, match="not negative"):
        each_saliency(marian, PAIRS, **wrong)
