"""Sinks: against plain loops, and against a model whose heads park on the first token."""

import blocks
import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from parking import HEADS, parking_lens

from normlens.studies import StudyError, study
from normlens.studies.massive import activations
from normlens.studies.places import place_names, places
from normlens.studies.report import chosen
from normlens.studies.sinks import SinksStudy

LOOSE = SinksStudy(queries=2)
TEXTS = [
    f"The {word} stood by the river, and the river, they said, stood {'very ' * n}still."
    for n, word in enumerate(("mill", "house", "tree", "horse", "bridge", "man"))
]


def slowly(weights, norms, lengths, place, settings):
    """Sinks of one head by loops: its rates by measure and place, and of each sink what it receives and its ratio."""
    rates, sinks = {"weights": [], "norms": []}, []
    for b, length in enumerate(lengths):
        alpha = weights[b][:length, :length].double().numpy()
        norm = norms[b][:length].double().numpy()
        has, judged = {"weights": set(), "norms": set()}, False
        for k in range(length):
            queries = [i for i in range(length) if alpha[i, k] != 0]
            if len(queries) < settings.queries:
                continue
            judged = True
            share = {
                "weights": np.mean([alpha[i, k] for i in queries]),
                "norms": np.mean([alpha[i, k] * norm[k] / sum(alpha[i] * norm) for i in queries]),
            }
            for measure in has:
                if share[measure] > settings.threshold:
                    has[measure] |= {-1, int(place[b, k])}
            if share["weights"] > settings.threshold:
                size = np.mean([alpha[i, k] ** 2 for i in queries])
                sinks.append((share["weights"], share["norms"], norm[k] / np.median(norm), size, b, k))
        if judged:
            for measure, there in has.items():
                rates[measure].append([float(p in there) for p in range(-1, len(settings.places))])
    return {measure: np.mean(found, axis=0) for measure, found in rates.items()}, sinks


def participation(vectors, sizes):
    """(Σλ)²/Σλ², by eigenvalues."""
    values = np.linalg.eigvalsh(sum(s * np.outer(v, v) for v, s in zip(vectors, sizes, strict=True)))
    return values.sum() ** 2 / (values**2).sum()


@given(lengths=st.lists(st.integers(2, 9), min_size=1, max_size=4), causal=st.booleans(), seed=st.integers(0, 1000))
def test_what_is_counted_of_a_block_is_what_loops_count(lengths, causal, seed):
    weights, values, out_weight = blocks.random_block(seed, lengths, causal=causal)
    seen = blocks.seen(weights, values, out_weight, lengths)
    counted = LOOSE.see(seen)
    vectors = torch.einsum("bhsd,hdm->bhsm", values.double(), out_weight.double()).numpy()
    place = places(seen.src, LOOSE.positions)
    for head in range(2):
        norms = torch.from_numpy(vectors[:, head]).norm(dim=-1)
        rates, sinks = slowly(weights[:, head], norms, lengths, place, LOOSE)
        for measure in ("weights", "norms"):
            np.testing.assert_allclose(counted[f"rate_{measure}"].mean[head], rates[measure], atol=1e-12)
        assert counted["norm_ratio"].count[head] == len(sinks)
        if not sinks:
            assert np.isnan(counted["written"].rank[head])
            continue
        received, contributed, ratio, sizes, batch, keys = (list(column) for column in zip(*sinks, strict=True))
        for name, expected in zip(
            ("received_weights", "received_norms", "norm_ratio"), (received, contributed, ratio), strict=True
        ):
            np.testing.assert_allclose(counted[name].mean[head], np.mean(expected), rtol=1e-4)
        rank = participation(vectors[batch, head, keys], sizes)
        np.testing.assert_allclose(counted["written"].rank[head], rank, rtol=1e-4)


