"""The profile of every head: each head of a hand-made model by its role, and the columns of all studies in one row."""

import json

import numpy as np
import pytest
import roles
import torch
from transformers import BertConfig, BertForSequenceClassification

import normlens as nl
from normlens.corpora import corpus
from normlens.exhibits import Section
from normlens.statistics import Moments
from normlens.studies import HeadColumn, NoTable, PerHead, StudyError
from normlens.studies.profile import described, joined, role_of

NAN = float("nan")
BOTH = (
    "current",
    "previous",
    "next",
    "first",
    "special",
    "punctuation",
    "entropy",
    "distance",
    "duplicate",
    "induction",
)
PROMISED = {
    *(f"{name}_{measure}" for name in (*BOTH, "pattern") for measure in ("weights", "norms")),
    "repetition_lift", "same_sentence_lift", "similarity_distance", "dominant_token", "dominant_share", "sink_rate",
    "sink_kind", "importance",
}  # fmt: skip


@pytest.fixture(scope="module")
def by_role():
    """The rows of the hand-made model by the role its head was made for."""
    report = nl.heads(roles.lens(), roles.texts())
    rows = {(row["layer"], row["head"]): row for row in report.heads}
    return {name: rows[place] for name, place in roles.HEADS.items()}


@pytest.mark.parametrize(
    ("name", "role"),
    [
        ("previous", "previous token"),
        ("repeat", "copies"),
        ("repeat", "pairs copies"),
        ("sentence", "pairs tokens of one sentence"),
        ("one token", "broadcast sink at other tokens"),
        ("one token", "built around “river”"),
        ("induce", "induction"),
        ("no-op", "no-op sink at position 0"),
        ("broadcast", "broadcast sink at position 0"),
    ],
)
def test_the_profile_of_a_head_names_the_role_it_was_made_for(by_role, name, role):
    assert role in by_role[name]["role"].split("; ")


def test_a_head_that_was_made_for_nothing_has_no_role(by_role):
    assert by_role["spread"]["role"] is None


def test_the_columns_of_each_head_have_the_known_answer(by_role):
    for measure in ("weights", "norms"):
        assert by_role["previous"][f"previous_{measure}"] > 0.99
        assert by_role["previous"][f"pattern_{measure}"] == "diagonal"
        assert by_role["repeat"][f"duplicate_{measure}"] > 0.99
        assert by_role["induce"][f"induction_{measure}"] > 0.99
        assert by_role["sentence"][f"pattern_{measure}"] == "block"
    assert by_role["one token"]["dominant_token"] == "river"
    assert by_role["one token"]["dominant_share"] == 1
    assert by_role["no-op"]["first_weights"] > 0.9
    assert by_role["no-op"]["first_norms"] < 1e-6
    assert (by_role["no-op"]["sink_kind"], by_role["broadcast"]["sink_kind"]) == ("no-op", "broadcast")
    assert by_role["broadcast"]["first_norms"] > 0.9
    assert by_role["no-op"]["difference"] > 0.9
    assert by_role["broadcast"]["difference"] < 0.1


def row(**values):
    nothing = {"role": None, "sink_kind": None, "sink_position": None}
    return nothing | values


@pytest.mark.parametrize(
    ("values", "role"),
    [
        ({}, ""),
        ({"next_weights": 0.51, "next_norms": 0.51}, "next token"),
        ({"next_weights": 0.5, "next_norms": 0.5}, ""),
        ({"next_weights": 0.6, "next_norms": 0.1}, "next token by α only"),
        ({"next_weights": None, "next_norms": 0.6}, "next token by ‖αf(x)‖ only"),
        ({"sink_kind": "neither", "sink_position": "special"}, "sink at special tokens"),
        ({"sink_kind": "no-op", "sink_position": "1"}, "no-op sink at position 1"),
        ({"repetition_lift": 20, "current_weights": 0.9, "current_norms": 0.8}, "token itself; pairs copies"),
        ({"repetition_lift": 15.0}, "pairs copies"),
        ({"repetition_lift": 14.9}, ""),
        ({"same_sentence_lift_at_distance": 1.2}, "pairs tokens of one sentence"),
        ({"dominant_share": 0.6, "dominant_token": "a", "dominant_texts": 0.5}, "built around one token of each text"),
        ({"dominant_share": 0.6, "dominant_token": "a", "dominant_texts": 0.51}, "built around “a”"),
        ({"dominant_share": 0.6, "dominant_by_chance": 0.31, "dominant_token": "a", "dominant_texts": 1.0}, ""),
    ],
)  # fmt: skip
def test_roles_follow_the_stated_bounds(values, role):
    assert role_of(row(**values)) == role


