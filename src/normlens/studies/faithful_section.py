"""A comparison of attributions in words, a figure and tables."""

from __future__ import annotations

from typing import TYPE_CHECKING

from normlens.exhibits import Bar, Bars, Column, Section, Table, listing, many, number, percent
from normlens.studies.orders import RANDOM

if TYPE_CHECKING:
    from normlens.studies.faithful_result import Faithfulness

TITLE = "Which attribution is faithful?"
QUESTION = "Which tokens does a prediction rest on? Several methods answer; here it is measured which answer holds."
CAUTION = (
    "Shorter or masked texts are unlike those that the model was trained on, so a prediction also falls because the "
    "text is odd. All methods are measured with the same removals; another kind of removal may rank them otherwise."
)
METHOD = (
    "Every method puts the tokens in an order, the highest score first. Comprehensiveness is what the prediction loses "
    "when the first tokens are removed, sufficiency what it loses when only they are kept. AOPC is the mean of "
    "comprehensiveness over the shares. Special tokens and the position that is read always stay.",
    "Normalised AOPC is 0 for the worst order of the tokens and 1 for the best. For short texts both are exact; for "
    "others they are the lowest and the highest of what a beam search and all methods found.",
    "Intervals of 95 % are by bootstrap over texts. Sentences rest on paired differences, corrected for the number of "
    "comparisons (Bonferroni); the table of pairs is not corrected.",
    "A method without signs is compared with the sizes of leave-one-out and of gradients.",
)
SHORT_TITLES = {"leave_one_out": "leave-one-out", "gradient_x_input": "gradient × input", "integrated_gradients": "IG"}


def section_of(result: Faithfulness) -> Section:
    """The result as sentences, a figure and tables."""
    notes = [f"{name} is left out: {reason}" for name, reason in sorted(result.refused.items())]
    if result.short:
        notes.append(f"{many(result.short, 'text')} had fewer than two tokens to remove.")
    flat = len(result.texts) - result.counted
    if flat and result.texts:
        notes.append(f"In {many(flat, 'text')} every order is alike; normalised AOPC leaves them out.")
    if len(result.names) < 2 or not result.counted:
        return Section(["Nothing was compared."], [], notes)
    return Section(_sentences(result), [_bars(result), *_tables(result)], notes)


def _sentences(result: Faithfulness) -> list[str]:
    best, *others = result.ranking
    above, equal = result.better_than_random, result.no_worse
    if best not in above:
        return [
            f"No method was seen to be better than random orders on {many(result.counted, 'text')}: trust none of them "
            "here, or measure more texts."
        ]
    bad = [name for name in others if name not in above]
    reached, place = result.means(result.normalised), result.names.index(best)
    low, high = result.interval(result.normalised)[:, place].tolist()
    told = (
        f"normalised AOPC {number(reached[best])}, 95 % interval {number(low)} to {number(high)}; random orders "
        f"{number(reached[RANDOM])}"
    )
    if others and len(equal) == len(others):
        lines = [f"No difference was seen between the methods; {result.titles[best]} is first ({told})."]
    else:
        behind = [name for name in bad if name not in equal]
        distrusted = f", not {_titles(result, behind)}" if behind else ""
        lines = [f"On this model trust {result.titles[best]}{distrusted} ({told})."]
        if equal:
            lines.append(f"No difference was seen between it and {_titles(result, equal)}.")
    runner = next((name for name in others if name not in equal), None)
    if runner is not None:
        value, low, high = result.difference(best, runner, len(others))
        lines.append(
            f"It is ahead of {result.titles[runner]} by {number(value)} ({number(low)} to {number(high)}, paired)."
        )
    if untold := [name for name in bad if name in equal]:
        lines.append(
            f"Told apart neither from it nor from random orders: {_titles(result, untold)}; more texts would tell."
        )
    return [*lines, _kept(result), _time(result, best)]


def _kept(result: Faithfulness) -> str:
    lost = result.means(result.kept.mean(axis=-1))
    enough = min(result.ranking, key=lambda name: lost[name])
    return (
        f"Least is lost when only the first tokens of {result.titles[enough]} are kept: {number(lost[enough])} on "
        f"average, {number(lost[RANDOM])} for random orders."
    )


def _time(result: Faithfulness, best: str) -> str:
    passes = result.passes
    slow = max(passes, key=lambda name: passes[name])
    line = f"{result.titles[best]} takes the time of {number(passes[best], 2)} forward passes"
    return f"{line}." if slow == best else f"{line}, the slowest ({result.titles[slow]}) of {number(passes[slow], 2)}."


def _bars(result: Faithfulness) -> Bars:
    reached, ends = result.means(result.normalised), result.interval(result.normalised).tolist()
    order = [(name, result.names.index(name)) for name in (*result.ranking, RANDOM)]
    bars = tuple(Bar(result.titles[name], reached[name], *(end[place] for end in ends)) for name, place in order)
    return Bars(
        "faithfulness",
        "Normalised AOPC of every method, mean over texts with 95 % intervals: 0 is the worst order of the tokens, 1 "
        "the best.",
        f"Bars from the most faithful method on: {listing([f'{bar.name} {number(bar.value)}' for bar in bars])}.",
        bars,
        x="normalised AOPC",
    )


def _tables(result: Faithfulness) -> list[Table]:
    agreement = [
        Column(f"agrees_{other}", SHORT_TITLES.get(other, other), "rho", group="Spearman's ρ with")
        for other in result.agreement
    ]
    main = (
        Column("title", "method", "text"),
        Column("normalised_aopc", "normalised AOPC"),
        Column("low", "from"),
        Column("high", "to"),
        Column("aopc", "AOPC"),
        Column("sufficiency", "lost, first kept"),
        *agreement,
        Column("passes", "time, in passes"),
    )
    shares = (
        Column("title", "method", "text"),
        *(Column(f"removed_{s:g}", percent(s), group="lost without the first (more is better)") for s in result.shares),
        *(
            Column(f"kept_{s:g}", percent(s), group="lost when only they are kept (less is better)")
            for s in result.shares
        ),
    )
    pairs = (
        Column("first", "method", "text"),
        Column("second", "minus", "text"),
        Column("difference", "difference"),
        Column("low", "from"),
        Column("high", "to"),
    )
    rows = result.rows()
    return [
        Table("faithfulness", "Faithfulness of every method", rows, main),
        Table("faithfulness_by_share", "By share of the tokens", rows, shares, folded=True),
        Table(
            "faithfulness_pairs",
            "Paired differences in normalised AOPC",
            result.pair_rows(),
            pairs,
            folded=True,
            strong="clear",
        ),
        Table("faithfulness_texts", "Text by text", result.text_rows(), shown=0),
    ]


def _titles(result: Faithfulness, names: list[str]) -> str:
    return listing([result.titles[name] for name in names])