@pytest.mark.parametrize("model", ["minilm", "causal", "translator"])
def test_a_run_over_padded_batches_is_every_text_alone(model, request, texts):
    lens = request.getfixturevalue(model)
    settings = SinksStudy(queries=3, threshold=0.12)
    found = study(lens, texts, studies=(settings,), batch_tokens=60)["sinks"]
    alone = [study(lens, [text], studies=(settings,))["sinks"] for text in texts]
    assert found.keys() == ({"encoder", "decoder", "cross"} if model == "translator" else {"self"})
    for kind, result in found.items():
        for measure in ("weights", "norms"):
            expected = np.mean([one[kind].rate[measure] for one in alone], axis=0)
            np.testing.assert_allclose(result.rate[measure], expected, atol=1e-12)


@pytest.fixture(scope="module")
def parked(minilm):
    return study(parking_lens(minilm.subject.tokenizer), TEXTS, studies=("sinks",))


def test_a_head_that_parks_on_a_zero_value_is_a_no_op_and_one_that_writes_there_broadcasts(parked):
    result = parked["sinks"]["self"]
    assert dict(zip(HEADS, result.kinds[0], strict=True)) == {"no-op": "no-op", "broadcast": "broadcast", "spread": ""}
    assert result.positions[0] == ("0", "0", "")
    assert result.rate["weights"].tolist() == [[1.0, 1.0, 0.0]]
    assert result.rate["norms"].tolist() == [[0.0, 1.0, 0.0]]
    assert result.received["weights"][0, :2].min() > 0.9
    assert result.received["norms"][0, 0] < 1e-3
    assert result.received["norms"][0, 1] > 0.9
    assert result.ratio[0, 0] < 1e-3
    assert result.ratio[0, 1] > 1
    np.testing.assert_allclose(result.rank[0, 1], 1.0, atol=1e-6)


def test_the_report_says_what_the_heads_are(parked):
    lines = parked.document().chapters[0].articles[0].section.sentences
    assert lines[0].startswith("2 of 3 heads have a sink in at least 50 % of the sequences")
    assert "position 0 in 2 heads" in lines[0]
    assert lines[1].startswith("The sink is a no-op, with a short f(x), in 1 head (L0H0)")
    assert lines[2].startswith("The sink broadcasts nearly the same vector in every text in 1 head (L0H1)")
    assert "coordinate 0 in 100 % of the sequences, and at position 0 in 100 %" in lines[-1]


@pytest.mark.parametrize(
    ("rate", "share", "ratio", "rank", "kind"),
    [
        (0.49, 0.0, 0.0, 1.0, ""),
        (0.5, 0.3, 0.49, 9.0, "no-op"),
        (1.0, 0.0, 0.0, np.nan, "no-op"),
        (1.0, 0.31, 0.49, 1.0, "neither"),
        (1.0, 0.31, 0.5, 2.0, "broadcast"),
        (1.0, 0.31, 0.5, 2.1, "neither"),
        (1.0, 0.3, 0.5, 1.0, "neither"),
        (1.0, 0.9, np.nan, 1.0, ""),  # without ‖f(x)‖ there is no verdict
        (np.nan, np.nan, np.nan, np.nan, ""),
    ],
)
def test_verdicts_follow_the_stated_bounds(rate, share, ratio, rank, kind):
    assert SinksStudy()._kind(rate, share, ratio, rank) == kind


def test_places_do_not_overlap_and_the_first_that_fits_counts():
    group = blocks.group([10, 3], special=(0, 2))
    names = [place_names(3)[p] if p >= 0 else "" for p in places(group, 3)[0]]
    assert names == ["0", "1", "special", "other", "punctuation", "other", "other", "other", "other", "punctuation"]
    assert places(group, 3)[1].tolist() == [0, 2, 1, *[-1] * 7]


