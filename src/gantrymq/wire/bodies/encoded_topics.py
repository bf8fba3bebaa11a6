"""Tables of topics as JSON, with every topic encoded once and not again until it changes.

A broker's table is saved and told to name servers whenever one topic changes. To encode one topic
takes some 50 microseconds, which thousands of them would make a noticeable pause of each change.
What comes out is byte for byte what the plain codec writes.

Used by one thread; what `pieces` returns may be joined on another.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import msgspec

from gantrymq.wire.bodies.topic import TOPIC_TABLE, TopicTable

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from gantrymq.model.topic import TopicConfig

_EMPTY: Final = b'"topicConfigTable":{}'


class EncodedTopics:
    """Remembers what topics look like as JSON."""

    def __init__(self) -> None:
        self._known: dict[str, tuple[TopicConfig, bytes]] = {}
        head, _, self._tail = TOPIC_TABLE.encode(TopicTable()).partition(_EMPTY)
        self._head_bytes = len(head) + len(_EMPTY) - 1

    def __len__(self) -> int:
        """Return how many topics are remembered."""
        return len(self._known)

    def pieces(
        self, table: TopicTable, around: Callable[[TopicTable], bytes] = TOPIC_TABLE.encode
    ) -> list[bytes]:
        """Return what is to be joined to have a table encoded.

        `around` encodes what the table is a part of; it is given one without topics.

        Raises:
            InvalidValue: a text cannot be encoded.
        """
        head, found, tail = around(msgspec.structs.replace(table, topic_config_table={})).partition(
            _EMPTY
        )
        if not found:
            raise AssertionError("a table of topics is not encoded as it was")
        named = table.topic_config_table
        topics = [self._topic(name, named[name]) for name in sorted(named)]
        if len(self._known) > 2 * len(topics):
            self._forget(named)
        return [head, found[:-1], b",".join(topics), b"}", tail]

    def encode(self, table: TopicTable) -> bytes:
        """Return a table as `TOPIC_TABLE.encode` does."""
        return b"".join(self.pieces(table))

    def _topic(self, name: str, config: TopicConfig) -> bytes:
        known = self._known.get(name)
        if known is not None and (known[0] is config or known[0] == config):
            return known[1]
        alone = TOPIC_TABLE.encode(TopicTable(topic_config_table={name: config}))
        piece = alone[self._head_bytes : len(alone) - len(self._tail) - 1]
        self._known[name] = config, piece
        return piece

    def _forget(self, topics: Mapping[str, TopicConfig]) -> None:
        """Drop those that are no more."""
        self._known = {name: each for name, each in self._known.items() if name in topics}
