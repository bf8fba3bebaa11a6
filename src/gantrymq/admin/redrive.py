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
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final, NamedTuple

from gantrymq.admin import messages
from gantrymq.admin.journal import Journal
from gantrymq.admin.reading import read_range
from gantrymq.admin.sending import Copier
from gantrymq.errors import GantryError, InvalidValue
from gantrymq.model.names import dlq_topic, retry_topic
from gantrymq.wire.codes import ResponseCode
from gantrymq.wire.peer import PeerGone, PeerLate
from gantrymq.wire.properties import DLQ_ORIGIN_TOPIC, RETRY_TOPIC
from gantrymq.wire.response_errors import ResponseError, TopicNotExist

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from pathlib import Path

    from gantrymq.admin.journal import Line
    from gantrymq.admin.search import Condition
    from gantrymq.admin.session import Session
    from gantrymq.model.queue import MessageQueue
    from gantrymq.wire.record import MessageRecord

JOB: Final = "REDRIVE_JOB"
FROM: Final = "REDRIVE_FROM"
TIMES: Final = "REDRIVE_TIMES"
WINDOW: Final = 2_000
SENDS_AT_ONCE: Final = 500
BATCH: Final = 100
TRIES: Final = 3
SETTLE_MS: Final = 3_000
"""After it, a request of a process that was killed has arrived or never will."""
NOT_NOW: Final = frozenset(
    {ResponseCode.SYSTEM_BUSY, ResponseCode.SERVICE_NOT_AVAILABLE, ResponseCode.GO_AWAY}
)
"""Answers that say: not stored, try later."""
TO_GROUP: Final = "group"
TO_TOPIC: Final = "topic"


@dataclass(frozen=True, slots=True)
class Order:
    """What a job is to do."""

    group: str
    to: str = TO_GROUP
    """`group`: to the group alone, by its retry topic. `topic`: to the topic that each came from,
    for all its groups. Anything else is the name of a topic."""
    condition: Condition | None = None
    rate: int = 0
    """Messages in a second; 0 is no limit."""
    loops_max: int = 3
    count_max: int = 0
    """How many to send at most; 0 is no limit."""
    dry_run: bool = False

    def job(self) -> Line:
        """Return what makes it another job: how fast it goes does not."""
        told = None if self.condition is None else self.condition.text
        return {"job": "redrive", "group": self.group, "to": self.to, "filter": told,
                "loops": self.loops_max}  # fmt: skip


@dataclass(slots=True)
class Progress:
    """How far a job is."""

    total: int = 0
    """Messages in the dead-letter queues, those done before included."""
    outcomes: Counter[str] = field(default_factory=Counter)
    recovered: int = 0
    """Sent by a run before, which did not come to note it."""
    examples: list[str] = field(default_factory=list)
    """Why some were not sent."""

    @property
    def done(self) -> int:
        """Return how many have an outcome."""
        return sum(self.outcomes.values())


class Place(NamedTuple):
    """A dead letter: its queue, as `broker:id`, and its offset."""

    queue: str
    offset: int

    @property
    def text(self) -> str:
        """Return it as its mark has it."""
        return f"{self.queue}:{self.offset}"


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
    return _State(done, outcomes, window, noted)


async def run(
    session: Session, order: Order, path: Path | None, watch: Callable[[Progress], None]
) -> Progress:
    """Do a job to its end, or go on with one; `watch` hears how far it is.

    Raises:
        TopicNotExist: the group has no dead letters.
        InvalidValue: the file is another job's.
        GantryError: a broker did not answer; what was done is in the journal.
    """
    progress = Progress()
    if order.dry_run:
        await _Dry(session, order, progress, watch).run()
        return progress
    if path is None:
        raise InvalidValue("a job needs a file for its journal")
    with Journal(path, order.job()) as journal:
        async with Copier(session) as copier:
            await _Job(session, order, progress, watch, journal, copier).run()
    return progress


async def dead_letter_queues(session: Session, group: str) -> dict[MessageQueue, str]:
    """Return the dead-letter queues of a group, and where they are read.

    Raises:
        TopicNotExist: it has none.
    """
    from gantrymq.admin.reading import queues_of  # noqa: PLC0415

    try:
        return await queues_of(session, dlq_topic(group))
    except TopicNotExist:
        raise TopicNotExist(f"group {group} has no dead letters: there is no {dlq_topic(group)}"
                            ) from None  # fmt: skip


