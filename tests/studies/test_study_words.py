"""Every sentence follows from its numbers, whatever they are."""

import doctest
from dataclasses import replace
from importlib import import_module

import numpy as np
import pytest
from made_findings import categories, correlation, dispersion, findings, found, frequency, section_of, with_special

from normlens.studies import STUDIES, Constant
from normlens.studies.frequency import Relation
from normlens.studies.kinds import explained

NAN = float("nan")


@pytest.mark.parametrize("name", ["exhibits.numbers", "exhibits.plots.paint", "studies.naming"])
def test_the_examples_hold(name):
    assert doctest.testmod(import_module(f"normlens.{name}")).failed == 0


def said(result):
    """The sentences of a result."""
    return list(section_of(result).sentences)


def headlines(findings):
    """What the top of the page says."""
    return findings.document().headlines()


def spread_of(variation, **changes):
    """A dispersion whose heads have just these CVs."""
    variation = np.asarray(variation, dtype=float)
    made = dispersion(layers=variation.shape[0], heads=variation.shape[1], **changes)
    mean = np.where(np.isfinite(variation), 2.0, np.nan)
    count = np.where(np.isfinite(variation), 50, 0)
    return replace(made, transformed=replace(made.transformed, mean=mean, deviation=2 * variation, count=count))


def test_how_much_norms_vary():
    first = said(spread_of([[0.1, 0.2], [0.3, 0.4]]))[0]
    assert "on average 25 % of its mean (CV 0.25; from 10 % in L0H0 to 40 % in L1H1)" in first
    assert "the same attention weight α contributes more for one token than for another" in first
    assert "nearly constant, so here α alone" in said(spread_of([[0.01, 0.02]]))[0]
    assert said(spread_of([[0.3]]))[0].startswith("In L0H0, the only head, the standard deviation of ‖f(x)‖ is 30 %")
    assert "from 10 % in L0H0 to 20 % in L0H1" in said(spread_of([[0.1, 0.2], [NAN, NAN]]))[0]


def test_norms_that_have_no_variation():
    assert said(spread_of([[NAN, NAN]]))[0].startswith("No coefficient of variation (CV) is defined")
    made = spread_of([[0.3]])
    one = replace(made, transformed=replace(made.transformed, count=np.ones((1, 1), dtype=int)))
    assert said(one)[0] == "Only one token was measured, so nothing can vary."


@pytest.mark.parametrize(
    ("variation", "words"), [(0.1, "varies less than"), (0.3, "varies about as much as"), (0.9, "varies more than")]
)
def test_inputs_are_compared(variation, words):
    made = spread_of([[0.3, 0.3]])
    assert made.inputs is not None
    given = replace(made.inputs, deviation=made.inputs.mean * variation)
    assert (
        f"‖x‖ of the layers’ inputs {words} ‖f(x)‖: CV 0.{int(variation * 10)}0 on average"
        in said(replace(made, inputs=given))[1]
    )


def test_no_inputs_and_no_singular_values_no_sentence():
    made = replace(spread_of([[0.3, 0.3]]), inputs=None, singular=None)
    assert len(said(made)) == 1
    assert len(said(replace(made, singular=np.full((1, 2, 3), np.nan)))) == 1


def test_singular_values_that_are_zero_do_not_count():
    made = replace(spread_of([[0.3, 0.3]]), inputs=None, singular=np.array([[[4.0, 2.0, 1e-12], [6.0, 1.0, 0.0]]]))
    assert "is 2.0 to 6.0 times its smallest (median 4.0, 2 heads)" in said(made)[1]
    single = replace(spread_of([[0.3]]), inputs=None, singular=np.array([[[4.0, 2.0]]]))
    assert said(single)[1] == "f stretches its strongest direction 2.0 times as much as its weakest."


