"""Tables, pages, terminals and files of documents made by hand."""

import csv
import io
import json
import math
import re

import numpy as np
import pytest
from page_reader import Reader

from normlens.exhibits import (
    Article,
    Bar,
    Bars,
    Chapter,
    Column,
    Document,
    ExhibitError,
    Grid,
    Grids,
    Section,
    Table,
    as_csv,
    as_json,
    page,
    show,
    text_table,
    write,
)
from normlens.exhibits.plots.grids import _layout

HOSTILE = "</td><script>alert(1)</script>{{ 7*7 }}\u202e\x1b[31m\ud800"


def document(*exhibits, sentences=("One is 1.",), notes=()):
    article = Article(Section(sentences, exhibits, notes), "self", "Self-attention")
    chapter = Chapter("mine", "A title", (article,), "Why?", "this.", ("So.",))
    return Document("A report", "A lead.", (("model", "made"),), (chapter,), ("a:1",))


def bars(name, **options):
    return Bars(name, "caption", "1 bar", (Bar("a", 0.5),), "x", **options)


def test_a_table_without_columns_heads_every_value_in_its_form():
    table = Table(
        "t", "", [{"a_name": "x", "count": 1234, "size": 0.5}, {"a_name": None, "count": 5, "size": math.nan}]
    )
    assert [(column.heading, column.form) for column in table.headed] == [
        ("a name", "text"), ("count", "count"), ("size", "number"),
    ]  # fmt: skip
    assert text_table(table) == "  a name  count   size\n  x       1,234  0.500\n  –           5      –\n"


@pytest.mark.parametrize(
    ("form", "value", "written"),
    [
        ("number", 0.5, "0.500"), ("count", 1234, "1,234"), ("percent", 0.354, "35 %"), ("percent", 0.0002, "<0.1 %"),
        ("rho", -0.694, "−0.69"), ("number", 3.2e-7, "3.20×10⁻⁷"), ("decimal", -1.25, "−1.2"), ("text", "a\nb", "a␊b"),
        ("number", None, "–"), ("text", None, "–"),
    ],
)  # fmt: skip
def test_a_cell_in_each_form(form, value, written):
    assert Column("a", "a", form).written({"a": value}) == written


def test_a_column_that_no_row_has_is_refused():
    with pytest.raises(ExhibitError, match=r"'t' has a column 'b' that no row has.\n  Got: a\n"):
        Table("t", "", [{"a": 1}], (Column("b", "b"),))


def test_rows_of_different_keys_are_the_same_in_both_files():
    table = Table("t", "", [{"a": 1}, {"b": np.float64(0.1), "c": "x,y\n"}])
    rows = list(csv.DictReader(io.StringIO(as_csv(table.rows).decode())))
    assert rows == [{"a": "1", "b": "", "c": ""}, {"a": "", "b": "0.1", "c": "x,y\n"}]
    assert json.loads(as_json(table.rows)) == [{"a": 1, "b": None, "c": None}, {"a": None, "b": 0.1, "c": "x,y\n"}]


def test_hostile_names_stay_text_everywhere(tmp_path):
    pytest.importorskip("matplotlib", reason="matplotlib is not installed: pip install 'normlens[report]'")
    table = Table("t", HOSTILE, [{HOSTILE: HOSTILE}])
    figure = Bars("f", HOSTILE, f"1 {HOSTILE}", (Bar(HOSTILE, 0.5),), HOSTILE)
    made = document(table, figure, sentences=[HOSTILE], notes=[HOSTILE])
    text = write(made, tmp_path).read_text(encoding="utf-8")
    Reader(text)
    assert text.count("<script") == 1
    assert "alert(1)" in text
    assert "7*7" in text
    assert "\u202e" not in text + show(made, "")
    assert "\x1b" not in text + show(made, "")
    assert (
        list(csv.reader(io.StringIO((tmp_path / "tables" / "t_self.csv").read_text(encoding="utf-8"))))[1][0][:5]
        == "</td>"
    )


def test_a_page_names_its_tables_and_figures_and_what_is_undefined(tmp_path):
    pytest.importorskip("matplotlib", reason="matplotlib is not installed: pip install 'normlens[report]'")
    tables = Table("t", "First", [{"a": None}]), Table("u", "Second", [{"a": n} for n in range(20)], shown=15)
    text = write(document(bars("f"), bars("g", folded="More"), *tables), tmp_path).read_text(encoding="utf-8")
    plain = re.sub(r"<[^>]+>", "", re.sub(r"(?s)<(style|script|svg).*?</\1>", "", text))
    for said in (
        "Figure 1. caption",
        "Figure 2. caption",
        "Table 1. First. “–” is not defined.",
        "Table 2: Second, 15 rows",
    ):
        assert said in plain
    assert "<summary>More</summary>" in text
    for said in ("One is 1.", "Why?", "Mind: this.", "How it was computed", "So.", "a:1"):
        assert said in plain


