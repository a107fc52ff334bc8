"""A stream that can be read only once, kept on disk so that it can be read again; memory holds a megabyte of it."""

from __future__ import annotations

import json
import tempfile
import weakref
from collections.abc import Iterator

from normlens.corpora.item import Item, Labels

IN_MEMORY = 1 << 20


class Spool:
    """The items of an iterator. A reader takes what is kept, then draws on the stream no further than it needs."""

    def __init__(self, items: Iterator[Item]) -> None:
        self._items = items
        self._kept = tempfile.SpooledTemporaryFile(max_size=IN_MEMORY)  # noqa: SIM115
        self._broken: Exception | None = None
        weakref.finalize(self, self._kept.close)

    def __iter__(self) -> Iterator[Item]:
        place = 0
        while True:
            self._kept.seek(place)
            line = self._kept.readline() or self._drawn()
            if not line:
                return
            place += len(line)
            texts, tokens, where, label, labels = json.loads(line)
            words = labels and Labels(*(tuple(tuple(part) for part in parts) for parts in labels))
            yield Item(tuple(texts), None if tokens is None else tuple(tokens), where, label, words)

    def _drawn(self) -> bytes:
        """The next item of the stream, now kept; nothing at its end. A stream that broke is broken for all readers."""
        if self._broken is not None:
            raise self._broken
        try:
            item = next(self._items, None)
        except Exception as error:
            self._broken = error
            raise
        if item is None:
            return b""
        labels = item.labels and [item.labels.spans, item.labels.pairs]
        line = json.dumps([item.texts, item.tokens, item.where, item.label, labels]).encode() + b"\n"
        self._kept.write(line)
        return line
