"""Which messages a read takes: by tag, by key, by SQL92.

A broker is asked to send only what fits, by the hash of a tag or by SQL92; whatever it sends is
looked at again here, since two tags may have one hash. In mode=store all of it happens here.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.compute as pc

from gantrymq.broker.filter.compiled import compile_filter
from gantrymq.wire.properties import decode_properties
from gantrymq.wire.tags import TagFilter

if TYPE_CHECKING:
    from gantrymq.spark.options import SourceOptions


@dataclass(frozen=True)
class RowFilter:
    """What a message must have; empty means anything."""

    tags: frozenset[str] = frozenset()
    hashes: frozenset[int] = frozenset()
    """Of the tags."""
    keys: frozenset[str] = frozenset()
    sql92: str = ""
    """Only where no broker has looked at it."""

    @property
    def is_all(self) -> bool:
        """Tell whether every message is taken."""
        return not (self.tags or self.keys or self.sql92)

    @property
    def sources(self) -> tuple[str, ...]:
        """Return the kernel's columns that it looks at."""
        wanted = {"tags": self.tags, "keys": self.keys, "properties": self.sql92}
        return tuple(name for name, value in wanted.items() if value)

    def mask(self, arrays: dict[str, pa.Array]) -> pa.Array | None:
        """Return which rows are taken; None for all of them."""
        found = None
        if self.tags:
            found = pc.is_in(arrays["tags"], value_set=pa.array(sorted(self.tags)))
        if self.keys:
            found = _both(found, pa.array(map(self._has_key, arrays["keys"].to_pylist())))
        if self.sql92:
            matches = compile_filter(self.sql92).matches
            texts = arrays["properties"].to_pylist()
            found = _both(found, pa.array([matches(decode_properties(text)) for text in texts]))
        return found

    def _has_key(self, keys: str | None) -> bool:
        return keys is not None and not self.keys.isdisjoint(keys.split(" "))


def _both(one: pa.Array | None, other: pa.Array) -> pa.Array:
    return other if one is None else pc.and_(one, other)


def filter_of(options: SourceOptions) -> RowFilter:
    """Return what the options ask for, beside what a broker has done."""
    tags = TagFilter.parse(options.tags)
    return RowFilter(
        tags.tags,
        tags.hashes,
        frozenset(options.keys),
        "" if options.reads_broker else options.sql92,
    )
