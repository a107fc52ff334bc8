"""The bundled classifier: the upper layers and the head lie here, the layers below them in the package of MiniLM."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import transformers
from safetensors.torch import load_file
from torch import nn

from normlens.models.default import default_folder
from normlens.models.quiet import quiet

CLASSIFIER = "sst2"  # its name, where a model is named
TUNED = Path(__file__).parent / "bundled" / CLASSIFIER / "model.safetensors"
LABELS = ("negative", "positive")


def is_classifier(source: Any) -> bool:
    """Whether the bundled classifier is meant; a model of its name in the working directory comes first."""
    return source == CLASSIFIER and not (Path(CLASSIFIER) / "config.json").is_file()


def untuned_config() -> Any:
    """The configuration of MiniLM as a classifier."""
    return transformers.BertConfig.from_pretrained(
        default_folder(),
        architectures=["BertForSequenceClassification"],
        id2label=dict(enumerate(LABELS)),
        label2id={label: number for number, label in enumerate(LABELS)},
    )


def classifier(config: Any, dtype: Any = "auto") -> nn.Module:
    """MiniLM with the tuned layers in place of its own."""
    below = {f"bert.{name}": tensor for name, tensor in load_file(default_folder() / "model.safetensors").items()}
    tuned = {name: tensor.float() for name, tensor in load_file(TUNED).items()}
    with quiet():
        return transformers.BertForSequenceClassification.from_pretrained(
            None, config=config, state_dict=below | tuned, dtype=dtype
        )
