"""The paper of 2021: its own numbers agree, stand-ins are not judged, and one command runs both halves."""

from dataclasses import replace

import numpy as np
import pytest
from paper_findings import findings

from normlens.cli.main import parse
from normlens.models.default import default_folder
from normlens.papers import compare_mixing, read, reproduce
from normlens.papers import kobayashi2021 as expected
from normlens.studies import STUDIES, Expansion, Mixing
from normlens.studies.mixing_ratios import FORMS, MixingForm

CATEGORIES = (expected.CLS, expected.SEP, expected.MASK, expected.NORMAL)


def made():
    """Findings that hold the numbers of BERT-base: without masks, and with them."""
    base = findings(ranks=None)
    forms = {}
    for name, (mean, high, low) in expected.TABLE_1["bert-base"].items():
        rows = {k: np.array(row.split(), float) / 100 for k, row in expected.FIGURE_3[name].items()}
        by_category = np.column_stack([rows.get(c, np.full(12, np.nan)) for c in CATEGORIES])
        rank, plain = map(float, expected.TABLE_2[name])
        one = MixingForm(
            FORMS[name], 121_134, float(mean) / 100, float(high) / 100, float(low) / 100,
            rows[expected.OVERALL], by_category, rank, plain,
        )  # fmt: skip
        forms[name] = one
    mixing = Mixing("self", tuple(range(12)), CATEGORIES, forms, {}, 100, np.zeros((0, 8)))
    rates = np.array(expected.EXPANSION["bert-base"].split()[1:], float)
    results = {
        "mixing": {"self": mixing},
        "expansion": {"self": Expansion("self", "authors", tuple(range(12)), rates, {})},
    }
    return replace(base, results=results, studies=tuple(STUDIES[name] for name in results))


def test_the_papers_own_numbers_agree():
    own = made()
    comparison = compare_mixing(own, own, model="bert-base")
    cells = [cell for cell in comparison.cells if cell.source != "Table 2"]
    assert {cell.verdict for cell in cells} == {"agrees"}
    ranks = {cell.verdict for cell in comparison.cells if cell.source == "Table 2"}
    assert ranks == {"not judged"}  # the ranks of these findings are not named
    assert comparison.other_data == comparison.other_model == ""
    assert comparison.summary.startswith("293 cells: 283 agree, 10 not judged")


def test_another_number_differs():
    own = made()
    mixing = own["mixing"]["self"]
    forms = mixing.forms | {"attn_n": replace(mixing.forms["attn_n"], mean=0.8541)}
    masked = replace(own, results={**own.results, "mixing": {"self": replace(mixing, forms=forms)}})
    (cell,) = [c for c in compare_mixing(own, masked, model="bert-base").cells if c.verdict == "differs"]
    assert (cell.source, cell.what, cell.where, cell.paper) == ("Table 1", "mean mixing ratio, %", "Attn-N", "85.28")


def test_a_model_is_known_by_its_shape(minilm):
    config = type("Config", (), {"model_type": "bert", "num_hidden_layers": 2, "hidden_size": 128})
    assert expected.model_of(config) == "bert-tiny"
    assert expected.model_of(minilm.subject.config) is None
    own = made()
    cells = compare_mixing(own, own, model="bert-tiny").cells
    assert {c.source for c in cells} == {"Data", "Section 4.4"}
    assert len([c for c in cells if c.source == "Section 4.4"]) == 3


@pytest.mark.slow
def test_both_halves_are_run_and_written(minilm, pkl, tmp_path, capsys):
    given = ["--data", pkl, "--model", default_folder(), "--limit", 2, "--out", tmp_path]
    options = parse(["reproduce", "kobayashi2021", *map(str, given)])
    assert options.run(options) == 0
    said = capsys.readouterr().out.replace("\n  ", " ")
    assert "is drawn by a seed of ours" in said
    assert "has the shape of none of bert-base" in said
    assert (tmp_path / "report.html").exists()
    assert (tmp_path / "masked" / "report.html").exists()
    plain, comparison = reproduce(minilm, read(pkl, 2), paper="kobayashi2021", limit=2)
    assert {c.verdict for c in comparison.cells if c.source != "Data"} == {"not judged", "not measured"}
    (cell,) = [c for c in comparison.cells if c.what == "ρ(rank, ratio), Attn-N" and c.where == "all tokens"]
    assert cell.measured == plain["mixing"]["self"].forms["attn_n"].rank
