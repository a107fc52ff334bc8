"""A disk that is full: how the libraries say it, and what is said of it.

Room: errors to one refusal, without the paths in them.
"""

from __future__ import annotations

import errno
import re

from normlens.explorer.refusal import Refusal

FULL = (errno.ENOSPC, errno.EFBIG, errno.EDQUOT)


def is_full(error: BaseException | None) -> bool:
    """Whether this error, or the one behind it, is about room on the disk; safetensors has the number in its text."""
    if error is None:
        return False
    told = re.search(r"\(os error (\d+)\)", str(error))
    number = error.errno if isinstance(error, OSError) else told and int(told[1])
    return number in FULL or is_full(error.__cause__)


def refusal() -> Refusal:
    """Said when something could not be written."""
    return Refusal(507, "The disk of the explorer is full.", "try again later; or free some of it, if it is yours.")