class _Dry:
    """Looks at the dead letters and says what would become of each."""

    def __init__(
        self,
        session: Session,
        order: Order,
        progress: Progress,
        watch: Callable[[Progress], None],
    ) -> None:
        self.session = session
        self.order = order
        self.progress = progress
        self.watch = watch

    async def run(self) -> None:
        for queue, address in (await dead_letter_queues(self.session, self.order.group)).items():
            ends = await messages.ends(self.session, address, queue.topic, queue.queue_id)
            self.progress.total += ends.max_offset - ends.min_offset
            for begin in range(ends.min_offset, ends.max_offset, WINDOW):
                end = min(begin + WINDOW, ends.max_offset)
                for record in await read_range(self.session, address, queue, begin, end):
                    self.progress.outcomes[self.verdict(record) or "would be sent"] += 1
                self.watch(self.progress)

    def verdict(self, record: MessageRecord) -> str | None:
        """Return why a message is not to be sent, or None."""
        order = self.order
        if order.condition is not None and not order.condition.holds(record):
            return "filtered"
        if _times(record) >= order.loops_max:
            return "refused"
        if order.count_max and self.progress.outcomes["sent"] >= order.count_max:
            return "left"
        return None

    def target(self, record: MessageRecord) -> str:
        """Return the topic that a message goes to."""
        if self.order.to == TO_GROUP:
            return retry_topic(self.order.group)
        if self.order.to == TO_TOPIC:
            told = record.properties
            return told.get(RETRY_TOPIC) or told.get(DLQ_ORIGIN_TOPIC) or ""
        return self.order.to


