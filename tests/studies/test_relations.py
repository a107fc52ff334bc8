"""Relations: heads built to find them, plain loops over words, and what cannot be asked."""

import math

import numpy as np
import pytest
import torch

import normlens as nl
from normlens.algebra import to_words, word_pieces
from normlens.cli.main import main
from normlens.corpora import corpus, make_categories
from normlens.models import placed
from normlens.signature import Signature
from normlens.studies import Facts, RelationsStudy, StudyError, batches, seen_block, study
from normlens.studies.labelled_words import OFFSETS, labelled_words
from normlens.studies.relations import Relation
from normlens.studies.sums import Sums


def sentence(*rows):
    """CoNLL-U of (number, word, number of the head word, relation)."""
    return "".join(f"{number}\t{word}\t_\t_\t_\t_\t{head}\t{name}\t_\t_\n" for number, word, head, name in rows)


TREEBANK = (
    sentence(
        (1, "The", 2, "det"), (2, "cat", 5, "nsubj"), ("3-4", "can't", "_", "_"), (3, "ca", 5, "aux"),
        (4, "n't", 5, "advmod"), (5, "sleep", 0, "root"), (6, ".", 5, "punct"),
    )
    + "\n"
    + sentence(
        (1, "bout", 0, "root"), ("2-3", "du", "_", "_"), (2, "de", 4, "case"), (3, "le", 4, "det"),
        (4, "monde", 1, "nmod"),
    )
)  # fmt: skip
OUT, BACK = "dependent → head word", "head word → dependent"
ITEMS = [
    {"words": ["The", "cat", "saw", "an", "unbelievability", "."], "pairs": [
        ["det", 1, 0], ["det", 4, 3], ["nsubj", 2, 1], ["obj", 2, 4], ["punct", 2, 5]]},
    {"words": ["A", "dog", "ran", ",", "fell", "and", "slept", "."], "pairs": [
        ["det", 1, 0], ["conj", 2, 4], ["conj", 2, 6], ["punct", 2, 7], ["punct", 4, 3]]},
]  # fmt: skip


def see_by_hand(lens, items, maps, norms=None, length=128):
    """The study's result for head 0 of these maps over tokens and these ‖f(x)‖; head 1 attends to all keys alike."""
    (batch,) = batches(
        lens.subject, list(corpus(items)), make_categories(None, lens.subject), length=length, tokens=9999
    )
    group = batch.groups["text"]
    size = group.ids.shape[1]
    weights, lengths = torch.zeros(len(items), 2, size, size), torch.ones(len(items), 2, size)
    for row, item in enumerate(batch.items):
        index = int(item.where[6:-1])  # "texts[1]"
        n = int(group.lengths[row])
        weights[row, 1, :n, :n] = 1 / n
        weights[row, 0, :n, :n] = torch.as_tensor(maps(n), dtype=torch.float32)
        if norms is not None:
            lengths[row, 0, :n] = torch.as_tensor(norms(n, index), dtype=torch.float32)
    kept = {"weights": weights, "transformed_norms": lengths}
    kept["visible"] = (kept["weights"] != 0).any(dim=1).float()
    block = nl.Block(
        "self", 0, "made", (0, 1), 0.0, "text", "text", kept, tuple((n, n) for n in group.lengths.tolist())
    )
    run = Facts(lens, "made", "by hand", Signature(()), ("other",), None, 0, length)
    settings = RelationsStudy(least=1)
    statistics = settings.see(seen_block(run, block, group, group, 0))
    sums = Sums({}, "relations", "self")
    for name, statistic in statistics.items():
        sums.add(f"0/{name}", statistic)
    return settings.result(sums, run)


def shifted(step):
    """Every query attends to the token `step` away; where there is none, to itself."""

    def maps(n):
        found = np.zeros((n, n))
        for i in range(n):
            found[i, i + step if 0 <= i + step < n else i] = 1
        return found

    return maps


def accuracies(result, measure="weights"):
    return {(one.name, one.direction): float(one.accuracy[measure][0, 0]) for one in result.relations}


