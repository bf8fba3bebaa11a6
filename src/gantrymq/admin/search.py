"""Looking for messages: by id and key through the index, by everything else by reading.

Reading is bounded: at most so many messages and so many bytes are looked at, decompressed ones
included. It goes by queue from the beginning of the time window; where it stopped is a text
(`Position`) that the next search goes on from. It lets others have the loop as it goes.
"""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

from gantrymq.admin import messages
from gantrymq.admin.messages import Found
from gantrymq.admin.reading import Breaths, queues_of, read_some
from gantrymq.errors import InvalidValue
from gantrymq.limits import BODY_BYTES_MAX

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from gantrymq.admin.session import Session
    from gantrymq.model.queue import MessageQueue
    from gantrymq.wire.record import MessageRecord

STEP: Final = 1_024
LOOKED_AT_MAX: Final = 100_000
FOUND_MAX: Final = 100
STEP_BYTES_MAX: Final = 32 << 20
"""What is read before it is looked at."""
BYTES_MAX: Final = 1 << 30
OFFSET_DIGITS_MAX: Final = 19


@dataclass(frozen=True, slots=True)
class Condition:
    """What a message must have; all that is given must hold."""

    key: str | None = None
    tag: str | None = None
    properties: Mapping[str, str] = field(default_factory=dict)
    body: str | None = None
    topic: str | None = None
    """The topic that a dead letter came from."""

    @property
    def text(self) -> str:
        """Return it as one text, always the same for the same condition."""
        told = {
            "key": self.key, "tag": self.tag, "properties": dict(sorted(self.properties.items())),
            "body": self.body, "topic": self.topic,
        }  # fmt: skip
        return json.dumps({name: value for name, value in told.items() if value})

    @property
    def is_empty(self) -> bool:
        """Tell whether everything has it."""
        return not (self.key or self.tag or self.properties or self.body or self.topic)

    def holds(self, record: MessageRecord) -> bool:
        """Tell whether a message has it."""
        return self.holds_but_body(record) and (
            self.body is None or self.is_in(self.body_of(record))
        )

    def is_in(self, body: bytes) -> bool:
        """Tell whether a body has the wanted text."""
        return self.body is None or self.body.encode() in body

    @staticmethod
    def body_of(record: MessageRecord) -> bytes:
        """Return what is looked at of a body: as much as clients send, of a bomb no more."""
        return messages.readable_start(record, BODY_BYTES_MAX)

    def holds_but_body(self, record: MessageRecord) -> bool:
        """Tell whether a message has all but the wanted text in its body."""
        told = record.properties
        if self.tag is not None and record.tags != self.tag:
            return False
        if self.key is not None and self.key not in {*record.keys, record.unique_key}:
            return False
        if any(told.get(name) != value for name, value in self.properties.items()):
            return False
        return self.topic is None or self.topic in {
            told.get("RETRY_TOPIC"), told.get("DLQ_ORIGIN_TOPIC"), record.topic
        }  # fmt: skip


@dataclass(slots=True)
class Search:
    """How far a search is, and what it found."""

    total: int = 0
    """Messages in the window, at its beginning."""
    looked_at: int = 0
    found: list[Found] = field(default_factory=list)
    next_position: str | None = None
    """Where to go on; None once all was looked at."""
    bytes_seen: int = 0
    ends: dict[str, int] = field(default_factory=dict)
    """Queue to where it ended, in the order of the search."""

    def position_behind(self, found: Found) -> str:
        """Return where to go on behind one that was found."""
        at, last = {}, f"{found.broker_name}:{found.record.queue_id}"
        for name, end in self.ends.items():
            at[name] = found.record.queue_offset + 1 if name == last else end
            if name == last:
                break
        return _text(at)