def shares(weights, norms, names=("[CLS]", "other"), layers=None, tokens=(10, 90)):
    """Categories of one head, from the shares of every layer."""
    weights, norms = np.asarray(weights, dtype=float)[..., None], np.asarray(norms, dtype=float)[..., None]
    made = categories(layers=weights.shape[1], heads=1, names=("a", "b", "c", "d"))
    return replace(
        made,
        names=names,
        weights=weights,
        norms=norms,
        transformed=norms,
        tokens=np.array(tokens),
        sequences=np.array(tokens),
        layers=tuple(layers or range(weights.shape[1])),
    )


def test_who_receives_more_than_it_contributes_and_in_which_layers():
    made = shares([[0.1, 0.5, 0.4, 0.1], [0.9, 0.5, 0.6, 0.9]], [[0.1, 0.1, 0.1, 0.1], [0.9, 0.9, 0.9, 0.9]])
    first, second = said(made)
    assert first == (
        "[CLS] (10 % of all tokens) receives 45 % of the attention in layers 1–2 and makes 10 % of the "
        "contributions there "
        "(over all layers: 28 % and 10 %)."
    )
    assert second == (
        "“other” tokens (90 % of all tokens) receive 72 % of the attention and make 90 % of the contributions, "
        "over all layers."
    )


def test_who_receives_in_every_layer_or_in_the_only_one():
    assert (
        "45 % of the attention and makes 2.0 % of the contributions, over all layers."
        in said(shares([[0.5, 0.4], [0.5, 0.6]], [[0.02, 0.02], [0.98, 0.98]]))[0]
    )
    assert (
        "receives 50 % of the attention and makes 2.0 % of the contributions in layer 7."
        in said(shares([[0.5], [0.5]], [[0.02], [0.98]], layers=(7,)))[0]
    )


def test_plain_tokens_can_be_the_ones_that_receive():
    first = said(shares([[0.2], [0.8]], [[0.7], [0.3]], names=("[CLS]", "other")))[0]
    assert first.startswith("“other” tokens (90 % of all tokens) receive 80 % of the attention and make 30 %")


def test_no_clear_difference_is_said_so():
    lines = said(shares([[0.52, 0.5], [0.48, 0.5]], [[0.5, 0.5], [0.5, 0.5]]))
    assert len(lines) == 1
    assert lines[0].startswith("No category receives clearly more of the attention than it makes of the contributions")
    assert "that of [CLS] in layer 0, 52 % of the attention against 50 % of the contributions" in lines[0]


def test_absent_categories():
    made = categories(absent=(1,))
    assert said(made)[-1] == "No token of the corpus fell into [SEP]."
    assert "[SEP] (" not in " ".join(said(made))
    alone = categories(absent=(0, 1, 2))
    assert said(alone) == [
        "Every token fell into “other”, so there is nothing to compare.",
        "No token of the corpus fell into [CLS], [SEP] and “comma/period”.",
    ]
    assert said(categories(absent=(0, 1, 2, 3))) == [
        "No token of the corpus fell into [CLS], [SEP], “comma/period” and “other”."
    ]


def test_special_tokens_among_the_other_ones_are_named_with_the_way_out():
    made = replace(categories(), special={"[CLS]": 100, "[SEP]": 200})
    assert said(made)[-1] == (
        "“other” holds the special tokens [CLS] and [SEP], 300 of its 9,000 tokens, which no other category takes. "
        'To keep special tokens apart, add --category \'special=@special\', in Python "special": "@special".'
    )
    alone = replace(categories(absent=(0, 1, 2)), special={"</s>": 1})
    assert "the special token </s>, 1 of its" in said(alone)[-1]


def test_a_layer_without_contributions_is_left_out_and_named():
    lines = said(shares([[0.5, 0.5], [0.5, 0.5]], [[0.1, 0.0], [0.9, 0.0]]))
    assert "receives 50 % of the attention and makes 10 % of the contributions in layer 0." in lines[0]
    assert lines[-1] == "In layer 1 every contribution is 0, so there are no shares of them."


