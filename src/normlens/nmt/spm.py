"""A sentencepiece file without the paths it was made at.

Room: bytes of a protocol buffer. sentencepiece notes in every model where it was written and where its rules lay; that
is nobody's business, and would make two equal trainings differ.
"""

from __future__ import annotations

from collections.abc import Iterator

DROPPED = {2: {1, 2}, 3: {6}}  # of the trainer: its input files and its prefix; of the normaliser: its rule file


def without_paths(model: bytes) -> bytes:
    """The same model; all that it does is kept."""
    return b"".join(
        _field(number, b"".join(inner for n, inner, _ in _fields(content) if n not in DROPPED[number]))
        if number in DROPPED
        else whole
        for number, whole, content in _fields(model)
    )


def _fields(message: bytes) -> Iterator[tuple[int, bytes, bytes]]:
    """Number, all bytes, and content of each field; content is empty for numbers."""
    at = 0
    while at < len(message):
        start = at
        key, at = _varint(message, at)
        kind, content = key & 7, b""
        if kind == 0:
            _, at = _varint(message, at)
        elif kind == 2:
            size, at = _varint(message, at)
            content, at = message[at : at + size], at + size
        else:
            at += {1: 8, 5: 4}[kind]
        yield key >> 3, message[start:at], content


def _field(number: int, content: bytes) -> bytes:
    return _as_varint(number << 3 | 2) + _as_varint(len(content)) + content


def _varint(message: bytes, at: int) -> tuple[int, int]:
    value = shift = 0
    while True:
        byte = message[at]
        value, shift, at = value | (byte & 127) << shift, shift + 7, at + 1
        if byte < 128:
            return value, at


def _as_varint(value: int) -> bytes:
    out = bytearray()
    while value > 127:
        out.append(value & 127 | 128)
        value >>= 7
    return bytes([*out, value])
