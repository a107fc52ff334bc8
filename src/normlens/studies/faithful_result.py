"""What a comparison of attributions found: which to trust on this model, which not, and the numbers behind it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np
from jaxtyping import Float

from normlens.exhibits import Article, Chapter, Document, Row, Section, many, plain, show, write
from normlens.lens import import_pandas
from normlens.signature import Signature
from normlens.studies.faithful_section import CAUTION, METHOD, QUESTION, TITLE, section_of
from normlens.studies.orders import RANDOM

LEVEL = 0.95
RESAMPLES = 10_000
FLAT = 1e-6  # a text whose best and worst order differ by less, relative to its value, tells nothing


@dataclass(frozen=True, slots=True, eq=False)
class Faithfulness:
    """How faithful each method is, text by text; random orders are the last method."""

    signature: Signature
    shares: tuple[float, ...]
    titles: Mapping[str, str]  # of the methods compared, by name, and of random orders
    texts: Sequence[Row]  # text, target and tokens of each
    removed: Float[np.ndarray, "method text share"]  # what is lost without the first tokens
    kept: Float[np.ndarray, "method text share"]  # what is lost when only they are kept
    worst: Float[np.ndarray, " text"]  # AOPC of the worst order, and of the best
    best: Float[np.ndarray, " text"]
    agreement: Mapping[str, Float[np.ndarray, "method text"]]  # Spearman's ρ with another method
    seconds: Float[np.ndarray, "method text"]  # NaN for random orders
    forward: Float[np.ndarray, " text"]  # seconds of one pass
    refused: Mapping[str, str]  # methods that are left out, and why
    short: int  # texts with fewer than two tokens to remove
    seed: int

    @staticmethod
    def of(
        records: Sequence[Mapping[str, Any]],
        signature: Signature,
        shares: tuple[float, ...],
        titles: Mapping[str, str],
        refused: Mapping[str, str],
        seed: int,
    ) -> Faithfulness:
        """From what was recorded of every text."""
        whole = [record for record in records if "bounds" in record]
        names = [name for name in titles if name not in refused]
        size = (len(names) + 1, len(whole), len(shares))
        references = dict.fromkeys(name for r in whole for of in r["agreement"].values() for name in of)

        def table(part: str, *deeper: str) -> np.ndarray:
            return np.array([[r[part].get(name) for r in whole] for name in (*names, *deeper)], float)

        def agreed(other: str) -> np.ndarray:
            values = [[r["agreement"].get(name, {}).get(other) for r in whole] for name in (*names, RANDOM)]
            return np.array(values, float).reshape(size[:2])

        bounds = np.array([r["bounds"] for r in whole], float).reshape(-1, 2)
        return Faithfulness(
            signature,
            shares,
            {name: titles[name] for name in names} | {RANDOM: "random order"},
            [{key: r[key] for key in ("text", "target", "tokens")} for r in whole],
            table("removed", RANDOM).reshape(size),
            table("kept", RANDOM).reshape(size),
            bounds[:, 0],
            bounds[:, 1],
            {other: agreed(other) for other in references if other not in refused},
            table("seconds", RANDOM).reshape(size[:2]),
            np.array([r["seconds"]["forward"] for r in whole], float),
            dict(refused),
            len(records) - len(whole),
            seed,
        )

    @property
    def names(self) -> list[str]:
        return list(self.titles)

    @property
    def aopc(self) -> Float[np.ndarray, "method text"]:
        """Mean over shares of what is lost without the first tokens."""
        return self.removed.mean(axis=-1)

    @property
    def normalised(self) -> Float[np.ndarray, "method text"]:
        """AOPC between the worst order of its text, 0, and the best, 1; NaN where all orders are alike."""
        room = self.best - self.worst
        size = np.maximum(1, np.maximum(np.abs(self.best), np.abs(self.worst)))
        return (self.aopc - self.worst) / np.where(room > FLAT * size, room, np.nan)

    @property
    def counted(self) -> int:
        """Texts whose orders differ."""
        return int(np.isfinite(self.normalised[0]).sum()) if len(self.texts) else 0

    def interval(self, values: Float[np.ndarray, "... text"], comparisons: int = 1) -> Float[np.ndarray, "end ..."]:
        """Ends of the interval of a mean over texts, by bootstrap; narrower tails where several are compared."""
        values = values[..., np.isfinite(values).reshape(-1, values.shape[-1]).all(axis=0)]
        count = values.shape[-1]
        if count < 2:
            return np.full((2, *values.shape[:-1]), np.nan)
        tail = (1 - LEVEL) / 2 / comparisons
        return np.quantile(values @ _drawn(count, self.seed).T, (tail, 1 - tail), axis=-1)

    def difference(self, first: str, second: str, comparisons: int = 1) -> tuple[float, float, float]:
        """Mean paired difference of two methods in normalised AOPC, with its interval."""
        one, other = (self.normalised[self.names.index(name)] for name in (first, second))
        low, high = self.interval(one - other, comparisons)
        return (float(np.nanmean(one - other)) if self.counted else np.nan), float(low), float(high)

    def means(self, values: Float[np.ndarray, "method text"]) -> dict[str, float]:
        """The mean over texts of every method, by name."""
        return dict(zip(self.names, _means(values).tolist(), strict=False))

    @property
    def passes(self) -> dict[str, float]:
        """How many passes of the model each method takes the time of: the median over texts."""
        return dict(zip(self.names, np.median(self.seconds[:-1] / self.forward, axis=-1).tolist(), strict=False))

    @property
    def ranking(self) -> list[str]:
        """Methods from the most faithful on, random orders not among them."""
        means = self.means(self.normalised)
        return sorted((name for name in self.names if name != RANDOM), key=lambda name: -means[name])

    @property
    def better_than_random(self) -> list[str]:
        """Methods whose paired interval against random orders lies above 0."""
        return [name for name in self.ranking if self.difference(name, RANDOM, len(self.names) - 1)[1] > 0]

    @property
    def no_worse(self) -> list[str]:
        """Methods that no difference was seen between and the first of the ranking."""
        best, *others = self.ranking
        return [name for name in others if not self.difference(best, name, max(1, len(others)))[1] > 0]

    def rows(self) -> list[Row]:
        """One row for each method, the most faithful first; random orders last."""
        low, high = self.interval(self.normalised)
        rows, passes = list[Row](), self.passes
        for name in (*self.ranking, RANDOM):
            place = self.names.index(name)
            row: Row = {
                "method": name,
                "title": self.titles[name],
                "normalised_aopc": plain(_means(self.normalised)[place]),
                "low": plain(low[place]),
                "high": plain(high[place]),
                "aopc": plain(_means(self.aopc)[place]),
                "sufficiency": plain(_means(self.kept.mean(axis=-1))[place]),
            }
            for number, share in enumerate(self.shares):
                row[f"removed_{share:g}"] = plain(_means(self.removed[..., number])[place])
                row[f"kept_{share:g}"] = plain(_means(self.kept[..., number])[place])
            row |= {f"agrees_{other}": plain(_means(values)[place]) for other, values in self.agreement.items()}
            row["seconds"] = plain(np.median(self.seconds[place]))
            row["passes"] = plain(passes.get(name, np.nan))
            rows.append(row)
        return rows

    def pair_rows(self) -> list[Row]:
        """One row for each pair of methods: the paired difference in normalised AOPC."""
        names = [*self.ranking, RANDOM]
        rows: list[Row] = []
        for place, first in enumerate(names):
            for second in names[place + 1 :]:
                value, low, high = self.difference(first, second)
                clear = low > 0 or high < 0
                row = {"first": self.titles[first], "second": self.titles[second], "difference": plain(value)}
                rows.append(row | {"low": plain(low), "high": plain(high), "clear": "yes" if clear else "no"})
        return rows

    def text_rows(self) -> list[Row]:
        """One row for each text: what was predicted, the bounds, and the normalised AOPC of every method."""
        values = self.normalised
        return [
            {**text, "worst": plain(self.worst[place]), "best": plain(self.best[place])}
            | {name: plain(values[row, place]) for row, name in enumerate(self.names)}
            for place, text in enumerate(self.texts)
        ]

    def to_dataframe(self) -> Any:
        """The rows of the methods as a pandas table."""
        return import_pandas().DataFrame(self.rows())

    def section(self) -> Section:
        """The result as sentences, a figure and tables."""
        return section_of(self)

    def document(self) -> Document:
        """The section as a page of its own."""
        chapter = Chapter("faithfulness", TITLE, (Article(self.section()),), QUESTION, CAUTION, METHOD)
        facts = (("compared", many(len(self.titles) - 1, "method")), ("measured", many(len(self.texts), "text")))
        return Document(TITLE, QUESTION, facts, (chapter,), (str(self.signature),), self.signature.facts)

    def save(self, folder: str | Path) -> Path:
        """Write report.html, figures/ and tables/; the path of the page."""
        return write(self.document(), Path(folder))

    def show(self) -> str:
        """The result in words and small tables, for a terminal."""
        return show(self.document(), f"{many(len(self.texts), 'text')}, {many(len(self.titles) - 1, 'method')}\n")

    def __repr__(self) -> str:
        return self.show()


def _means(values: Float[np.ndarray, "method text"]) -> Float[np.ndarray, " method"]:
    """Means over the texts that have a value."""
    there = np.isfinite(values)
    sums = np.where(there, values, 0).sum(axis=-1)
    return np.divide(sums, there.sum(axis=-1), out=np.full(len(values), np.nan), where=there.any(axis=-1))


@lru_cache(maxsize=1)
def _drawn(count: int, seed: int) -> Float[np.ndarray, "sample text"]:
    """Texts drawn with replacement, as the weight of each in the mean of a sample."""
    return np.random.default_rng(seed).multinomial(count, np.full(count, 1 / count), size=RESAMPLES) / count
