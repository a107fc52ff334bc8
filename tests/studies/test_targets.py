"""Where attention and contributions fall, against plain loops and heads with a known answer."""

import math

import numpy as np
import pytest
import torch

import normlens as nl
from normlens.corpora import bare, is_punctuation
from normlens.models import Side
from normlens.signature import Signature
from normlens.studies import Facts, Group, seen_block, study
from normlens.studies.predicates import PREDICATES
from normlens.studies.targets import TargetsStudy

TEXTS = ("The cat saw the dog, and the dog saw the cat. It ran!", "No. Yes, no.", "Rain fell on the sea.")


def takes(target, tokens, ids, special, i, j, sentence):
    """Whether key j is a target of query i, as slowly as can be."""
    plain = not special[i] and not special[j]
    return {
        "current": i == j,
        "previous": j == i - 1,
        "next": j == i + 1,
        "first": j == 0,
        "special": special[j],
        "punctuation": not special[j] and is_punctuation(bare(tokens[j])),
        "duplicate": plain and i != j and ids[i] == ids[j],
        "induction": (
            i != j and j >= 1 and j - 1 < i and not special[i] and not special[j - 1] and ids[j - 1] == ids[i]
        ),
        "same_sentence": sentence[i] == sentence[j],
    }[target]


def sentence_numbers(tokens, special):
    numbers, number = [], 0
    for token, is_special in zip(tokens, special, strict=True):
        numbers.append(number)
        number += is_special or token in (".", "!", "?")
    return numbers


def slowly(lens, texts):
    """Shares, entropy and distance by (name, measure), each (layer, head): one text at a time, one pair at a time."""
    shares, others = {}, {}
    for text in texts:
        trace = lens.trace(text)
        tokens, ids, special = trace.tokens[0], trace.sides[0].ids, trace.special[0]
        sentence = sentence_numbers(tokens, special)
        for measure in ("weights", "norms"):
            maps = [b.weights if measure == "weights" else b.weighted_norms for b in trace.self_attention]
            maps = np.stack([m[0].double().numpy() for m in maps])
            maps = maps / maps.sum(-1, keepdims=True)
            n = len(tokens)
            for target in PREDICATES:
                rows = []
                for i in range(n):
                    keys = [j for j in range(n) if takes(target, tokens, ids, special, i, j, sentence)]
                    if keys:
                        rows.append(maps[:, :, i, keys].sum(-1))
                if rows:
                    shares.setdefault((target, measure), []).append(np.mean(rows, axis=0))
            entropy = -(maps * np.log(np.where(maps > 0, maps, 1))).sum(-1).mean(-1)
            far = np.abs(np.arange(n)[:, None] - np.arange(n))
            others.setdefault(("entropy", measure), []).append(entropy)
            others.setdefault(("distance", measure), []).append((maps * far).sum(-1).mean(-1))
    return {key: np.mean(values, axis=0) for key, values in (shares | others).items()}


def test_shares_entropy_and_distance_are_those_of_plain_loops():
    lens = nl.load()
    result = study(lens, list(TEXTS), studies=("targets",))["targets"]["self"]
    expected = slowly(lens, TEXTS)
    for target in PREDICATES:
        for measure in ("weights", "norms"):
            np.testing.assert_allclose(result.shares[target, measure], expected[target, measure], atol=2e-6)
    for measure in ("weights", "norms"):
        np.testing.assert_allclose(result.entropy[measure], expected["entropy", measure], atol=2e-5)
        np.testing.assert_allclose(result.distance[measure], expected["distance", measure], atol=2e-4)


