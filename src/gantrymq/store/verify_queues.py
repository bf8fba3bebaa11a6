"""Consume queues against the log: every record has its entry, every entry its record.

Dispatch says what the entries must be; they are compared as bytes, run by run, and looked at one by
one only where those differ. Three differences are none:

- with an extension the entry holds an address, and the tags code stands there;
- entries of SCHEDULE_TOPIC_XXXX hold the time of delivery by the delay levels of that day;
- a queue that begins again at a lower offset is that of a topic deleted and made again: what was
  found before is of the former one, and forgotten.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from gantrymq.kernel import PRE_BLANK_SIZE, SCHEDULE_TOPIC, UNIT_BYTES, QueueUnit
from gantrymq.store.consume_queue_ext import is_ext_address
from gantrymq.store.get import units_of
from gantrymq.store.search import store_timestamp
from gantrymq.store.verify_report import Kind, VerifyReport

if TYPE_CHECKING:
    from gantrymq.kernel import QueueRun
    from gantrymq.store.consume_queue import ConsumeQueue
    from gantrymq.store.reader import StoreReader

_CHUNK_UNITS: Final = 16384
_BLANK: Final = QueueUnit(0, PRE_BLANK_SIZE, 0)


class _QueueState:
    """How far one queue is compared, and what was found in it."""

    def __init__(self, queue: ConsumeQueue) -> None:
        self.queue = queue
        self.restart(queue.min_offset)

    def restart(self, offset: int) -> None:
        self.next = offset
        self.found = VerifyReport()


class QueueCheck:
    """Compares the queues of a store with the runs that its log makes."""

    def __init__(
        self, reader: StoreReader, topics: frozenset[str] | None, report: VerifyReport
    ) -> None:
        self._reader = reader
        self._topics = topics
        self._report = report
        self._states = {
            (queue.topic, queue.queue_id): _QueueState(queue) for queue in reader.queue_table
        }
        report.queues = len(self._states)

    def take(self, run: QueueRun) -> None:
        """Compare a run with its queue."""
        topic, count = run.topic.decode(errors="replace"), len(run.units) // UNIT_BYTES
        state = self._states.get((topic, run.queue_id))
        if state is None:
            self._no_queue(topic, run, count)
            return
        if run.first_queue_offset < state.next:
            state.restart(min(run.first_queue_offset, state.queue.min_offset))
        self._check_empty(state, run.first_queue_offset)
        state.next = run.first_queue_offset + count
        units = state.queue.read(run.first_queue_offset, count)
        state.found.queue_entries += len(units) // UNIT_BYTES
        if units != run.units:
            self._compare(state, run, units)

    def finish(self) -> None:
        """Look at what lies behind the last runs, and report."""
        for state in self._states.values():
            self._check_empty(state, state.queue.max_offset)
            self._report.queue_entries += state.found.queue_entries
            for kind, count in state.found.counts.items():
                problems = [one for one in state.found.problems if one.kind is kind]
                for problem in problems:
                    self._report.add(*problem)
                self._report.counts[kind] += count - len(problems)

    def _no_queue(self, topic: str, run: QueueRun, count: int) -> None:
        if self._topics is not None and topic not in self._topics:
            self._report.records_of_deleted_topics += count
            return
        self._report.add(
            Kind.QUEUE_MISSING,
            f"{topic}/{run.queue_id}",
            f"there is no queue for {count} messages from offset {run.first_queue_offset} on",
            count,
        )

    def _check_empty(self, state: _QueueState, stop: int) -> None:
        """Look at entries that no record of the log made: pre-blank ones, and older messages."""
        log_min = self._reader.min_log_offset
        while state.next < stop:
            units = state.queue.read(state.next, min(_CHUNK_UNITS, stop - state.next))
            if not units:
                break
            for offset, unit in enumerate(units_of(units), state.next):
                state.found.queue_entries += 1
                if unit != _BLANK and unit.log_offset >= log_min:
                    what = f"entry {offset} points to log offset {unit.log_offset}"
                    self._add(state, Kind.QUEUE_ENTRY, f"{what}, where it has no record")
            state.next += len(units) // UNIT_BYTES

    def _compare(self, state: _QueueState, run: QueueRun, units: bytes) -> None:
        have = units_of(units)
        for offset, wanted in enumerate(units_of(run.units), run.first_queue_offset):
            unit = next(have, None)
            if unit is None or unit.size <= 0 or unit == _BLANK:
                what = f"there is no entry {offset} for the message at {wanted.log_offset}"
                self._add(state, Kind.QUEUE_MISSING, what)
            elif unit[:2] != wanted[:2]:
                what = f"entry {offset} points to {unit.log_offset} ({unit.size} bytes)"
                wish = f"its message is at {wanted.log_offset} ({wanted.size} bytes)"
                self._add(state, Kind.QUEUE_ENTRY, f"{what}, {wish}")
            elif unit.tags_code != wanted.tags_code:
                self._compare_tags(state, run.topic, offset, unit, wanted.tags_code)

    def _compare_tags(
        self, state: _QueueState, topic: bytes, offset: int, unit: QueueUnit, wanted: int
    ) -> None:
        record = self._reader.log.read(unit.log_offset, unit.size)
        stored_ms = 0 if record is None else store_timestamp(record)
        tags_code = unit.tags_code
        if is_ext_address(tags_code):
            extension = self._reader.queue_table.extension(state.queue)
            known = None if extension is None else extension.read(tags_code)
            if known is None or known.store_timestamp != stored_ms:
                what = f"entry {offset} has the address {tags_code}, where the extension has "
                whose = "no unit" if known is None else "that of another message"
                self._add(state, Kind.QUEUE_EXT, what + whose)
                return
            tags_code = known.tags_code
        if tags_code != wanted and (topic != SCHEDULE_TOPIC or tags_code < stored_ms):
            what = f"entry {offset} has the tags code {tags_code}, its message {wanted}"
            self._add(state, Kind.QUEUE_TAGS, what)

    @staticmethod
    def _add(state: _QueueState, kind: Kind, what: str) -> None:
        state.found.add(kind, f"{state.queue.topic}/{state.queue.queue_id}", what)
