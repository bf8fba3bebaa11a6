"""ACK_MESSAGE, BATCH_ACK_MESSAGE and CHANGE_MESSAGE_INVISIBLETIME: what becomes of what is out.

An acknowledgement is stored before it is answered. Asking for more time is a new check point of one
message, and the acknowledgement of the old one. Orderly pops have no check points: theirs is noted
in `OrderInfo`, and the group's offset follows.

Owned by the event loop's task.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from gantrymq.broker.answers import answer, refusal
from gantrymq.broker.pop.handles import ORDERLY, PopHandle, parse_handle, real_topic
from gantrymq.broker.pop.offsets import QueueKey
from gantrymq.broker.pop.order import ILLEGAL
from gantrymq.broker.pop.records import AckRecord, CheckPoint
from gantrymq.broker.storing import not_stored
from gantrymq.errors import ContentError
from gantrymq.wire.bodies.assignment import BATCH_ACK
from gantrymq.wire.headers.pop import (
    AckMessageRequest,
    ChangeInvisibleTimeRequest,
    ChangeInvisibleTimeResponse,
)
from gantrymq.wire.response_errors import InvalidParameter, MessageIllegal, NoMessage

if TYPE_CHECKING:
    from gantrymq.broker.pop.parts import PopParts
    from gantrymq.store.status import PutStatus
    from gantrymq.wire.bodies.assignment import BatchAck
    from gantrymq.wire.command import Command
    from gantrymq.wire.peer import Answer, Peer, Pending

BATCH_OFFSETS_MAX: Final = 65536
"""Bits of one batch acknowledgement that are looked at."""


class Acking:
    """Takes acknowledgements."""

    def __init__(self, parts: PopParts) -> None:
        self._parts = parts

    # -- one ------------------------------------------------------------------------------------

    def ack(self, request: Command, peer: Peer) -> Pending:
        """Note that a message is done with.

        Raises:
            ResponseError: there is no such message.
        """
        header = AckMessageRequest.decode(request.fields)
        parts = self._parts
        parts.check_queue(header.topic, header.queue_id)
        self._check_offset(header.topic, header.queue_id, header.offset, last=True)
        handle = parse_handle(header.extra_info)
        parts.check_handle(handle.revive_queue, handle.revive_time)
        key = QueueKey(header.consumer_group, header.topic, header.queue_id)
        if handle.revive_queue == ORDERLY:
            self._ack_orderly(key, header.offset, handle.pop_time, peer.address)
            return answer(request)
        parts.storing.check_room()
        return self._when_safe(request, self._put_ack(key, handle, [header.offset]), {})

    def _check_offset(self, topic: str, queue_id: int, offset: int, *, last: bool) -> None:
        reads = self._parts.store.reads
        least, most = reads.min_offset(topic, queue_id), reads.max_offset(topic, queue_id)
        if not least <= offset < most + last:
            raise NoMessage(
                f"offset is illegal, key:{topic}@{queue_id}, commit:{offset}, store:{least}~{most}"
            )

    def _put_ack(self, key: QueueKey, handle: PopHandle, offsets: list[int]) -> int:
        """Store an acknowledgement; return the log offset behind it."""
        parts = self._parts
        is_one = len(offsets) == 1
        ack = AckRecord(
            ao=offsets[0] if is_one else -1,
            aol=None if is_one else tuple(offsets),
            bn=handle.broker_name,
            c=key.group,
            pt=handle.pop_time,
            q=key.queue_id,
            so=handle.start_offset,
            t=key.topic,
        )
        now_ms = parts.clock.now_ms()
        return parts.put_timed(
            parts.maker.ack(ack, handle.revive_queue, handle.revive_time, now_ms)
        )

    def _ack_orderly(self, key: QueueKey, offset: int, pop_time: int, who: str) -> None:
        parts = self._parts
        if offset < parts.offsets.find(key):
            return
        following = parts.order.done(key, offset, pop_time)
        if following == ILLEGAL:
            raise MessageIllegal(
                f"offset is illegal, {key.topic}@{key.group}@{key.queue_id}: {offset} is not out"
            )
        if following >= 0:
            if not parts.offsets.has_reset(key):
                parts.offsets.commit(key, following, who)
            if not parts.order.is_blocked(key, None):
                parts.polling.wake(key)

    # -- several --------------------------------------------------------------------------------

    def batch_ack(self, request: Command, peer: Peer) -> Pending:
        """Note that several messages are done with.

        Raises:
            ResponseError: it names none.
        """
        body = BATCH_ACK.decode(request.body) if request.body else None
        if body is None or not body.acks:
            raise NoMessage("the batch acknowledges nothing")
        self._parts.storing.check_room()
        end = 0
        for ack in body.acks:
            end = max(end, self._take_batch(ack, body.broker_name, peer))
        return self._when_safe(request, end, {}) if end else answer(request)

    def _take_batch(self, ack: BatchAck, broker_name: str, peer: Peer) -> int:
        """Take one of them; return the log offset behind it, or 0."""
        parts = self._parts
        parts.check_handle(ack.revive_queue_id, ack.pop_time + ack.invisible_time)
        if min(ack.start_offset, ack.pop_time, ack.invisible_time) < 0:
            raise ContentError("body.acks", "an offset or a time is negative")
        topic = real_topic(ack.topic, ack.group, ack.retry)
        key = QueueKey(ack.group, topic, ack.queue_id)
        reads = parts.store.reads
        least, most = reads.min_offset(topic, ack.queue_id), reads.max_offset(topic, ack.queue_id)
        bits = int.from_bytes(ack.bits[: BATCH_OFFSETS_MAX // 8], "little")
        offsets = [
            ack.start_offset + place
            for place in range(bits.bit_length())
            if bits >> place & 1 and least <= ack.start_offset + place <= most
        ]
        if ack.revive_queue_id == ORDERLY:
            for offset in offsets:
                self._ack_orderly(key, offset, ack.pop_time, peer.address)
            return 0
        if not offsets:
            return 0
        handle = PopHandle(
            ack.start_offset, ack.pop_time, ack.invisible_time, ack.revive_queue_id, broker_name
        )
        return self._put_ack(key, handle, offsets)

    # -- more time ------------------------------------------------------------------------------

    def change_invisible(self, request: Command, _peer: Peer) -> Pending:
        """Let a message stay out for another time than was said.

        Raises:
            ResponseError: there is no such message.
        """
        header = ChangeInvisibleTimeRequest.decode(request.fields)
        parts = self._parts
        parts.check_queue(header.topic, header.queue_id)
        self._check_offset(header.topic, header.queue_id, header.offset, last=False)
        longest_ms = parts.settings.now.timer_delay_max_s * 1000
        if not 0 <= header.invisible_time <= longest_ms:
            raise InvalidParameter(
                f"invisibleTime {header.invisible_time} is not 0 to {longest_ms} ms"
            )
        handle = parse_handle(header.extra_info)
        parts.check_handle(handle.revive_queue, handle.revive_time)
        key = QueueKey(header.consumer_group, header.topic, header.queue_id)
        now_ms = parts.clock.now_ms()
        if handle.revive_queue == ORDERLY:
            if header.offset < parts.offsets.find(key):
                return answer(request)
            visible_ms = now_ms + header.invisible_time
            parts.order.change_visible(key, header.offset, handle.pop_time, visible_ms)
            parts.polling.wake(key)
            return answer(
                request,
                fields=_changed(handle.pop_time, visible_ms - handle.pop_time, ORDERLY),
            )
        parts.storing.check_room()
        point = CheckPoint(
            bn=handle.broker_name,
            c=key.group,
            d=(0,),
            it=header.invisible_time,
            n=1,
            pt=now_ms,
            q=key.queue_id,
            so=header.offset,
            sp=bool(header.suspend),
            t=key.topic,
        )
        parts.put_timed(parts.maker.check_point(point, handle.revive_queue, now_ms))
        end = self._put_ack(key, handle, [header.offset])
        return self._when_safe(
            request, end, _changed(now_ms, header.invisible_time, handle.revive_queue)
        )

    def _when_safe(self, request: Command, end: int, fields: dict[str, str]) -> Pending:
        """Answer when the log is safe up to an offset."""
        store = self._parts.store

        def outcome(status: PutStatus) -> Answer:
            if status.is_stored:
                return answer(request, fields=fields)
            return refusal(request, not_stored(status, store))

        return self._parts.storing.wait(end, outcome)


def _changed(pop_time: int, invisible_ms: int, revive_queue: int) -> dict[str, str]:
    return ChangeInvisibleTimeResponse(
        pop_time=pop_time, invisible_time=invisible_ms, revive_qid=revive_queue
    ).encode()