@given(lengths=st.lists(st.integers(1, 6), min_size=1, max_size=4), seed=st.integers(0, 1000))
def test_the_largest_activation_is_that_of_real_tokens(lengths, seed):
    states = torch.randn(len(lengths), max(lengths), 7, generator=torch.Generator().manual_seed(seed))
    for b, length in enumerate(lengths):
        states[b, length:] = 1e6
    counted = activations(states, blocks.group(lengths), 4)
    tops, medians, ratios, coordinates, where = [], [], [], [], []
    for b, length in enumerate(lengths):
        sizes = states[b, :length].abs().double().numpy()
        ordered = sorted(sizes.flatten().tolist())
        tops.append(ordered[-1])
        medians.append(ordered[(len(ordered) - 1) // 2])
        ratios.append(tops[-1] / medians[-1])
        token, coordinate = np.unravel_index(sizes.argmax(), sizes.shape)
        coordinates.append(coordinate)
        where.append(places(blocks.group(lengths), 4)[b, token])
    np.testing.assert_allclose(counted["activations"].mean, [np.mean(tops), np.mean(medians), np.mean(ratios)])
    assert counted["coordinates"].count.tolist() == np.bincount(coordinates, minlength=7).tolist()
    assert counted["places"].count.tolist() == np.bincount(where, minlength=len(place_names(4))).tolist()


def test_activations_of_a_run_are_those_of_the_hidden_states_of_the_model(minilm):
    found = study(minilm, TEXTS[:3], studies=("sinks",))["sinks"]["self"].massive
    tops = []
    for text in TEXTS[:3]:
        inputs = minilm.subject.tokenizer(text, return_tensors="pt")
        with torch.no_grad():
            states = minilm.subject.model(**inputs, output_hidden_states=True).hidden_states
        tops.append([float(state.abs().max()) for state in states])
    assert found.states == tuple(range(7))
    np.testing.assert_allclose(found.largest, np.mean(tops, axis=0), rtol=1e-5)


def test_texts_that_are_too_short_are_said_not_to_be_judged(minilm):
    found = study(minilm, ["Ah.", "Oh no."], studies=("sinks",))
    section = found.document().chapters[0].articles[0].section
    assert "No sequence has a key that 8 queries see, so no head is judged." in section.notes
    assert not any(exhibit.name.startswith("sinks") for exhibit in section.exhibits)
    assert "nan" not in found.show().lower()


def test_a_model_without_sinks_is_said_to_have_none(causal):
    section = study(causal, TEXTS, studies=("sinks",)).document().chapters[0].articles[0].section
    assert section.sentences[0].startswith("No head has a sink")


def test_a_run_that_was_interrupted_is_continued_to_the_same_numbers(minilm, tmp_path, monkeypatch):
    monkeypatch.setattr("normlens.studies.run.SHARD", 2)
    monkeypatch.setattr("normlens.studies.run.SAVE", 0.0)
    whole = study(minilm, TEXTS, studies=("sinks",))

    def stop(items, total):
        stop.done = getattr(stop, "done", 0) + items
        if stop.done >= 5:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        study(minilm, TEXTS, studies=("sinks",), folder=tmp_path, progress=stop)
    again = study(minilm, TEXTS, studies=("sinks",), folder=tmp_path, resume=True)
    assert again.to_json() == whole.to_json()
    for name in ("ratio", "rank"):
        one, other = getattr(again["sinks"]["self"], name), getattr(whole["sinks"]["self"], name)
        assert one.tobytes() == other.tobytes()


def test_a_study_is_named_with_what_was_chosen_for_it():
    assert str(SinksStudy()) == "sinks"
    assert str(SinksStudy(queries=4, threshold=0.2)) == "sinks(threshold=0.2, queries=4)"


def test_a_study_of_ours_with_other_choices_takes_the_place_of_its_name_and_does_not_run_beside_it():
    other = SinksStudy(threshold=0.2)
    assert chosen((other,)) == (other,)
    for twice in (("sinks", other), (other, SinksStudy(threshold=0.4))):
        with pytest.raises(StudyError, match="already a study called 'sinks'"):
            chosen(twice)
