"""What the figures of the studies show."""

import numpy as np
from made_findings import categories, correlation, dispersion, frequency, section_of, with_special

from normlens.exhibits import Grids, Lines, Scatter, Strip
from normlens.studies.frequency import running_median


def figures_of(result):
    return {one.name: one for one in section_of(result).exhibits if isinstance(one, Grids | Lines | Scatter | Strip)}


def test_the_median_line_goes_around_special_tokens():
    ranks = np.array([1] * 10 + [1000] * 10)
    values = np.array([9.0] * 10 + [2.0] * 10)
    special = ranks == 1
    _, medians = running_median(ranks, values, ~special)
    assert medians[np.isfinite(medians)].tolist() == [2.0]
    _, medians = running_median(ranks, values, np.ones(20, bool))
    assert medians[np.isfinite(medians)].tolist() == [9.0, 2.0]


def test_the_figure_of_frequency_shows_rho_with_and_without_special_tokens():
    figure = figures_of(with_special(frequency()))["frequency"]
    assert "special tokens left out" in figure.caption
    assert [panel.title for panel in figure.panels] == [
        "α, ρ = −0.08 (0.02 without special tokens)",
        "‖f(x)‖, ρ = 0.75 (0.61 without special tokens)",
    ]
    assert "special" not in figures_of(frequency())["frequency"].caption


def test_the_figures_of_categories_hold_the_numbers_of_the_result():
    result = categories(absent=(1,))
    figures = figures_of(result)
    assert list(figures) == ["categories", "heads_0_cls", "heads_2_comma-period", "heads_3_other"]
    left, right = figures["categories"].panels
    assert [series.name for series in left.series] == ["[CLS]", "comma/period", "other"]
    np.testing.assert_array_equal(left.series[1].y, result.weight_shares[2])
    np.testing.assert_array_equal(right.series[1].y, result.norms[2].mean(axis=-1))
    weight, norm = figures["heads_2_comma-period"].grids
    np.testing.assert_array_equal(weight.values, result.weights[2])
    np.testing.assert_array_equal(norm.values, result.transformed[2])


def test_the_figures_of_the_other_studies_hold_the_numbers_of_their_results():
    made = correlation(missing=1)
    figures = figures_of(made)
    np.testing.assert_array_equal(figures["correlation_heads"].panels[1].values, made.rho_heads[1])
    assert figures["correlation_heads"].panels[1].label == "pooled −0.69"
    own = figures["scatter"].panels[0].clouds[1]
    np.testing.assert_array_equal(own.y, made.sample_norm[made.sample_category == 0])
    spread = dispersion(missing=1)
    figures = figures_of(spread)
    np.testing.assert_array_equal(figures["dispersion"].grids[1].values, spread.transformed.variation)
    assert "Hatched: there is no such head." in figures["dispersion"].caption
    assert len(figures["singular"].panels[0].series) == 2


def test_one_head_needs_no_map_and_no_strip():
    assert list(figures_of(categories(layers=1, heads=1))) == ["categories"]
    assert list(figures_of(correlation(layers=1, heads=1))) == ["scatter"]
