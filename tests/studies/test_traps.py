"""Tiny hand-made cases for what is easily got wrong."""

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from transformers import GptOssConfig, GptOssForCausalLM

import normlens as nl
from normlens.lens import Block
from normlens.signature import Signature
from normlens.statistics import Ranks
from normlens.studies import STUDIES, Constant, Facts, Group, Seen, StudyError, Sums, Tally, study
from normlens.studies.tally import SIZE

NAMES = ("a", "b", "other")
RUN = Facts(
    lens=None, model="made", corpus="made", signature=Signature(()), categories=NAMES, ranks=None, seed=0, length=9
)


def made(weights, norms, categories, *, queries=None, visible=None, layer=0):
    weights = torch.as_tensor(weights, dtype=torch.float32)
    batch, _, tgt, _ = weights.shape
    lengths = np.array(queries or [tgt] * batch)
    return Seen(
        run=RUN,
        block=Block(
            "self", layer, "made", tuple(range(weights.shape[1])), 0.0, "text", "text", {"weights": weights}, ()
        ),
        tgt=group(np.where(np.arange(tgt) < lengths[:, None], 0, -1)),
        src=group(np.array(categories)),
        weights=weights,
        visible=visible,
        norms=np.array(norms, np.float32),
        received=weights.sum(dim=2).numpy(),
        least=(weights if visible is None else weights.masked_fill(~visible[:, None], np.inf)).amin((0, 2, 3)).numpy(),
        most=weights.amax(dim=(0, 2, 3)).numpy(),
        number=0,
    )


def group(categories):
    """Tokens of these categories, -1 beyond the end of a sequence."""
    return Group(np.zeros_like(categories), categories, np.zeros(categories.shape, bool), (categories >= 0).sum(axis=1))


def counted(*blocks):
    sums = Sums({}, "categories", "self")
    counter = STUDIES["categories"].counter(Sums(sums.statistics, "categories"), RUN)
    for block in blocks:
        counter.see(block)
    return STUDIES["categories"].result(sums, RUN)


def test_queries_are_rows_and_keys_are_columns():
    """Every query attends to token 0 alone: its column holds the weight, not its row."""
    result = counted(made([[[[1.0, 0.0], [1.0, 0.0]]]], [[[2.0, 5.0]]], [[0, 1]]))
    assert result.weights[:, 0, 0].tolist() == [1.0, 0.0, 0.0]
    assert result.norms[:, 0, 0].tolist() == [2.0, 0.0, 0.0]


def test_two_tokens_of_a_category_receive_the_sum_and_have_the_mean_norm():
    result = counted(made([[[[0.5, 0.25, 0.25]] * 3]], [[[1.0, 2.0, 4.0]]], [[2, 1, 1]]))
    assert result.weights[1, 0, 0] == 0.5
    assert result.transformed[1, 0, 0] == 3.0
    assert result.tokens.tolist() == [0, 2, 1]


def test_weights_of_both_signs_cancel_in_the_weights_and_not_in_the_norms():
    result = counted(made([[[[1.0, 0.0], [-1.0, 2.0]]]], [[[3.0, 1.0]]], [[0, 1]]))
    assert result.weights[:, 0, 0].tolist() == [0.0, 1.0, 0.0]
    assert result.norms[:, 0, 0].tolist() == [3.0, 1.0, 0.0]


def test_every_sequence_counts_once_whatever_its_length():
    """A long sequence in which `a` receives nothing and a short one in which it receives all: half, not a fifth."""
    long = made([[[[0.0, 0.25, 0.25, 0.25, 0.25]] * 5]], [[[1.0] * 5]], [[0, 2, 2, 2, 2]])
    short = made([[[[1.0]]]], [[[1.0]]], [[0]])
    assert counted(long, short).weights[0, 0, 0] == 0.5


def test_a_sequence_without_the_category_does_not_poison_its_mean():
    """It counts as receiving nothing, and is left out of the mean of ‖f‖; nothing becomes NaN."""
    without = made([[[[1.0]]]], [[[9.0]]], [[2]])
    result = counted(made([[[[1.0]]]], [[[3.0]]], [[0]]), without)
    assert result.transformed[0, 0, 0] == 3.0
    assert result.weights[0, 0, 0] == 0.5
    assert result.sequences.tolist() == [1, 0, 1]
    assert np.isnan(result.transformed[1]).all()
    assert result.weights[1].tolist() == [[0.0]]