class _Job(_Dry):
    """Does it."""

    def __init__(
        self,
        session: Session,
        order: Order,
        progress: Progress,
        watch: Callable[[Progress], None],
        journal: Journal,
        copier: Copier,
    ) -> None:
        super().__init__(session, order, progress, watch)
        self.journal = journal
        self.copier = copier
        self.name = journal.id
        self._paced_from = session.clock.monotonic()
        self._paced = 0

    async def run(self) -> None:
        state = read_state(self.journal)
        self.progress.outcomes = state.outcomes
        ranges = []
        for queue, address in (await dead_letter_queues(self.session, self.order.group)).items():
            ends = await messages.ends(self.session, address, queue.topic, queue.queue_id)
            begin = max(state.done.get(queue_name(queue), 0), ends.min_offset)
            ranges.append((queue, address, begin, ends.max_offset))
            self.progress.total += ends.max_offset - ends.min_offset
        for queue, address, begin, end in ranges:
            opened = state.open_window
            if opened is not None and opened["window"] == queue_name(queue):
                await self._finish_window(queue, address, opened, state.noted)
                begin = opened["to"]  # noqa: PLW2901
            await self._queue(queue, address, begin, end)
        self.journal.force()

    async def _queue(self, queue: MessageQueue, address: str, begin: int, end: int) -> None:
        """Go over a queue window by window; the next one is read while one is sent."""
        reading = self._read(queue, address, begin, end)
        while begin < end:
            behind = min(begin + WINDOW, end)
            records = await reading
            reading = self._read(queue, address, behind, end)
            await self._window(queue, begin, behind, records)
            begin = behind
            if self.order.count_max and self.progress.outcomes["sent"] >= self.order.count_max:
                break
        reading.cancel()

    def _read(
        self, queue: MessageQueue, address: str, begin: int, end: int
    ) -> asyncio.Task[list[MessageRecord]]:
        behind = min(begin + WINDOW, end)
        return asyncio.ensure_future(read_range(self.session, address, queue, begin, behind))

    async def _window(
        self, queue: MessageQueue, begin: int, end: int, records: list[MessageRecord]
    ) -> None:
        told = {record.queue_offset: self.verdict(record) for record in records}
        to_send = [record for record in records if told[record.queue_offset] is None]
        if self.order.count_max:
            room = max(self.order.count_max - self.progress.outcomes["sent"], 0)
            to_send, left = to_send[:room], to_send[room:]
            if left:  # the window ends in front of the first that is not to go now
                end = left[0].queue_offset
                told = {at: why for at, why in told.items() if at < end}
        ends = await self._target_ends({self.target(record) for record in to_send})
        name = queue_name(queue)
        self.journal.add([{"window": name, "from": begin, "to": end, "ends": ends}])
        self._note(queue, [(at, why, None) for at, why in told.items() if why is not None])
        await self._send_all(queue, to_send, ends)
        self.journal.add([{"closed": name}])
        self.watch(self.progress)

    async def _finish_window(
        self, queue: MessageQueue, address: str, window: Line, noted: set[int]
    ) -> None:
        """End a window that another run began."""
        await self._settle()
        records = await read_range(self.session, address, queue, window["from"], window["to"])
        left = [record for record in records if record.queue_offset not in noted]
        refused = [(r.queue_offset, why, None) for r in left if (why := self.verdict(r))]
        self._note(queue, refused)
        to_send = [record for record in left if self.verdict(record) is None]
        topics = {self.target(record) for record in to_send}
        # A topic that the window did not note did not exist then: all of it came later.
        ends = {**{key: {} for key in topics}, **window["ends"]}
        sent = await self._already_sent(ends)
        found = [r for r in to_send if Place(queue_name(queue), r.queue_offset).text in sent]
        self._note(queue, [
            (r.queue_offset, "sent", sent[Place(queue_name(queue), r.queue_offset).text])
            for r in found
        ])  # fmt: skip
        self.progress.recovered += len(found)
        known = {record.queue_offset for record in found}
        await self._send_all(queue, [r for r in to_send if r.queue_offset not in known], ends)
        self.journal.add([{"closed": queue_name(queue)}])
        self.watch(self.progress)

    async def _settle(self) -> None:
        age_ms = self.session.clock.now_ms() - self.journal.changed_at_ms
        if 0 <= age_ms < SETTLE_MS:
            await asyncio.sleep((SETTLE_MS - age_ms) / 1000)

    # -- sending ----------------------------------------------------------------------------------

    async def _send_all(
        self, queue: MessageQueue, records: list[MessageRecord], ends: dict[str, dict[str, int]]
    ) -> None:
        """Send messages, and those whose fate is not known again if they have not arrived."""
        left = records
        for attempt in range(TRIES):
            left = await self._send_once(queue, left)
            if not left:
                return
            await asyncio.sleep(SETTLE_MS / 1000)
            sent = await self._already_sent(ends)
            name = queue_name(queue)
            arrived = [r for r in left if Place(name, r.queue_offset).text in sent]
            self._note(queue, [
                (r.queue_offset, "sent", sent[Place(name, r.queue_offset).text]) for r in arrived
            ])  # fmt: skip
            known = {record.queue_offset for record in arrived}
            left = [record for record in left if record.queue_offset not in known]
            if attempt == TRIES - 1 and left:
                raise GantryError(
                    f"{len(left)} sends got no answer, {TRIES} times: the brokers are in trouble;"
                    " run the same command again to go on"
                )

    async def _send_once(
        self, queue: MessageQueue, records: list[MessageRecord]
    ) -> list[MessageRecord]:
        """Send messages, some at a time; return those of which nobody knows."""
        doubtful: list[MessageRecord] = []
        for at in range(0, len(records), SENDS_AT_ONCE):
            some = records[at : at + SENDS_AT_ONCE]
            await self._pace(len(some))
            outcomes: list[tuple[int, str, str | None]] = []
            parts = self._parts(some)
            results = await asyncio.gather(*(self._send_part(queue, part) for part in parts))
            for part, (result, ids, why) in zip(parts, results, strict=True):
                if result is None:
                    doubtful += part
                    continue
                told = ids or [why] * len(part)
                outcomes += [
                    (record.queue_offset, result, text)
                    for record, text in zip(part, told, strict=True)
                ]
            self._note(queue, outcomes)
            self.watch(self.progress)
        return doubtful

    def _parts(self, records: list[MessageRecord]) -> list[list[MessageRecord]]:
        """Return what goes together: batches to a topic, single messages to a retry topic."""
        if self.order.to == TO_GROUP:
            return [[record] for record in records]
        by_topic: dict[str, list[MessageRecord]] = {}
        for record in records:
            by_topic.setdefault(self.target(record), []).append(record)
        return [
            found[at : at + BATCH]
            for found in by_topic.values()
            for at in range(0, len(found), BATCH)
        ]

    async def _send_part(
        self, queue: MessageQueue, part: list[MessageRecord]
    ) -> tuple[str | None, list[str], str]:
        """Send messages of one target; return the outcome, or None for nobody knows."""
        pairs = [(record, self._mark(queue, record)) for record in part]
        topic = self.target(part[0])
        if not topic:
            return "failed", [], "it does not say which topic it came from"
        try:
            if self.order.to == TO_GROUP:
                ids = [(await self.copier.copy(part[0], topic, pairs[0][1])).message_id]
            else:
                ids = await self.copier.copy_batch(pairs, topic)
        except (PeerGone, PeerLate):
            return None, [], ""
        except ResponseError as error:
            if error.code in NOT_NOW:
                return None, [], ""
            return "failed", [], str(error)
        except InvalidValue as error:
            return "failed", [], str(error)
        return "sent", ids, ""

    def _mark(self, queue: MessageQueue, record: MessageRecord) -> dict[str, str]:
        return {
            JOB: self.name,
            FROM: Place(queue_name(queue), record.queue_offset).text,
            TIMES: str(_times(record) + 1),
        }

    async def _pace(self, count: int) -> None:
        """Wait until so many more may go."""
        if not self.order.rate:
            return
        now = self.session.clock.monotonic()
        due = self._paced_from + self._paced / self.order.rate
        if due > now:
            await asyncio.sleep(due - now)
        elif now - due > 1.0:  # what was not used a second ago is not caught up with
            self._paced_from, self._paced = now, 0
        self._paced += count

    # -- outcomes ---------------------------------------------------------------------------------

    def _note(self, queue: MessageQueue, outcomes: Sequence[tuple[int, str, str | None]]) -> None:
        """Write outcomes down: offset, what became of it, its new id or why not."""
        name = queue_name(queue)
        self.journal.add(
            {"q": name, "o": offset, "r": result, **({} if text is None else {"t": text})}
            for offset, result, text in outcomes
        )
        for offset, result, text in outcomes:
            self.progress.outcomes[result] += 1
            if result == "failed" and len(self.progress.examples) < 3:
                self.progress.examples.append(f"{name}:{offset}: {text}")

    async def _target_ends(self, topics: set[str]) -> dict[str, dict[str, int]]:
        """Return where the queues of the targets end now."""
        from gantrymq.admin.topics import topic_status  # noqa: PLC0415

        found: dict[str, dict[str, int]] = {}
        for topic in sorted(filter(None, topics)):
            try:
                status = await topic_status(self.session, topic)
            except TopicNotExist:
                found[topic] = {}
                continue
            for error in status.answers.problems.values():
                raise error
            found[topic] = {queue_name(each.queue): each.max_offset for each in status.queues}
        return found

    async def _already_sent(self, ends: dict[str, dict[str, int]]) -> dict[str, str]:
        """Return the marks of this job in what has come to the targets, with the new ids."""
        from gantrymq.admin.reading import queues_of  # noqa: PLC0415

        found: dict[str, str] = {}
        for topic, was in ends.items():
            try:
                queues = await queues_of(self.session, topic)
            except TopicNotExist:
                continue
            for queue, address in queues.items():
                now = await messages.ends(self.session, address, topic, queue.queue_id)
                begin = max(was.get(queue_name(queue), 0), now.min_offset)
                for at in range(begin, now.max_offset, WINDOW):
                    end = min(at + WINDOW, now.max_offset)
                    for record in await read_range(self.session, address, queue, at, end):
                        told = record.properties
                        if told.get(JOB) == self.name and FROM in told:
                            found[told[FROM]] = record.unique_key or record.offset_id
        return found


def queue_name(queue: MessageQueue) -> str:
    """Return a queue as journals and marks have it."""
    return f"{queue.broker_name}:{queue.queue_id}"


def _times(record: MessageRecord) -> int:
    text = record.properties.get(TIMES, "0")
    return int(text) if text.isdecimal() else 0
