"""The bundled translation models and gold sample, which `align` takes by default."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path
from typing import Literal, get_args

from normlens.alignment.gold import Gold, read_gold
from normlens.alignment.words import Pair
from normlens.lens import Lens, load
from normlens.models import InputError

Languages = Literal["de-en", "en-de"]
FOLDER = Path(__file__).parent / "bundled"


@dataclass(frozen=True, slots=True)
class Sample:
    """Sentence pairs with their gold links."""

    pairs: list[Pair]
    golds: list[Gold]


def default_lens(languages: str = "de-en") -> Lens:
    """The bundled translation model of this direction, "de-en" or "en-de"."""
    if languages not in get_args(Languages):
        raise InputError(
            f"There is no bundled translation model for '{languages}'.",
            do=f"choose one of {', '.join(get_args(Languages))}, or give a model of your own with --model.",
        )
    lens = load(FOLDER / languages, dtype="float32")
    lens.subject = replace(lens.subject, name=f"bundled {languages}")
    return lens


def default_sample(languages: str = "de-en") -> Sample:
    """The bundled German-English sentence pairs, in either direction."""
    sides = [
        [line.split() for line in (FOLDER / f"sample.{side}").read_text(encoding="utf-8").splitlines()]
        for side in languages.split("-")
    ]
    golds = read_gold(FOLDER / "sample.talp", reverse=languages == "en-de")
    return Sample(list(zip(*sides, strict=True)), golds)
