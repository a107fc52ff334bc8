"""What agrees, what differs, what is not said."""

from dataclasses import replace
from decimal import ROUND_DOWN, ROUND_HALF_EVEN, ROUND_HALF_UP, Decimal

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from paper_findings import findings, with_result

from normlens.corpora import frequency
from normlens.papers import compare, rounds_to
from normlens.papers import kobayashi2020 as expected

PRINTED = st.decimals(-100, 100, places=2).map(str)


def cells(comparison, verdict):
    return [(cell.source, cell.what, cell.where) for cell in comparison.cells if cell.verdict == verdict]


def of(comparison, source, what):
    return [cell for cell in comparison.cells if cell.source == source and what in cell.what]


def test_the_papers_own_numbers_agree_in_every_cell():
    comparison = compare(findings())
    assert comparison.counts == {"agrees": 52, "differs": 0, "not measured": 0, "not judged": 0}
    assert comparison.other_data == comparison.other_model == ""
    assert "all 9 checksums agree" in comparison.show()
    assert "52 cells: 52 agree\n" in comparison.show()


@given(st.floats(-100, 100), st.sampled_from([0, 1, 2, 3]))
def test_a_number_agrees_with_itself_rounded(value, places):
    for rounding in (ROUND_HALF_EVEN, ROUND_HALF_UP):
        printed = Decimal(value).quantize(Decimal(1).scaleb(-places), rounding=rounding)
        assert rounds_to(value, str(printed))


@given(st.floats(-100, 100), PRINTED)
def test_a_number_that_agrees_is_half_a_unit_off_at_most(value, printed):
    assert rounds_to(value, printed) == (abs(Decimal(value) - Decimal(printed)) <= Decimal("0.005"))


@given(PRINTED, st.sampled_from([-1, 1]))
def test_the_next_printed_figure_differs(printed, step):
    assert not rounds_to(float(Decimal(printed) + step * Decimal("0.01")), printed)


@given(st.floats(0, 1))
def test_cutting_digits_off_is_not_rounding(value):
    cut = Decimal(value).quantize(Decimal("0.01"), rounding=ROUND_DOWN)
    assert rounds_to(value, str(cut)) == (Decimal(value) - cut <= Decimal("0.005"))


def test_the_printed_digits_decide():
    assert rounds_to(4.004, "4.00")
    assert not rounds_to(4.04, "4.00")
    assert rounds_to(4.04, "4.0")
    assert rounds_to(4.4, "4")
    assert not rounds_to(float("nan"), "4")


def test_a_count_differs_by_one():
    one = findings()
    pairs = one["correlation"]["self"].pairs + np.array([0, 0, 144, 0])
    comparison = compare(with_result(one, "correlation", pairs=pairs))
    assert cells(comparison, "differs") == [
        ("Data", "pairs per head", "comma & period"),
        ("Table 2", "pairs", "comma & period"),
    ]
    assert [cell.difference for cell in comparison.cells if cell.verdict == "differs"] == [1, 144]


def test_other_data_is_said_before_any_cell():
    comparison = compare(findings(items=5, tokens=61, squares=901))
    shown = comparison.show()
    assert "The data is a stand-in. It is not the paper's 992 sequences: 5 sequences, not 992; 61 tokens" in shown
    assert "not expected to agree" in shown.replace("\n  ", " ")
    assert shown.index("stand-in") < shown.index("Table 1")
    assert comparison.other_model == ""
    assert comparison.counts["agrees"] == 49


def test_the_lines_of_one_head_are_measured_at_the_papers_head():
    """Another head may be extreme; that is a cell of its own."""
    one = findings()
    dispersion = one["dispersion"]["self"]
    dispersion.transformed.deviation[11, 11] = 3 * dispersion.transformed.mean[11, 11]
    comparison = compare(one)
    head = of(comparison, "Table 1", "head of largest CV")[0]
    assert (head.paper, head.measured, head.verdict) == ("layer 2, head 4", "layer 12, head 12", "differs")
    assert {cell.verdict for cell in comparison.cells if "layer 2, head 4" in cell.where} == {"agrees"}
    assert [cell.verdict for cell in of(comparison, "Table 1", "") if cell.where == "average"] == [
        "agrees", "differs", "differs",
    ]  # fmt: skip


def test_heads_of_the_papers_tables_count_from_1_and_it_is_said():
    assert "counted from 1" in compare(findings()).show()
    assert "L1H3" in compare(findings()).show()


