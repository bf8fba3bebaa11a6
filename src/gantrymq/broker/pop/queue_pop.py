"""One queue of a pop: where to begin, what to take, and the check point of what was taken.

Owned by the event loop's task.
"""

from __future__ import annotations

import logging
import struct
from typing import TYPE_CHECKING, Final, NamedTuple

from gantrymq.broker.pop import handles
from gantrymq.broker.pop.offsets import QueueKey
from gantrymq.broker.pop.records import CheckPoint
from gantrymq.broker.stored_again import decode
from gantrymq.errors import GantryError
from gantrymq.kernel import kernel
from gantrymq.model.names import is_retry_topic
from gantrymq.store.status import GetStatus
from gantrymq.wire.properties import POP_CK, decode_properties, encode_properties

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from gantrymq.broker.filter.choice import Choice
    from gantrymq.broker.pop.parts import PopParts
    from gantrymq.kernel.interface import Buffer
    from gantrymq.store.get import Found

log = logging.getLogger(__name__)

FROM_LEAST: Final = 0
"""`initMode` of a group that begins at the least offset."""
_QUEUE_OFFSET: Final = struct.Struct(">20xq")
_MOVED: Final = {
    GetStatus.OFFSET_TOO_SMALL,
    GetStatus.OFFSET_OVERFLOW_BADLY,
    GetStatus.OFFSET_FOUND_NULL,
}
_PASSED: Final = {GetStatus.NO_MATCHED_MESSAGE, GetStatus.MESSAGE_WAS_REMOVING}
READS_MAX: Final = 32
"""Of a queue in one pop, while a filter lets nothing through."""
_END_ROOM: Final = 8
"""What the kernel wants to be free behind a record."""


class Share(NamedTuple):
    """What all queues of a pop have in common."""

    group: str
    pop_time: int
    invisible_ms: int
    revive_queue: int
    init_mode: int
    orderly: bool
    attempt: str | None
    who: str
    topic: str
    """That was asked for; what comes out of a retry topic is given out under its name."""


class Taken(NamedTuple):
    """What was taken from one queue."""

    topic: str
    queue_id: int
    rest: int
    """Messages that are left in it."""
    start: int = 0
    offsets: Sequence[int] = ()
    records: Sequence[Buffer] = ()
    order_info: str = ""
    log_end: int = 0
    """Behind the check point."""
    blocked_until: int | None = None
    """When the batch that is out may be handed out again, if that is in the way."""


