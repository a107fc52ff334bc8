"""Train a translation model from parallel text: one folder out, resumable at any moment.

Room: the order of things. The folder holds the best model so far, and `transformers` loads it at every moment.
"""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from normlens.nmt.build import check_device
from normlens.nmt.card import card
from normlens.nmt.extra import check
from normlens.nmt.folder import CARD, STATE, read_history, write_text
from normlens.nmt.loop import TrainingError, Watch, run
from normlens.nmt.plan import FRESH, Plan, check_free, enter
from normlens.nmt.prepare import prepare, read
from normlens.nmt.recipe import Recipe
from normlens.nmt.start import digest, sized
from normlens.nmt.text import Pair


def train(
    pairs: Iterable[Pair],
    folder: Path,
    *,
    recipe: Recipe,
    valid: Iterable[Pair] | None = None,
    valid_limit: int = 500,
    languages: tuple[str, str] = ("source", "target"),
    seed: int = 0,
    device: str = "cpu",
    start: Path | None = None,
    resume: bool = False,
    watch: Watch | None = None,
) -> Path:
    """Train, validate every so often, and keep the best model by BLEU in `folder`.

    The pairs are read several times, never held whole. Without `valid`, the last ones are held back; at most
    `valid_limit` are translated. `start` is the folder of a model that was trained before: its subwords and weights
    are what the training begins from, and its sizes replace those of the recipe. A training that was killed and
    resumed ends with the weights of one that was not.
    """
    check()
    check_device(device)
    watch = watch or Watch()
    if not (0 <= seed < 1 << 31 and valid_limit > 0):
        raise TrainingError(
            f"Seed {seed}, and {valid_limit} pairs to translate?\n"
            "  Do: give a seed from 0 to 2,147,483,647 and at least one pair."
        )
    check_free(folder, resume=resume)
    recipe = recipe if start is None else sized(recipe, start)
    text = read(pairs, valid)
    began = FRESH if start is None else digest(start)
    plan = Plan(recipe, languages, seed, text.digest, text.held_digest, valid_limit, began)
    stand = enter(folder, plan, resume=resume)
    if stand == "finished":
        watch.told(f"This training is finished: {recipe.updates:,} updates were made.")
    else:
        data = prepare(text, folder, plan, start)
        watch.told(
            f"{len(data.pairs):,} pairs to train on; left out: {text.left_out:,} with an empty side, "
            f"{text.kept - len(data.pairs):,} too long. {len(text.held):,} to validate on.\n"
            f"{len(data.tokens.encoder):,} and {len(data.tokens.target_encoder):,} subwords."
        )
        run(folder, data, plan, device, watch, start)
    if stand != "finished" or not (folder / CARD).exists():
        write_text(
            folder / CARD,
            card(plan, read_history(folder), data=f"{text.name}, {text.kept:,} pairs", valid_data=text.held_name),
        )
    (folder / STATE).unlink(missing_ok=True)
    return folder
