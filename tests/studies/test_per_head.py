"""Columns of one value per head become rows, one for each head that is there."""

import numpy as np
import pytest

from normlens.exhibits import ExhibitError
from normlens.studies.per_head import HeadColumn, PerHead, by_measure, few_names, texts

NAN = float("nan")


def test_a_row_is_a_head_with_its_values_and_a_head_without_any_is_none():
    entropy = {"weights": np.array([[1.0, 2.0], [3.0, NAN]]), "norms": np.array([[4.0, 5.0], [NAN, NAN]])}
    kinds = texts([["no-op", None], ["broadcast"]])
    heads = PerHead((0, 5), (*by_measure("entropy", "entropy", entropy), HeadColumn("kind", "kind", kinds, "text")))
    rows = [tuple(row.values()) for row in heads.rows()]
    assert rows == [
        ("L0H0", 0, 0, 1.0, 4.0, "no-op"),
        ("L0H1", 0, 1, 2.0, 5.0, None),
        ("L5H0", 5, 0, 3.0, None, "broadcast"),
    ]


def test_the_table_has_the_largest_first_and_leaves_out_what_only_files_show():
    rank = HeadColumn("rank", "rank", np.array([[1.0, 3.0, NAN]]))
    files_only = HeadColumn("recall", "recall", np.array([[0.1, 0.2, 0.3]]), shown=False)
    table = PerHead((2,), (rank, files_only)).table("ranks", "Ranks", by="rank")
    assert [row["head_name"] for row in table.rows] == ["L2H1", "L2H0", "L2H2"]
    assert [column.name for column in table.columns] == ["head_name", "rank"]
    assert table.rows[0]["recall"] == 0.2


def test_many_heads_are_named_by_three_and_a_number():
    assert few_names((0, 7), [(1, 2), (0, 0)]) == "L7H2 and L0H0"
    assert few_names((0,), [(0, head) for head in range(6)]) == "L0H0, L0H1, L0H2 and 3 more"


@pytest.mark.parametrize("name", ["rank", "layer", "head", "head_name"])
def test_no_column_takes_the_place_of_another(name):
    columns = [HeadColumn(each, each, np.array([[1.0]])) for each in ("rank", name)]
    with pytest.raises(ExhibitError, match=f"Two columns of every head are called '{name}'"):
        PerHead((0,), tuple(columns))
