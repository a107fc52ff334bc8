"""A study of the user's own is a study like any other: nothing of the package knows its name."""

import json
import math

import numpy as np
import pytest
import torch

import normlens as nl
from normlens.exhibits import Bar, Bars, Section, Table
from normlens.statistics import Moments, Sample
from normlens.studies import Needs, StudyError, study

pytestmark = pytest.mark.usefixtures("as_users_run_it")
ITEMS = [f"The {n} birds, {n + 1} of them grey, flew over the {'old ' * (n % 5)}town." for n in range(12)]


class Sharpness(nl.Study):
    """The largest weight of each query, as a mean for every head."""

    name, title = "sharpness", "How sharp is each head?"

    def see(self, seen):
        sharpest = seen.weights.amax(-1).movedim(1, -1).cpu().numpy()
        return {"max": Moments.of(sharpest[seen.real_queries])}

    def result(self, sums, run):
        layers, moments = sums.by_layer("max")
        return {layer: m.mean for layer, m in zip(layers, moments, strict=True)}

    def section(self, result, run):
        rows = [{"layer": layer, "sharpest": mean.max(), "head": mean.argmax()} for layer, mean in result.items()]
        bars = tuple(Bar(f"layer {row['layer']}", float(row["sharpest"])) for row in rows)
        return Section(
            [f"The largest mean is {max(bar.value for bar in bars):.3f}."],
            [Table("sharpness", "The sharpest head", rows), Bars("sharpness", "Means.", "6 bars.", bars, "max α")],
        )


@pytest.fixture
def small_shards(monkeypatch):
    monkeypatch.setattr("normlens.studies.run.SHARD", 4)
    monkeypatch.setattr("normlens.studies.run.SAVE", 0.0)


