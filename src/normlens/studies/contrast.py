"""Do heads relate some words more to one set of words than to another? After B. Li et al. (2021).

For words A and two sets B1 and B2, the mean over all pairs of a word of A and a word of B1, less that of B2, of

    map(a, b) = mean over the pieces i of a, sum over the pieces j of b, of α[i,j]    (A as queries)

and the same with A as keys, by α and by each query's shares of ‖αf(x)‖. Texts are the units of the interval.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
import torch
from jaxtyping import Float
from torch import Tensor

from normlens.exhibits import (
    Column,
    Exhibit,
    Grid,
    Grids,
    Row,
    Section,
    Table,
    count,
    hatched,
    listing,
    many,
    number,
    percent,
    plain,
)
from normlens.statistics import Moments, Statistic
from normlens.studies.intervals import LEVEL, Interval, of_mean, of_ratios, stacked, total
from normlens.studies.per_head import MEASURES, HeadColumn, PerHead, few_names
from normlens.studies.seen import Facts, Seen
from normlens.studies.study import Counter, Study, StudyError
from normlens.studies.sums import Sums, padded
from normlens.studies.word_sets import folded, marked, words_of

DIRECTIONS = {"query": "as queries", "key": "as keys"}  # of the words A
SETS = ("first", "second")


@dataclass(frozen=True, slots=True, eq=False)
class Contrast:
    """Everything by direction; maps and differences also by measure."""

    kind: str
    layers: tuple[int, ...]
    means: Mapping[tuple[str, str, str], Float[np.ndarray, "layer head"]]  # by (direction, measure, set)
    over_pairs: Mapping[tuple[str, str], Interval]  # of the means over all pairs
    in_texts: Mapping[tuple[str, str], Interval]  # within texts that hold pairs of both sets, mean over texts
    pairs: Mapping[tuple[str, str], float]  # by (direction, set); layer 0's, a pair seen in part counts by that part
    distance: Mapping[tuple[str, str], float]  # mean |i - j| of these pairs; NaN across texts
    texts: Mapping[tuple[str, str], int]  # that hold such a pair
    both: Mapping[str, int]  # that hold pairs of both sets
    occurrences: Mapping[str, int]  # by word, over all three sets


class ContrastStudy(Study[Contrast]):
    name, title = "contrast", "Do heads relate words more to one set of words than to another?"
    paper = "B. Li et al. (2021), attention between occupations and gendered words; sets, intervals and norms are ours"
    question = (
        "B. Li et al. compare the attention between an occupation and male words with that between it and female "
        "words. The same contrast for any three sets of words, by attention and by contributions."
    )
    caution = (
        "a difference is no proof of bias: the two sets may stand at other distances, in other texts and roles. Mean "
        "distances are shown beside. Intervals are not corrected for the number of heads."
    )
    method = (
        "A word is matched whole, with all its pieces and without punctuation around it. A map is the sum over the "
        "pieces of the key and the mean over the pieces of the query. Pairs of a word with itself at the same place, "
        "and pairs that the query does not see, are left out.",
        "The difference is the mean over all pairs of the first set less that of the second. Its 95 % interval is that "
        "of ratios of sums over texts: the linearised error, with Student’s t for as many texts as hold pairs of the "
        "rarer set. The paired difference is that of the means within each text that holds pairs of both sets, with "
        "an interval of its own. These choices are ours.",
    )

    def __init__(
        self,
        *,
        words: tuple[str, ...] = (),
        first: tuple[str, ...] = (),
        second: tuple[str, ...] = (),
        match_case: bool = False,
    ) -> None:
        self.words, self.first, self.second, self.match_case = tuple(words), tuple(first), tuple(second), match_case
        self.sets = [
            [folded(word, match_case=match_case) for word in words] for words in (self.words, self.first, self.second)
        ]
        shared = set(self.sets[1]) & set(self.sets[2])
        if shared:
            raise StudyError("A word is in the first and in the second set.", got=", ".join(sorted(shared)))
        for word in (word for words in self.sets for word in words):
            if not word or len(word.split()) > 1:
                raise StudyError("A word of a set must be one word.", got=f"'{word}'", do="give words, as a,b,c.")

    def counter(self, sums: Sums, run: Facts) -> Counter:
        if not all(self.sets):
            raise StudyError(
                "contrast needs three sets of words.",
                got=f"words={self.words}, first={self.first}, second={self.second}",
                do="give --set words=doctor,nurse --set first=he,his --set second=she,her.",
            )
        return super().counter(sums, run)

    def see(self, seen: Seen) -> Mapping[str, Statistic]:
        masks, sizes = seen.src.once(f"{self.name} of {seen.kind}", lambda _: self._masks(seen))
        visible = seen.pairs.cpu()[..., None, None]
        pairs = (sizes * visible).sum(dim=(1, 2)).double().numpy()  # (batch, direction, set)
        there = pairs.sum(axis=(1, 2)) > 0
        statistics: dict[str, Statistic] = {
            "texts": Moments.of((pairs > 0).astype(float)),
            "both": Moments.of((pairs > 0).all(axis=2).astype(float)),
            "pairs": Moments.of(pairs),
            "occurrences": Moments.of(
                seen.src.once(f"words of {self.name} {seen.kind}", lambda _: self._occurrences(seen))
            ),
        }
        if seen.block.tgt == seen.block.src:
            far = (torch.arange(sizes.shape[1])[:, None] - torch.arange(sizes.shape[2])).abs()[..., None, None]
            statistics["distance"] = Moments.of((sizes * visible * far).sum(dim=(1, 2)).double().numpy())
        heads = seen.weights.shape[1]
        for measure, maps in (("weights", seen.weights), ("norms", seen.contributions)):
            sums = np.zeros((len(pairs), heads, 2, 2))
            if there.any():
                chosen = torch.from_numpy(there)
                some = torch.einsum("bhij,bijds->bhds", maps[chosen], masks[chosen].to(maps))
                sums[there] = some.cpu().double().numpy()
            counts = np.broadcast_to(pairs[:, None], sums.shape)
            units = np.stack([sums, counts], axis=-1).reshape(len(pairs), heads, 2, 4)  # sum and pairs of each set
            statistics[f"sums_{measure}"] = Moments.of(units)
            statistics[f"products_{measure}"] = Moments.of(units[..., None] * units[..., None, :])
            means = sums / np.maximum(counts, 1e-12)
            statistics[f"in_texts_{measure}"] = Moments.of(means[..., 0] - means[..., 1], np.all(counts > 0, axis=-1))
        return statistics

    def _occurrences(self, seen: Seen) -> Float[np.ndarray, "batch word"]:
        """How often each word is in each text, those of both sides where they differ."""
        groups = [seen.src] if seen.block.tgt == seen.block.src else [seen.tgt, seen.src]
        by_side = [words_of(group, match_case=self.match_case) for group in groups]
        texts = [[word for words in sides for word, _ in words] for sides in zip(*by_side, strict=True)]
        return np.array([[text.count(word) for words in self.sets for word in words] for text in texts], float)

    def _masks(self, seen: Seen) -> tuple[Tensor, Tensor]:
        """What each α counts in the map of the pairs, and in their number: (batch, tgt, src, direction, set)."""
        queries, keys = (marked(group, self.sets, match_case=self.match_case) for group in (seen.tgt, seen.src))
        pairs = torch.stack(
            [
                queries.sets[:, :, None, :1] & keys.sets[:, None, :, 1:],  # A as queries
                queries.sets[:, :, None, 1:] & keys.sets[:, None, :, :1],  # A as keys
            ],
            dim=3,
        )
        if seen.block.tgt == seen.block.src:
            pairs &= (queries.word[:, :, None] != keys.word[:, None])[..., None, None]
        masks = pairs * queries.part[:, :, None, None, None]
        return masks, masks * keys.part[:, None, :, None, None]

    def result(self, sums: Sums, run: Facts) -> Contrast:
        layers, _ = sums.by_layer("pairs")
        texts = [np.round(total(m)).astype(int) for m in sums.by_layer("texts")[1]]  # (direction, set)
        pairs, both, occurrences = (total(sums[f"{layers[0]}/{name}"]) for name in ("pairs", "both", "occurrences"))
        far = sums.get(f"{layers[0]}/distance")
        with np.errstate(invalid="ignore", divide="ignore"):
            distance = np.full((2, 2), np.nan) if far is None else total(far) / pairs
        means, over_pairs, in_texts = {}, {}, {}
        for measure in MEASURES:
            units, products = ([total(m) for m in sums.by_layer(f"{n}_{measure}")[1]] for n in ("sums", "products"))
            within = [of_mean(m) for m in sums.by_layer(f"in_texts_{measure}")[1]]
            for place, direction in enumerate(DIRECTIONS):
                for which, name in enumerate(SETS):
                    with np.errstate(invalid="ignore", divide="ignore"):
                        ratios = [u[:, place, 2 * which] / u[:, place, 2 * which + 1] for u in units]
                    means[direction, measure, name] = padded(ratios)
                over_pairs[direction, measure] = stacked(
                    [
                        of_ratios(unit[:, place], product[:, place], int(seen_in[place].min()))
                        for unit, product, seen_in in zip(units, products, texts, strict=True)
                    ]
                )
                in_texts[direction, measure] = stacked([m[:, place] for m in within])
        cells = [(d, s, (i, j)) for i, d in enumerate(DIRECTIONS) for j, s in enumerate(SETS)]
        words = (*self.words, *self.first, *self.second)
        return Contrast(
            kind=sums.kind,
            layers=layers,
            means=means,
            over_pairs=over_pairs,
            in_texts=in_texts,
            pairs={(d, s): float(pairs[at]) for d, s, at in cells},
            distance={(d, s): float(distance[at]) for d, s, at in cells},
            texts={(d, s): int(texts[0][at]) for d, s, at in cells},
            both={d: round(float(both[i])) for i, d in enumerate(DIRECTIONS)},
            occurrences=dict(zip(words, np.round(occurrences).astype(int).tolist(), strict=True)),
        )

    def per_head(self, result: Contrast) -> PerHead:
        columns: list[HeadColumn] = []
        for (direction, measure), over in result.over_pairs.items():
            name, heading = f"contrast_{direction}_{measure}", f"{direction}: {MEASURES[measure]}"
            within = result.in_texts[direction, measure]
            columns += [
                HeadColumn(name, heading, over.mean),
                HeadColumn(f"{name}_low", "from", over.low),
                HeadColumn(f"{name}_high", "to", over.high),
                HeadColumn(f"{name}_paired", f"{heading}, paired", within.mean, shown=False),
                HeadColumn(f"{name}_paired_low", "from", within.low, shown=False),
                HeadColumn(f"{name}_paired_high", "to", within.high, shown=False),
            ]
        return PerHead(result.layers, tuple(columns))

    def section(self, result: Contrast, run: Facts) -> Section:
        absent = [word for word, times in result.occurrences.items() if not times]
        notes = [f"Not in the corpus: {listing(absent)}."] if absent else []
        if not any(result.pairs.values()):
            return Section(["No text holds a pair of these words, so there is nothing to compare."], [], notes)
        table = self.per_head(result).table(
            "contrast", "Difference of every head with its 95 % interval, first set less second", shown=12
        )
        return Section(_sentences(result, self), [*_figures(result, self), _pairs_table(result, self), table], notes)


def _sentences(result: Contrast, study: ContrastStudy) -> list[str]:
    lines, words = [], _short(study.words)
    for (direction, measure), over in result.over_pairs.items():
        heads = int(np.isfinite(over.low).sum())
        more, less = (np.argwhere(over.clear & (sign * over.mean > 0)) for sign in (1, -1))
        named = few_names(result.layers, [(int(a), int(b)) for a, b in (*more, *less)])
        what = f"With {words} {DIRECTIONS[direction]}, by {MEASURES[measure]}"
        lines.append(
            f"{what}: the interval of {len(more) + len(less)} of {many(heads, 'head')} excludes 0, {len(more)} towards "
            f"the first set and {len(less)} towards the second{f' ({named})' if named else ''}. About "
            f"{number(heads * (1 - LEVEL), 2)} would by chance."
            if heads
            else f"{what}: too few texts hold pairs of both sets for an interval."
        )
    for direction, reading in DIRECTIONS.items():
        (near, far), (first, second), (texts, others) = (
            [by[direction, name] for name in SETS] for by in (result.distance, result.pairs, result.texts)
        )
        lines.append(
            f"{reading.capitalize()} there are {count(first)} pairs with the first set in {many(int(texts), 'text')}, "
            f"and {count(second)} with the second in {count(others)}; {count(result.both[direction])} hold both. The "
            f"mean distance of the pairs is {number(near)} and {number(far)} tokens."
        )
    return lines


def _short(words: tuple[str, ...]) -> str:
    return listing([f"“{word}”" for word in words]) if len(words) <= 4 else f"“{words[0]}” and {len(words) - 1} more"


def _figures(result: Contrast, study: ContrastStudy) -> list[Exhibit]:
    figures: list[Exhibit] = []
    for direction, reading in DIRECTIONS.items():
        maps = {measure: result.over_pairs[direction, measure].mean for measure in MEASURES}
        there = np.concatenate([values[np.isfinite(values)] for values in maps.values()])
        if not there.size:
            continue
        top = float(np.abs(there).max()) or 1.0
        figures.append(
            Grids(
                f"contrast_{direction}",
                f"Words {_short(study.words)} {reading}: mean map of the pairs with {_short(study.first)} less that of "
                f"the pairs with {_short(study.second)}, by attention (left) and by contributions (right)."
                + hatched(maps["weights"]),
                f"Two maps, layer by head, from {number(-top)} to {number(top)}; largest difference by α "
                f"{percent(np.nanmax(np.abs(maps['weights'])))}.",
                tuple(Grid(f"{reading}: {MEASURES[m]}", values, "signed", top) for m, values in maps.items()),
                tuple(map(str, result.layers)),
            )
        )
    return figures


def _pairs_table(result: Contrast, study: ContrastStudy) -> Table:
    rows: list[Row] = []
    for direction, reading in DIRECTIONS.items():
        for name, words in zip(SETS, (study.first, study.second), strict=True):
            row: Row = {"words": reading, "set": name, "of": ", ".join(words)}
            row |= {"pairs": plain(result.pairs[direction, name]), "distance": plain(result.distance[direction, name])}
            for measure in MEASURES:
                values = result.means[direction, measure, name]
                row[f"mean_{measure}"] = plain(np.nanmean(values)) if np.isfinite(values).any() else None
            rows.append(row)
    columns = (
        Column("words", _short(study.words), "text"),
        Column("set", "set", "text"),
        Column("of", "of", "text"),
        Column("pairs", "pairs", "count"),
        Column("distance", "mean distance"),
        *(Column(f"mean_{m}", f"mean {symbol}", "percent") for m, symbol in MEASURES.items()),
    )
    return Table("contrast_pairs", "Pairs, their distance, and the mean map over all heads", rows, columns)
