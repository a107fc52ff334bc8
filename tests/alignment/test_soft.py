"""Word-level maps are what loops over pieces find, whatever the batch, and AWI and AWO read the right rows."""

import re
from itertools import product

import numpy as np
import pytest
import torch
from translators import PAIRS, marian

import normlens as nl
from normlens.alignment.aligner import averaged, both, mutual, named, shares, spelled, strongest
from normlens.alignment.layers import largest_norm, mean_norms, most_agreed, self_agreed
from normlens.alignment.maps import ROWS, Reading, batches, each_map

READINGS = [
    Reading(measure, position, layer, head)
    for measure in ("weights", "norms")
    for position in ("input", "output")
    for layer in (0, 1)
    for head in (None, 0, 1)
]


@pytest.fixture(scope="module")
def translator():
    return marian(0)


def slowly(lens, source, target, reading):
    """One pair, no batch: loops over words and their pieces."""
    spell = lens.subject.tokenizer
    block = lens.trace(source=" ".join(source), target=" ".join(target)).cross_attention[reading.layer]
    if reading.head is not None:
        field = block.weights if reading.measure == "weights" else block.weighted_norms
        pieces = field[0, reading.head]
    else:
        pieces = block.weights[0].mean(0) if reading.measure == "weights" else block.summed_norms[0]
    columns = [word for word, text in enumerate(source) for _ in spell.tokenize(text)] + [len(source)]
    rows = [word for word, text in enumerate(target) for _ in spell.tokenize(text)]
    rows = [None, *rows] if reading.position == "input" else [*rows, None]
    out = np.zeros((len(target), len(source) + 1))
    for word in range(len(target)):
        own = [i for i, other in enumerate(rows) if other == word]
        for column, other in enumerate(columns):
            out[word, other] += sum(float(pieces[i, column]) for i in own) / len(own)
    return out


@pytest.mark.parametrize("reading", READINGS, ids=str)
def test_a_batch_of_pairs_is_each_pair_alone_in_loops(translator, reading):
    for (source, target), maps in zip(PAIRS, each_map(translator, PAIRS, READINGS), strict=True):
        np.testing.assert_allclose(maps[reading], slowly(translator, source, target, reading), atol=1e-6)


def test_small_batches_and_large_ones_give_the_same(translator):
    alone = each_map(translator, PAIRS, READINGS, batch_tokens=1)
    for one, other in zip(alone, each_map(translator, PAIRS, READINGS), strict=True):
        for reading in READINGS:
            np.testing.assert_allclose(one[reading], other[reading], atol=1e-6)


def test_pairs_that_cannot_be_read_keep_their_place_and_say_why(translator):
    long = ["das"] * 12
    pairs = [PAIRS[0], ([], ["a"]), (long, ["a"]), (["das"], []), PAIRS[1]]
    why = {}
    found = list(each_map(translator, pairs, READINGS[:1], left_out=why.__setitem__))
    assert [maps is None for maps in found] == [False, True, True, True, False]
    assert why == {
        1: "the source is empty",
        2: "the source has 13 pieces, the model takes 12",
        3: "the target is empty",
    }


def test_weights_of_a_word_add_up_to_one_with_what_is_no_word(translator):
    for maps in each_map(translator, PAIRS, READINGS):
        for reading, soft in maps.items():
            if reading.measure == "weights":
                np.testing.assert_allclose(soft.sum(axis=1), 1, atol=1e-6)


def test_batches_hold_every_item_once_and_no_more_tokens_than_asked():
    lengths = [5, 1, 9, 30, 2, 2, 8]
    groups = list(batches(lengths, [0, 1, 2, 3, 4, 6], 18))
    assert sorted(i for group in groups for i in group) == [0, 1, 2, 3, 4, 6]
    assert all(len(group) == 1 or len(group) * max(lengths[i] for i in group) <= 18 for group in groups)


def test_a_model_with_one_side_is_refused(minilm):
    with pytest.raises(nl.InputError, match="not a sequence-to-sequence model"):
        list(each_map(minilm, PAIRS, READINGS[:1]))


def test_mean_norms_are_means_over_all_cells(translator):
    cells = [
        [block.weighted_norms[0, head].flatten() for block in trace.cross_attention for head in (0, 1)]
        for trace in (translator.trace(source=" ".join(s), target=" ".join(t)) for s, t in PAIRS)
    ]
    slow = [float(torch.cat(column).mean()) for column in zip(*cells, strict=True)]
    np.testing.assert_allclose(mean_norms(translator, PAIRS).flatten(), slow, rtol=1e-5)
    largest = int(np.reshape(slow, (2, 2)).sum(axis=1).argmax())
    assert largest_norm(translator, PAIRS).places == (("input", largest),)


def links(maps, places):
    """Each target word with its strongest source word."""
    rows = shares([maps[Reading("norms", *place)] for place in places])
    return {(int(row.argmax()), target) for target, row in enumerate(rows)}