def test_negative_positive_and_neither():
    lines = said(correlation(rho=(-0.34, -0.69, 0.5, -0.06)))
    assert lines[0].startswith("α and ‖f(x)‖ are negatively related for [SEP] (ρ = −0.69) and [CLS] (−0.34): the more")
    assert lines[0].endswith("the shorter its vector tends to be.")
    assert lines[1].startswith("α and ‖f(x)‖ are positively related for “comma/period” (ρ = 0.50): the more")
    assert lines[1].endswith("the longer its vector tends to be.")
    assert lines[2] == "There is no clear relation between α and ‖f(x)‖ for “other” (ρ = −0.06)."
    assert lines[3].startswith("Head by head, ρ has the same sign in 6 of 6 heads for [SEP] (median −0.")


def test_what_few_pairs_show_is_not_called_a_relation():
    made = replace(correlation(rho=(-0.5, 0.0, 0.0, 0.0)), pairs=np.array([9, 100, 100, 100]))
    assert said(made)[0].startswith(
        "There is no clear relation between α and ‖f(x)‖ for [CLS] (ρ = −0.50), [SEP] (0.00)"
    )


def test_a_pooled_relation_that_no_head_has_is_exposed():
    made = correlation(rho=(-0.5, 0.0, 0.0, 0.0))
    heads = made.rho_heads.copy()
    heads[0] = 0.2
    lines = said(replace(made, rho_heads=heads))
    assert lines[0].endswith(
        " But for [CLS] (median of single heads 0.20) this is a difference between heads rather than within them."
    )
    assert "0 of 6 heads for [CLS] (median 0.20)" in lines[2]


def test_a_pooled_relation_that_single_heads_hardly_have_is_exposed_in_the_summary_too():
    made = correlation(rho=(-0.34, -0.69, 0.4, 0.0))
    heads = made.rho_heads.copy()
    heads[0] = [[-0.02] * 3, [-0.03, -0.02, -0.01]]
    heads[2] = [[0.05] * 3, [0.3] * 3]
    made = replace(made, rho_heads=heads)
    caveat = "But for [CLS] (median of single heads −0.02) this is a difference between heads rather than within them."
    against, together, *_ = said(made)
    assert against.endswith(f"tends to be. {caveat}")
    assert "between heads" not in together  # their median is 0.175
    assert headlines(found({"correlation": {"self": made}})) == {"Self-attention": [against]}


def test_heads_without_rho_are_named_with_the_reason():
    made = replace(
        correlation(layers=6),
        constant=(
            Constant(0, 0, 3, "‖f(x)‖"),
            Constant(1, 0, 1, "α"),
            Constant(1, 0, 2, "‖f(x)‖"),
            Constant(1, 1, 2, "‖f(x)‖"),
            Constant(1, 4, 1, "‖f(x)‖"),
        ),
    )
    assert said(made)[-3:] == [
        "For [CLS] ρ is not defined in 3 heads of layer 0: ‖f(x)‖ is the same in all pairs there.",
        "For [SEP] ρ is not defined in 1 head of layer 0: α is the same in all pairs there.",
        "For [SEP] ρ is not defined in 5 heads of layers 0, 1 and 4: ‖f(x)‖ is the same in all pairs there.",
    ]


def test_one_head_is_not_taken_head_by_head():
    assert not [line for line in said(correlation(layers=1, heads=1)) if "head by head" in line]


def test_rho_that_is_not_defined_says_why():
    made = correlation(rho=(NAN, NAN, -0.3, -0.3))
    made = replace(made, pairs=np.array([0, 50, 1000, 1000]))
    assert said(made)[-2:] == [
        "ρ is not defined for [CLS]: no token fell into it.",
        "ρ is not defined for [SEP]: α or ‖f(x)‖ is the same in all its pairs.",
    ]