def test_a_head_that_attends_to_the_next_word_finds_the_noun_of_every_determiner_and_not_the_way_back(minilm):
    items = [ITEMS[1]]  # every word is one piece
    ahead, back = (accuracies(see_by_hand(minilm, items, shifted(step))) for step in (1, -1))
    assert (ahead["det", OUT], ahead["det", BACK]) == (1, 0)
    assert (back["det", OUT], back["det", BACK]) == (0, 1)


def test_of_several_dependents_any_is_found_and_the_head_word_counts_once(minilm):
    result = see_by_hand(minilm, [ITEMS[1]], shifted(2))
    conj = {one.direction: one for one in result.relations if one.name == "conj"}
    assert (conj[BACK].words, conj[OUT].words) == (1, 2)
    assert float(conj[BACK].accuracy["weights"][0, 0]) == 1  # ran → fell, two words on
    assert float(conj[OUT].accuracy["weights"][0, 0]) == 0
    assert (conj[OUT].offset, conj[OUT].baseline) == (-2, 0.5)


def test_attention_to_special_tokens_and_to_the_word_itself_is_no_prediction(minilm):
    """Nearly all on [CLS], [SEP] and itself; of the rest most on the next token."""

    def maps(n):
        found = 0.2 * shifted(1)(n) + 0.3 * np.eye(n)
        found[:, 0] += 0.3
        found[:, -1] += 0.2
        return found

    assert accuracies(see_by_hand(minilm, [ITEMS[1]], maps))["det", OUT] == 1
    assert accuracies(see_by_hand(minilm, [ITEMS[1]], lambda n: np.eye(n)))["det", OUT] == 0


def test_norms_can_find_what_weights_do_not(minilm):
    """0.6 of the attention on the token before, 0.4 on the next one; "a" has f(x) = 0 and contributes nothing."""

    def maps(n):
        return 0.6 * shifted(-1)(n) + 0.4 * shifted(1)(n)

    items = [{"words": ["a", "dog", "cat"], "pairs": [["obj", 2, 1]]}]
    result = see_by_hand(minilm, items, maps, lambda n, item: [1, 0, 1, 1, 1])
    assert (accuracies(result)["obj", OUT], accuracies(result, "norms")["obj", OUT]) == (0, 1)


def slowly(lens, items, measure):
    """Hits by (relation, direction), each (layer, head): loops over words, pieces by the tokenizer's own word ids."""
    hits = {}
    for item in items:
        text = " ".join(item["words"])
        pieces = lens.subject.tokenizer(item["words"], is_split_into_words=True).word_ids()
        trace = lens.trace(text)
        assert len(pieces) == len(trace.tokens[0])
        maps = [b.weights if measure == "weights" else b.weighted_norms for b in trace.self_attention]
        maps = np.stack([m[0].double().numpy() for m in maps])
        maps = maps / maps.sum(-1, keepdims=True)
        of = [[p for p, word in enumerate(pieces) if word == w] for w in range(len(item["words"]))]
        for relation in {pair[0] for pair in item["pairs"]}:
            pairs = [(i, j) for r, i, j in item["pairs"] if r == relation]
            for direction, ends in ((OUT, [(j, i) for i, j in pairs]), (BACK, pairs)):
                for asks in {a for a, _ in ends}:
                    right = {b for a, b in ends if a == asks}
                    scores = np.stack(
                        [
                            maps[:, :, of[asks]][..., of[key]].sum(-1).mean(-1)
                            if key != asks
                            else np.zeros(maps.shape[:2])
                            for key in range(len(of))
                        ]
                    )
                    hits.setdefault((relation, direction), []).append(np.isin(scores.argmax(0), list(right)))
    return {key: (len(found), np.mean(found, axis=0)) for key, found in hits.items()}


@pytest.mark.parametrize("batch_tokens", [4096, 1])
def test_a_run_is_what_loops_over_words_find(minilm, batch_tokens):
    result = study(minilm, ITEMS, studies=("relations",), batch_tokens=batch_tokens)["relations"]["self"]
    assert any(len(minilm.subject.tokenizer.tokenize(word)) > 1 for item in ITEMS for word in item["words"])
    for measure in ("weights", "norms"):
        expected = slowly(minilm, ITEMS, measure)
        assert {(one.name, one.direction): one.words for one in result.relations} == {
            key: count for key, (count, _) in expected.items()
        }
        for one in result.relations:
            np.testing.assert_allclose(one.accuracy[measure], expected[one.name, one.direction][1])
    assert set(result.left_out.values()) == {0}