def test_a_head_in_a_sentence():
    assert described(row()) == "no clear role"
    values = {"role": "next token", "pattern_weights": "diagonal", "pattern_norms": "block"}
    assert described(row(**values)) == "next token; diagonal by α, block by ‖αf(x)‖"


def test_columns_are_joined_by_layer_and_head_and_where_a_study_has_no_head_there_is_no_value():
    left = PerHead((0, 2), (HeadColumn("a", "a", np.array([[1.0, 2.0], [3.0, 4.0]])),))
    right = PerHead((2, 5), (HeadColumn("b", "b", np.array([["x"], ["y"]])),))
    heads = joined({"left": left, "right": right})
    assert [(r["head_name"], r["a"], r["b"]) for r in heads.rows()] == [
        ("L0H0", 1.0, None), ("L0H1", 2.0, None), ("L2H0", 3.0, "x"), ("L2H1", 4.0, None), ("L5H0", None, "y"),
    ]  # fmt: skip
    assert [column.study for column in heads.columns] == ["left", "right"]


def test_a_column_of_two_studies_is_refused_with_the_names_of_both():
    one = PerHead((0,), (HeadColumn("rank", "rank", np.ones((1, 2))),))
    with pytest.raises(StudyError, match=r"The study 'b' and the study 'a' both have a column 'rank' for every head"):
        joined({"a": one, "b": one})
    kind = PerHead((0,), (HeadColumn("kind", "kind", np.ones((1, 2))),))
    with pytest.raises(StudyError, match="The study 'a' and the profile itself both have a column 'kind'"):
        joined({"a": kind})


def test_a_column_without_a_value_for_every_head_is_refused():
    with pytest.raises(
        nl.NormlensError, match=r"column 'a' must have a row for each layer.*\n  Got: an array of shape"
    ):
        PerHead((0, 1), (HeadColumn("a", "a", np.ones(2)),))


class Sharpness(nl.Study):
    """The largest weight of each query, as a mean for every head."""

    name, title = "sharpness", "How sharp is each head?"

    def see(self, seen):
        return {"max": Moments.of(seen.weights.amax(-1).sum(-1).numpy() / seen.queries[:, None])}

    def result(self, sums, run):
        layers, moments = sums.by_layer("max")
        return PerHead(layers, (HeadColumn("sharpness", "sharpness", np.stack([m.mean for m in moments])),))

    def per_head(self, result):
        return result

    def section(self, result, run):
        return Section([], [result.table("sharpness", "Sharpness of every head")])


def test_a_study_of_the_users_own_has_a_column_in_the_profile(minilm, texts):
    report = nl.heads(minilm, texts, studies=("patterns", Sharpness()))
    frame = report.to_dataframe()
    assert list(frame.columns)[:5] == ["kind", "head_name", "layer", "head", "role"]
    assert list(frame.columns)[-1] == "sharpness"
    assert len(frame) == 72
    assert (frame["sharpness"] > 0).all()
    chapter = report.findings.document().chapters[0]
    assert (chapter.name, chapter.title) == ("heads", "What does each head do?")
    assert [group for group, _ in chapter.articles[0].tables[0].column_groups] == ["", "", "patterns", "sharpness"]


def test_what_is_no_profile_is_refused_with_the_name_of_the_study(minilm, texts):
    wrong = type("Wrong", (Sharpness,), {"per_head": lambda self, result: 7})()
    with pytest.raises(
        StudyError, match=r"The study 'sharpness' failed in per_head\(\): what it returns is no PerHead"
    ):
        nl.report(minilm, texts, studies=(wrong,)).heads  # noqa: B018


def test_one_study_makes_a_profile_but_no_chapter_and_studies_without_heads_make_neither(minilm, texts):
    report = nl.report(minilm, texts, studies=("patterns",))
    assert [chapter.name for chapter in report.findings.document().chapters] == ["patterns"]
    assert len(report.heads) == 72
    plain = nl.report(minilm, texts, studies=("categories",))
    assert plain.heads == []
    with pytest.raises(NoTable, match="This report has no profile of heads"):
        plain.to_dataframe()


@pytest.fixture(scope="module")
def profile(minilm, texts):
    return nl.heads(minilm, texts)


