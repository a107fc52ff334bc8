"""The report of a comparison of aligners has the right numbers, names the right winner, and stands alone."""

import csv
import json
import re
from dataclasses import replace
from functools import partial
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from page_reader import Reader
from small_comparison import SENTENCES, compared, counted, direction, example

from normlens.alignment import Tally, alignment_document, alignment_text, bootstrap, write_alignment
from normlens.alignment.compared import Method, lowest
from normlens.alignment.report.figures import LONGEST
from normlens.alignment.report.sentences import layer_sentences, method_sentences
from normlens.views import WIDTH

pytest.importorskip("matplotlib", reason="matplotlib is not installed: pip install 'normlens[report]'")
NOTHING = Tally(np.array([(0, 3, 0, 0)] * SENTENCES, dtype=np.int32))
HOSTILE = example(("<b>", "$x^2_{", "{{style}}", "猫\u202e", "a" * 40), ("</svg>", "\ud800", "&amp;"), layers=2)
SHAPES = {
    "both directions": lambda: compared(),
    "one direction": lambda: compared(both=False),
    "one layer, one head, no example": lambda: compared(both=False, layers=1, heads=1, best=0, examples=[]),
    "many layers": lambda: compared(both=False, layers=26, heads=2, worse=2, examples=[]),
    "hostile words": lambda: compared(layers=2, examples=[HOSTILE, example(["w"] * (LONGEST + 1), layers=2)]),
    "no links": lambda: replace(
        compared(both=False), methods=(*compared().methods, Method.of("statistical", "<i>none", NOTHING))
    ),
}


@pytest.fixture(scope="module", params=SHAPES, ids=lambda name: re.sub(r"\W+", "-", name))
def page(request, tmp_path_factory) -> Path:
    return write_alignment(SHAPES[request.param](), tmp_path_factory.mktemp("report"), samples=20)


@pytest.fixture(scope="module")
def report(tmp_path_factory) -> Path:
    words = [f"wort{number}" for number in range(26)]
    shown = [example(), example(words, words[:20])]
    return write_alignment(compared(examples=shown), tmp_path_factory.mktemp("report"), text="made & told", samples=50)


def sentences(comparison) -> list[str]:
    return [*method_sentences(comparison), *layer_sentences(comparison)]


def read(report: Path, name: str) -> list[dict[str, str]]:
    with (report.parent / "tables" / f"{name}.csv").open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


def test_the_table_of_methods_holds_the_numbers_of_the_counts():
    """Links 3+1, sure 2+2, sure hits 1+1, possible hits 2+1: AER 1 - 5/8, precision 3/4, recall 2/4."""
    found = Tally(np.array([(3, 2, 1, 2), (1, 2, 1, 1)], dtype=np.int32))
    made = replace(compared(), methods=(Method.of("statistical", "by hand", found, needs_gold=True, chosen=True),))
    (row,) = alignment_document(made, samples=200).tables()["methods"].rows
    interval = bootstrap(found, samples=200).aer
    assert row == {
        "group": "statistical",
        "name": "by hand",
        "aer": 37.5,
        "aer_low": pytest.approx(100 * interval.low),
        "aer_high": pytest.approx(100 * interval.high),
        "precision": 75.0,
        "recall": 50.0,
        "links": 4,
        "needs_gold": "yes",
        "best_of_group": "yes",
    }


def test_a_mean_of_layers_has_an_error_and_no_counts(report):
    mean, weights, norms, *_ = read(report, "methods")
    assert (mean["aer"], mean["aer_low"], mean["precision"], mean["links"]) == ("35.0", "", "", "")  # of 40, 25, 40
    assert (weights["aer"], weights["best_of_group"]) == ("40.0", "no")
    assert (norms["aer"], norms["precision"], norms["recall"], norms["links"]) == ("25.0", "75.0", "75.0", "2000")
    assert float(norms["aer_low"]) < 25 < float(norms["aer_high"])


def test_every_layer_and_head_of_both_directions_has_its_row(report):
    layers, heads = read(report, "layers"), read(report, "heads")
    assert len(layers) == 2 * 2 * 2 * 3
    assert len(heads) == 2 * 2 * 3 * 2
    key = ("direction", "measure", "rows", "layer")
    errors = {tuple(row[name] for name in key): float(row["aer"]) for row in layers}
    assert errors["forward", "norms", "AWI", "1"] == 25
    assert errors["forward", "weights", "AWI", "0"] == 55
    assert errors["backward", "norms", "AWO", "2"] == 54
    one = next(row for row in heads if (row["rows"], row["layer"], row["head"]) == ("AWI", "1", "1"))
    assert (one["aer_weights"], one["aer_norms"], one["mean_norm"]) == ("49.0", "34.0", "0.9")
    assert json.loads((report.parent / "tables" / "heads.json").read_text(encoding="utf-8"))[0]["aer_norms"] == 43