@pytest.mark.parametrize(
    ("singular", "said"),
    [
        (np.ones((12, 12, 33)), "its heads have 32 dimensions"),
        (None, "the size of its heads is not known"),
    ],
)
def test_another_shape_is_a_stand_in_and_nothing_is_judged(singular, said):
    one = findings()
    comparison = compare(with_result(one, "dispersion", singular=singular))
    assert said in comparison.other_model
    assert {cell.source for cell in comparison.cells if cell.verdict in ("agrees", "differs")} == {"Data"}
    assert all(cell.difference is None for cell in comparison.cells if cell.source != "Data")
    assert "nothing follows for the paper" in comparison.show().replace("\n  ", " ")


def test_a_caller_who_knows_better_can_say_so():
    comparison = compare(findings(), other_model="it was fine-tuned")
    assert "The model is a stand-in: it was fine-tuned." in comparison.show()
    assert of(comparison, "Table 2", "ρ")[0].verdict == "not judged"
    assert of(comparison, "Table 1", "head of largest CV")[0].verdict == "not measured"


def test_other_ranks_are_measured_but_the_paper_says_nothing_about_them():
    one = findings()
    occurrences = replace(one["frequency"]["self"].occurrences, norm=0.9)
    comparison = compare(with_result(one, "frequency", source="rank_count_ids.txt", occurrences=occurrences))
    assert cells(comparison, "not judged") == [
        ("Section 4.3", "ρ(rank, α)", "every occurrence"),
        ("Section 4.3", "ρ(rank, ‖f(x)‖)", "every occurrence"),
    ]
    assert of(comparison, "Section 4.3", "f(x)")[0].measured == 0.9
    assert "these are from rank_count_ids.txt" in comparison.show()


def test_the_papers_ranks_have_the_name_that_is_looked_for(minilm):
    assert frequency.from_vocabulary(minilm.subject.tokenizer).source == expected.RANKS


@pytest.mark.parametrize(
    ("flat_heads", "verdict"), [([], "agrees"), ([(3, 4)], "not judged"), ([(3, h) for h in range(12)], "differs")]
)
def test_figure_9_is_contradicted_only_by_a_layer_without_any_such_head(flat_heads, verdict):
    one = findings()
    for at in flat_heads:
        one["dispersion"]["self"].singular[at] = 1.0
    (cell,) = of(compare(one), "Figure 9", "")
    assert cell.verdict == verdict
    assert cell.measured == (1.0 if flat_heads else 2.0)


def test_figure_3_is_two_sentences():
    one = findings()
    one["categories"]["self"].weights[1, 5] = 0.3
    weights = one["categories"]["self"].weights[:, 5].mean(axis=-1)
    one["categories"]["self"].norms[3, :6] = 0.0
    half, most = of(compare(one), "Figure 3a", "")[0], of(compare(one), "Figure 3b", "")[0]
    assert (half.where, half.verdict) == ("layers 6 and 7, the smaller", "differs")
    assert half.measured == pytest.approx(weights[1] / weights.sum())
    assert (most.measured, most.verdict) == (6, "differs")


def test_what_was_not_studied_is_not_measured():
    comparison = compare(replace(findings(), results={}))
    assert comparison.counts == {"agrees": 3, "differs": 0, "not measured": 49, "not judged": 0}
    assert all(cell.reason for cell in comparison.cells if cell.verdict == "not measured")
    assert comparison.other_data == ""
    assert "may be the paper's" in comparison.notes[0]
    assert "not measured" in comparison.other_model


def test_pairs_of_causal_attention_say_nothing_about_the_data():
    """A query does not see every key there."""
    one = findings(causal=("self",))
    one["correlation"]["self"].pairs[:] //= 2
    comparison = compare(one)
    assert comparison.other_data == ""
    assert [cell.verdict for cell in of(comparison, "Data", "pairs")] == ["not measured"] * 4


def test_a_correlation_that_is_not_defined_is_not_measured():
    one = findings()
    one["correlation"]["self"].rho[0] = np.nan
    assert cells(compare(one), "not measured") == [("Table 2", "ρ(α, ‖f(x)‖)", "[CLS]")]


def test_the_derived_checksums_follow_from_table_2():
    """Provenance: all but the number of sequences is arithmetic on printed pairs."""
    pairs = {name: int(printed) for name, (printed, _) in expected.TABLE_2.items()}
    per_head = {name: count // 144 for name, count in pairs.items()}
    assert all(count % 144 == 0 for count in pairs.values())
    assert {name: expected.DATA[f"pairs per head, {name}"] for name in pairs} == per_head
    assert expected.DATA["tokens"] == per_head["[CLS]"]
    assert per_head["[SEP]"] == 2 * per_head["[CLS]"]
    assert expected.DATA["Σ n² over sequences"] == sum(per_head.values())
    assert expected.DATA["[SEP] tokens"] == 2 * expected.DATA["[CLS] tokens"] == 2 * expected.DATA["sequences"]
