"""The page of models calls no type exact that fails a proof."""

import importlib.util
from pathlib import Path

import pytest

PATH = Path(__file__).parent.parent / "tools" / "sweep.py"


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
    assert "2 model types: 1 exact, 1 exact for texts one by one, 0 partly exact" in page


@pytest.mark.parametrize(
    ("kind", "status", "own", "padded"),
    [
        ("bert", "exact", "2 of 2", "equal"),
        ("squeezebert", "exact", "0 of 2: attentions hold numbers that are no probabilities", "equal"),
        ("canine", "exact for texts one by one", "4 of 4", "differs"),
        ("vit_mae", "exact", "2 of 2", "not tried"),
        ("speecht5", "its output is random: two runs differ by", "0 of 6", "not tried"),
    ],
)
def test_what_it_says_of_a_type(sweep, kind, status, own, padded):
    built = sweep.probes.build(kind)
    found = sweep.Row(kind, "made up", True, model="Model", **sweep._examined(built))
    assert found.status.startswith(status)
    assert found.own == own
    assert found.padded.startswith(padded)


def test_what_a_model_changes_about_itself_is_written_down(sweep):
    found = sweep._examined(sweep.probes.build("big_bird"))
    assert "attention_type" in found["changed"]