def test_pieces_of_a_key_add_up_and_those_of_a_query_are_averaged():
    maps = torch.arange(16.0).reshape(1, 4, 4)
    queries, keys = word_pieces([[None, 0, 0, 1]], 2, 4)
    expected = [[np.mean([5 + 6, 9 + 10]), np.mean([7, 11])], [13 + 14, 15]]
    assert to_words(maps, queries, keys)[0].tolist() == expected
    assert to_words(maps[:, None], queries, keys)[0, 0].tolist() == expected


def test_the_best_offset_is_the_baseline(minilm):
    items = [{"words": [*"abcdefghij"], "pairs": [["r", i, i + 3] for i in range(6)] + [["r", 9, 8]]}]
    result = study(minilm, items, studies=("relations",))["relations"]["self"]
    back = next(one for one in result.relations if one.direction == BACK)
    assert (back.words, back.offset, back.baseline) == (7, 3, 6 / 7)
    assert max(map(abs, OFFSETS)) == 5


def test_pairs_that_are_cut_are_left_out_and_counted(minilm):
    found = study(minilm, ITEMS[:1], studies=(RelationsStudy(least=1),), length=5)
    result = found["relations"]["self"]  # [CLS] the cat saw [SEP]
    assert result.left_out["cut"] == 3
    assert {one.name for one in result.relations} == {"det", "nsubj"}
    assert "3 pairs left out, because the text was cut" in " ".join(found.show().split())
    pieces = len(minilm.subject.tokenizer(" ".join(ITEMS[0]["words"]))["input_ids"])
    result = study(minilm, ITEMS[:1], studies=("relations",), length=pieces - 2)["relations"]["self"]
    assert result.left_out["cut"] == 3  # det, obj of the long word that lost a piece; punct


def test_words_that_the_tokenizer_joins_are_one_word(minilm, tmp_path):
    """BERT spells can't as can ' t: the first piece is of ca and of n."""
    (tmp_path / "a.conllu").write_text(TREEBANK)
    (batch,) = batches(
        minilm.subject,
        list(corpus(tmp_path / "a.conllu")),
        make_categories(None, minilm.subject),
        length=128,
        tokens=9999,
    )
    words = labelled_words(batch.groups["text"], minilm.subject.tokenizer)
    asked = {(words.names[n], int(b), int(q)): set(np.flatnonzero(t).tolist())
             for n, b, q, t in zip(words.name, words.batch, words.query, words.targets, strict=True)}  # fmt: skip
    english = next(row for row, item in enumerate(batch.items) if "cat" in item.texts[0])
    french = 1 - english
    # the cat can't sleep .
    assert asked[f"{OUT}/aux", english, 2] == asked[f"{OUT}/advmod", english, 2] == {3}
    assert asked[f"{OUT}/nsubj", english, 1] == {3}
    assert asked[f"{OUT}/punct", english, 4] == {3}
    # bout du monde
    assert asked[f"{OUT}/case", french, 1] == asked[f"{OUT}/det", french, 1] == {2}
    assert words.left_out == (0, 0, 0)


def test_a_relation_within_one_written_word_is_left_out_and_counted(minilm, tmp_path):
    (tmp_path / "a.conllu").write_text(sentence(("1-2", "du", "_", "_"), (1, "de", 2, "case"), (2, "le", 0, "root")))
    items = list(corpus(tmp_path / "a.conllu"))
    (batch,) = batches(minilm.subject, items, make_categories(None, minilm.subject), length=128, tokens=9999)
    assert labelled_words(batch.groups["text"], minilm.subject.tokenizer).left_out == (0, 1, 0)


