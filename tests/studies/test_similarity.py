"""Similarity of head outputs: against plain loops, and for heads whose answer is known by construction."""

import math
from collections import Counter, defaultdict
from dataclasses import replace

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from normlens import algebra
from normlens.lens import Block, NotKept
from normlens.models import Side
from normlens.signature import Signature
from normlens.statistics import read
from normlens.studies import STATISTICS, Facts, Group, SimilarityStudy, StudyError, Sums, seen_block, study
from normlens.studies import run as loop
from normlens.studies.high_pairs import high_pairs, pairs_of, shuffled

sizes = st.integers(1, 5)


def group_of(texts, special=("[CLS]", "[SEP]")):
    """A batch of texts whose words are its tokens."""
    words = sorted({word for text in texts for word in text.split()})
    sides = []
    for text in texts:
        tokens = tuple(text.split())
        kinds = tuple(token in special for token in tokens)
        sides.append(Side("text", tuple(words.index(t) for t in tokens), tokens, kinds, tuple(range(len(tokens)))))
    lengths = np.array([len(side.ids) for side in sides])
    ids = np.zeros((len(sides), lengths.max()), np.int64)
    categories, marks = np.full(ids.shape, -1, np.int8), np.zeros(ids.shape, bool)
    for row, side in enumerate(sides):
        place = row, slice(len(side.ids))
        ids[place], categories[place], marks[place] = side.ids, 0, side.special
    return Group(ids, categories, marks, lengths, tuple(sides))


FACTS = Facts(None, "made", "made", Signature(()), ("other",), None, 0, 128)


def result_of(vectors, texts, **choices):
    """The study of one layer whose heads write these vectors for the tokens: (batch, head, token, size)."""
    group = group_of(texts)
    width = group.ids.shape[1]
    weights = torch.eye(width).expand(*vectors.shape[:2], width, width).clone()
    kept = {
        "weights": weights,
        "transformed_norms": vectors.norm(dim=-1),
        "head_vectors": algebra.head_vectors(weights, vectors),
    }
    kept["visible"] = (kept["weights"] != 0).any(dim=1).float()
    block = Block(
        "self",
        0,
        "made",
        tuple(range(vectors.shape[1])),
        0.0,
        "text",
        "text",
        kept,
        tuple((n, n) for n in group.lengths.tolist()),
    )
    asked = SimilarityStudy(**choices)
    sums = Sums({}, "similarity", "self")
    for name, statistic in asked.see(seen_block(FACTS, block, group, group, 0)).items():
        sums.add(f"0/{name}", statistic)
    return asked.result(sums, FACTS)


TEXT = "[CLS] the mill by the river . the river stood still . [SEP]"


def test_a_head_that_writes_the_token_itself_pairs_copies_and_nothing_else():
    ids = torch.from_numpy(group_of([TEXT]).ids)
    result = result_of(torch.nn.functional.one_hot(ids)[:, None].float(), [TEXT], rule="absolute", threshold=0.5)
    copies, pairs = 3 + 1 + 1, math.comb(11, 2)  # three "the", two "river", two "."
    assert result.high[0, 0] == copies
    assert result.high_same_token[0, 0] == 1
    assert result.recall[0, 0] == 1
    assert result.repetition_lift[0, 0] == pytest.approx(pairs / copies)


def test_a_head_that_averages_its_sentence_pairs_tokens_of_a_sentence_and_nothing_else():
    sentence = torch.tensor([0, 1, 1, 1, 1, 1, 1, 2, 2, 2, 2, 2, 3])
    vectors = torch.nn.functional.one_hot(sentence).float()[None, None]
    result = result_of(vectors, [TEXT], rule="absolute", threshold=0.5)
    within = math.comb(6, 2) + math.comb(5, 2)
    assert result.high[0, 0] == within
    assert result.high_same_sentence[0, 0] == 1
    assert result.same_sentence_lift[0, 0] == pytest.approx(math.comb(11, 2) / within)
    assert result.same_sentence_lift_at_distance[0, 0] > 1


def test_a_head_that_pairs_neighbours_shares_sentences_only_because_it_is_near():
    width = len(TEXT.split())
    vectors = (torch.eye(width) + torch.diag(torch.ones(width - 1), 1))[None, None]
    result = result_of(vectors, [TEXT], rule="absolute", threshold=0.5)
    assert result.high_distance[0, 0] == result.high_median[0, 0] == 1
    assert result.high_near[0, 0] == 1
    assert result.same_sentence_lift[0, 0] > 1
    assert result.same_sentence_lift_at_distance[0, 0] == pytest.approx(1)