def test_heads_that_contribute_more_and_err_less_have_a_rank_correlation_of_minus_one():
    made = direction(layers=3, heads=1)
    assert replace(made, norms=np.array([[0.4], [0.9], [0.4]])).norm_rho("input") == pytest.approx(-1)
    assert replace(made, norms=np.array([[0.1], [0.2], [0.3]])).norm_rho("output") == pytest.approx(-1)
    assert np.isnan(replace(made, norms=np.ones((3, 1))).norm_rho("input"))


@given(percents=st.lists(st.integers(5, 95), min_size=1, max_size=6))
def test_the_best_are_those_with_the_least_error_and_there_is_always_one(percents):
    methods = [Method.of("statistical", str(percent), counted(percent)) for percent in percents]
    mean = Method("statistical", "a mean", None, 0.0)
    assert [one.name for one in lowest([mean, *methods])] == [str(p) for p in percents if p == min(percents)]


@pytest.mark.parametrize(
    ("both", "statistical", "winner"),
    [
        (True, 28, "“norms, maps multiplied”, 20.0 %"),
        (False, 28, "“norms AWI, best layer L1”, 25.0 %"),
        (True, 12, "“fast_align →”, 12.0 %"),
    ],
)
def test_the_terminal_names_the_winner(both, statistical, winner):
    text = alignment_text(compared(both=both, statistical=statistical, multiplied=(21, 20)), samples=20)
    assert f"lowest of all: {winner}\n" in text


def test_a_tie_names_both():
    made = compared(multiplied=(20, 20))
    assert "lowest of all: “weights, maps multiplied” and “norms, maps multiplied”, 20.0 %" in alignment_text(made)
    assert any("norms and weights do equally well" in sentence for sentence in sentences(made))


def test_the_terminal_marks_the_best_of_each_group_and_what_needed_gold():
    lines = alignment_text(compared(multiplied=(21, 20)), samples=20).splitlines()
    marked = [line.strip() for line in lines if line.startswith("  * ")]
    assert [line[2:].split("  ")[0] for line in marked] == [
        "norms AWI, best layer L1 †",
        "norms, maps multiplied",
        "fast_align →",
    ]
    ends = {len(line) for line in lines if line.endswith("links")}
    assert {len(line) for line in lines if re.search(r"\d to [\d.]+ +[\d.]+ +[\d.]+ +[\d,]+$", line)} == ends


def test_the_choice_made_without_gold_is_one_line_with_its_score():
    (line,) = [line for line in alignment_text(compared(), samples=20).splitlines() if line.startswith("chosen")]
    assert line.startswith(
        "chosen without gold: using layer 1 (AWI) of de-en, which has the largest mean norm (L0 0.5, L1 1.0); using "
        "layer 1 (AWI) of en-de, which"
    )
    assert line.endswith("; soft: 20.0 %")
    (line,) = [
        line for line in alignment_text(compared(both=False), samples=20).splitlines() if line.startswith("chosen")
    ]
    assert line.endswith(": 27.0 %")


def test_sentences_say_who_is_better_and_what_chance_could_give():
    said = "\n".join(sentences(compared(multiplied=(20, 20), statistical=28)))
    assert "(layer 1, AWI) has an error of 25.0 %, the best by weights (layer 1, AWI) 40.0 %" in said
    assert "norms do better by 15.0 points, more than chance explains (paired test, p < 0.001)" in said
    assert "5.0 points below the best of one direction" in said
    assert "is layer 1: 25.0 % under AWI (no layer does better there), 65.0 % under AWO" in said
    noisy = Method.of("statistical", "noisy", Tally(np.array([(100, 100, h, h) for h in (99, 60)] * 2, dtype=np.int32)))
    close = Method.of(
        "both directions", "close", Tally(np.array([(100, 100, h, h) for h in (62, 98)] * 2, dtype=np.int32))
    )
    (winner, *_) = sentences(replace(compared(), methods=(noisy, replace(close, chosen=True))))
    assert winner.startswith("The lowest error of all is 20.0 %: “close” (both directions).")
    assert "“noisy” (statistical) has 20.5 %, 0.5 points more, which chance alone could explain" in winner


