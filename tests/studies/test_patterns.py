"""The pattern of a map, for maps with a known answer and against plain loops."""

import numpy as np
import pytest
import torch

import normlens as nl
from normlens.models import Side
from normlens.signature import Signature
from normlens.studies import Facts, Group, seen_block, study
from normlens.studies.patterns import PATTERNS, PatternsStudy

N = 12
TOKENS = ("[CLS]", "a", "b", "c", "d", "[SEP]", "e", "f", "g", "h", "i", "[SEP]")
SPECIAL = tuple(token.startswith("[") for token in TOKENS)


def pattern_of(maps, norms=None, study=None):
    """The pattern of one map over two segments, by weights and by norms."""
    flags = np.array([SPECIAL])
    side = Side("text", tuple(range(N)), TOKENS, SPECIAL, tuple(range(N)))
    group = Group(np.arange(N)[None], np.zeros((1, N), np.int8), flags, np.array([N]), (side,))
    kept = {
        "weights": torch.tensor(np.asarray(maps), dtype=torch.float32)[None, None],
        "transformed_norms": torch.tensor(np.ones(N) if norms is None else norms, dtype=torch.float32)[None, None],
    }
    kept["visible"] = (kept["weights"] != 0).any(dim=1).float()
    block = nl.Block("self", 0, "attention", (0,), 0.0, "text", "text", kept, ((N, N),))
    run = Facts(None, "made", "by hand", Signature(()), ("other",), None, 0, N)
    seen = (study or PatternsStudy()).see(seen_block(run, block, group, group, 0))
    return tuple(PATTERNS[int(seen[f"follows_{measure}"].mean[0].argmax())] for measure in ("weights", "norms"))


def rows(maps):
    return maps / maps.sum(axis=1, keepdims=True)


UNIFORM = np.full((N, N), 1 / N)
VERTICAL = rows(UNIFORM + 4.0 * np.array(SPECIAL))
DIAGONAL = rows(0.01 + 5.0 * (np.abs(np.arange(N)[:, None] - np.arange(N)) <= 1))
FIRST = np.arange(N) <= 5
BLOCK = rows(0.01 + (FIRST[:, None] == FIRST) * 1.0 * ~np.array(SPECIAL))


@pytest.mark.parametrize(
    ("maps", "pattern"),
    [
        (UNIFORM, "heterogeneous"),
        (VERTICAL, "vertical"),
        (DIAGONAL, "diagonal"),
        ((VERTICAL + DIAGONAL) / 2, "vertical + diagonal"),
        (BLOCK, "block"),
    ],
    ids=["uniform", *PATTERNS[:4]],
)
def test_a_map_made_to_follow_a_pattern_is_called_by_it(maps, pattern):
    assert pattern_of(maps)[0] == pattern


def test_special_tokens_of_zero_norm_take_the_vertical_pattern_out_of_the_contributions():
    patterns = pattern_of((VERTICAL + DIAGONAL) / 2, norms=1.0 - np.array(SPECIAL))
    assert patterns == ("vertical + diagonal", "diagonal")


def test_the_thresholds_are_parameters():
    assert pattern_of(VERTICAL, study=PatternsStudy(much=0.99))[0] != "vertical"


def test_scores_are_those_of_plain_loops():
    lens = nl.load()
    texts = ["The cat sat. The dog ran away!", "Rain fell."]
    result = study(lens, texts, studies=("patterns",))["patterns"]["self"]
    vertical, diagonal, block = [], [], []
    for text in texts:
        trace = lens.trace(text)
        maps = np.stack([b.weights[0].double().numpy() for b in trace.self_attention])
        tokens, special = trace.tokens[0], trace.special[0]
        sentence = np.cumsum([0, *(s or t in ".!?" for t, s in zip(tokens, special, strict=True))])[:-1]
        n, sums = len(tokens), np.zeros((4, *maps.shape[:2]))
        pairs = np.zeros(4)
        for i in range(n):
            for j in range(n):
                near = abs(i - j) <= 1
                kinds = [not near and (special[j] or j == 0), near]
                kinds += [not any(kinds), not any(kinds) and sentence[i] == sentence[j]]
                for place, holds in enumerate(kinds):
                    sums[place] += maps[:, :, i, j] * holds / n
                    pairs[place] += holds
        vertical.append(sums[0])
        diagonal.append(sums[1])
        block.append(
            sums[3] / sums[2] / (pairs[3] / pairs[2]) if 0 < pairs[3] < pairs[2] else np.full(sums[0].shape, np.nan)
        )
    for place, expected in enumerate((vertical, diagonal, block)):
        np.testing.assert_allclose(
            result.scores["weights"][..., place], np.nanmean(expected, axis=0), rtol=1e-4, atol=1e-6
        )