class QueuePops:
    """Takes messages from queues, one taker at a time from each."""

    def __init__(self, parts: PopParts) -> None:
        self._parts = parts
        self._locked: set[QueueKey] = set()

    def take(
        self,
        share: Share,
        topic: str,
        queue_id: int,
        room: int,
        choose: Choice | None,
        done: Callable[[Taken], None],
    ) -> None:
        """Call `done` once with what was taken: now, or when the disk has been read."""
        key = QueueKey(share.group, topic, queue_id)
        if share.init_mode == FROM_LEAST or is_retry_topic(topic) or self._is_known(key):
            self._take(key, share, room, choose, done, is_young=False)
            return
        reads = self._parts.store.reads

        def failed(error: Exception) -> None:
            # The group begins with its next pop: where, must not be guessed.
            log.warning("%s: its first entry cannot be read: %s", key, error)
            done(Taken(topic, queue_id, 0))

        reads.questions.begin(
            lambda store: reads.is_young(store, topic, queue_id),
            lambda is_young: self._take(key, share, room, choose, done, is_young=is_young),
            failed,
        )

    def _is_known(self, key: QueueKey) -> bool:
        return self._parts.offsets.find(key) >= 0

    def _take(
        self,
        key: QueueKey,
        share: Share,
        room: int,
        choose: Choice | None,
        done: Callable[[Taken], None],
        *,
        is_young: bool,
    ) -> None:
        topic, queue_id = key.topic, key.queue_id
        most = self._parts.store.reads.max_offset(topic, queue_id)
        if key in self._locked:
            rest = (
                0
                if share.orderly
                else most - self._begin(key, share, is_young=is_young, note=False)
            )
            done(Taken(topic, queue_id, max(rest, 0)))
            return
        offset = self._begin(key, share, is_young=is_young, note=True)
        if share.orderly and self._parts.order.is_blocked(key, share.attempt):
            until = self._parts.order.free_at(key)
            done(Taken(topic, queue_id, 0, blocked_until=until))
            return
        if room <= 0 or offset == most:
            done(Taken(topic, queue_id, max(most - offset, 0)))
            return
        self._locked.add(key)
        self._read(key, share, offset, room, choose, done, READS_MAX)

    def _begin(self, key: QueueKey, share: Share, *, is_young: bool, note: bool) -> int:
        """Return the offset to take from; with `note` a reset is used up and a start committed.

        A group that is new begins at the front of a queue that is young (`StoreReading.is_young`).
        """
        parts = self._parts
        if note:
            reset = self._reset(key)
            if reset is not None:
                return reset
        offset = parts.offsets.find(key)
        if offset >= 0:
            return offset
        reads = parts.store.reads
        if share.init_mode == FROM_LEAST or is_retry_topic(key.topic):
            offset = reads.min_offset(key.topic, key.queue_id)
        elif is_young:
            offset = 0
        else:
            offset = max(reads.max_offset(key.topic, key.queue_id) - 1, 0)
        if note:
            parts.offsets.commit(key, offset, "pop begins")
        return offset

    def _reset(self, key: QueueKey) -> int | None:
        """Return where an operator has sent the group, once."""
        reset = self._parts.offsets.take_reset(key)
        if reset is not None:
            self._parts.order.clear(key)
        return reset

    def _read(
        self,
        key: QueueKey,
        share: Share,
        offset: int,
        room: int,
        choose: Choice | None,
        done: Callable[[Taken], None],
        reads_left: int,
    ) -> None:
        def found(result: Found) -> None:
            if result.trouble or reads_left == 0:
                pass
            elif result.status in _PASSED and offset < result.next_offset < result.max_offset:
                self._read(key, share, result.next_offset, room, choose, done, reads_left - 1)
                return
            elif result.status in _MOVED and result.next_offset != offset:
                log.warning("%s: offset %d is not there, %d is next", key, offset,
                            result.next_offset)  # fmt: skip
                self._parts.offsets.commit(key, result.next_offset, share.who)
                self._read(key, share, result.next_offset, room, choose, done, 0)
                return
            self._locked.discard(key)
            try:
                taken = self._noted(key, share, offset, result)
            except GantryError:
                log.exception("%s: what was read cannot be handed out", key)
                taken = Taken(key.topic, key.queue_id, max(result.max_offset - offset, 0))
            done(taken)

        self._parts.store.reads.begin_get(
            key.topic, key.queue_id, offset, room, choose, found, key.group
        )

    def _noted(self, key: QueueKey, share: Share, offset: int, found: Found) -> Taken:
        """Note what is handed out; nothing is, if that fails."""
        parts = self._parts
        rest = max(found.max_offset - found.next_offset, 0)
        if not found.records:
            if found.status in _PASSED and found.next_offset > offset:
                parts.offsets.move(key, found.next_offset, 0)
            return Taken(key.topic, key.queue_id, rest)
        offsets = [_QUEUE_OFFSET.unpack_from(record)[0] for record in found.records]
        log_end, order_info = 0, ""
        if share.orderly:
            counts = parts.order.handed_out(
                key, share.attempt, share.pop_time, share.invisible_ms, offsets
            )
            order_info = handles.order_info(
                key.topic, key.queue_id, counts, fresh=len(counts) < len(offsets)
            )
            parts.offsets.commit(key, offset, share.who)
        else:
            log_end = self._put_check_point(key, share, offset, offsets)
            parts.offsets.move(key, found.next_offset, log_end)
        parts.counts.pulled(
            share.group, key.topic, key.queue_id, found.messages, found.record_bytes
        )
        records = self._given_out(key, share, offset, found)
        return Taken(key.topic, key.queue_id, rest, offset, offsets, records, order_info, log_end)

    def _put_check_point(
        self, key: QueueKey, share: Share, offset: int, offsets: Sequence[int]
    ) -> int:
        parts = self._parts
        point = CheckPoint(
            bn=parts.settings.now.name,
            c=share.group,
            d=tuple(one - offset for one in offsets),
            it=share.invisible_ms,
            n=len(offsets),
            pt=share.pop_time,
            q=key.queue_id,
            so=offset,
            t=key.topic,
        )
        message = parts.maker.check_point(point, share.revive_queue, parts.clock.now_ms())
        return parts.put_timed(message)

    def _given_out(self, key: QueueKey, share: Share, offset: int, found: Found) -> list[Buffer]:
        """Return records as the client gets them: copies, for the log may go meanwhile.

        One of a retry topic is given out under the name of the topic itself; then it says, too,
        where it really was.
        """
        if key.topic == share.topic:
            return [bytes(record) for record in found.records]
        handle = handles.PopHandle(
            offset,
            share.pop_time,
            share.invisible_ms,
            share.revive_queue,
            self._parts.settings.now.name,
        )
        return [_renamed(record, handle, key, share.topic) for record in found.records]


def _renamed(raw: Buffer, handle: handles.PopHandle, key: QueueKey, topic: str) -> bytes:
    record = decode(raw)
    info = handles.extra_info(handle, key.topic, key.queue_id, record.queue_offset)
    properties = {POP_CK: info, **decode_properties(record.properties)}
    properties[POP_CK] = info
    record = record._replace(topic=topic.encode(), properties=encode_properties(properties))
    target = bytearray(kernel.record_bytes(record) + _END_ROOM)
    return bytes(target[: kernel.encode_record(target, 0, len(target), record)])
