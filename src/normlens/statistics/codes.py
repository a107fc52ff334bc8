"""Numbers as ordered codes, as fine as a given number of distinct codes allows.

The bits of a float32 are in the order of the numbers, so leaving out low bits makes bins that are narrow near zero and
wide far from it. How many bits must go follows from the set of numbers alone, never from the order in which they came:
a superset needs at least as coarse codes, so streams can be merged in any order.
"""

from __future__ import annotations

import numpy as np
from jaxtyping import Float, Int, Shaped

SIGN = np.int64(0x7FFFFFFF)


def codes_of(values: Shaped[np.ndarray, "*n"]) -> Int[np.ndarray, "*n"]:
    """One whole number for each float32, in the same order; -0 and 0 share theirs."""
    bits = np.ascontiguousarray(values, np.float32).view(np.int32).astype(np.int64)
    return np.where(bits >= 0, bits, -(bits & SIGN))


def values_of(codes: Int[np.ndarray, " code"], shift: int) -> Float[np.ndarray, " code"]:
    """The number in the middle of each code; 0 for the code that holds it."""
    middle = np.where(codes == 0, 0, (codes << shift) + (1 << shift >> 1))
    bits = np.where(middle >= 0, middle, -middle | ~SIGN).astype(np.int64)
    return (bits & 0xFFFFFFFF).astype(np.uint32).view(np.float32).astype(np.float64)


def coarsened(codes: Int[np.ndarray, " code"], shift: int, size: int) -> tuple[Int[np.ndarray, " code2"], int]:
    """The finest codes of which there are at most `size`, 2 or more: one for each sign. Codes come and go ascending."""
    while len(codes) > max(size, 2):
        codes, shift = distinct(codes >> 1), shift + 1
    return codes, shift


def joined(
    codes: Int[np.ndarray, " code"],
    shift: int,
    other: Int[np.ndarray, " code2"],
    other_shift: int,
    size: int,
) -> tuple[Int[np.ndarray, " code3"], int]:
    """The codes of two streams together."""
    common = max(shift, other_shift)
    both = np.union1d(codes >> (common - shift), other >> (common - other_shift))
    return coarsened(both, common, size)


def distinct(ascending: Int[np.ndarray, " n"]) -> Int[np.ndarray, " code"]:
    first = np.ones(len(ascending), bool)
    first[1:] = ascending[1:] != ascending[:-1]
    return ascending[first]
