"""Tables hold the numbers of the results, undefined ones as None."""

import json
from dataclasses import replace

import numpy as np
import pytest
from made_findings import (
    NAMES,
    categories,
    correlation,
    dispersion,
    findings,
    found,
    frequency,
    section_of,
    with_special,
)

from normlens.errors import NormlensError
from normlens.exhibits import Table
from normlens.studies import Report


def tables(findings):
    """Every table of a report, as rows."""
    return Report(findings).tables


def tables_of(result):
    """Every table of a result, as rows."""
    return {one.name: list(one.rows) for one in section_of(result).exhibits if isinstance(one, Table)}


def test_only_what_was_found_has_tables():
    assert set(tables(findings(studies=("categories",)))) == {
        "categories_self",
        "categories_layers_self",
        "categories_heads_self",
    }
    assert tables(findings(studies=())) == {}
    assert {name.rsplit("_", 1)[1] for name in tables(findings(kinds=("encoder", "decoder", "cross")))} == {
        "encoder",
        "decoder",
        "cross",
    }


def test_every_row_of_a_table_has_the_same_columns_and_plain_values():
    for rows in tables(findings(missing=1)).values():
        assert all(row.keys() == rows[0].keys() for row in rows)
        json.dumps(rows, allow_nan=False)


def test_the_average_is_the_mean_of_the_cvs():
    made = dispersion(layers=3, heads=4, missing=2)
    largest, smallest, average = tables_of(made)["dispersion"]
    there = made.transformed.variation[np.isfinite(made.transformed.variation)]
    assert largest["variation"] == pytest.approx(there.max())
    assert smallest["variation"] == pytest.approx(there.min())
    assert average["variation"] == pytest.approx(there.mean())
    assert average["mean"] == pytest.approx(np.nanmean(made.transformed.mean))
    assert average["where"] == "10 heads"
    assert average["high"] is None
    assert len(tables_of(made)["dispersion_heads"]) == 10


def test_one_head_has_one_row():
    (row,) = tables_of(dispersion(layers=1, heads=1))["dispersion"]
    assert (row["row"], row["where"]) == ("the only head", "L0H0")


def test_the_head_drawn_is_the_one_of_median_variation():
    made = dispersion(layers=2, heads=5)
    drawn = [row["head"] for row in tables_of(made)["singular"]]
    expected = [int(np.argsort(row)[2]) for row in made.transformed.variation]
    assert drawn == expected
    values = tables_of(made)["singular_values"]
    assert len(values) == 2 * 9
    assert values[0]["index"] == 1


def test_shares_add_up_to_one_and_absent_categories_are_none():
    rows = tables_of(categories(layers=4, heads=3, missing=1, absent=(1,)))["categories"]
    assert rows[1]["weight_share"] is None
    assert rows[1]["tokens"] == 0
    for share in ("weight_share", "norm_share"):
        assert sum(row[share] or 0 for row in rows) == pytest.approx(1)


def test_correlations_per_category():
    made = correlation(rho=(-0.3, float("nan"), 0.2, 0.0), layers=3, heads=2)
    rows = tables_of(made)["correlation"]
    assert [row["category"] for row in rows] == list(NAMES)
    assert rows[1] == {
        "category": "[SEP]",
        "pairs": 0,
        "rho": None,
        "rho_heads": 0,
        "rho_negative": None,
        "rho_median": None,
    }
    assert rows[0]["rho_median"] == pytest.approx(np.median(made.rho_heads[0]))


def test_frequency_with_and_without_special_tokens_stand_side_by_side():
    rows = tables_of(with_special(frequency()))["frequency"]
    assert [row["row"] for row in rows] == ["every occurrence", "without special tokens", "one point per type"]
    assert [(row["points"], row["rho_weight"], row["rho_norm"]) for row in rows[:2]] == [
        (10_000, -0.08, 0.75),
        (5000, 0.02, 0.61),
    ]


def test_the_terminal_shows_sentences_tables_and_the_signature():
    text = Report(
        findings(kinds=("encoder", "decoder"), causal=("decoder",), missing=1, notes=("two items were cut",))
    ).show()
    assert "nan" not in text.lower()
    assert "• Within a head, the standard deviation" in text
    assert "categories, decoder self-attention" in text
    assert "two items were cut" in text
    assert text.endswith("model:made@0 | corpus:by hand | length:128 | seed:0 | version:0.1.0\n")
    assert max(map(len, text.splitlines())) <= 120


def test_long_tables_are_cut_in_the_terminal_and_say_so():
    assert "more rows not shown" in findings(studies=("frequency",)).show()


def test_hostile_names_stay_in_their_cells():
    names = ("\x1b[31mred", "a\nb", "猫", "other")
    text = findings(names=names, studies=("categories", "correlation")).show()
    assert "\x1b" not in text
    assert "␛[31mred" in text
    token = replace(frequency(), token=("\ud800", *frequency().token[1:]))
    assert "�" in found({"frequency": {"self": token}}).show()


def test_a_table_is_a_dataframe_and_a_missing_one_names_the_others():
    report = Report(findings())
    name = next(iter(report.tables))
    assert len(report.to_dataframe(name)) == len(report.tables[name])
    with pytest.raises(NormlensError, match=f"(?s)no table 'categories'.*{name}"):
        report.to_dataframe("categories")