def result_of(maps, norms, ids, special=(), tokens=None):
    """The study's result for one sequence of one head with these maps."""
    n = len(ids)
    tokens = tokens or [str(i) for i in ids]
    flags = np.zeros((1, n), bool)
    flags[0, list(special)] = True
    side = Side("text", tuple(ids), tuple(tokens), tuple(flags[0].tolist()), tuple(range(n)))
    group = Group(np.array([ids]), np.zeros((1, n), np.int8), flags, np.array([n]), (side,))
    kept = {
        "weights": torch.tensor(maps, dtype=torch.float32)[None, None],
        "transformed_norms": torch.tensor(norms, dtype=torch.float32)[None, None],
    }
    kept["visible"] = (kept["weights"] != 0).any(dim=1).float()
    block = nl.Block("self", 0, "attention", (0,), 0.0, "text", "text", kept, ((n, n),))
    run = Facts(None, "made", "by hand", Signature(()), ("other",), None, 0, n)
    seen = seen_block(run, block, group, group, 0)
    statistics = TargetsStudy().see(seen)
    names = list(PREDICATES)
    return {
        (name, measure): float(statistics[f"shares_{measure}"].mean[0, place])
        for place, name in enumerate(names)
        for measure in ("weights", "norms")
    }


def shifted(n, step):
    """Every query attends to the key `step` away; where there is none, to itself."""
    maps = np.zeros((n, n))
    for i in range(n):
        maps[i, i + step if 0 <= i + step < n else i] = 1
    return maps


def test_a_head_that_attends_to_the_previous_token_has_all_of_its_attention_there():
    shares = result_of(shifted(6, -1), np.ones(6), [1, 2, 3, 4, 5, 6])
    assert shares["previous", "weights"] == pytest.approx(1)
    assert shares["previous", "norms"] == pytest.approx(1)
    assert shares["next", "weights"] == 0


def test_a_head_that_parks_on_a_zero_vector_attends_there_and_contributes_from_elsewhere():
    maps = np.full((4, 4), 0.1 / 3)
    maps[:, 0] = 0.9
    shares = result_of(maps, [0, 1, 1, 1], [1, 2, 3, 4], special=[0])
    assert shares["first", "weights"] == pytest.approx(0.9)
    assert shares["first", "norms"] == 0
    assert shares["special", "norms"] == 0


def test_a_head_that_induces_attends_to_the_token_after_the_earlier_copy():
    ids = [5, 6, 7, 5, 6, 7]
    maps = np.eye(6)
    maps[3:] = 0
    maps[3, 1] = maps[4, 2] = maps[5, 3] = 1  # after the earlier 5 comes 6, and so on
    shares = result_of(maps, np.ones(6), ids)
    assert shares["induction", "weights"] == pytest.approx(1)
    assert shares["duplicate", "weights"] == 0


def test_a_head_that_repeats_attends_to_the_other_copies():
    ids = [5, 6, 5, 6]
    maps = np.zeros((4, 4))
    maps[0, 2] = maps[2, 0] = maps[1, 3] = maps[3, 1] = 1
    assert result_of(maps, np.ones(4), ids)["duplicate", "weights"] == pytest.approx(1)


def test_a_head_that_stays_within_the_sentence_never_leaves_it():
    tokens = ["a", "b", ".", "c", "d", "."]
    maps = np.kron(np.eye(2), np.full((3, 3), 1 / 3))
    assert result_of(maps, np.ones(6), [1, 2, 3, 4, 5, 3], tokens=tokens)["same_sentence", "weights"] == pytest.approx(
        1
    )


def test_uniform_attention_has_the_entropy_of_the_number_of_keys():
    lens = nl.load()
    result = study(lens, ["Rain fell."], studies=("targets",))["targets"]["self"]
    keys = len(lens.trace("Rain fell.").tokens[0])
    assert (result.entropy["weights"] <= math.log(keys) + 1e-6).all()


def test_padding_changes_nothing():
    lens = nl.load()
    together = study(lens, list(TEXTS), studies=("targets",))["targets"]["self"]
    alone = study(lens, list(TEXTS), studies=("targets",), batch_tokens=1)["targets"]["self"]
    for key, values in together.shares.items():
        np.testing.assert_allclose(values, alone.shares[key], atol=1e-5)
