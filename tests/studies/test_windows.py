"""Sliding windows, learned sinks, padded batches and studies beside each other change no number in silence."""

import numpy as np
import pytest
import torch
from transformers import GptOssConfig, GptOssForCausalLM, MistralConfig, MistralForCausalLM

import normlens as nl
from normlens.studies import Predicate, SimilarityStudy, TargetsStudy
from normlens.studies.segmentation import words_of

WINDOW = 6
SMALL = {
    "vocab_size": 30522,
    "hidden_size": 24,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "head_dim": 6,
    "intermediate_size": 16,
    "sliding_window": WINDOW,
}
TEXTS = [
    "The mill stood by the river, and the river, they said, stood still all day and all night.",
    "Nobody believed it, and why would they? They had seen it move.",
    "A short one, but with ten tokens at least in it.",
]


@pytest.fixture(scope="module")
def windowed(minilm):
    torch.manual_seed(0)
    return nl.load(MistralForCausalLM(MistralConfig(**SMALL)).eval(), minilm.subject.tokenizer)


def tables(lens, texts, study, **options):
    report = nl.report(lens, texts, studies=(study,), **options)
    return report.tables


@pytest.mark.parametrize("study", ["forgetting", "masks", "targets", "patterns", "similarity", "distances", "sinks"])
def test_batches_of_any_size_give_the_same_numbers(windowed, study):
    alone, together = (tables(windowed, TEXTS, study, batch_tokens=size) for size in (1, 4096))
    assert alone.keys() == together.keys()
    for name, rows in alone.items():
        for one, other in zip(rows, together[name], strict=True):
            for column, value in one.items():
                if isinstance(value, float):
                    assert other[column] == pytest.approx(value, rel=1e-3, abs=1e-5), (name, column)
                else:
                    assert other[column] == value, (name, column)


def test_a_needle_outside_the_window_cannot_be_found_by_chance(windowed):
    study = nl.studies.RetrievalStudy(needle="The fox hid.", depths=(0.1,))
    report = nl.report(windowed, [" ".join(TEXTS) * 2], studies=(study,))
    inside, on_next = report.findings["retrieval"]["self"].chance
    assert inside < 0.9
    assert on_next == 0.0


def test_the_score_of_a_key_divides_by_the_queries_that_see_it(windowed):
    """Slow and obvious: loops over the queries of the cache."""
    seen = []

    class Keeping(nl.studies.ForgettingStudy):
        name = "keeping"

        def _scores(self, block, cut, group):
            scores = super()._scores(block, cut, group)
            seen.append((block, int(cut[0]), scores["weights"][0]))
            return scores

    nl.report(windowed, TEXTS[:1], studies=(Keeping(first=0),))
    for block, cut, scores in seen:
        weights = block.weights[0].double().numpy()
        for key in range(cut):
            queries = [query for query in range(key, cut) if query - key < WINDOW]
            received = [np.mean([weights[head, query, key] for query in queries]) for head in range(len(weights))]
            shared = np.repeat(np.mean(np.reshape(received, (2, 2)), axis=1), 2)  # heads of one key
            assert scores[:, key] == pytest.approx(shared, rel=1e-5)


def test_where_a_learned_sink_takes_attention_shares_are_of_what_tokens_receive(minilm):
    torch.manual_seed(0)
    config = GptOssConfig(**SMALL, num_local_experts=2, num_experts_per_tok=1, layer_types=["full_attention"] * 2)
    lens = nl.load(GptOssForCausalLM(config).eval(), minilm.subject.tokenizer)
    report = nl.report(lens, TEXTS, studies=("targets", "maps"))
    assert any("goes to a learned sink and to no token" in note for note in report.findings.run.notes)
    trace = lens.trace(TEXTS[0])
    weights = trace.self_attention[0].weights[0, 0].double()
    shares = weights / weights.sum(dim=-1, keepdim=True)
    assert float(weights.sum(dim=-1).mean()) < 0.99
    alone = nl.report(lens, TEXTS[:1], studies=("targets", "maps")).heads[0]
    places = torch.arange(len(shares))
    apart = (places[:, None] - places).abs()
    assert alone["distance_weights"] == pytest.approx(float((shares * apart).sum(dim=-1).mean()), rel=1e-4)


def test_a_predicate_that_reads_the_block_is_asked_in_every_layer(windowed):
    late = Predicate("late", "keys of layer 1", lambda seen: torch.full((1, 1, 1), seen.layer == 1), any_side=True)
    rows = nl.report(windowed, TEXTS, studies=(TargetsStudy(own={"late": late}), "maps")).heads
    assert all((row["late_weights"] is None) == (row["layer"] == 0) for row in rows)
    assert all(row["late_weights"] == pytest.approx(1) for row in rows if row["layer"] == 1)


def test_a_subclass_beside_its_parent_counts_what_it_counts_alone(minilm):
    class WithSpecial(SimilarityStudy):
        name = "with_special"

        def per_head(self, result):
            return None

    study = WithSpecial(special=True)
    alone, beside = (nl.report(minilm, TEXTS, studies=studies) for studies in ((study,), (SimilarityStudy(), study)))
    assert str(alone.findings["with_special"]["self"]) == str(beside.findings["with_special"]["self"])


def test_a_peak_on_white_space_cuts_after_the_word_before_it():
    text = "a cat\n\nThe dog"
    assert words_of(text, np.array([1, 5, 6, 7, 10, 14])).tolist() == [0, 1, 1, 1, 2, 3]
    assert words_of("\nA", np.array([1, 2])).tolist() == [-1, 0]
