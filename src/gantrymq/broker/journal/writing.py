"""A master's side of the journal: gathers what has changed and stores it as records of the log.

Changes of topics and groups are stored at once, before the first message that needs them. Offsets
are gathered: every `GATHER_S` those that differ from what was stored last. Records are small, and
the pause grows with their size, up to `GATHER_S_MAX`.

A record that the store does not take (it is full, the lease is over) is made again later from what
holds then. Owned by the event loop's task.
"""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, Final

from gantrymq.broker.journal.changes import RECORD_BYTES, Changes, encode, split_offsets
from gantrymq.model.names import JOURNAL_TOPIC
from gantrymq.store.put import NewMessage
from gantrymq.store.status import PutStatus

if TYPE_CHECKING:
    from gantrymq.broker.tables import Tables
    from gantrymq.clock import Clock
    from gantrymq.store.message_store import MessageStore
    from gantrymq.wire.bodies.assignment import RequestModeSetting

log = logging.getLogger(__name__)

JOURNAL_QUEUE: Final = 0
GATHER_S: Final = 0.25
GATHER_S_MAX: Final = 0.75
BYTES_A_SECOND: Final = 1 << 20
"""The pause is so long that no more than this is written of offsets, unless it would be longer
than `GATHER_S_MAX`: what a promoted slave lacks of offsets counts more than bytes."""
NAMES_A_RECORD: Final = 200


class JournalWriter:
    """Stores what changes on a master."""

    def __init__(self, store: MessageStore, tables: Tables, clock: Clock, host: bytes) -> None:
        self._store = store
        self._tables = tables
        self._clock = clock
        self._host = host
        self._topics: set[str] = set()
        self._groups: set[str] = set()
        self._told_offsets: dict[str, dict[int, int]] = {}
        self._told_delays: dict[int, int] = {}
        self._told_modes: dict[tuple[str, str], RequestModeSetting] = {}
        self._modes_seen = -1
        self._is_failing = False
        self.end: int | None = None
        """Where the last record ends in the log."""

    def begin(self) -> None:
        """Store changes from now on: what there is already, slaves have."""
        self._tables.offsets.watch_changes()
        self._told_offsets.clear()
        self._told_delays = dict(self._tables.delays.all())
        self._told_modes = self._tables.modes.entries()
        self._modes_seen = self._tables.modes.changes

    def topic_changed(self, name: str) -> None:
        """Store what a topic is now, or that it is gone."""
        self._topics.add(name)
        self.flush_names()

    def group_changed(self, name: str) -> None:
        """Store what a group is now, or that it is gone."""
        self._groups.add(name)
        self.flush_names()

    def flush_names(self) -> bool:
        """Store the topics and groups that have changed; tell whether there is none left."""
        while self._topics or self._groups:
            topics = sorted(self._topics)[:NAMES_A_RECORD]
            groups = sorted(self._groups)[:NAMES_A_RECORD]
            changes = Changes(
                topics={name: self._tables.topics.find(name) for name in topics},
                groups={name: self._tables.groups.with_forbidden(name) for name in groups},
            )
            if not self._put(changes):
                return False
            self._topics.difference_update(topics)
            self._groups.difference_update(groups)
        return True

    def flush(self) -> int:
        """Store everything that has changed; return how many bytes that were."""
        if not self.flush_names():
            return 0
        size = self._flush_offsets()
        self._flush_rest()
        return size

    def tick(self, now: float) -> float:
        """Store what has changed; return when to be called again."""
        size = self.flush()
        return now + min(GATHER_S_MAX, max(GATHER_S, size / BYTES_A_SECOND))

    # -- offsets ----------------------------------------------------------------------------------

    def _flush_offsets(self) -> int:
        changed = self._tables.offsets.take_changes()
        if not changed:
            return 0
        differ: dict[str, dict[int, int] | None] = {}
        for key, queues in changed.items():
            told = self._told_offsets.get(key)
            if queues is None or told is None:
                differ[key] = queues
            else:
                moved = {queue: at for queue, at in queues.items() if told.get(queue) != at}
                # A queue is never taken out of a map by itself but by a reset that was noted.
                if moved:
                    differ[key] = moved
        written = 0
        parts = list(split_offsets(differ))
        for number, part in enumerate(parts):
            if not self._put(part):
                left = {key for rest in parts[number:] for key in rest.offsets}
                self._tables.offsets.mark_changed(left)
                for key in left:
                    self._told_offsets.pop(key, None)
                return written
            for key in part.offsets:
                queues = changed[key]
                if queues is None:
                    self._told_offsets.pop(key, None)
                else:
                    self._told_offsets[key] = queues
            written += RECORD_BYTES if number + 1 < len(parts) else RECORD_BYTES // 8
        return written

    def _flush_rest(self) -> None:
        """Store how far delay levels are, and which groups pop."""
        changes = Changes()
        delays = self._tables.delays.all()
        changes.delays = {
            level: at for level, at in delays.items() if self._told_delays.get(level) != at
        }
        modes = self._told_modes
        if self._tables.modes.changes != self._modes_seen:
            self._modes_seen = self._tables.modes.changes
            modes = self._tables.modes.entries()
            changes.modes = {
                key: modes.get(key)
                for key in modes.keys() | self._told_modes.keys()
                if modes.get(key) != self._told_modes.get(key)
            }
        if not changes:
            return
        if self._put(changes):
            self._told_delays, self._told_modes = dict(delays), modes
        else:
            self._modes_seen = -1

    def _put(self, changes: Changes) -> bool:
        body = encode(changes)
        message = NewMessage(
            JOURNAL_TOPIC, JOURNAL_QUEUE, body, {}, self._clock.now_ms(), self._host, waits=False
        )
        stored = self._store.put([message])
        is_stored = stored.status is PutStatus.PUT_OK
        if is_stored:
            self.end = stored.end
        elif not self._is_failing:
            log.warning(
                "a change of a topic, group or offset cannot be stored in the log: %s; tried again",
                self._store.writability.reason or stored.status.value,
            )
        self._is_failing = not is_stored
        return is_stored
