"""The page of models calls no type exact that fails a proof."""

import html
import importlib.util
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
PATH = ROOT / "tools" / "sweep.py"


@pytest.fixture(scope="module")
def sweep():
    described = importlib.util.spec_from_file_location("sweep", PATH)
    module = importlib.util.module_from_spec(described)
    described.loader.exec_module(module)
    return module


def row(sweep, kind, *, padding="equal", reason=None, blocks=()):
    return sweep.Row(
        kind, "made up", True, model="Model", padding=padding, padding_reason="by 4e-01", reason=reason, blocks=blocks
    )


def test_a_type_is_exact_only_if_every_proof_holds(sweep):
    good = sweep.Block("a", True, 1e-7, None, "agrees")
    bad = sweep.Block("a", False, 1e-7, "its weights differ", "differs", "its weights differ")
    assert row(sweep, "good", blocks=(good,)).status == "exact"
    assert row(sweep, "padded", padding="differs", blocks=(good,)).status == "exact for texts one by one: by 4e-01"
    assert row(sweep, "contradicted", blocks=(good, bad)).status == "its weights differ"
    page = sweep._page([row(sweep, "good", blocks=(good,)), row(sweep, "bad", padding="differs", blocks=(good,))])
    of_attention, of_layers = page.split("## Every model type")[0].split("Behind the attention")
    counts = dict(re.findall(r"^\| \**([a-z ]+?)\** \| \**(\d+)\** \|", of_attention, re.MULTILINE))
    assert "| **the whole layer** | **2** |" in of_layers
    none = dict.fromkeys(sweep.RESULTS_MEAN, "0")
    assert counts == none | {"exact": "1", "exact one by one": "1", "all": "2"}


def test_every_row_of_the_page_has_one_of_the_results_that_are_counted(sweep):
    good, bad = sweep.Block("a", True, 1e-7, None), sweep.Block("b", False, None, "a gate")
    rows = {
        "exact": row(sweep, "a", blocks=(good,)),
        "exact one by one": row(sweep, "b", padding="differs", blocks=(good,)),
        "partly exact": row(sweep, "c", blocks=(good, bad)),
        "refused": row(sweep, "d", blocks=(bad,)),
        "no attention": row(sweep, "e", reason="no softmax attention was seen"),
        "not built": sweep.Row("f", "made up", True, reason="too large"),
    }
    assert {result: one.result for result, one in rows.items()} == {result: result for result in sweep.RESULTS_MEAN}
    assert "a gate" in rows["refused"].notes
    assert rows["not built"].notes == "too large"


def test_a_message_of_another_library_stays_one_cell(sweep):
    message = "bad <shape> [2|3] in `__init__` of my_model *"
    escaped = sweep._escaped(message)
    assert html.unescape(escaped) == message
    assert "my_model" in escaped
    assert not set("<|`*[") & set(escaped)


def test_the_page_in_the_docs_is_what_the_writer_writes(sweep):
    """Its frame, column heads and counts; the rows are those of the last sweep."""
    stored = (ROOT / "docs" / "models.md").read_text(encoding="utf-8")
    _, *types = re.findall(r"^\| (\S+) \| ([a-z ]+) \| .* \|$", stored.split('<div class="models"')[1], re.MULTILINE)
    lines = [line for line in sweep._page([]).splitlines() if line.startswith(("|", "<", "#", "---"))]
    heads = [line for line in lines if not re.search(r"\d", line)]
    assert heads
    assert [line for line in heads if line not in stored.splitlines()] == []
    for result in sweep.RESULTS_MEAN:
        assert f"| {result} | {sum(one == result for _, one in types)} |" in stored
    assert f"| **all** | **{len(types)}** |" in stored


@pytest.mark.parametrize(
    ("kind", "status", "own", "padded", "note"),
    [
        ("bert", "exact", "2 of 2", "equal", ""),
        ("squeezebert", "exact", "0 of 2", "equal", "attentions hold numbers that are no probabilities"),
        ("canine", "exact for texts one by one", "4 of 4", "differs", "in a padded batch"),
        ("vit_mae", "exact", "2 of 2", "not tried", ""),
        ("speecht5", "its output is random: two runs differ by", "0 of 6", "not tried", "its output is random"),
    ],
)
def test_what_it_says_of_a_type(sweep, kind, status, own, padded, note):
    built = sweep.probes.build(kind)
    found = sweep.Row(kind, "made up", True, model="Model", **sweep._examined(built))
    assert found.status.startswith(status)
    assert found.own == own
    assert found.padded == padded
    assert note in found.notes


def test_what_a_model_changes_about_itself_is_written_down(sweep):
    found = sweep._examined(sweep.probes.build("big_bird"))
    assert "attention_type" in found["changed"]