@pytest.mark.parametrize(
    ("weight", "norm", "expected"),
    [
        (-0.08, 0.75, "Rarer tokens have longer vectors (ρ = 0.75 between rank and ‖f(x)‖), but receive neither"),
        (
            0.4,
            0.5,
            "Rarer tokens have longer vectors (ρ = 0.50 between rank and ‖f(x)‖), and receive more attention (ρ = 0.40",
        ),
        (
            -0.4,
            0.5,
            "Rarer tokens have longer vectors (ρ = 0.50 between rank and ‖f(x)‖), but receive less attention (ρ",
        ),
        (
            -0.4,
            -0.5,
            "Rarer tokens have shorter vectors (ρ = −0.50 between rank and ‖f(x)‖), and receive less attention",
        ),
        (
            0.4,
            0.0,
            "Rarer tokens have vectors of no clearly different norm (ρ = 0.00 between rank and ‖f(x)‖), but receive",
        ),
        (
            0.01,
            -0.02,
            "Neither norm (ρ = −0.02 between rank and ‖f(x)‖) nor attention (ρ = 0.01 between rank and α) clearly",
        ),
        (NAN, 0.5, "Rarer tokens have longer vectors (ρ = 0.50 between rank and ‖f(x)‖); for α, ρ is not defined."),
        (0.5, NAN, "Rarer tokens receive more attention (ρ = 0.50 between rank and α); for ‖f(x)‖, ρ is not defined."),
        (NAN, NAN, "ρ with the frequency rank is not defined"),
    ],
)
def test_rare_tokens(weight, norm, expected):
    assert said(frequency(rho_weight=weight, rho_norm=norm))[0].startswith(expected)


def test_rare_tokens_without_special_ones_stand_beside():
    assert said(with_special(frequency()))[0] == (
        "Rarer tokens have longer vectors (ρ = 0.75 between rank and ‖f(x)‖, 0.61 without special tokens), but "
        "receive neither clearly more nor clearly less attention (ρ = −0.08 between rank and α, 0.02 without special "
        "tokens)."
    )
    neither = said(with_special(frequency(rho_weight=0.0, rho_norm=0.0), rho_norm=NAN))[0]
    assert neither.startswith("Neither norm (ρ = 0.00 between rank and ‖f(x)‖, not defined without special tokens) nor")


def test_types_and_what_was_left_out():
    made = frequency(excluded=7)
    lines = said(replace(made, types=Relation(900, NAN, -0.4)))
    assert (
        lines[1] == "With one point for each of 900 types, ρ is −0.40 for ‖f(x)‖, unlike the 0.75 over all occurrences."
    )
    assert lines[2] == "7 of 10,007 tokens have no rank and were left out."
    nothing = replace(made, occurrences=Relation(0, NAN, NAN), types=Relation(0, NAN, NAN), excluded=0)
    assert said(nothing) == ["No token has a frequency rank, so there is nothing to compare."]


def test_headlines_are_grouped_by_kind_in_reading_order():
    by_kind = headlines(findings(kinds=("encoder", "decoder", "cross")))
    assert list(by_kind) == ["Encoder self-attention", "Decoder self-attention", "Cross-attention"]
    assert all(len(lines) == 5 for lines in by_kind.values())
    assert headlines(findings(studies=())) == {}


def test_what_queries_and_keys_are():
    assert "the same text" in explained("self", "")
    assert "those of the source" in explained("cross", "")
    assert "every query counts equally" in STUDIES["categories"].causal
    assert "Only the queries that can see a token count" in STUDIES["frequency"].causal
    assert STUDIES["dispersion"].causal == ""


def test_causal_attention_is_explained_where_it_matters():
    document = findings(kinds=("encoder", "decoder"), causal=("decoder",)).document()
    causal = [(c.name, a.name) for c in document.chapters for a in c.articles if "This attention is causal" in a.lead]
    assert causal == [("categories", "decoder"), ("correlation", "decoder"), ("frequency", "decoder")]