def test_padding_is_in_no_number():
    padded = made(
        [[[[0.5, 0.5, 0.0], [0.5, 0.5, 0.0], [0.0, 0.0, 0.0]]]],
        [[[1.0, 3.0, 0.0]]],
        [[0, 2, -1]],
        queries=[2],
        visible=torch.tensor([[[True, True, False], [True, True, False], [False, False, False]]]),
    )
    plain = made([[[[0.5, 0.5], [0.5, 0.5]]]], [[[1.0, 3.0]]], [[0, 2]])
    one, other = counted(padded), counted(plain)
    for part in ("weights", "norms", "transformed", "tokens"):
        np.testing.assert_array_equal(getattr(one, part), getattr(other, part))
    tallies = Tally(), Tally()
    for tally, block in zip(tallies, (padded, plain), strict=True):
        tally.add(block)
    assert {cell: t.pairs for cell, t in tallies[0].tables().items()} == {(0, 0): 2, (0, 2): 2}
    assert tallies[0].tables().keys() == tallies[1].tables().keys()


def random_block(random, *, batch, heads, length, spread, masked):
    weights = torch.softmax(torch.from_numpy(random.normal(size=(batch, heads, length, length)) * spread), -1).float()
    visible = None
    if masked:
        weights = weights.tril()
        visible = torch.ones(batch, length, length, dtype=torch.bool).tril()
    norms = random.lognormal(sigma=0.3, size=(batch, heads, length))
    return made(weights, norms, random.integers(0, 3, (batch, length)), visible=visible)


@pytest.mark.slow
@given(seed=st.integers(0, 9999), spread=st.sampled_from([1e-4, 0.5, 3.0, 30.0]), masked=st.booleans())
def test_a_tally_in_batches_is_the_table_of_all_its_pairs(seed, spread, masked):
    """Counting by arithmetic in boxes gives, number for number, what sorting all pairs at once gives."""
    random = np.random.default_rng(seed)
    blocks = [
        random_block(random, batch=int(random.integers(1, 5)), heads=2, length=int(n), spread=spread, masked=masked)
        for n in random.integers(1, 24, int(random.integers(1, 5)))
    ]
    tally = Tally()
    for index, block in enumerate(blocks):
        tally.add(block)
        if index % 2:
            tally = Tally(tally.tables())  # a run that was interrupted here
    for (head, category), table in tally.tables().items():
        norms, weights = [], []
        for block in blocks:
            chosen = np.broadcast_to((block.categories == category)[:, None], block.weights[:, head].shape)
            if block.visible is not None:
                chosen = chosen & block.visible.numpy()
            weights.append(block.weights[:, head].numpy()[chosen])
            norms.append(np.broadcast_to(block.norms[:, head][:, None], chosen.shape)[chosen])
        whole = Ranks.of(np.concatenate(norms), np.concatenate(weights), size=SIZE)
        for part in ("x_shift", "y_shift", "x_codes", "y_codes", "counts"):
            np.testing.assert_array_equal(getattr(table, part), getattr(whole, part))


@pytest.mark.slow
def test_the_number_of_tokens_in_a_batch_changes_nothing(minilm, texts):
    one, other = (study(minilm, texts, batch_tokens=tokens) for tokens in (1, 500))
    np.testing.assert_allclose(one["categories"]["self"].weights, other["categories"]["self"].weights, atol=1e-6)
    np.testing.assert_allclose(
        one["dispersion"]["self"].transformed.mean, other["dispersion"]["self"].transformed.mean, rtol=1e-6
    )
    np.testing.assert_array_equal(one["correlation"]["self"].pairs, other["correlation"]["self"].pairs)
    assert one.run.squares == other.run.squares


@pytest.mark.slow
def test_one_study_alone_finds_what_it_finds_among_the_others(minilm, texts):
    alone, among = study(minilm, texts, studies=["categories"]), study(minilm, texts)
    assert (alone["dispersion"], alone["correlation"], alone["frequency"]) == ({}, {}, {})
    np.testing.assert_array_equal(alone["categories"]["self"].norms, among["categories"]["self"].norms)


