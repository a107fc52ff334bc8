"""Findings made by hand for the tests of the studies: the shape of real ones, in milliseconds."""

from dataclasses import replace

import numpy as np

from normlens.exhibits import Section
from normlens.signature import Signature
from normlens.studies import STUDIES, Categories, Correlation, Dispersion, Facts, Findings, Frequency, Spread
from normlens.studies.frequency import Points, Relation

NAMES = ("[CLS]", "[SEP]", "comma/period", "other")
SIGNATURE = Signature(
    (("model", "made@0"), ("corpus", "by hand"), ("length", "128"), ("seed", "0"), ("version", "0.1.0"))
)


def holes(shape: tuple[int, ...], missing: int) -> np.ndarray:
    """1 everywhere, NaN for the last `missing` heads of every second layer."""
    mask = np.ones(shape)
    if missing:
        mask[..., 1::2, -missing:] = np.nan
    return mask


def dispersion(kind="self", layers=2, heads=3, missing=0, seed=0, inputs=True, singular=9) -> Dispersion:
    random = np.random.default_rng(seed)
    mask = holes((layers, heads), missing)
    mean = (3 + np.linspace(0, 3, layers)[:, None] + random.normal(0, 0.5, (layers, heads))) * mask
    variation = random.uniform(0.12, 0.37, (layers, heads)) * mask
    spread = Spread(
        count=np.where(np.isfinite(mask), 4000, 0),
        mean=mean,
        deviation=mean * variation,
        low=mean * 0.2,
        high=mean * 2.1,
    )
    lengths = random.uniform(10, 20, layers)
    given = Spread(
        np.full(layers, 4000), lengths, lengths * random.uniform(0.06, 0.2, layers), lengths * 0.4, lengths * 1.6
    )
    values = None
    if singular:
        falling = np.sort(random.gamma(3, 0.6, (layers, heads, singular)) + 0.4, axis=-1)[..., ::-1]
        values = falling * mask[..., None]
    return Dispersion(kind, tuple(range(layers)), spread, given if inputs else None, values, ())


