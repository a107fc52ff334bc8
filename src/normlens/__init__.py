"""How much each token contributes in attention: α against ‖α·f(x)‖, exact, for any transformers model.

The map of public names. A name is fetched from its room when it is first asked for, and so is a room, so that
`import normlens` does not wait for torch; editors and type checkers read the imports below.
"""

import importlib
import typing

from normlens.version import __version__ as __version__

if typing.TYPE_CHECKING:
    from normlens.alignment import Aligned as Aligned
    from normlens.alignment import align as align
    from normlens.attribution import Attribution as Attribution
    from normlens.errors import NormlensError as NormlensError
    from normlens.lens import Block as Block
    from normlens.lens import Lens as Lens
    from normlens.lens import ReconstructionError as ReconstructionError
    from normlens.lens import Trace as Trace
    from normlens.lens import load as load
    from normlens.lens import open as open
    from normlens.measures import measure as measure
    from normlens.models import InputError as InputError
    from normlens.models import LoadError as LoadError
    from normlens.studies import Faithfulness as Faithfulness
    from normlens.studies import Report as Report
    from normlens.studies import Study as Study
    from normlens.studies import faithfulness as faithfulness
    from normlens.studies import heads as heads
    from normlens.studies import importance as importance
    from normlens.studies import report as report
    from normlens.studies import segment as segment
    from normlens.studies import shorten as shorten

_ROOMS = {
    "alignment": ("Aligned", "align"),
    "attribution": ("Attribution",),
    "corpora": (),
    "errors": ("NormlensError",),
    "lens": ("Block", "Lens", "ReconstructionError", "Trace", "load", "open"),
    "measures": ("measure",),
    "models": ("InputError", "LoadError"),
    "nmt": (),
    "exhibits": (),
    "studies": (
        "Faithfulness",
        "Report",
        "Study",
        "faithfulness",
        "heads",
        "importance",
        "report",
        "segment",
        "shorten",
    ),
}
_HOMES = {name: room for room, names in _ROOMS.items() for name in names}


def __getattr__(name: str) -> typing.Any:
    if name in _ROOMS:
        return importlib.import_module(f"normlens.{name}")
    if name not in _HOMES:
        raise AttributeError(f"module 'normlens' has no attribute {name!r}")
    value = getattr(importlib.import_module(f"normlens.{_HOMES[name]}"), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*_HOMES, *globals()} - {"importlib", "typing", "_ROOMS", "_HOMES"})