def test_exhibits_of_one_name_are_refused_and_not_written_over():
    with pytest.raises(ExhibitError, match="the same file, 'f_self'"):
        document(bars("f"), bars("f")).figures()
    with pytest.raises(ExhibitError, match="No file can be called 'a/b_self'"):
        document(bars("a/b")).figures()
    assert document(bars("f"), Table("f", "", [{"a": 1}])).tables().keys() == {"f_self"}


def test_four_maps_on_scales_are_two_lines_of_two():
    pytest.importorskip("matplotlib", reason="matplotlib is not installed: pip install 'normlens[report]'")
    maps = (Grid("map", np.zeros((6, 12)), "weight", 1.0),) * 4
    rows = tuple("012345")
    assert [_layout(Grids("maps", "", "", maps[:n], rows), 6, 12).across for n in (3, 4)] == [3, 2]


def test_the_terminal_cuts_long_tables_and_groups_rows():
    long = text_table(Table("t", "Long", [{"a": n} for n in range(40)]))
    assert long.startswith("  Long\n")
    assert "28 more rows not shown" in long
    grouped = text_table(
        Table("t", "", [{"g": "one", "a": 1}, {"g": "two", "a": 2}], (Column("a", "a", "count"),), group="g")
    )
    assert grouped == "  a\n  One\n  1\n  Two\n  2\n"


def test_a_page_without_chapters_says_so():
    empty = Document("A report", "A lead.", (), (), ("a:1",))
    assert "No study found anything in this corpus." in page(empty, {})


ORDERS = {  # a column as written, largest first; the dash is last both ways
    "count": ["1,234,567", "1,234", "999", "–"],
    "percent": ["35 %", "6.4 %", "<0.1 %", "–"],
    "signed": ["0.05", "−0.69", "−0.70", "–"],
    "power": ["0.5", "3.20×10⁻⁷", "1.00×10⁻¹⁰", "–"],
    "large": ["2.00×10⁸", "1.00×10⁷", "12,346", "–"],
    "text": ["zebra", "cat", "a", "–"],
}


def test_tables_sort_by_every_form_of_number_and_back(opened, tmp_path):
    names = list(ORDERS)
    rows = [{name: ORDERS[name][at] for name in names} for at in (2, 0, 3, 1)]
    path = tmp_path / "page.html"
    path.write_text(page(document(Table("t", "Made", rows)), {}), encoding="utf-8")
    tab = opened(path)
    for place, name in enumerate(names):
        heading = tab.locator("thead button").nth(place)
        assert heading.text_content() == name
        for expected in (ORDERS[name], [*ORDERS[name][2::-1], "–"]):
            heading.click()
            cells = tab.locator("tbody tr").evaluate_all(f"rows => rows.map(row => row.cells[{place}].textContent)")
            assert [cell.replace("\u00a0", " ") for cell in cells] == expected
        assert tab.locator("th[aria-sort]").count() == 1


def test_long_tables_can_be_searched_and_short_ones_need_no_search(opened, tmp_path):
    tables = [Table(f"t{n}", "Made", [{"token": f"word{i}"} for i in range(n)]) for n in (3, 20)]
    path = tmp_path / "page.html"
    path.write_text(page(document(*tables), {}), encoding="utf-8")
    tab = opened(path)
    tab.locator("details").first.evaluate("fold => fold.open = true")
    search = tab.get_by_role("searchbox")
    assert search.count() == 1
    search.fill("WORD1")
    assert tab.locator("details tbody tr:visible").count() == 11  # 1 and 10 to 19
    search.fill("")
    assert tab.locator("details tbody tr:visible").count() == 20


def test_grouped_tables_keep_their_order(opened, tmp_path):
    rows = [{"g": "one", "a": 1}, {"g": "one", "a": 2}, {"g": "two", "a": 0}]
    path = tmp_path / "page.html"
    path.write_text(
        page(document(Table("t", "Made", rows, (Column("a", "a", "count"),), group="g")), {}), encoding="utf-8"
    )
    assert opened(path).locator("thead button").count() == 0