def test_a_winner_that_needed_gold_is_told_beside_the_best_that_did_not():
    (winner, *_) = sentences(compared(both=False, statistical=28))
    assert winner.startswith(
        "The lowest error of all is 25.0 %: “norms AWI, best layer L1” (one direction). Its layer or head was chosen "
        "with the gold; of those that need none, “norms AWI L1, chosen without gold” has 27.0 %."
    )


def test_weights_win_when_they_are_better():
    made = compared(multiplied=(20, 24))
    assert any(
        "norms have 24.0 % and weights 20.0 %: weights do better by 4.0 points" in one for one in sentences(made)
    )


def test_the_page_is_well_formed_and_asks_for_nothing(page):
    text = page.read_text(encoding="utf-8")
    read_page = Reader(text)
    assert len(read_page.ids) == len(set(read_page.ids))
    assert "http://" not in text
    assert "https://" not in text
    assert text.count("<script") == 1  # which sorts tables
    assert "<i>" not in text
    for link in read_page.links:
        if link.startswith("#"):
            assert link[1:] in read_page.ids
        elif not link.startswith("data:"):
            assert (page.parent / link).is_file()
    files = {str(path.relative_to(page.parent)) for path in page.parent.rglob("*") if path.is_file()}
    assert files - set(read_page.links) == {"report.html"}


def test_the_page_has_the_numbers_of_the_paper_and_the_signatures(report):
    text = report.read_text(encoding="utf-8")
    for number in ("51.9", "81.4", "28.3", "61.6", "36.4", "28.4", "21.0", "29.8", "25.0", "83.0", "−0.44", "0.56"):
        assert f"<td>{number}</td>" in text
    assert "the data and the models are others" in text
    assert "made &amp; told" in text
    for signature in (compared().aligner.signature, compared().forward.signature):
        assert str(signature) in text


def test_figures_bear_their_words_and_numbers(report):
    def labels(name: str) -> list[str]:
        return re.findall(r"<!-- (.*?) -->", (report.parent / "figures" / f"{name}.svg").read_text(encoding="utf-8"))

    layers = labels("figure-7")
    assert {"weights", "norms", "layer", "source → target, AWI", "target → source, AWO"} <= set(layers)
    assert layers.count("25.0") == 1
    assert layers.count("29.0") == 1
    heads = labels("heads")
    assert {"AER in %, AWI", "AER in %, AWO", "mean norm ‖αf(x)‖", "28.0", "34.0"} <= set(heads)
    assert sum(label.startswith("with mean norm: ρ = ") for label in heads) == 2
    words = labels("figure-8-1")
    assert words.count("haus") == words.count("&lt;/s&gt;") == 3  # above each panel
    assert words.count("house") == 1  # to the left of the first
    assert {"weights α", "norms ‖Σαf(x)‖", "gold"} <= set(words)
    assert labels("figure-8-2").count("wort19") == 3 + 2  # two panels in a line, the gold below


def test_the_map_of_an_example_is_drawn_over_the_hatched_ground_that_only_its_holes_show(report):
    svg = (report.parent / "figures" / "figure-8-1.svg").read_text(encoding="utf-8")
    panels = svg.split('<g id="axes_')[1:]
    assert len(panels) == 3
    assert all(0 < panel.index("url(#") < panel.index("<image") for panel in panels)


def test_every_layer_of_every_example_is_drawn_within_the_width_of_a_page(report):
    drawn = {path.stem for path in (report.parent / "figures").glob("figure-8-*.svg")}
    assert drawn == {f"figure-8-{n}{layer}" for n in (1, 2) for layer in ("", "-layer-0", "-layer-2")}
    for path in (report.parent / "figures").glob("*.svg"):
        box = re.search(r'viewBox="0 0 ([\d.]+) ', path.read_text(encoding="utf-8"))
        assert box is not None
        assert float(box[1]) <= 72 * WIDTH + 0.5


def test_the_same_comparison_gives_the_same_files(tmp_path):
    made = compared(both=False, layers=2)
    one, two = (write_alignment(made, tmp_path / name, samples=20).parent for name in ("one", "two"))
    for path in one.rglob("*.*"):
        assert path.read_bytes() == (two / path.relative_to(one)).read_bytes()


def test_the_page_opens_silently_in_a_browser_of_any_width(opened, report):
    view = partial(opened, report)
    tab = view()
    assert tab.locator("figure svg").count() == 1 + 2 + 2 * 3
    assert tab.locator("#main-results li").count() >= 5
    tab.locator("summary").last.click()
    assert tab.locator("figure svg:visible").last.bounding_box()["width"] > 200
    for width in (320, 900):
        narrow = view(viewport={"width": width, "height": 800})
        assert narrow.evaluate("document.documentElement.scrollWidth") <= width