def test_pieces_that_are_not_those_of_the_text_are_not_placed(minilm):
    tokenizer = minilm.subject.tokenizer
    ids = tokenizer("the cat sat")["input_ids"]
    assert placed(tokenizer, "the cat sat", [(0, 3), (4, 7), (8, 11)], ids).words == ((), (0,), (1,), (2,), ())
    assert placed(tokenizer, "the dog sat", [(0, 3), (4, 7), (8, 11)], ids) is None
    cut = placed(tokenizer, "the cat sat", [(0, 3), (4, 7), (8, 11)], [*ids[:2], ids[-1]])
    assert (cut.words, cut.cut) == (((), (0,), ()), {1, 2})


def test_a_decoder_is_asked_only_for_words_it_can_see(causal):
    result = study(causal, ITEMS[1:], studies=("relations",))["relations"]["self"]
    by_name = {(one.name, one.direction): one.words for one in result.relations}
    assert ("det", OUT) not in by_name  # the noun comes after its determiner
    assert by_name["det", BACK] == 1
    assert result.left_out["unseen"] > 0


def test_an_encoder_of_a_translation_model_is_asked_and_its_decoder_is_not(translator):
    found = study(translator, ITEMS[1:], studies=("relations",))
    assert set(found["relations"]) == {"encoder"}


def test_a_corpus_without_labels_is_refused_at_once(minilm, capsys):
    with pytest.raises(StudyError, match="there are no labelled words") as refused:
        study(minilm, ["The cat sat."], studies=("relations",))
    assert ".conllu" in str(refused.value)
    assert main(["study", "relations", "--limit", "2"]) != 0
    assert "Traceback" not in capsys.readouterr().err


def test_other_studies_run_on_a_treebank_as_on_any_text(minilm, tmp_path, capsys):
    (tmp_path / "a.conllu").write_text(TREEBANK)
    assert main(["study", "targets", "--corpus", str(tmp_path / "a.conllu")]) == 0
    assert "2 items" in capsys.readouterr().out
    assert main(["study", "relations", "--set", "least=1", "--corpus", str(tmp_path / "a.conllu")]) == 0
    assert "det" in capsys.readouterr().out


def test_an_interval_is_wilsons():
    one = Relation("r", OUT, 10, {}, 1, 0.5)
    low, high = one.interval(0.9)
    centre, n, z = 0.9, 10, 1.959964
    for end in (low, high):  # the ends solve |p − end| = z √(end (1 − end) / n)
        assert abs(centre - end) == pytest.approx(z * math.sqrt(end * (1 - end) / n), abs=1e-9)
    assert one.interval(1.0)[1] == pytest.approx(1.0)
    assert one.interval(0.0)[0] == pytest.approx(0.0)


def test_the_profile_names_the_relation_of_a_head(minilm):
    items = [{"words": ["the", "cat", "saw", "the", "dog"], "pairs": [["odd", 0, 4]]}]
    result = see_by_hand(minilm, items, shifted(0))
    assert RelationsStudy(least=9).per_head(result) is None
    assert RelationsStudy(least=1).per_head(result).rows() == []  # no head is above the offset of 4 words
    far = [{"words": [*"abcdefgh"], "pairs": [["far", 0, 7]]}]
    rows = RelationsStudy(least=1).per_head(see_by_hand(minilm, far, lambda n: np.eye(n)[::-1].copy())).rows()
    assert rows[0]["relation_weights"] in (f"far, {OUT}", f"far, {BACK}")
    assert rows[0]["relation_accuracy_norms"] == 1


def test_a_run_that_was_interrupted_is_continued_to_the_same_numbers(minilm, tmp_path, monkeypatch):
    monkeypatch.setattr("normlens.studies.run.SHARD", 1)
    monkeypatch.setattr("normlens.studies.run.SAVE", 0.0)
    items = [*ITEMS, *ITEMS[:1]]
    whole = study(minilm, items, studies=("relations",))

    def stop(done, total):
        stop.done = getattr(stop, "done", 0) + done
        if stop.done >= 2:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        study(minilm, items, studies=("relations",), folder=tmp_path, progress=stop)
    again = study(minilm, items, studies=("relations",), folder=tmp_path, resume=True)
    assert again.to_json() == whole.to_json()
