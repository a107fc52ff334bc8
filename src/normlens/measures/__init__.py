"""Quantities of a trace, each declared once: name, symbol, sentence, axes, what it needs, how it is computed.

Room: what a trace can hold, ours and the user's own. Reading the declarations imports no torch; computing does.
"""

import typing

from normlens.measures.own import forget as forget
from normlens.measures.own import measure as measure
from normlens.measures.quantity import DEFAULT as DEFAULT
from normlens.measures.quantity import QUANTITIES as QUANTITIES
from normlens.measures.quantity import WITH_RESIDUAL as WITH_RESIDUAL
from normlens.measures.quantity import MeasureError as MeasureError
from normlens.measures.quantity import Quantity as Quantity
from normlens.measures.quantity import Role as Role
from normlens.measures.quantity import check_names as check_names
from normlens.measures.quantity import needed as needed
from normlens.measures.quantity import needs_transformed as needs_transformed
from normlens.measures.quantity import stages_of as stages_of

if typing.TYPE_CHECKING:
    from normlens.measures.compute import Measured as Measured
    from normlens.measures.compute import derived as derived
    from normlens.measures.compute import measured as measured


def __getattr__(name: str) -> typing.Any:
    if name in ("Measured", "derived", "measured"):
        from normlens.measures import compute

        return getattr(compute, name)
    raise AttributeError(f"module 'normlens.measures' has no attribute {name!r}")