def test_a_head_built_around_one_token_has_it_as_its_dominant_token():
    width, at = len(TEXT.split()), TEXT.split().index("still")
    vectors = torch.eye(width)
    vectors[at] = 1
    result = result_of(vectors[None, None], [TEXT], rule="absolute", threshold=0.5)
    assert result.dominant_token == ((str(group_of([TEXT]).ids[0, at]),),)
    assert result.dominant_share[0, 0] == 1
    assert result.dominant_texts[0, 0] == 1
    assert result.shuffled_share[0, 0] < 1


def test_heads_with_tokens_of_their_own_are_counted_as_different_and_the_same_head_twice_is_not():
    width = len(TEXT.split())
    heads = []
    for at in (2, 3, 8, 8):
        vectors = torch.eye(width)
        vectors[at] = 1
        heads.append(vectors)
    result = result_of(torch.stack(heads)[None], [TEXT], rule="absolute", threshold=0.5)
    assert result.distinct[0] == 3


def test_copies_of_a_token_are_one_token_unless_positions_are_asked_for():
    words = TEXT.split()
    vectors = torch.eye(len(words))
    vectors[1, 3], vectors[7, 9], vectors[4, 10] = 1, 1, 1  # each "the" is like one other word, once
    by_type = result_of(vectors[None, None], [TEXT], rule="absolute", threshold=0.5)
    by_place = result_of(vectors[None, None], [TEXT], rule="absolute", threshold=0.5, unit="position")
    assert by_type.dominant_share[0, 0] == 1
    assert by_place.dominant_share[0, 0] == pytest.approx(1 / 3)


def test_special_tokens_are_in_no_pair_unless_asked_for():
    vectors = torch.ones(1, 1, len(TEXT.split()), 1)
    assert result_of(vectors, [TEXT]).pairs == math.comb(11, 2)
    assert result_of(vectors, [TEXT], special=True).pairs == math.comb(13, 2)


def test_where_all_similarities_are_equal_every_pair_is_high_and_nothing_is_preferred():
    result = result_of(torch.ones(1, 1, len(TEXT.split()), 1), [TEXT])
    assert result.high[0, 0] == result.pairs
    assert result.repetition_lift[0, 0] == result.same_sentence_lift[0, 0] == pytest.approx(1)
    assert result.high_distance[0, 0] == pytest.approx(result.distance)


def test_a_text_without_two_tokens_adds_nothing():
    result = result_of(torch.ones(2, 1, 4, 1), ["[CLS] a b [SEP]", "[CLS] a [SEP]"])
    assert result.pairs == 1
    alone = result_of(torch.ones(1, 1, 3, 1), ["[CLS] a [SEP]"])
    assert alone.pairs == 0
    sentences = SimilarityStudy().section(alone, FACTS).sentences
    assert sentences[0].startswith("No text has two tokens")


@given(batch=sizes, head=sizes, tgt=sizes, src=sizes, dim=sizes, seed=st.integers(0, 99))
def test_similarity_is_the_product_of_what_two_queries_are_written(batch, head, tgt, src, dim, seed):
    generator = torch.Generator().manual_seed(seed)
    weights, values = (
        torch.randn(*shape, generator=generator, dtype=torch.float64)
        for shape in ((batch, head, tgt, src), (batch, head, src, dim))
    )
    got = algebra.similarity(algebra.head_vectors(weights, values))
    for b, h, i, j in np.ndindex(batch, head, tgt, tgt):
        z = [sum(weights[b, h, q, k] * values[b, h, k] for k in range(src)) for q in (i, j)]
        torch.testing.assert_close(got[b, h, i, j], torch.dot(*z))


@given(lengths=st.lists(st.integers(1, 9), min_size=1, max_size=3), heads=sizes, seed=st.integers(0, 99))
def test_shuffling_keeps_the_number_of_pairs_and_their_sequences(lengths, heads, seed):
    group = group_of([" ".join("abcabcabc"[:n]) for n in lengths])
    pairs = pairs_of(group, special=False, unit="type")
    values = torch.randn(len(lengths), heads, len(pairs.first), generator=torch.Generator().manual_seed(seed))
    values = values.masked_fill(~torch.from_numpy(pairs.allowed)[:, None], -torch.inf)
    high = high_pairs(values, rule="top", threshold=0.3)
    drawn = shuffled(pairs, high, group, seed)
    np.testing.assert_array_equal(drawn.summed(), high.summed())
    assert pairs.allowed[drawn.batch, drawn.pair].all()
    assert len(set(zip(drawn.cell.tolist(), drawn.pair.tolist(), strict=True))) == len(drawn.pair)