async def search(
    session: Session,
    topic: str,
    condition: Condition,
    *,
    begin_ms: int | None = None,
    end_ms: int | None = None,
    position: str | None = None,
    looked_at_max: int = LOOKED_AT_MAX,
    found_max: int = FOUND_MAX,
    bytes_max: int = BYTES_MAX,
    watch: Callable[[Search], None] = lambda _search: None,
) -> Search:
    """Read a topic's messages and keep those that a condition holds for.

    Raises:
        TopicNotExist: no name server knows the topic.
        InvalidValue: the position is none of this topic.
        ResponseError: a broker did not answer well: half a search is none.
    """
    told = Search()
    looking = _Looking(session, condition, told, (begin_ms or 0, end_ms), found_max, bytes_max)
    async with session.searches:
        ranges = await _ranges(session, topic, begin_ms, end_ms)
        at = _parse(position, set(ranges)) if position else {}
        told.total = sum(end - begin for _address, begin, end in ranges.values())
        told.ends = {name: end for name, (_address, _begin, end) in ranges.items()}
        for name, (address, first, end) in ranges.items():
            begin = max(first, at.get(name, first))
            queue = messages.topic_queue(topic, *_split(name))
            while begin < end:
                if told.looked_at >= looked_at_max or looking.is_full:
                    at[name] = begin
                    told.next_position = _text(at)
                    return told
                behind = min(begin + STEP, end, begin + looked_at_max - told.looked_at)
                behind = await looking.at(address, queue, begin, behind)
                told.looked_at += behind - begin
                begin = behind
                watch(told)
            at[name] = end
    return told


class _Looking:
    """Looks at messages until enough are found, or enough bytes were seen."""

    def __init__(
        self,
        session: Session,
        condition: Condition,
        told: Search,
        times_ms: tuple[int, int | None],
        found_max: int,
        bytes_max: int,
    ) -> None:
        self._session = session
        self._condition = condition
        self._told = told
        self._begin_ms, self._end_ms = times_ms
        self._found_max = found_max
        self._bytes_max = bytes_max
        self._breaths = Breaths(session.clock)

    @property
    def is_full(self) -> bool:
        told = self._told
        return len(told.found) >= self._found_max or told.bytes_seen >= self._bytes_max

    async def at(self, address: str, queue: MessageQueue, begin: int, end: int) -> int:
        """Look at a part of a queue; return the offset to go on from."""
        told = self._told
        bytes_max = min(STEP_BYTES_MAX, self._bytes_max - told.bytes_seen)
        some = await read_some(self._session, address, queue, begin, end, bytes_max)
        for record in some.records:
            if self._holds(record):
                told.found.append(Found(record, queue.broker_name))
            told.bytes_seen += record.stored_bytes
            if self.is_full:
                return record.queue_offset + 1
            await self._breaths.take()
        return some.next_offset

    def _holds(self, record: MessageRecord) -> bool:
        time_ms = record.raw.store_timestamp
        if not self._begin_ms <= time_ms <= (self._end_ms or time_ms):
            return False
        if not self._condition.holds_but_body(record):
            return False
        if self._condition.body is None:
            return True
        body = self._condition.body_of(record)
        self._told.bytes_seen += len(body)
        return self._condition.is_in(body)


async def _ranges(
    session: Session, topic: str, begin_ms: int | None, end_ms: int | None
) -> dict[str, tuple[str, int, int]]:
    """Return queue to its address and the offsets of the time window."""
    found = {}
    for queue, address in (await queues_of(session, topic)).items():
        ends = await messages.ends(session, address, topic, queue.queue_id)
        begin, end = ends
        if begin_ms is not None:
            at = await messages.offset_at(session, address, topic, queue.queue_id, begin_ms)
            begin = max(begin, at)
        if end_ms is not None:
            at = await messages.offset_at(session, address, topic, queue.queue_id, end_ms)
            end = min(end, at + 1)
        found[f"{queue.broker_name}:{queue.queue_id}"] = address, begin, max(begin, end)
    return found


def _split(name: str) -> tuple[str, int]:
    broker, _colon, queue_id = name.rpartition(":")
    return broker, int(queue_id)


def _text(at: Mapping[str, int]) -> str:
    return ",".join(f"{name}={offset}" for name, offset in sorted(at.items()))


def _parse(text: str, names: set[str]) -> dict[str, int]:
    at = {}
    for part in text.split(","):
        name, _mark, offset = part.partition("=")
        is_offset = offset.isdecimal() and len(offset) <= OFFSET_DIGITS_MAX
        if name not in names or not is_offset:
            raise InvalidValue(
                f"{part[:128]!r} is no place to go on from: give what a search printed"
            )
        at[name] = int(offset)
    return at