def categories(kind="self", layers=2, heads=3, missing=0, seed=0, names=NAMES, absent=(), weight=None, length=None):
    """By default the paper's picture: special tokens receive much and contribute little."""
    random = np.random.default_rng(seed)
    count = len(names)
    weight = np.asarray([0.3, 0.4, 0.1] + [0.2 / (count - 3)] * (count - 3) if weight is None else weight, dtype=float)
    length = np.asarray([0.8, 0.5, 1.5] + [4.0] * (count - 3) if length is None else length, dtype=float)
    middle = 0.15 + np.exp(-(((np.arange(layers) - layers / 2) / max(layers / 3, 1)) ** 2))
    raw = weight[:, None, None] * np.where(np.arange(count) < count - 1, 1, 0)[:, None, None] * middle[None, :, None]
    raw[-1] = weight[-1]
    raw = raw * random.gamma(6, 1 / 6, (count, layers, heads))
    there = np.array([index not in absent for index in range(count)])
    raw[~there] = 0
    weights = raw / np.maximum(raw.sum(axis=0), 1e-12)
    transformed = length[:, None, None] * random.gamma(9, 1 / 9, (count, layers, heads))
    mask = holes((count, layers, heads), missing)
    mask[~there] = np.nan
    tokens = np.where(there, np.array([100, 200, 700] + [9000 // (count - 3)] * (count - 3))[:count], 0)
    return Categories(
        kind=kind,
        names=names,
        layers=tuple(range(layers)),
        sequences=np.where(there, 100, 0) - np.where(there, np.arange(count) == 2, 0) * 3,
        total=100,
        tokens=tokens,
        weights=weights * mask,
        norms=weights * transformed * mask,
        transformed=transformed * mask,
        special={},
    )


def correlation(
    kind="self", layers=2, heads=3, missing=0, seed=0, names=NAMES, rho=(-0.34, -0.69, -0.25, -0.06), points=400
):
    random = np.random.default_rng(seed)
    rho = np.resize(np.asarray(rho, dtype=float), len(names))
    within = np.clip(rho[:, None, None] + random.normal(0, 0.15, (len(names), layers, heads)), -1, 1)
    category = random.integers(0, len(names), points)
    weight = np.clip(10 ** random.normal(-2.2, 0.9, points), 0, 1)
    slope = np.where(np.isfinite(rho), rho, 0)[category]
    norm = (
        np.exp(slope * 0.6 * (np.log10(weight + 1e-9) + 2.2) + random.normal(0, 0.3, points))
        * np.array([1, 0.6, 1.5, 4] * 9)[category]
    )
    return Correlation(
        kind=kind,
        names=names,
        layers=tuple(range(layers)),
        pairs=np.where(np.isfinite(rho), 1_000_000 * (1 + np.arange(len(names))), 0),
        rho=rho,
        rho_heads=within * holes((len(names), layers, heads), missing),
        sample_category=category,
        sample_weight=weight,
        sample_norm=norm,
        constant=(),
        notes=(),
    )


def frequency(kind="self", seed=0, names=NAMES, rho_weight=-0.08, rho_norm=0.75, points=500, types=60, excluded=0):
    """Without special tokens; see `with_special`."""
    random = np.random.default_rng(seed)
    rank = np.floor(np.exp(random.uniform(0, np.log(20000), points))).astype(int)
    category = np.where(rank <= len(names) - 1, rank - 1, len(names) - 1)
    norm = 0.6 + 0.28 * np.log(rank) + random.gamma(4, 0.1, points)
    weight = np.where(category < len(names) - 1, 0.08, 0.012) * random.gamma(5, 0.2, points)
    type_rank = np.unique(np.floor(np.exp(np.linspace(0, np.log(20000), types))).astype(int))
    kept = len(type_rank)
    return Frequency(
        kind=kind,
        source="the model's vocabulary, in order of its ids",
        names=names,
        excluded=excluded,
        occurrences=Relation(20 * points, rho_weight, rho_norm),
        plain=Relation(20 * points, rho_weight, rho_norm),
        types=Relation(kept, rho_weight / 2, rho_norm / 2),
        drawn=Points(rank, weight, norm),
        drawn_category=category,
        drawn_special=np.zeros(points, bool),
        token=tuple([*names[: min(kept, len(names) - 1)], *(f"token{n}" for n in range(kept))][:kept]),
        token_count=np.maximum(1, 5000 // type_rank),
        by_type=Points(type_rank, random.uniform(0.005, 0.05, kept), 0.6 + 0.28 * np.log(type_rank)),
    )


def with_special(made: Frequency, rho_weight=0.02, rho_norm=0.61) -> Frequency:
    """The same of which every occurrence of the first two categories is a special token, and ρ without them."""
    return replace(
        made,
        plain=Relation(made.occurrences.points // 2, rho_weight, rho_norm),
        drawn_special=made.drawn_category < 2,
    )


def findings(
    kinds=("self",), studies=("dispersion", "categories", "correlation", "frequency"), causal=(), notes=(), **shape
):
    """All studies for all kinds. `shape` (layers, heads, missing, seed, names) goes to those it concerns."""
    concerns = {
        "dispersion": (dispersion, ("layers", "heads", "missing", "seed")),
        "categories": (categories, ("layers", "heads", "missing", "seed", "names")),
        "correlation": (correlation, ("layers", "heads", "missing", "seed", "names", "points")),
        "frequency": (frequency, ("seed", "names", "points", "types")),
    }
    results = {
        study: {kind: make(kind, **{key: shape[key] for key in keys if key in shape}) for kind in kinds}
        for study, (make, keys) in concerns.items()
        if study in studies
    }
    return found(results, causal=causal, notes=notes, names=shape.get("names", NAMES))


def found(results, causal=(), notes=(), names=NAMES) -> Findings:
    """These results as the findings of a run."""
    run = Facts(
        lens=None,
        model="made/by-hand",
        corpus="two paragraphs from an encyclopedia",
        signature=SIGNATURE,
        categories=names,
        ranks=None,
        seed=0,
        length=128,
        items=100,
        tokens=10_000,
        squares=1_020_000,
        error=3.2e-7,
        causal=tuple(causal),
        notes=tuple(notes),
    )
    return Findings(run, tuple(STUDIES[name] for name in results), results)


def two_kinds() -> Findings:
    """Every study of one kind of attention, and one study of another."""
    made = findings(kinds=("encoder",), points=60)
    return replace(made, results=made.results | {"dispersion": made["dispersion"] | {"cross": dispersion("cross")}})


def section_of(result) -> Section:
    """What its study says and shows of a result."""
    return STUDIES[type(result).__name__.lower()].section(result, findings(studies=()).run)
