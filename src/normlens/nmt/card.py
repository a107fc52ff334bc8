"""The card of a trained model: what it is, what it was made from, how good it is.

Room: numbers to words.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from typing import Any

from normlens.nmt.plan import FRESH, Plan
from normlens.version import __version__


def card(plan: Plan, history: Sequence[dict[str, Any]], *, data: str, valid_data: str) -> str:
    """README.md of a trained model."""
    best = max(reversed(history), key=lambda look: look["bleu"])
    source, target = plan.languages
    began = FRESH if plan.start == FRESH else f"an earlier model (sha256 {plan.start[:12]})"
    numbers = "\n".join(f"| {name} | {value} |" for name, value in asdict(plan.recipe).items())
    return f"""---
library_name: transformers
pipeline_tag: translation
---
# Translation, {source} to {target}

A Marian Transformer, trained from {began} by `normlens nmt train`, normlens {__version__}.
It reads and writes text without case, with every punctuation mark as a word of its own: its use is word alignment.

## Data

- trained on: {data}
- validated on: {valid_data}

## Result

| | |
|---|---|
| minutes of training | {history[-1]["minutes"]:.1f} |
| updates | {history[-1]["update"]} |
| kept: the model after update | {best["update"]} |
| its BLEU (sacreBLEU, greedy, lower-cased, at most {plan.valid_limit} pairs) | {best["bleu"]:.2f} |
| its loss per subword on the validation pairs | {best["valid_loss"]:.4f} |

`history.json` of the training holds every validation.

## Recipe

| | |
|---|---|
{numbers}
| seed | {plan.seed} |

`vocabulary` counts the subwords of each language, `tokens` those of an update; pairs of more than `longest` words a
side were left out. AdamW (0.9, 0.98) without weight decay, gradients cut to norm 1, single precision.
"""
