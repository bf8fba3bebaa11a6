"""Dead letters sent again, as a job that can be killed at any point: none is lost, none goes twice.

    dead-letter queue ── a window of messages ──▶ which are to be sent? (filter, loop guard)
                                                     │ 1. the journal: "window q:from-to begins,
                                                     │    the targets end at ..."
                                                     ▼
                                                  2. sent, each with a mark: job and place
                                                     ▼
                                                  3. the journal: an outcome for every message

A process that dies between 1 and 3 leaves a window without all its outcomes. Whoever goes on reads
what has come to the targets since the ends that step 1 noted: marked messages were sent, and get
their outcome; the others are sent now. The same is done for a send that got no answer. Before that
it waits until a request that was under way has either arrived or never will.

The guard against loops: a message that was sent again so often already (`REDRIVE_TIMES`) is
refused, and what comes to the dead letters after the job began is not the job's. Run again with
its file, a job takes what has come since then.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from typing import TYPE_CHECKING, Final, NamedTuple

from gantrymq.admin import messages
from gantrymq.admin.journal import Journal
from gantrymq.admin.reading import dead_letter_queues, read_range, read_some
from gantrymq.admin.redrive_marks import already_sent, in_windows, target_ends
from gantrymq.admin.redrive_plan import (
    FROM,
    JOB,
    TIMES,
    TO_GROUP,
    TO_TOPIC,
    WINDOW,
    WINDOW_BYTES,
    Order,
    Progress,
    place_of,
    queue_name,
)
from gantrymq.admin.redrive_sending import SETTLE_MS, Sends
from gantrymq.admin.sending import Copier
from gantrymq.errors import InvalidValue

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from gantrymq.admin.journal import Line
    from gantrymq.admin.reading import Some
    from gantrymq.admin.redrive_marks import Ends
    from gantrymq.admin.session import Session
    from gantrymq.model.queue import MessageQueue
    from gantrymq.wire.record import MessageRecord

__all__ = [
    "FROM", "JOB", "TIMES", "TO_GROUP", "TO_TOPIC", "WINDOW", "Order", "Progress",
    "dead_letter_queues", "read_state", "run", "shorten",
]  # fmt: skip


JOURNAL_BYTES_MAX: Final = 256 << 20
"""Then a journal is begun anew, some three million outcomes later; the one before stays beside."""


class _State(NamedTuple):
    """What a journal says."""

    done: dict[str, int]
    """Queue to the offset behind the last one with an outcome; windows go in order."""
    outcomes: Counter[str]
    open_window: Line | None
    noted: set[int]
    """Offsets of the open window that have an outcome."""


def read_state(journal: Journal) -> _State:
    """Return how far a job came."""
    done: dict[str, int] = {}
    outcomes: Counter[str] = Counter()
    window: Line | None = None
    noted: set[int] = set()
    for line in journal.lines():
        if "window" in line:
            window, noted = line, set()
        elif "o" in line:
            outcomes[line["r"]] += 1
            noted.add(line["o"])
        elif "closed" in line and window is not None:
            done[window["window"]] = window["to"]
            window, noted = None, set()
        elif "rests" in line:
            done.update(line["rests"]["done"])
            outcomes.update(line["rests"]["outcomes"])
    return _State(done, outcomes, window, noted)


def shorten(journal: Journal, *, keep: bool) -> bool:
    """Leave of a journal what makes sure that nothing goes twice: how far it is, and counts.

    Its outcomes go to a file beside it (`.1`), or are lost. A window that is open still needs them:
    then nothing is done.
    """
    state = read_state(journal)
    if state.open_window is not None:
        return False
    rests = {"done": state.done, "outcomes": dict(state.outcomes)}
    beside = journal.path.with_name(f"{journal.path.name}.1") if keep else None
    journal.restart([{"rests": rests}], beside)
    return True


async def run(
    session: Session, order: Order, path: Path | None, watch: Callable[[Progress], None]
) -> Progress:
    """Do a job to its end, or go on with one; `watch` hears how far it is.

    Raises:
        TopicNotExist: the group has no dead letters.
        InvalidValue: the file is another job's, or the target cannot be.
        GantryError: a broker did not answer; what was done is in the journal.
    """
    order.check()
    progress = Progress()
    if order.dry_run:
        await _look(session, order, progress, watch)
        return progress
    if path is None:
        raise InvalidValue("a job needs a file for its journal")
    async with Journal(path, order.job()) as journal, Copier(session) as copier:
        await _Job(Sends(session, order, progress, watch, journal, copier)).run()
    return progress


async def _look(
    session: Session, order: Order, progress: Progress, watch: Callable[[Progress], None]
) -> None:
    """Look at the dead letters and say what would become of each."""
    outcomes = progress.outcomes
    for queue, address in (await dead_letter_queues(session, order.group)).items():
        ends = await messages.ends(session, address, queue.topic, queue.queue_id)
        progress.total += ends.max_offset - ends.min_offset
        whole = ends.min_offset, ends.max_offset
        async for records in in_windows(session, address, queue, *whole):
            for record in records:
                is_full = order.count_max and outcomes["would be sent"] >= order.count_max
                outcomes[order.verdict(record) or ("left" if is_full else "would be sent")] += 1
            watch(progress)


class _Job:
    """Goes over the dead letters, window by window."""

    def __init__(self, sends: Sends) -> None:
        self.sends = sends
        self.session = sends.session
        self.order = sends.order
        self.journal = sends.journal
        self.progress = sends.progress

    async def run(self) -> None:
        if self.journal.size > JOURNAL_BYTES_MAX:
            await self.journal.read(lambda journal: shorten(journal, keep=True))
        state = await self.journal.read(read_state)
        self.progress.outcomes = state.outcomes
        ranges = []
        for queue, address in (await dead_letter_queues(self.session, self.order.group)).items():
            ends = await messages.ends(self.session, address, queue.topic, queue.queue_id)
            begin = max(state.done.get(queue_name(queue), 0), ends.min_offset)
            ranges.append((queue, address, begin, ends.max_offset))
            self.progress.total += ends.max_offset - ends.min_offset
        opened = state.open_window
        # First of all: a journal has one open window, and the next one would end it.
        for at, (queue, address, _begin, end) in enumerate(ranges):
            if opened is not None and opened["window"] == queue_name(queue):
                await self._finish_window(queue, address, opened, state.noted)
                ranges[at] = queue, address, opened["to"], end
        for queue, address, begin, end in ranges:
            if self.sends.room == 0:
                break
            await self._queue(queue, address, begin, end)
        await self.journal.forced()

    async def _queue(self, queue: MessageQueue, address: str, begin: int, end: int) -> None:
        """Go over a queue window by window; the next one is read while one is sent."""
        reading = self._read(queue, address, begin, end)
        try:
            while begin < end and self.sends.room != 0:
                records, behind = await reading
                reading = self._read(queue, address, behind, end)
                begin = await self._window(queue, begin, behind, records)
                if begin < behind:  # cut by the count, of which not all could be sent
                    reading.cancel()
                    reading = self._read(queue, address, begin, end)
        finally:
            reading.cancel()

    def _read(self, queue: MessageQueue, address: str, begin: int, end: int) -> asyncio.Task[Some]:
        behind = min(begin + WINDOW, end)
        return asyncio.ensure_future(
            read_some(self.session, address, queue, begin, behind, WINDOW_BYTES)
        )

    async def _window(
        self, queue: MessageQueue, begin: int, end: int, records: list[MessageRecord]
    ) -> int:
        """Do a window; return where it ended: in front of the first that is not to go now."""
        told = {record.queue_offset: self.order.verdict(record) for record in records}
        to_send = [record for record in records if told[record.queue_offset] is None]
        room = self.sends.room
        if room is not None and len(to_send) > room:
            end = to_send[room].queue_offset
            to_send = to_send[:room]
        ends = await target_ends(self.session, {self.order.target(each) for each in to_send})
        name = queue_name(queue)
        self.journal.add([{"window": name, "from": begin, "to": end, "ends": ends}])
        self.sends.note(queue, [
            (at, why, None) for at, why in told.items() if why is not None and at < end
        ])  # fmt: skip
        await self.sends.send_all(queue, to_send, ends)
        self._close(queue)
        return end

    def _close(self, queue: MessageQueue) -> None:
        self.journal.add([{"closed": queue_name(queue)}])
        self.sends.watch(self.progress)

    async def _finish_window(
        self, queue: MessageQueue, address: str, window: Line, noted: set[int]
    ) -> None:
        """End a window that another run began; it stays open if this one may not send all of it."""
        await self._settle()
        records = await read_range(self.session, address, queue, window["from"], window["to"])
        left = [record for record in records if record.queue_offset not in noted]
        verdicts = [(record, self.order.verdict(record)) for record in left]
        self.sends.note(queue, [(r.queue_offset, why, None) for r, why in verdicts if why])
        to_send = [record for record, why in verdicts if why is None]
        topics = {self.order.target(record) for record in to_send}
        # A topic that the window did not note did not exist then: all of it came later.
        ends = {**{key: {} for key in topics}, **window["ends"]}
        to_send = await self._without_sent(queue, to_send, ends)
        while to_send and self.sends.room != 0:
            some = to_send[: self.sends.room]
            await self.sends.send_all(queue, some, ends)
            to_send = to_send[len(some) :]
        if not to_send:
            self._close(queue)

    async def _without_sent(
        self, queue: MessageQueue, records: list[MessageRecord], ends: Ends
    ) -> list[MessageRecord]:
        """Note those that an earlier run sent, and return the others."""
        marks = await already_sent(self.session, self.journal.id, ends)
        found = [record for record in records if place_of(queue, record) in marks]
        before = self.sends.sent
        self.sends.note(queue, [(r.queue_offset, "sent", marks[place_of(queue, r)]) for r in found])
        self.sends.sent = before
        self.progress.recovered += len(found)
        return [record for record in records if place_of(queue, record) not in marks]

    async def _settle(self) -> None:
        age_ms = self.session.clock.now_ms() - self.journal.changed_at_ms
        if 0 <= age_ms < SETTLE_MS:
            await asyncio.sleep((SETTLE_MS - age_ms) / 1000)
