"""What a translation model is trained with: its size, its subwords, its schedule."""

from __future__ import annotations

from dataclasses import asdict, dataclass, replace

from normlens.errors import NormlensError


class RecipeError(NormlensError):
    """Numbers that no model can be trained with."""


@dataclass(frozen=True, slots=True)
class Recipe:
    """Everything about a training that is not the text."""

    vocabulary: int  # subwords per language
    layers: int  # of the encoder, and again of the decoder
    width: int
    heads: int
    inner: int  # width of the feed-forward blocks
    dropout: float
    smoothing: float  # of the labels
    rate: float  # the peak, reached after the warm-up
    warmup: int  # updates
    cooldown: float  # share of the updates at the end over which the rate falls to 0
    tokens: int  # of the longer side, padding included, in one update
    longest: int  # words; longer pairs are left out
    updates: int
    every: int  # updates between two validations, each of which saves the state

    def __post_init__(self) -> None:
        for name, value in asdict(self).items():
            shares = name in ("dropout", "smoothing", "cooldown")
            if not (0 <= value < 1 if shares else 0 < value < float("inf")):
                wanted = "at least 0 and below 1" if shares else "above 0 and finite"
                raise RecipeError(
                    f"{name} must be {wanted} (got {value}).",
                    do=f"change {name}, or leave it out for the number of the preset.",
                )
        if self.width % self.heads:
            raise RecipeError(
                f"width must be a multiple of heads (got width {self.width} and {self.heads} heads).",
                do=f"give --width {(self.width // self.heads + 1) * self.heads}, or another number of --heads.",
            )

    def rate_at(self, update: int) -> float:
        """Learning rate of an update, counted from 1: linear, then inverse square root, then linear to 0."""
        rate = self.rate * min(update / self.warmup, (self.warmup / update) ** 0.5)
        left = (self.updates - update + 1) / max(self.cooldown * self.updates, 1)
        return rate * min(1.0, left)


SMALL = Recipe(
    vocabulary=4000,
    layers=3,
    width=160,
    heads=4,
    inner=640,
    dropout=0.0,
    smoothing=0.1,
    rate=3e-3,
    warmup=500,
    cooldown=0.2,
    tokens=3000,
    longest=26,
    updates=8000,
    every=500,
)
PAPER = Recipe(
    vocabulary=10000,
    layers=6,
    width=512,
    heads=4,
    inner=1024,
    dropout=0.1,
    smoothing=0.1,
    rate=1e-3,
    warmup=4000,
    cooldown=0.0,
    tokens=64000,
    longest=175,
    updates=100000,
    every=2000,
)
PRESETS = {"small": SMALL, "paper": PAPER}


def tailored(recipe: Recipe, **numbers: int | float | None) -> Recipe:
    """The recipe with other numbers; None leaves one as it is.

    The feed-forward blocks keep their proportion to the width, and a warm-up that is not given is at most a tenth of
    the updates.
    """
    given = {name: value for name, value in numbers.items() if value is not None}
    width = given.get("width", recipe.width)
    inner = int(recipe.inner * width / recipe.width)
    warmup = min(recipe.warmup, max(1, int(given.get("updates", recipe.updates)) // 10))
    return replace(recipe, **({"inner": inner, "warmup": warmup} | given))  # pyright: ignore[reportArgumentType]
