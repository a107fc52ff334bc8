"""Whether rare tokens are looked at more or have longer vectors, in sentences.

Room: results to words. Rank 1 is the most frequent token, so a positive ρ with the rank means: more for rare tokens.
"""

from __future__ import annotations

from normlens.reports.numbers import correlation as rho_said
from normlens.reports.numbers import count, many
from normlens.reports.words.naming import sign
from normlens.studies.results import Frequency

_NORM = {1: "have longer vectors", -1: "have shorter vectors", 0: "have vectors of no clearly different length"}
_WEIGHT = {1: "draw more weight", -1: "draw less weight", 0: "draw neither clearly more nor clearly less weight"}


def frequency(found: Frequency) -> list[str]:
    """Over all occurrences, then with one point per type, then what was left out."""
    lines = _related(found)
    lines += _by_type(found)
    if found.excluded:
        whole = found.occurrences + found.excluded
        lines.append(f"{count(found.excluded)} of {many(whole, 'token')} have no rank and were left out.")
    return lines


def _related(found: Frequency) -> list[str]:
    if not found.occurrences:
        return ["No token has a frequency rank, so there is nothing to compare."]
    norm, weight = sign(found.rho_norm, found.occurrences), sign(found.rho_weight, found.occurrences)
    norm_rho, weight_rho = rho_said(found.rho_norm), rho_said(found.rho_weight)
    norm_also, weight_also = (_also(found, rho) for rho in (found.rho_norm_plain, found.rho_weight_plain))
    if norm is None and weight is None:
        return ["ρ with the frequency rank is not defined: all tokens have the same rank, or nothing varies."]
    if weight is None:
        said = f"Rarer tokens {_NORM[norm or 0]} (ρ = {norm_rho} between rank and ‖f(x)‖{norm_also})"
        return [f"{said}; for α, ρ is not defined."]
    if norm is None:
        said = f"Rarer tokens {_WEIGHT[weight]} (ρ = {weight_rho} between rank and α{weight_also})"
        return [f"{said}; for ‖f(x)‖, ρ is not defined."]
    if norm == weight == 0:
        said = f"Neither ‖f(x)‖ (ρ = {norm_rho}{norm_also}) nor α (ρ = {weight_rho}{weight_also})"
        return [f"{said} goes clearly with the frequency of a token."]
    link = "and" if norm == weight else "but"
    return [
        f"Rarer tokens {_NORM[norm]} (ρ = {norm_rho} between rank and ‖f(x)‖{norm_also}), {link} {_WEIGHT[weight]} "
        f"(ρ = {weight_rho} between rank and α{weight_also})."
    ]


def _also(found: Frequency, rho: float) -> str:
    """The same ρ without special tokens, where there are any."""
    if found.plain == found.occurrences:
        return ""
    return f", {'not defined' if rho != rho else rho_said(rho)} without special tokens"


def _by_type(found: Frequency) -> list[str]:
    said = []
    for symbol, rho, over_all in (
        ("‖f(x)‖", found.rho_norm_types, found.rho_norm),
        ("α", found.rho_weight_types, found.rho_weight),
    ):
        now, before = sign(rho, found.types), sign(over_all, found.occurrences)
        if now is None:
            continue
        turned = f", unlike the {rho_said(over_all)} over all occurrences" if before == -now != 0 else ""
        said.append(f"{rho_said(rho)} for {symbol}{turned}")
    return [f"With one point for each of {many(found.types, 'type')}, ρ is {' and '.join(said)}."] if said else []
