"""Offsets by `topic@group` and queue, made to be changed often and saved without a pause.

A commit costs two look-ups. A picture of the table is a copy of its outer map alone: the maps of
queues inside are shared with the picture from then on, and the next commit to one of them copies it
first. So a save costs the loop a millisecond for 100,000 keys, and each commit after it a few
microseconds once, however many queues there are.

Owned by one task, except pictures, which nobody changes.
"""

from __future__ import annotations

from types import MappingProxyType
from typing import TYPE_CHECKING, Final, TypeVar

import msgspec

from gantrymq.errors import InvalidValue
from gantrymq.limits import OFFSETS_MAX, QUEUES_MAX

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

LONG_MIN: Final = -(1 << 63)
LONG_MAX: Final = (1 << 63) - 1

Queue = TypeVar("Queue", bound=int)

Picture = dict[str, dict[int, int]]
"""The table as it was; not to be changed."""


class OffsetTable:
    """`topic@group` to queue to offset, with who reads what."""

    __slots__ = ("_changed", "_count", "_groups", "_own", "_table", "_topics")

    def __init__(self) -> None:
        self._table: Picture = {}
        self._own: Picture = {}
        """Those of the table that no picture shows."""
        self._changed: set[str] | None = None
        """Keys that have changed since somebody asked; None while nobody does."""
        self._count = 0
        self._topics: dict[str, set[str]] = {}
        self._groups: dict[str, set[str]] = {}

    def __len__(self) -> int:
        """Return how many offsets there are."""
        return self._count

    def put(self, topic: str, group: str, queue_id: int, offset: int) -> int | None:
        """Note an offset; return the one before it.

        Raises:
            InvalidValue: there is no such queue or offset, or the table is full.
        """
        key = f"{topic}@{group}"
        if not LONG_MIN <= offset <= LONG_MAX:
            raise InvalidValue(f"{key} cannot be at {offset}: an offset has 64 bits")
        offsets = self._own.get(key)
        if offsets is None:
            offsets = self._owned(key, topic, group)
        before = offsets.get(queue_id)
        if before is None:
            self._check_room(topic, group, queue_id)
            self._count += 1
        offsets[queue_id] = offset
        return before

    def get(self, topic: str, group: str, queue_id: int) -> int | None:
        """Return an offset."""
        offsets = self._table.get(f"{topic}@{group}")
        return None if offsets is None else offsets.get(queue_id)

    def take(self, topic: str, group: str, queue_id: int) -> int | None:
        """Return an offset and forget it."""
        key = f"{topic}@{group}"
        offsets = self._table.get(key)
        if offsets is None or queue_id not in offsets:
            return None
        if len(offsets) == 1:
            offset = offsets[queue_id]
            self.remove(topic, group)
            return offset
        self._count -= 1
        return self._owned(key, topic, group).pop(queue_id)

    def of(self, topic: str, group: str) -> Mapping[int, int] | None:
        """Return what a group has in a topic: a view, which may change with the next commit."""
        offsets = self._table.get(f"{topic}@{group}")
        return None if offsets is None else MappingProxyType(offsets)

    def topics_of(self, group: str) -> frozenset[str]:
        """Return the topics that a group has offsets in."""
        return frozenset(self._topics.get(group, ()))

    def groups_of(self, topic: str) -> frozenset[str]:
        """Return the groups that have offsets in a topic."""
        return frozenset(self._groups.get(topic, ()))

    def topics(self) -> list[str]:
        """Return every topic that has offsets."""
        return list(self._groups)

    def pairs(self) -> list[tuple[str, str]]:
        """Return every topic and group that has offsets."""
        return [(topic, group) for topic, groups in self._groups.items() for group in groups]

    def replace(self, topic: str, group: str, offsets: Mapping[int, int]) -> None:
        """Put other offsets in the place of all that a group has in a topic.

        Raises:
            InvalidValue: the table is full.
        """
        key = f"{topic}@{group}"
        before = self._table.get(key, {})
        if self._count - len(before) + len(offsets) > OFFSETS_MAX:
            raise _full(key)
        self.remove(topic, group)
        if offsets:
            self._owned(key, topic, group).update(offsets)
            self._count += len(offsets)

    def remove(self, topic: str, group: str) -> bool:
        """Forget what a group has in a topic; False if there is nothing."""
        key = f"{topic}@{group}"
        offsets = self._table.pop(key, None)
        if offsets is None:
            return False
        self._own.pop(key, None)
        if self._changed is not None:
            self._changed.add(key)
        self._count -= len(offsets)
        _drop(self._topics, group, topic)
        _drop(self._groups, topic, group)
        return True

    @classmethod
    def of_map(cls, table: Mapping[str, Mapping[Queue, int]]) -> OffsetTable:
        """Return a table that a file or a peer has.

        A key that is not `topic@group` is nobody's and is left out.

        Raises:
            InvalidValue: it is too long.
        """
        count = sum(map(len, table.values()))
        if count > OFFSETS_MAX:
            raise InvalidValue(f"a table of {count} offsets: at most {OFFSETS_MAX} are taken")
        made = cls()
        for key, offsets in table.items():
            topic, at, group = key.partition("@")
            if topic and at and group and "@" not in group and offsets:
                made._owned(key, topic, group).update(offsets.items())
                made._count += len(offsets)
        return made

    def picture(self) -> Picture:
        """Return the table as it is now, for good."""
        self._own.clear()
        return self._table.copy()

    def watch(self) -> None:
        """Note from now on which keys change."""
        self._changed = set()
        self._own.clear()

    def take_changes(self) -> dict[str, dict[int, int] | None]:
        """Return every key that has changed since the last time, and what it has now, for good.

        None is a key that is gone. As with a picture, the next commit to a key copies its map.
        """
        if not self._changed:
            return {}
        changed, self._changed = self._changed, set()
        for key in changed:
            self._own.pop(key, None)
        return {key: self._table.get(key) for key in changed}

    def mark_changed(self, keys: Iterable[str]) -> None:
        """Return these keys with the next changes, too."""
        if self._changed is not None:
            self._changed.update(keys)

    def _owned(self, key: str, topic: str, group: str) -> dict[int, int]:
        """Return a map of queues that may be changed."""
        offsets = self._table.get(key)
        if offsets is None:
            offsets = {}
            self._topics.setdefault(group, set()).add(topic)
            self._groups.setdefault(topic, set()).add(group)
        elif key not in self._own:
            offsets = offsets.copy()
        if self._changed is not None:
            self._changed.add(key)
        self._table[key] = self._own[key] = offsets
        return offsets

    def _check_room(self, topic: str, group: str, queue_id: int) -> None:
        """Refuse a queue that cannot be, or one too many; a map made for it is taken back."""
        key = f"{topic}@{group}"
        problem: InvalidValue | None = None
        if not 0 <= queue_id < QUEUES_MAX:
            problem = InvalidValue(f"{key} has no queue {queue_id}: give 0 to {QUEUES_MAX - 1}")
        elif self._count >= OFFSETS_MAX:
            problem = _full(key)
        if problem is not None:
            if not self._table[key]:
                self.remove(topic, group)
            raise problem


def _full(key: str) -> InvalidValue:
    return InvalidValue(
        f"no room for {key}: this broker keeps {OFFSETS_MAX} offsets, which is the most; delete "
        "groups that are not used"
    )


def _drop(table: dict[str, set[str]], key: str, value: str) -> None:
    """Take a value out of a set in a map, and the set with its last one."""
    values = table[key]
    values.discard(value)
    if not values:
        del table[key]


def encode_picture(picture: Mapping[str, Mapping[int, int]]) -> bytes:
    """Write a table as Apache does: queues are keys without quotes."""
    members = (msgspec.json.encode(key) + b":" + encode_offsets(picture[key]) for key in picture)
    return b"{" + b",".join(members) + b"}"


def encode_offsets(offsets: Mapping[int, int]) -> bytes:
    """Write queues and offsets: whole numbers only, so that all quotes are those of the keys."""
    return msgspec.json.encode(offsets).replace(b'"', b"")


def encode_names(table: Mapping[str, Iterable[str]]) -> bytes:
    """Write a map of names to names, in order."""
    return msgspec.json.encode({key: sorted(table[key]) for key in sorted(table)})
