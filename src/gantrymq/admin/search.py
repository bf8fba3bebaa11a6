"""Looking for messages: by id and key through the index, by everything else by reading.

Reading is bounded: at most so many messages are looked at. It goes by queue from the beginning of
the time window; where it stopped is a text (`Position`) that the next search goes on from.
"""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

from gantrymq.admin import messages
from gantrymq.admin.messages import Found
from gantrymq.admin.reading import queues_of, read_range
from gantrymq.errors import InvalidValue

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from gantrymq.admin.session import Session
    from gantrymq.wire.record import MessageRecord

STEP: Final = 1_024
LOOKED_AT_MAX: Final = 100_000
FOUND_MAX: Final = 100


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
        told = record.properties
        if self.tag is not None and record.tags != self.tag:
            return False
        if self.key is not None and self.key not in {*record.keys, record.unique_key}:
            return False
        if any(told.get(name) != value for name, value in self.properties.items()):
            return False
        if self.topic is not None and self.topic not in {
            told.get("RETRY_TOPIC"), told.get("DLQ_ORIGIN_TOPIC"), record.topic
        }:  # fmt: skip
            return False
        return self.body is None or self.body.encode() in messages.readable_body(record)


@dataclass(slots=True)
class Search:
    """How far a search is, and what it found."""

    total: int = 0
    """Messages in the window, at its beginning."""
    looked_at: int = 0
    found: list[Found] = field(default_factory=list)
    next_position: str | None = None
    """Where to go on; None once all was looked at."""


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
    watch: Callable[[Search], None] = lambda _search: None,
) -> Search:
    """Read a topic's messages and keep those that a condition holds for.

    Raises:
        TopicNotExist: no name server knows the topic.
        InvalidValue: the position is none of this topic.
        ResponseError: a broker did not answer well: half a search is none.
    """
    told = Search()
    ranges = await _ranges(session, topic, begin_ms, end_ms)
    at = _parse(position, set(ranges)) if position else {}
    told.total = sum(end - begin for _address, begin, end in ranges.values())
    for name, (address, first, end) in ranges.items():
        begin = max(first, at.get(name, first))
        queue = messages.topic_queue(topic, *_split(name))
        while begin < end:
            if told.looked_at >= looked_at_max or len(told.found) >= found_max:
                at[name] = begin
                told.next_position = _text(at)
                return told
            behind = min(begin + STEP, end, begin + looked_at_max - told.looked_at)
            for record in await read_range(session, address, queue, begin, behind):
                time_ms = record.raw.store_timestamp
                if (begin_ms or 0) <= time_ms <= (end_ms or time_ms) and condition.holds(record):
                    told.found.append(Found(record, queue.broker_name))
            told.looked_at += behind - begin
            begin = behind
            watch(told)
        at[name] = end
    return told


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
        if name not in names or not offset.isdecimal():
            raise InvalidValue(f"{part!r} is no place to go on from: give what a search printed")
        at[name] = int(offset)
    return at
