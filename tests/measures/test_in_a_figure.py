"""A measure of the user's own is drawn like the others, by its symbol and with its sentence."""

import numpy as np
import pytest

import normlens as nl
from normlens import measures
from normlens.views import packed


@pytest.fixture
def trace(minilm):
    @nl.measure("sharpness", symbol="max α", axes=("batch", "head", "tgt"), needs=("weights",))
    def sharpness(weights):
        """The largest attention weight of a query."""
        return weights.amax(-1)

    @nl.measure("gain", symbol="‖Σ‖ − mean", axes=("batch", "src"), needs=("summed_norms",), signed=True)
    def gain(summed):
        return summed.mean(1) - summed.mean()

    return minilm.trace("The cat sat.")


def test_the_figure_holds_it_beside_what_the_trace_has_kept(trace):
    figure = trace.figure(measures=("weights", "sharpness"), layers=2)
    panel = figure.panels[2]
    np.testing.assert_allclose(panel.values("sharpness"), trace.blocks[2].weights[0].amax(-1).numpy())
    assert panel.measures == (*measures.DEFAULT, "sharpness")
    told = packed(figure).header["measures"]["sharpness"]
    assert told == {"label": "max α", "says": "The largest attention weight of a query.", "role": None, "signed": False}
    assert "sharpness" not in packed(trace.figure()).header["measures"]


@pytest.mark.parametrize("view", ["heat", "lines", "bars", "grid"])
def test_it_is_drawn_for_a_paper(trace, view, tmp_path):
    pytest.importorskip("matplotlib", reason="matplotlib is not installed")
    svg = trace.save(tmp_path / "x.svg", view=view, measures=("weights", "sharpness", "gain")).read_text(
        encoding="utf-8"
    )
    for symbol in ("max α", "‖Σ‖ − mean"):
        assert f"<!-- {symbol}" in svg


def test_it_is_in_the_page(trace, tmp_path, opened):
    tab = opened(trace.save(tmp_path / "x.html", measures=("weights", "sharpness", "gain"), layers=2))
    tab.wait_for_selector("[data-ready]")
    captions = [text.strip() for text in tab.locator("figcaption").all_inner_texts()]
    assert captions == ["α L2, mean of 12 heads", "max α L2, each head", "‖Σ‖ − mean L2"]
    assert tab.locator("figure").nth(2).get_attribute("class") == "signed"
    hint = tab.locator('input[name="measures"][value="sharpness"]').get_attribute("aria-label")
    assert hint == "max α: The largest attention weight of a query."


def test_it_can_be_compared_between_texts(trace, minilm):
    figure = trace.minus(minilm.trace("The dog sat."), measures=("weights", "sharpness"))
    assert figure.signed >= {"weights", "sharpness"}


def test_a_measure_of_vectors_is_not_drawn(trace):
    with pytest.raises(nl.NormlensError, match="no measure 'transformed'"):
        trace.figure(measures="transformed")


def test_a_figure_without_weights_shows_what_there_is(trace, minilm):
    alone = minilm.trace("The cat sat.", fields=("sharpness",))
    assert alone.figure().resolved().look.measures == ("sharpness",)
    assert "max α" in alone.show()
