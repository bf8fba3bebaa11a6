"""The journal of one broker: writes while it is master, reads while it is a slave and at its start.

It is on where another broker may have to know what this one knew: with failover, and where
`metadataInLog` asks for it. Records that are in a log are read in any case. Owned by the event
loop's task.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from gantrymq.broker.journal.reading import JournalReader
from gantrymq.broker.journal.writing import JournalWriter
from gantrymq.model.names import JOURNAL_TOPIC

if TYPE_CHECKING:
    from collections.abc import Set

    from gantrymq.broker.config_saving import ConfigSaver
    from gantrymq.broker.schedule import Schedule
    from gantrymq.broker.tables import Tables
    from gantrymq.clock import Clock
    from gantrymq.store.message_store import MessageStore

BEHIND_MAX: Final = 5000
"""Records that a start may have to read again for a table that does not change."""
_TOPIC: Final = JOURNAL_TOPIC.encode()


class Journal:
    """What a broker does with its journal."""

    def __init__(
        self,
        store: MessageStore,
        tables: Tables,
        schedule: Schedule,
        clock: Clock,
        host: bytes,
        *,
        is_on: bool,
    ) -> None:
        self._schedule = schedule
        self._clock = clock
        self._is_on = is_on
        self._writability = store.writability
        self._tables = tables
        self.writer = JournalWriter(store, tables, clock, host)
        self.reader = JournalReader(store, tables)
        self._is_writing = False
        self._is_open = False

    def open(self, saver: ConfigSaver, now: float) -> None:
        """Bring the tables up to the end of the log, and begin. Blocks; called at the start."""
        tables = self._tables
        kept = (tables.topics, tables.groups, tables.offsets, tables.delays, tables.modes)
        self.reader.open({table: saver.journal_position(table) for table in kept})
        saver.journal = self._position
        self.reader.wake = self._wake
        self._saver = saver
        if self._position() is not None:
            for table in kept:
                if not saver.journal_position(table):
                    table.want_saved()  # so that its file says how much it has
        self._entry = self._schedule.add("journal", self._tick, now)
        self._is_open = True
        if not self._writability.is_slave:
            self.become_master()

    def become_master(self) -> None:
        """Know everything that the log says, and write from now on. Blocks for a moment."""
        self.reader.read_to_end()
        if self._is_on and not self._is_writing:
            self._is_writing = True
            self.writer.begin()
            self._wake()

    def _wake(self) -> None:
        self._schedule.poke(self._entry, self._clock.monotonic())

    def _position(self) -> int | None:
        """Return how much of the journal is in the tables; None where there is no journal."""
        if self._is_writing:
            return self.reader.end
        return self.reader.position if self._is_on or self.reader.position else None

    def topic_changed(self, name: str) -> None:
        """Note that a topic is another one now, or gone."""
        if self._is_writing:
            self.writer.topic_changed(name)

    def group_changed(self, name: str) -> None:
        """Note that a group is another one now, or gone."""
        if self._is_writing:
            self.writer.group_changed(name)

    def flush(self) -> int | None:
        """Store everything that has changed until now; return where it ends, None without any."""
        if not self._is_writing:
            return None
        self.writer.flush()
        return self.writer.end

    def arrived(self, topics: Set[bytes]) -> None:
        """Read what the master has written."""
        if self._is_open and not self._is_writing and _TOPIC in topics:
            self._wake()

    def again_from(self, position: int) -> None:
        """Apply the records from here on again: a table was replaced by an older one."""
        if not self._is_writing:
            self.reader.again_from(position)
            self.reader.read()

    def _tick(self, now: float) -> float | None:
        self._saver.freshen(BEHIND_MAX)
        if self._is_writing:
            return self.writer.tick(now)
        self.reader.read()
        return None
