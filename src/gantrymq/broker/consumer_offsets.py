"""How far groups have read: committed offsets, resets that wait, pulls noted, and their file.

The rules are those of Apache's `ConsumerOffsetManager`, release 5.5. A commit takes whatever a
client says, also what is behind the one before: that is how a group is set back. A reset by an
operator is kept beside the offset until the group's next pull takes it, since a client may commit
its old place in between.

Owned by one task (the event loop).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, ClassVar, Final, NamedTuple

import msgspec

from gantrymq.broker.offset_table import (
    LONG_MAX,
    LONG_MIN,
    OffsetTable,
    Picture,
    encode_names,
    encode_picture,
)
from gantrymq.broker.saved_state import SavedState, read_file, with_quoted_keys
from gantrymq.errors import InvalidValue
from gantrymq.model.offsets import DataVersion, OffsetKey
from gantrymq.wire.bodies import offsets as bodies
from gantrymq.wire.bodies.topic import DATA_VERSION

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Mapping

    from gantrymq.clock import Clock

NONE: Final = -1
"""What is answered where there is no offset."""
_VERSION_STEP: Final = 500
"""Commits for which the data version moves once: `consumerOffsetUpdateVersionStep`."""

_Offsets = dict[str, dict[int, Annotated[int, msgspec.Meta(ge=LONG_MIN, le=LONG_MAX)]]]


class _Version(msgspec.Struct):
    stateVersion: int = 0
    timestamp: int = 0
    counter: int = 0


class _File(msgspec.Struct):
    """The file as it nearly always is, with its own names, read at the speed of C."""

    offsetTable: _Offsets = {}
    pullOffsetTable: _Offsets | None = None
    dataVersion: _Version | None = None


class MovedBack(NamedTuple):
    """A commit behind the one before it."""

    key: OffsetKey
    queue_id: int
    before: int
    after: int
    who: str


def _ignore(_: MovedBack) -> None:
    """Be told of what nobody asked about."""


class ConsumerOffsets(SavedState):
    """The offsets of all groups of one broker."""

    file_name: ClassVar[str] = "consumerOffset.json"
    is_journaled: ClassVar[bool] = True
    is_checked: ClassVar[bool] = True

    def __init__(self, clock: Clock, *, moved_back: Callable[[MovedBack], None] = _ignore) -> None:
        super().__init__()
        self._clock = clock
        self._moved_back = moved_back
        self._committed = OffsetTable()
        self._pulled = OffsetTable()
        self._resets = OffsetTable()
        self._version = DataVersion(timestamp_ms=clock.now_ms())
        self.believed: Callable[[str, str, int, int], int] | None = None
        """How much of a commit is believed; without it all of it."""

    @property
    def data_version(self) -> DataVersion:
        """Return the version that slaves compare."""
        return self._version

    def __len__(self) -> int:
        """Return how many offsets are committed."""
        return len(self._committed)

    # -- committed ------------------------------------------------------------------------------

    def commit(self, group: str, topic: str, queue_id: int, offset: int, *, who: str = "") -> None:
        """Note the next offset that a group wants; -1, which ali-ons sends, counts as none.

        After a failover it may count for less than it says: see `offset_guard`.

        Raises:
            InvalidValue: there is no such queue or offset, or there are too many offsets.
        """
        if self.believed is not None:
            offset = self.believed(group, topic, queue_id, offset)
        before = self._committed.put(topic, group, queue_id, offset)
        self._changes += 1
        if before is not None and offset < before:
            self._moved_back(MovedBack(OffsetKey(topic, group), queue_id, before, offset, who))
        if self._changes % _VERSION_STEP == 0:
            self._version = self._version.next(self._clock.now_ms())

    def find(self, group: str, topic: str, queue_id: int) -> int:
        """Return the next offset that a group wants, a waiting reset before all; -1 is none."""
        if self._resets:
            reset = self._resets.get(topic, group, queue_id)
            if reset is not None:
                return reset
        offset = self._committed.get(topic, group, queue_id)
        return NONE if offset is None else offset

    def all_of(self, group: str, topic: str) -> Mapping[int, int] | None:
        """Return a group's offsets by queue, or None if it has none in the topic."""
        return self._committed.of(topic, group)

    def topics_of(self, group: str) -> frozenset[str]:
        """Return the topics that a group has offsets in."""
        return self._committed.topics_of(group)

    def groups_of(self, topic: str) -> frozenset[str]:
        """Return the groups that have offsets in a topic."""
        return self._committed.groups_of(topic)

    def topics(self) -> list[str]:
        """Return every topic that a group has offsets in."""
        return self._committed.topics()

    def slowest(
        self,
        topic: str,
        least_offset: Callable[[str, int], int],
        *,
        without: Collection[str] = (),
    ) -> dict[int, int]:
        """Return by queue the smallest offset of any group that is still in the store (308)."""
        slowest: dict[int, int] = {}
        for group in self.groups_of(topic) - frozenset(without):
            for queue_id, offset in (self.all_of(group, topic) or {}).items():
                if offset >= least_offset(topic, queue_id):
                    slowest[queue_id] = min(offset, slowest.get(queue_id, offset))
        return slowest

    def clone(self, src: str, dest: str, topic: str) -> bool:
        """Give one group the offsets of another; False if that has none in the topic.

        Raises:
            InvalidValue: there are too many offsets.
        """
        offsets = self._committed.of(topic, src)
        if offsets is None:
            return False
        self._committed.replace(topic, dest, dict(offsets))
        self._bump()
        return True

    def remove_group(self, group: str) -> bool:
        """Forget a group; False if there was nothing."""
        tables = (self._committed, self._pulled, self._resets)
        found = [table.remove(topic, group) for table in tables for topic in table.topics_of(group)]
        if found:
            self._bump()
        return bool(found)

    def remove_topic(self, topic: str) -> bool:
        """Forget a topic; False if there was nothing."""
        tables = (self._committed, self._pulled, self._resets)
        found = [table.remove(topic, group) for table in tables for group in table.groups_of(topic)]
        if found:
            self._bump()
        return bool(found)

    def scan_unsubscribed(
        self,
        is_subscribed: Callable[[str, str], bool],
        least_offset: Callable[[str, int], int],
    ) -> list[OffsetKey]:
        """Forget offsets that nobody subscribes to and whose messages are all gone.

        `is_subscribed` is asked with group and topic, `least_offset` with topic and queue.
        """
        removed: list[OffsetKey] = []
        for topic, group in self._committed.pairs():
            offsets = self._committed.of(topic, group) or {}
            if is_subscribed(group, topic) or any(
                offset > least_offset(topic, queue_id) for queue_id, offset in offsets.items()
            ):
                continue
            self._committed.remove(topic, group)
            self._pulled.remove(topic, group)
            removed.append(OffsetKey(topic, group))
        if removed:
            self._bump()
        return removed

    # -- resets and pulls, 5.x ------------------------------------------------------------------

    def reset(self, group: str, topic: str, queue_id: int, offset: int) -> None:
        """Send a group to an offset, with its next pull of the queue at the latest.

        Raises:
            InvalidValue: the offset is negative, or as in `commit`.
        """
        if offset < 0:
            raise InvalidValue(f"{topic}@{group} cannot be reset to {offset}: give 0 or more")
        self._resets.put(topic, group, queue_id, offset)
        self._committed.put(topic, group, queue_id, offset)
        self._bump()

    @property
    def awaits_reset(self) -> bool:
        """Tell whether any group has a reset waiting."""
        return bool(self._resets)

    def pending_reset(self, group: str, topic: str, queue_id: int) -> int | None:
        """Return where the group was sent, once; None if it was not, or knows already."""
        return self._resets.take(topic, group, queue_id) if self._resets else None

    def has_reset(self, group: str, topic: str, queue_id: int) -> bool:
        """Say whether a reset waits, and let it wait."""
        return bool(self._resets) and self._resets.get(topic, group, queue_id) is not None

    def note_pull(self, group: str, topic: str, queue_id: int, offset: int) -> None:
        """Note how far a group has pulled. It is for lag figures, so that it alone saves nothing.

        Raises:
            InvalidValue: as in `commit`.
        """
        self._pulled.put(topic, group, queue_id, offset)

    def pull_offset(self, group: str, topic: str, queue_id: int) -> int:
        """Return how far a group has pulled, or else committed; -1 is neither."""
        offset = self._pulled.get(topic, group, queue_id)
        return self.find(group, topic, queue_id) if offset is None else offset

    def clear_pulls(self, group: str, topic: str) -> None:
        """Forget how far a group has pulled: its members have left."""
        self._pulled.remove(topic, group)

    # -- the journal ------------------------------------------------------------------------------

    def watch_changes(self) -> None:
        """Note from now on which committed offsets change."""
        self._committed.watch()

    def take_changes(self) -> dict[str, dict[int, int] | None]:
        """Return what has changed by `topic@group`; see `OffsetTable.take_changes`."""
        return self._committed.take_changes()

    def mark_changed(self, keys: Iterable[str]) -> None:
        """Return these keys with the next changes, too."""
        self._committed.mark_changed(keys)

    def apply_changes(self, changes: Mapping[str, Mapping[int, int] | None]) -> None:
        """Take over what a journal says; None is a key that is gone.

        Raises:
            InvalidValue: as in `commit`.
        """
        for key, queues in changes.items():
            topic, _, group = key.partition("@")
            if not topic or not group:
                raise InvalidValue(f"{key!r} is not topic@group")
            if queues is None:
                self._committed.remove(topic, group)
            for queue_id, offset in (queues or {}).items():
                self._committed.put(topic, group, queue_id, offset)
        if changes:
            self._bump()

    def _bump(self) -> None:
        self._version = self._version.next(self._clock.now_ms())
        self._changes += 1

    # -- the file, and slaves -------------------------------------------------------------------

    def snapshot(self) -> Callable[[], bytes]:
        """Take a picture, whose maps are shared until the next commit to each."""
        committed, pulled = self._committed.picture(), self._pulled.picture()
        version = self._version
        return lambda: _encode(committed, pulled, version)

    def load(self, content: bytes) -> None:
        """Take over a file.

        Raises:
            ContentError: it is not `consumerOffset.json`.
            InvalidValue: there are too many offsets in it.
        """
        try:
            file = msgspec.json.decode(with_quoted_keys(content), type=_File)
        except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
            self._take(read_file(bodies.ConsumerOffsets, content, self.file_name))
            return
        committed = OffsetTable.of_map(file.offsetTable)
        self._pulled = OffsetTable.of_map(file.pullOffsetTable or {})
        self._committed = committed
        if file.dataVersion is not None:
            saved = file.dataVersion
            self._version = DataVersion(saved.stateVersion, saved.timestamp, saved.counter)

    def adopt(self, table: bodies.ConsumerOffsets) -> None:
        """Become what a master's table says.

        Raises:
            InvalidValue: it is too long.
        """
        self._take(table)
        self._changes += 1

    def _take(self, table: bodies.ConsumerOffsets) -> None:
        committed = OffsetTable.of_map(table.offset_table)
        self._pulled = OffsetTable.of_map(table.pull_offset_table or {})
        self._committed = committed
        self._version = table.data_version or self._version


def _encode(committed: Picture, pulled: Picture, version: DataVersion) -> bytes:
    """Write the file; runs on any thread."""
    topics: dict[str, set[str]] = {}
    for key in committed:
        topic, _, group = key.partition("@")
        topics.setdefault(group, set()).add(topic)
    members = (
        (b"dataVersion", DATA_VERSION.encode(version)),
        (b"groupTopicMap", encode_names(topics)),
        (b"offsetTable", encode_picture(committed)),
        (b"pullOffsetTable", encode_picture(pulled)),
    )
    return b"{" + b",".join(b'"' + name + b'":' + text for name, text in members) + b"}"