def threshold_of(values, rule, threshold):
    if rule == "top":
        return sorted(values, reverse=True)[max(1, round(threshold * len(values))) - 1]
    if rule == "largest":
        return threshold * max(abs(value) for value in values)
    return threshold if rule == "absolute" else np.mean(values) + threshold * np.std(values)


def slowly(lens, items, *, quantity, cosine, rule, threshold, near=8):
    """Every number of the study by loops over pairs, one text at a time."""
    counted, dominating, unlike, received = (
        defaultdict(Counter),
        defaultdict(list),
        defaultdict(list),
        defaultdict(list),
    )
    everything = defaultdict(Counter)
    for item in items:
        trace = (
            lens.trace(source=item[0], target=item[1], fields=("weights", "transformed_norms", quantity))
            if lens.subject.is_seq2seq
            else lens.trace(item, fields=("weights", "transformed_norms", quantity))
        )
        for block in trace.blocks:
            kind, layer = block.kind, block.layer
            side, keys = ((trace.targets if name == "target" else trace.sides)[0] for name in (block.tgt, block.src))
            sentence, sentences = 0, []
            for token, special in zip(side.tokens, side.special, strict=True):
                sentences.append(sentence)
                sentence += special or token in ".!?"
            tokens = [i for i, special in enumerate(side.special) if not special]
            pairs = [(i, j) for i in tokens for j in tokens if i < j]
            inside = Counter((j - i, sentences[i] == sentences[j]) for i, j in pairs)
            if layer == 0:
                for i, j in pairs:
                    everything[kind]["pairs"] += 1
                    everything[kind]["same"] += side.ids[i] == side.ids[j]
                    everything[kind]["sentence"] += sentences[i] == sentences[j]
                    everything[kind]["distance"] += j - i
                    everything[kind]["uniform"] += (len(tokens) + 1) / 3
            dominant = []
            for head in range(block.weights.shape[1]):
                cell = kind, layer, head
                vectors = block[quantity][0, head].double()
                matrix = (vectors @ vectors.T).tolist()
                values = {
                    (i, j): matrix[i][j] / (math.sqrt(matrix[i][i] * matrix[j][j]) if cosine else 1) for i, j in pairs
                }
                limit = threshold_of(list(values.values()), rule, threshold)
                degrees = Counter()
                high = [pair for pair, value in values.items() if value >= limit]
                for i, j in high:
                    counted[cell]["high"] += 1
                    counted[cell]["same"] += side.ids[i] == side.ids[j]
                    counted[cell]["sentence"] += sentences[i] == sentences[j]
                    counted[cell]["expected"] += inside[j - i, True] / (inside[j - i, True] + inside[j - i, False])
                    counted[cell]["distance"] += j - i
                    counted[cell]["near"] += j - i <= near
                    degrees.update({side.ids[i], side.ids[j]})
                if high:
                    dominating[cell].append(max(degrees.values()) / len(high))
                    most = [token for token in side.ids if degrees[token] == max(degrees.values())]
                    dominant.append(most[0])
                alpha, norms = block.weights[0, head].double(), block.transformed_norms[0, head].double()
                ends = [j for j, token in enumerate(keys.tokens) if token in (".", "!", "?", "[SEP]")]
                parts = alpha * norms
                received[cell].append((alpha[:, ends].sum() / len(alpha), parts[:, ends].sum() / parts.sum()))
            if dominant:
                unlike[kind, layer].append(len(set(dominant)))
    return counted, everything, dominating, unlike, received


CHOICES = [
    {},
    {"measure": "cosine", "rule": "deviations", "threshold": 1.5},
    {"space": "output", "rule": "largest", "threshold": 0.5},
    {"rule": "absolute", "threshold": 0.02},
]


# The encoder of the random translator writes almost the same vector for every token: its cosines differ by rounding.
CASES = [
    (model, choices)
    for model in ("minilm", "causal", "translator")
    for choices in CHOICES
    if (model, choices.get("measure")) != ("translator", "cosine")
]