def test_every_promised_column_is_there_and_one_without_a_loss_is_empty_with_a_note(profile):
    rows = profile.heads
    assert rows[0].keys() >= PROMISED
    assert all(row["importance"] is None for row in rows)
    assert all(row["contribution_norms"] > 0 for row in rows)
    (note,) = profile.findings.run.notes
    assert note.startswith("The importance of heads is left out: 'all-MiniLM-L6-v2' (BertModel) predicts nothing")
    assert "To have it: give a model that was saved as ...ForSequenceClassification" in note
    assert "choices:importance(loss='none')" in str(profile.findings.run.signature)


def test_the_report_begins_with_the_heads_and_shows_their_maps_once(profile):
    document = profile.findings.document()
    assert [chapter.name for chapter in document.chapters][:2] == ["heads", "targets"]
    assert list(document.figures())[:2] == ["maps_weights_self", "maps_norms_self"]
    sentences = document.chapters[0].articles[0].section.sentences
    assert "of 72 heads have a clear role by our bounds: " in sentences[0]
    assert "no-op sink at position 0 (" in sentences[0]
    assert sentences[1] == "5 items only: roles may change with more text."
    assert "of the attention of a head, on average, is on tokens beyond their share" in sentences[2]


def test_it_is_saved_with_its_page_its_tables_and_the_file_of_the_explorer(profile, tmp_path):
    pytest.importorskip("matplotlib", reason="matplotlib is not installed: pip install 'normlens[report]'")
    page = profile.save(tmp_path).read_text(encoding="utf-8")
    assert '<section id="heads" data-study="heads">' in page
    assert '<th scope="colgroup" colspan="22"><span>targets</span></th>' in page
    assert len(json.loads((tmp_path / "tables" / "heads_self.json").read_text(encoding="utf-8"))) == 72
    heads = json.loads((tmp_path / "heads.json").read_text(encoding="utf-8"))
    kind = heads["kinds"]["self"]
    assert heads["model"].startswith("all-MiniLM-L6-v2@")
    assert ["targets", "previous α"] in kind["columns"]
    assert all(len(head["values"]) == len(kind["columns"]) for head in kind["heads"].values())
    assert kind["heads"]["L0H2"]["says"].endswith("; diagonal by α, diagonal by ‖αf(x)‖")


def test_every_kind_of_attention_has_its_heads_in_the_same_columns(translator, texts):
    rows = nl.heads(translator, texts).heads
    assert [sum(row["kind"] == kind for row in rows) for kind in ("encoder", "decoder", "cross")] == [6, 4, 4]
    assert len({tuple(row) for row in rows}) == 1
    assert all(row["previous_weights"] is None for row in rows if row["kind"] == "cross")
    assert all(row["importance"] is not None for row in rows)


def test_importance_is_there_by_the_loss_that_the_model_was_made_for(causal, texts):
    report = nl.heads(causal, [" ".join(text) for text in texts])
    assert all(row["importance"] > 0 for row in report.heads)
    assert report.findings.run.notes == ()


def test_a_loss_that_the_model_does_not_have_is_refused_when_it_was_asked_for(minilm, causal, texts):
    with pytest.raises(StudyError, match="predicts nothing, so there is no loss"):
        nl.heads(minilm, texts, loss="masked")
    with pytest.raises(StudyError, match="has no masked loss"):
        nl.heads(causal, texts, loss="masked")


def test_a_classifier_without_labels_has_a_profile_without_importance(minilm, texts):
    config = BertConfig(
        vocab_size=30522, hidden_size=24, num_hidden_layers=1, num_attention_heads=2, intermediate_size=16
    )
    torch.manual_seed(0)
    lens = nl.load(BertForSequenceClassification(config).eval(), minilm.subject.tokenizer)
    report = nl.heads(lens, texts)
    assert all(row["importance"] is None for row in report.heads)
    assert "has no label. To have it: call the column or field 'label'" in report.findings.run.notes[0]
    labelled = corpus([{"text": text, "label": "0"} for text, _ in texts], column="text", label_column="label")
    assert all(row["importance"] is not None for row in nl.heads(lens, labelled).heads)


def test_interrupted_and_resumed_the_profile_is_the_same(minilm, tmp_path, monkeypatch, texts):
    pytest.importorskip("matplotlib", reason="matplotlib is not installed: pip install 'normlens[report]'")
    monkeypatch.setattr("normlens.studies.run.SHARD", 2)
    monkeypatch.setattr("normlens.studies.run.SAVE", 0.0)
    whole, done = nl.heads(minilm, texts), [0]

    def interrupt(items, total):
        done[0] += items
        if done[0] >= 3:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        nl.heads(minilm, texts, out=tmp_path, progress=interrupt)
    assert nl.heads(minilm, texts, out=tmp_path, resume=True).heads == whole.heads
