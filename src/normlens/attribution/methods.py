"""Every method there is, by name. A file of methods supplies its rows; this is the only list."""

from __future__ import annotations

from normlens.attribution import alti_logit, attattr, chance, decompx, gradients, jacobian, leaving_out, rollouts
from normlens.attribution.question import AttributionError, Method
from normlens.errors import nearest

FILES = (decompx, alti_logit, gradients, attattr, leaving_out, rollouts, jacobian, chance)
METHODS: dict[str, Method] = {method.name: method for file in FILES for method in file.ROWS}
DEFAULT = "decompx"


def method(name: str | None) -> Method:
    """A method by its name; without one, the default."""
    known = METHODS.get(DEFAULT if name is None else name)
    if known is None:
        raise AttributionError(
            f"There is no method '{name}'.", do=f"{nearest(str(name), METHODS)}Choose among {', '.join(METHODS)}."
        )
    return known