@pytest.mark.parametrize(("model", "choices"), CASES, ids=str)
def test_every_number_is_that_of_plain_loops(request, texts, model, choices):
    lens = request.getfixturevalue(model)
    asked = SimilarityStudy(**choices)
    results = study(lens, texts, studies=(asked,), batch_tokens=60)["similarity"]
    counted, everything, dominating, unlike, received = slowly(
        lens, texts, quantity=asked.needs.quantities[0], cosine=asked.measure == "cosine", rule=asked.rule,
        threshold=asked.threshold,
    )  # fmt: skip
    assert set(results) == set(everything)
    for kind, result in results.items():
        pairs = everything[kind]
        assert result.pairs == pairs["pairs"]
        for name, key in (("same_token", "same"), ("same_sentence", "sentence"), ("distance", "distance")):
            assert getattr(result, name) == pytest.approx(pairs[key] / pairs["pairs"])
        assert result.uniform_distance == pytest.approx(pairs["uniform"] / pairs["pairs"])
        for at, head in np.ndindex(result.high.shape):
            cell = kind, result.layers[at], head
            slow = counted[cell]
            assert result.high[at, head] == slow["high"]
            for name, key in (
                ("high_same_token", "same"), ("high_same_sentence", "sentence"), ("high_distance", "distance"),
                ("high_expected_sentence", "expected"), ("high_near", "near"),
            ):  # fmt: skip
                expected = slow[key] / slow["high"] if slow["high"] else math.nan
                assert getattr(result, name)[at, head] == pytest.approx(expected, nan_ok=True)
            if slow["high"]:
                assert result.dominant_share[at, head] == pytest.approx(np.mean(dominating[cell]))
            expected = np.mean([[float(part) for part in parts] for parts in received[cell]], axis=0)
            for measure, value in zip(("weights", "norms"), expected, strict=True):
                assert result.separators[measure][at, head].sum() == pytest.approx(value, rel=1e-5)
        for at, layer in enumerate(result.layers):
            if unlike[kind, layer]:
                assert result.distinct[at] == pytest.approx(np.mean(unlike[kind, layer]))


def test_what_a_head_writes_becomes_its_output_through_the_output_matrix(minilm):
    trace = minilm.trace("The mill by the river stood still.", fields=("head_outputs", "head_vectors", "similarity"))
    modules = dict(minilm.subject.model.named_modules())
    for block in trace.self_attention:
        matrix = modules[block.name.removesuffix(".self") + ".output.dense"].weight.T.unflatten(0, (12, 32))
        torch.testing.assert_close(
            torch.einsum("bhtd,hdm->bhtm", block["head_vectors"], matrix), block["head_outputs"], rtol=1e-4, atol=1e-5
        )
        torch.testing.assert_close(block["similarity"], block["head_vectors"] @ block["head_vectors"].mT)


def test_a_similarity_matrix_can_be_looked_at_and_padding_is_zero(minilm, tmp_path):
    trace = minilm.trace(["The mill by the river stood still.", "A short one."], fields=("weights", "similarity"))
    block = trace.self_attention[2]
    assert not block["similarity"][1, :, :, len(trace.sides[1].ids) :].any()
    assert not block["similarity"][1, :, len(trace.sides[1].ids) :].any()
    torch.testing.assert_close(block["similarity"], block["similarity"].mT)
    path = trace[0].figure(measures=("similarity",), layers=2, heads=3).save(tmp_path / "similarity.svg")
    assert "zᵢ·zⱼ" in path.read_text(encoding="utf-8")
    frame = trace[0].to_dataframe()
    assert "similarity" in frame.columns


def test_cross_attention_has_no_table_of_queries_and_keys_to_compare_queries_in(translator):
    trace = translator.trace(
        source="The mill.", target="A mill here.", fields=("weights", "similarity", "head_vectors")
    )
    assert trace.encoder_attention[0]["similarity"].shape[2:] == trace.encoder_attention[0].weights.shape[2:]
    with pytest.raises(NotKept, match="compares the queries"):
        trace.cross_attention[0]["similarity"]


ITEMS = [f"The {n} birds, {n + 1} of them grey, flew {'over ' * (n % 5)}the town. The town slept." for n in range(150)]