def test_ranks_counted_on_the_corpus_are_those_of_its_tokens(minilm):
    found = study(minilm, ["a a a b b c", "a b"], studies=["frequency"], ranks="corpus")["frequency"]["self"]
    assert found.excluded == 0
    assert dict(zip(found.token, found.by_type.rank.tolist(), strict=True)) == {
        "a": 1, "b": 2, "[CLS]": 3, "[SEP]": 3, "c": 5,
    }  # fmt: skip


def test_special_tokens_that_no_category_takes_are_counted_among_the_other_ones(minilm):
    own = study(minilm, ["a b", "c"], studies=["categories"], categories={"a": ["a"]})["categories"]["self"]
    assert own.special == {"[CLS]": 2, "[SEP]": 2}
    first = study(minilm, ["a b"], studies=["categories"], categories={"sink": "@first"})["categories"]["self"]
    assert first.special == {"[SEP]": 1}
    apart = {"a": ["a"], "special": "@special"}
    assert study(minilm, ["a b"], studies=["categories"], categories=apart)["categories"]["self"].special == {}
    assert study(minilm, ["a 😀"], studies=["categories"])["categories"]["self"].special == {}


def test_a_head_with_one_norm_for_every_cls_has_no_rho_and_says_so(minilm):
    """In the first layer [CLS] is always the same token at the same position."""
    found = study(minilm, ["a b", "c d e"], studies=["correlation"])["correlation"]["self"]
    assert Constant(found.names.index("[CLS]"), 0, 12, "‖f(x)‖") in found.constant
    assert np.isnan(found.rho_heads[found.names.index("[CLS]"), 0]).all()


def test_a_category_that_occurs_nowhere_is_empty_and_not_a_number(minilm):
    found = study(minilm, ["no stop and no pause", "nor here"])
    index = found["categories"]["self"].names.index("comma & period")
    assert found["categories"]["self"].tokens[index] == 0
    assert found["correlation"]["self"].pairs[index] == 0
    assert np.isnan(found["correlation"]["self"].rho[index])
    assert (found["categories"]["self"].weights[index] == 0).all()


def test_one_item_of_one_token_is_an_honest_result(causal):
    found = study(causal, ["a"], categories={"first": "@first"})
    assert found.run.items == 1
    assert np.isfinite(found["dispersion"]["self"].transformed.mean).all()


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"studies": ["colours"]}, "no study 'colours'.\n  Do: Choose among dispersion, categories"),
        ({"studies": ["category"]}, "no study 'category'.\n  Do: did you mean 'categories'"),
        ({"studies": []}, "No study was named"),
        ({"limit": 0}, "limit must be at least 1 item \\(got 0\\)"),
        ({"length": 1}, "length must be at least 2 tokens \\(got 1\\)"),
        ({"batch_tokens": 0}, "batch_tokens must be at least 1 token \\(got 0\\)"),
    ],
)
def test_what_cannot_be_studied_is_refused_in_words(minilm, options, words):
    with pytest.raises(StudyError, match=words):
        study(minilm, ["a b"], **options)


def test_items_longer_than_the_model_are_cut_to_it(causal):
    found = study(causal, ["word " * 500], length=1000, studies=["dispersion"])
    assert (found.run.length, found.run.tokens) == (64, 64)


def test_shares_of_the_attention_add_up_to_1_also_beside_a_learned_sink(minilm):
    config = GptOssConfig(
        vocab_size=30522, hidden_size=16, intermediate_size=16, num_hidden_layers=2, num_attention_heads=2,
        num_key_value_heads=1, head_dim=8, num_local_experts=2, num_experts_per_tok=1,
        rope_parameters={"rope_type": "default", "rope_theta": 1e4},
        layer_types=["full_attention", "full_attention"], bos_token_id=101, eos_token_id=102, pad_token_id=0,
    )  # fmt: skip
    torch.manual_seed(0)
    lens = nl.load(GptOssForCausalLM(config).eval(), minilm.subject.tokenizer)
    found = study(lens, ["The mill stood by the river.", "Nobody believed it."], studies=("categories",))
    result = found["categories"]["self"]
    assert (result.weights.sum(axis=0) < 0.99).all()
    np.testing.assert_allclose(result.weight_shares.sum(axis=0), 1)
    assert "attention sinks are judged by α itself" in " ".join(found.run.notes)
