"""The other side of the journal: its records are applied to the tables, in the log's order.

A slave does it as they arrive, so that it knows what its master knew up to the last replicated
byte. Any broker does it at its start, from where its files are: each file of a table says how much
of the journal is in it (`config_saving`). A file that does not say so was written by another
program, whose word counts; one that is missing is made again from the whole journal.

Owned by the event loop's task.
"""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, Final

from gantrymq.broker.journal.changes import decode as decode_changes
from gantrymq.broker.journal.writing import JOURNAL_QUEUE
from gantrymq.broker.stored_again import decode
from gantrymq.errors import GantryError, InvalidValue
from gantrymq.model.names import JOURNAL_TOPIC

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from gantrymq.broker.journal.changes import Changes
    from gantrymq.broker.saved_state import SavedState
    from gantrymq.broker.tables import Tables
    from gantrymq.store.get import Found
    from gantrymq.store.message_store import MessageStore

log = logging.getLogger(__name__)

READ_COUNT: Final = 32


class JournalReader:
    """Applies the records of a log to the tables."""

    def __init__(self, store: MessageStore, tables: Tables) -> None:
        self._store = store
        self._tables = tables
        self._is_reading = False
        self._from: Mapping[SavedState, int] = {}
        """At a start: from which record on a table is to be changed."""
        self.position = 0
        """The next record to be applied."""
        self.applied = 0
        """Records that were applied."""
        self.wake: Callable[[], None] = lambda: None
        """Called when `read` has more to do."""

    @property
    def end(self) -> int:
        """Return the offset behind the last record that can be read."""
        return self._store.reads.max_offset(JOURNAL_TOPIC, JOURNAL_QUEUE)

    def open(self, known: Mapping[SavedState, int | None]) -> None:
        """Bring the tables up to the end of the log; `known` says how much each has. Blocks.

        None is a table that must stay as it is.
        """
        end = self.end
        self._from = {
            table: end if position is None else min(position, end)
            for table, position in known.items()
        }
        self.position = min(self._from.values(), default=end)
        count = self.read_to_end()
        self._from = {}
        if count:
            log.warning(
                "tables were brought up to date with %d records of the log: what had changed since "
                "they were last saved",
                count,
            )

    def again_from(self, position: int) -> None:
        """Apply the records from here on again: a table was replaced by an older one."""
        self.position = min(self.position, position)

    def read_to_end(self) -> int:
        """Apply every record there is; return how many. Blocks."""
        before = self.applied
        while self.position < self.end:
            least = self._store.reads.min_offset(JOURNAL_TOPIC, JOURNAL_QUEUE)
            asked = max(self.position, least)
            found = self._store.get(JOURNAL_TOPIC, JOURNAL_QUEUE, asked, READ_COUNT)
            if not self._take(asked, found):
                log.error(
                    "record %d of the journal cannot be read, so what follows it is not known: %s",
                    asked,
                    found.trouble or found.status.value,
                )
                self.position = self.end
        return self.applied - before

    def read(self) -> None:
        """Apply what has arrived, now or when the disk has given it."""
        if self._is_reading or self.position >= self.end:
            return
        self._is_reading = True
        least = self._store.reads.min_offset(JOURNAL_TOPIC, JOURNAL_QUEUE)
        asked = max(self.position, least)

        def done(found: Found) -> None:
            self._is_reading = False
            if self._take(asked, found) and self.position < self.end:
                self.wake()

        self._store.begin_get(JOURNAL_TOPIC, JOURNAL_QUEUE, asked, READ_COUNT, None, done)

    def _take(self, asked: int, found: Found) -> bool:
        """Apply what was read at an offset; False if nothing came of it."""
        for raw in found.records:
            record = decode(raw)
            try:
                self._apply(record.queue_offset, bytes(record.body))
            except InvalidValue as error:
                log.warning("record %d of the journal is left out: %s", record.queue_offset, error)
        after = max(found.next_offset, asked)
        self.position = max(self.position, after)
        return after > asked

    def _apply(self, position: int, body: bytes) -> None:
        if position < self.position:
            return
        changes = decode_changes(body)
        self.position = position + 1
        if changes is None:
            log.warning("record %d of the journal is of a later release: left out", position)
            return
        tables, start = self._tables, self._from
        self.applied += 1
        if position >= start.get(tables.topics, 0):
            self._apply_topics(changes)
        if position >= start.get(tables.groups, 0):
            self._apply_groups(changes)
        if position >= start.get(tables.offsets, 0):
            tables.offsets.apply_changes(changes.offsets)
        if position >= start.get(tables.delays, 0):
            for level, offset in changes.delays.items():
                tables.delays.set(level, offset)
        if position >= start.get(tables.modes, 0):
            tables.modes.apply_changes(changes.modes)

    def _apply_topics(self, changes: Changes) -> None:
        topics = self._tables.topics
        for name, topic in changes.topics.items():
            if topic is None:
                topics.remove(name)
            elif topics.find(name) != topic:
                try:
                    topics.put(topic)
                except GantryError as error:
                    log.warning("topic %r of the journal is left out: %s", name[:64], error)

    def _apply_groups(self, changes: Changes) -> None:
        groups = self._tables.groups
        for name, one in changes.groups.items():
            if one is None:
                groups.remove(name)
            elif groups.with_forbidden(name) != one:
                try:
                    groups.put_with_forbidden(*one)
                except GantryError as error:
                    log.warning("group %r of the journal is left out: %s", name[:64], error)