def test_an_interrupted_run_that_is_resumed_ends_in_the_same_bytes(minilm, tmp_path, monkeypatch):
    monkeypatch.setattr(loop, "SAVE", 0.0)
    whole, parts = tmp_path / "whole", tmp_path / "parts"
    study(minilm, ITEMS, studies=("similarity",), folder=whole)
    done = []

    def stop(items, total):
        done.append(items)
        if sum(done) > 100:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        study(minilm, ITEMS, studies=("similarity",), folder=parts, progress=stop)
    assert 0 < read(parts / STATISTICS)[1]["items"] < len(ITEMS)
    study(minilm, ITEMS, studies=("similarity",), folder=parts, resume=True)
    assert (parts / STATISTICS).read_bytes() == (whole / STATISTICS).read_bytes()


def test_other_choices_are_another_run_and_in_its_signature(minilm, tmp_path):
    findings = study(minilm, ITEMS[:3], studies=(SimilarityStudy(threshold=0.1),), folder=tmp_path)
    assert "similarity(threshold=0.1)" in str(findings.run.signature)
    with pytest.raises(StudyError, match=r"threshold=0\.1\) then, similarity\(threshold=0\.2\) now"):
        study(minilm, ITEMS[:3], studies=(SimilarityStudy(threshold=0.2),), folder=tmp_path, resume=True)


@pytest.mark.parametrize("choices", [{"rule": "best"}, {"threshold": 0.0}, {"threshold": 2.0}, {"space": "z"}], ids=str)
def test_a_choice_that_does_not_exist_is_refused_in_words(choices):
    with pytest.raises(StudyError, match=f"{next(iter(choices))}"):
        SimilarityStudy(**choices)


@pytest.fixture(scope="module")
def result(minilm):
    return study(minilm, ITEMS[:20], studies=("similarity",))["similarity"]["self"]


def said(result):
    return "\n".join(SimilarityStudy().section(result, FACTS).sentences)


def falling(result, first, last):
    return np.linspace(first, last, len(result.layers))[:, None] * np.ones(result.high.shape)


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"high_distance": (40, 10)}, "get nearer, as Halevi et al. report"),
        ({"high_distance": (10, 40)}, "get farther apart, unlike those of Halevi et al."),
        ({"high_distance": (40, 40)}, "stay about as far apart"),
        ({"high_same_sentence": (0.5, 0.9)}, "same sentence grows, as Halevi et al. report"),
        ({"high_same_sentence": (0.9, 0.9)}, "the last layers no more than the first"),
        ({"high_same_sentence": (0.5, 0.3)}, "no clear preference for the same sentence"),
        ({"high_same_token": (0.0, 0.0)}, "No head pairs copies"),
        ({"high_same_token": (1.0, 1.0)}, "72 of 72 heads pair copies"),
        ({"dominant_share": (0.5, 0.5), "shuffled_share": (0.1, 0.1)}, "Heads build their pairs around one token"),
        ({"dominant_share": (0.1, 0.1), "shuffled_share": (0.1, 0.1)}, "Heads do not build"),
    ],
    ids=str,
)
def test_a_sentence_says_what_the_numbers_say(result, changes, words):
    known = {"same_sentence": 0.5, "same_token": 0.1}
    arrays = {name: falling(result, *ends) for name, ends in changes.items()}
    assert words in said(replace(result, **known, **arrays))


@pytest.mark.parametrize(
    ("first", "last", "words"),
    [
        (0.1, 0.5, "gathers on separators in the last layers, as Halevi et al. report"),
        (0.5, 0.5, "no more in the last layers than in the first"),
        (0.5, 0.1, "does not gather on separators"),
    ],
)
def test_separators_are_compared_with_their_share_of_the_tokens(result, first, last, words):
    shares = falling(result, first, last)[..., None] * np.array([0.5, 0.5])
    changed = replace(result, separator_tokens=np.array([0.1, 0.1]), separators={"weights": shares, "norms": shares})
    assert words in said(changed)


@pytest.mark.parametrize(("distinct", "words"), [(9, "differ more than"), (2, "share their"), (5, "about as much")])
def test_dominant_tokens_are_compared_with_shuffled_ones(result, distinct, words):
    level = np.ones(len(result.layers))
    assert words in said(replace(result, distinct=distinct * level, shuffled_distinct=5 * level))


def test_the_table_of_heads_has_the_columns_that_profiles_need(result):
    tables = {e.name: e for e in SimilarityStudy().section(result, FACTS).exhibits if hasattr(e, "rows")}
    columns = "repetition_lift same_sentence_lift similarity_distance dominant_token dominant_share".split()
    assert set(columns) <= set(tables["similarity"].rows[0])
    assert len(tables["similarity"].rows) == 72
    assert len(tables["similarity_layers"].rows) == 6
