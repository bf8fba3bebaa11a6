"""A table as JSON, with every entry encoded once and not again until it changes.

A broker's table is saved, and that of topics told to name servers, whenever one entry changes. To
encode one takes some 50 microseconds, which thousands of them would make a noticeable pause of each
change. What comes out is byte for byte what the plain codec writes.

Used by one thread; what `pieces` returns may be joined on another.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Generic, TypeVar

import msgspec

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

Table = TypeVar("Table", bound=msgspec.Struct)
Entry = TypeVar("Entry")


class EncodedTable(Generic[Table, Entry]):
    """Remembers what the entries of a table look like as JSON."""

    def __init__(
        self, encode: Callable[[Table], bytes], empty: Table, attribute: str, name: str
    ) -> None:
        """Encode with `encode`; entries are a table's `attribute`, in JSON under `name`."""
        self._encode = encode
        self._empty = empty
        self._attribute = attribute
        self._mark = f'"{name}":{{}}'.encode()
        self._known: dict[str, tuple[Entry, bytes]] = {}
        head, _, self._tail = encode(empty).partition(self._mark)
        self._head_bytes = len(head) + len(self._mark) - 1

    def __len__(self) -> int:
        """Return how many entries are remembered."""
        return len(self._known)

    def pieces(self, table: Table, around: Callable[[Table], bytes] | None = None) -> list[bytes]:
        """Return what is to be joined to have a table encoded.

        `around` encodes what the table is a part of; it is given one without entries.

        Raises:
            InvalidValue: a text cannot be encoded.
        """
        alone = msgspec.structs.replace(table, **{self._attribute: {}})
        head, found, tail = (around or self._encode)(alone).partition(self._mark)
        if not found:
            raise AssertionError(f"a table with {self._mark!r} is not encoded as it was")
        named: Mapping[str, Entry] = getattr(table, self._attribute)
        entries = [self._entry(name, named[name]) for name in sorted(named)]
        if len(self._known) > 2 * len(entries):
            self._forget(named)
        return [head, found[:-1], b",".join(entries), b"}", tail]

    def encode(self, table: Table) -> bytes:
        """Return a table as its codec does."""
        return b"".join(self.pieces(table))

    def _entry(self, name: str, entry: Entry) -> bytes:
        known = self._known.get(name)
        if known is not None and (known[0] is entry or known[0] == entry):
            return known[1]
        alone = self._encode(
            msgspec.structs.replace(self._empty, **{self._attribute: {name: entry}})
        )
        piece = alone[self._head_bytes : len(alone) - len(self._tail) - 1]
        self._known[name] = entry, piece
        return piece

    def _forget(self, named: Mapping[str, Entry]) -> None:
        """Drop those that are no more."""
        self._known = {name: each for name, each in self._known.items() if name in named}