def runs(position):
    return [((position, 0),), ((position, 1),), ((position, 0), (position, 1))]


@pytest.mark.parametrize("position", ["input", "output"])
def test_the_layers_agreed_on_are_those_whose_links_coincide_most(translator, position):
    forward, backward = most_agreed(translator, translator, PAIRS, measure="norms", positions=(position,))
    ahead = list(each_map(translator, PAIRS, READINGS))
    behind = list(each_map(translator, [(t, s) for s, t in PAIRS], READINGS))
    scores = {}
    for one, two in product(runs(position), repeat=2):
        same = total = 0
        for front, back in zip(ahead, behind, strict=True):
            found, other = links(front, one), {(s, t) for t, s in links(back, two)}
            same, total = same + len(found & other), total + len(found) + len(other)
        scores[one, two] = 2 * same / total
    assert scores[forward.places, backward.places] == max(scores.values())


def test_two_ways_to_read_rows_count_by_how_much_the_directions_agree_on_them(translator):
    both, _ = most_agreed(translator, translator, PAIRS, measure="norms")
    alone = [
        most_agreed(translator, translator, PAIRS, measure="norms", positions=(position,))[0]
        for position in ("input", "output")
    ]
    assert both.places == (*alone[0].places, *alone[1].places)
    agreed = [float(re.search(r"AW[IO] ([\d.]+) %", choice.why)[1]) for choice in alone]
    halves = [sum(w for w, (rows, _) in zip(both.weights, both.places, strict=True) if rows == p) for p in ROWS]
    assert halves[0] / sum(halves) == pytest.approx(agreed[0] / sum(agreed), abs=2e-3)


def test_weights_of_readings_are_told_and_count():
    places = (("input", 0), ("input", 1), ("output", 2))
    assert named(places[:2], (1.0, 1.0)) == "AWI L0+L1"
    assert named(places) == "AWI L0+L1 & AWO L2"
    assert named(places, (3.0, 3.0, 2.0)) == "0.75 AWI L0+L1 & 0.25 AWO L2"
    assert spelled(places) == "layers 0 and 1 (AWI) and 2 (AWO)"
    assert spelled(places[:1]) == "layer 0 (AWI)"
    one, two = np.array([[4.0, 0.0, 0.0]]), np.array([[0.0, 1.0, 0.0]])
    np.testing.assert_allclose(shares([one, two], (3.0, 1.0)), [[0.75, 0.25]])
    np.testing.assert_allclose(averaged([one, two], (3.0, 1.0)), [[0.75, 0.25, 0.0]])
    np.testing.assert_allclose(shares([one, two], (0.0, 0.0)), [[0.5, 0.5]])  # no agreement at all: alike


def test_one_model_reads_the_layers_whose_two_ways_to_be_read_reach_most_words_alike(translator):
    found = self_agreed(translator, PAIRS, measure="norms")
    maps = list(each_map(translator, PAIRS, READINGS))
    scores = {}
    for one, two in product(runs("input"), runs("output")):
        if {layer for _, layer in one} & {layer for _, layer in two}:
            continue
        scores[one + two] = sum(len({s for s, _ in links(each, one) & links(each, two)}) for each in maps)
    assert scores[found.places] == max(scores.values())
    only = self_agreed(translator, PAIRS, measure="norms", positions=("output",))
    assert only.places == tuple(place for place in found.places if place[0] == "output")


def test_the_strongest_word_wins_unless_no_word_is_stronger():
    soft = np.array([[0.1, 0.6, 0.3], [0.2, 0.2, 0.6], [0.3, 0.3, 0.0], [0.0, 0.0, 0.0]])
    found = strongest(soft)
    assert found.links == ((0, 2), (1, 0))  # a tie goes to the first word; </s> and nothing give no link
    np.testing.assert_allclose(found.confidence, [0.5, 0.6])


def test_an_average_of_one_map_is_that_map_and_of_several_weighs_them_alike():
    one, two = np.array([[1.0, 3.0]]), np.array([[30.0, 10.0]])
    assert averaged([one]) is one
    np.testing.assert_allclose(averaged([one, two]), [[0.5, 0.5]])
    np.testing.assert_allclose(shares([np.array([[1.0, 3.0, 9.0]])]), [[0.25, 0.75]])


def test_links_of_both_directions_are_those_that_choose_each_other():
    forward = np.array([[0.9, 0.1], [0.6, 0.4], [0.0, 0.0]])  # target × source
    backward = np.array([[0.8, 0.2, 0.0], [0.1, 0.9, 0.0]])  # source × target
    agreed = both(forward, backward)
    np.testing.assert_allclose(agreed[1, 1], 0.6)
    found = mutual(agreed)
    assert found.links == ((0, 0), (1, 1))
    np.testing.assert_allclose(found.confidence, [np.sqrt(0.72), 0.6])
    assert mutual(agreed, min_confidence=0.7).links == ((0, 0),)