def contents(folder):
    return {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*.*")}


def test_it_is_in_the_page_the_files_the_terminal_and_the_findings(minilm, tmp_path):
    pytest.importorskip("matplotlib", reason="matplotlib is not installed: pip install 'normlens[report]'")
    report = nl.report(minilm, ITEMS[:3], studies=("categories", Sharpness()), out=tmp_path)
    sentence = report.findings.document().chapters[1].articles[0].section.sentences[0]
    page = (tmp_path / "report.html").read_text(encoding="utf-8")
    assert '<section id="sharpness" data-study="sharpness">' in page
    assert page.count(sentence) == 2  # among the main results, and in its place
    assert "sharpness, self-attention" in report.show()
    assert sentence in report.show()
    found = json.loads((tmp_path / "findings.json").read_text(encoding="utf-8"))
    assert found["found"]["self"][-1] == sentence
    rows = found["studies"]["sharpness"]["self"]["sharpness"]
    assert [row["layer"] for row in rows] == [0, 1, 2, 3, 4, 5]
    assert rows == json.loads((tmp_path / "tables" / "sharpness_self.json").read_text(encoding="utf-8"))
    assert (tmp_path / "tables" / "sharpness_self.csv").read_text().startswith("layer,sharpest,head\n0,0.")
    assert (tmp_path / "figures" / "sharpness_self.svg").is_file()
    assert len(report.to_dataframe("sharpness_self")) == 6


def test_its_numbers_are_those_of_the_traces_however_items_are_batched(minilm):
    expected = np.mean(
        [row for text in ITEMS[:4] for row in minilm.trace(text).self_attention[2].weights[0].amax(-1).T.tolist()], 0
    )
    for tokens in (1, 4096):
        found = study(minilm, ITEMS[:4], studies=(Sharpness(),), batch_tokens=tokens)
        np.testing.assert_allclose(found["sharpness"]["self"][2], expected, rtol=1e-5)


def test_interrupted_and_resumed_it_writes_the_same_bytes(minilm, small_shards, tmp_path):
    pytest.importorskip("matplotlib", reason="matplotlib is not installed: pip install 'normlens[report]'")
    done = [0]

    def interrupt(items, total):
        done[0] += items
        if done[0] >= 9:
            raise KeyboardInterrupt

    nl.report(minilm, ITEMS, studies=(Sharpness(),), out=tmp_path / "whole")
    with pytest.raises(KeyboardInterrupt):
        nl.report(minilm, ITEMS, studies=(Sharpness(),), out=tmp_path / "broken", progress=interrupt)
    nl.report(minilm, ITEMS, studies=(Sharpness(),), out=tmp_path / "broken", resume=True)
    whole, resumed = contents(tmp_path / "whole"), contents(tmp_path / "broken")
    assert whole.keys() == resumed.keys()
    assert [name for name in whole if whole[name] != resumed[name]] == []


def own(**members):
    """An instance of a study with these members in place of those above."""
    return type("Mine", (Sharpness,), members)()


class Bare(nl.Study):
    pass


@pytest.mark.parametrize(
    ("studies", "words"),
    [
        ([Bare()], "The study Bare needs a name and a title.\n  Got: name=None, title=None"),
        ([own(name="")], "The study Mine needs a name and a title"),
        ([own(name="my study")], r"Got: name='my study'.*\n  Do: set both on the class; the name is made of letters"),
        ([own(name="../up")], "Got: name='../up'"),
        ([own(name=7)], "Got: name=7"),
        ([own(title="")], "needs a name and a title"),
        ([own(name="categories")], "already a study called 'categories'.\n  Do: give Mine a name of its own"),
        ([Sharpness(), Sharpness()], "already a study called 'sharpness'"),
        ([Sharpness], r"is no study.\n  Do: give an instance of it: Sharpness\(\)"),
        ([7], "7 is no study"),
        ([own(result=nl.Study.result)], r"The study 'sharpness' has no result\(\)"),
        ([own(section=nl.Study.section)], r"The study 'sharpness' has no section\(\)"),
        ([own(see=nl.Study.see)], r"The study 'sharpness' has no see\(\)"),
        ([own(needs=("weights",))], "What the study 'sharpness' needs is not given as Needs"),
        ([], "No study was named"),
    ],
)
def test_what_is_no_study_is_refused_before_the_run(minilm, monkeypatch, studies, words):
    monkeypatch.setattr(type(minilm), "observe", None)
    with pytest.raises(StudyError, match=words):
        study(minilm, ITEMS[:2], studies=studies)


def fails(*_):
    raise ZeroDivisionError("by hand")


@pytest.mark.parametrize("method", ["counter", "see", "see_pass", "result"])
def test_what_it_raises_is_said_with_its_name_and_is_the_cause(minilm, method):
    with pytest.raises(StudyError) as failed:
        study(minilm, ITEMS[:2], studies=[own(**{method: fails})])
    assert str(failed.value).splitlines()[0] == f"The study 'sharpness' failed in {method}()."
    assert "Got: ZeroDivisionError: by hand (test_own_study.py, line " in str(failed.value)
    assert isinstance(failed.value.__cause__, ZeroDivisionError)


def shown(minilm, section):
    return study(minilm, ITEMS[:2], studies=[own(section=section)]).document().tables()


@pytest.mark.parametrize(
    ("section", "words"),
    [
        (fails, r"failed in section\(\).\n  Got: ZeroDivisionError"),
        (lambda *_: None, r"failed in section\(\): what it returns is no Section.\n  Got: None"),
        (lambda *_: Section("one sentence"), r"failed in section\(\): The sentences of a section must be a list"),
        (lambda *_: Section([], ["a picture"]), "An exhibit of a section must be a table or a figure.\n  Got: 'a pict"),
        (
            lambda *_: Section([], [Table("t", "", [{"a": np.zeros(3)}])]),
            "table 't' holds a value under 'a' that is no",
        ),
        (lambda *_: Section([], [Table("t", "", [{"a": 1}]), Table("t", "", [{"a": 1}])]), "the same file, 't_self'"),
        (lambda *_: Section([], [Table("../t", "", [{"a": 1}])]), "No file can be called '../t_self'"),
    ],
)
def test_what_cannot_be_shown_is_refused_in_words(minilm, section, words):
    with pytest.raises(nl.NormlensError, match=words):
        shown(minilm, section)


@pytest.mark.parametrize(
    ("see", "words"),
    [
        (
            lambda self, seen: {"max": 0.5},
            r"failed in see\(\): 'max' is no statistic.\n  Got: 0.5\n  Do: give one of Mom",
        ),
        (
            lambda self, seen: {"max": Moments.of(seen.received)},
            r"'max' does not have the same shape in every batch.\n  Got: \(12, \d+\), then \(12, \d+\)\n  Usual cause",
        ),
        (lambda self, seen: None, r"failed in see\(\).\n  Got: AttributeError"),
    ],
)
def test_what_cannot_be_added_is_refused(minilm, see, words):
    with pytest.raises(StudyError, match=words):
        study(minilm, ITEMS[:6], studies=[own(see=see)], batch_tokens=40)


def test_statistics_that_change_their_type_are_refused(minilm):
    random, kinds = np.random.default_rng(0), iter([Moments.of(np.ones((2, 3)))] * 6)

    def see(self, seen):
        return {"max": next(kinds, Sample.of(np.ones((2, 3)), size=5, random=random))}

    with pytest.raises(StudyError, match=r"not of the same type in every batch.\n  Got: Moments, then Sample"):
        study(minilm, ITEMS[:2], studies=[own(see=see)], batch_tokens=1)


def test_rows_become_plain_values_with_the_same_keys(minilm):
    rows = [
        {"a": np.float32(0.25), "b": np.int64(3), "c": math.nan},
        {"b": torch.tensor(2.5), "d": np.bool_(True), "e": -np.inf},
    ]
    (table,) = shown(minilm, lambda *_: Section([], [Table("t", "made", rows)])).values()
    nothing = dict.fromkeys("abcde")
    assert table.rows == [{**nothing, "a": 0.25, "b": 3}, {**nothing, "b": 2.5, "d": "yes"}]
    assert [type(value) for value in table.rows[0].values()] == [float, int, type(None), type(None), type(None)]


def test_a_table_without_rows_is_left_out(minilm, tmp_path):
    pytest.importorskip("matplotlib", reason="matplotlib is not installed: pip install 'normlens[report]'")
    empty = own(section=lambda *_: Section(["Nothing to list."], [Table("t", "made", [])]))
    report = nl.report(minilm, ITEMS[:2], studies=[empty], out=tmp_path)
    assert report.tables == {}
    assert not (tmp_path / "tables").exists()
    assert "Nothing to list." in report.show()


def test_a_study_that_counts_nothing_is_named(minilm):
    found = study(minilm, ITEMS[:2], studies=["categories", own(see=lambda self, seen: {})])
    assert found.run.notes == ("The study 'sharpness' counted nothing.",)
    assert "Note: The study 'sharpness' counted nothing.\n" in found.show()


def test_a_measure_of_the_users_own_is_there_by_its_name(minilm):
    measures = pytest.importorskip("normlens.measures")

    @measures.measure("sharpest", symbol="max α", axes=("batch", "head", "tgt"), needs=("weights",))
    def sharpest(weights):
        return weights.amax(-1)

    def see(self, seen):
        return {"max": Moments.of(seen["sharpest"].movedim(1, -1).cpu().numpy()[seen.real_queries])}

    mine = own(see=see, needs=Needs(quantities=("sharpest",)))
    one, other = (study(minilm, ITEMS[:3], studies=[each])["sharpness"]["self"] for each in (mine, Sharpness()))
    for layer in one:
        np.testing.assert_array_equal(one[layer], other[layer])


def over_weights(self, seen):
    seen.weights.mul_(0.5)
    return {}


def over_norms(self, seen):
    seen.norms[:] = 1
    return {}


def over_what_another_computed(self, seen):
    seen.contributions.zero_()
    return {}


@pytest.mark.parametrize("see", [over_weights, over_norms, over_what_another_computed])
def test_what_all_studies_read_cannot_be_written_over_by_one(minilm, see):
    with pytest.raises(StudyError, match=r"failed in see\(\): It wrote over what it was shown"):
        study(minilm, ITEMS[:1], studies=("maps", own(see=see)))


FILE = """
import normlens as nl
from normlens.exhibits import Section
from normlens.statistics import Moments

class Half(nl.Study):
    name, title = "half", "Half of the largest weight"

    def see(self, seen):
        return {"max": Moments.of(seen.weights.amax((-1, -2)).double().numpy() / 2)}

    def result(self, sums, run):
        return sums.by_layer("max")[1][0].mean

    def section(self, result, run):
        return Section([f"{result.mean():.6f}"])
"""


def test_a_run_of_a_study_that_was_rewritten_since_is_not_resumed(minilm, tmp_path):
    from normlens.cli.studies import studies_from

    def run(text, **options):
        (tmp_path / "mine.py").write_text(text, encoding="utf-8")
        return study(minilm, ITEMS[:2], studies=studies_from(f"{tmp_path}/mine.py:Half"), **options)["half"]["self"]

    first = run(FILE, folder=tmp_path / "out")
    np.testing.assert_array_equal(run(FILE, folder=tmp_path / "out", resume=True), first)
    with pytest.raises(StudyError, match=r"What differs:\n  studies: half of .*Half@"):
        run(FILE.replace("/ 2", "/ 20"), folder=tmp_path / "out", resume=True)
