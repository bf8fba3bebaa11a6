"""The send lane: ordinary sends go from the receive buffer into the log without leaving the kernel.

It decides nothing. What an ordinary send is stands in `lanes.SendLane`; for everything else the
run stops before the frame, with nothing of it done, and Python decides.
"""

from __future__ import annotations

import struct
from typing import TYPE_CHECKING, Final, NamedTuple

from gantrymq.errors import InvalidValue, ProtocolError
from gantrymq.kernel.reference.bounds import check_buffer, check_range, check_room
from gantrymq.kernel.reference.frames import frame_at
from gantrymq.kernel.reference.properties import entries, joined
from gantrymq.kernel.reference.records import encode_record, record_bytes
from gantrymq.kernel.reference.replies import encode_send_reply, printable
from gantrymq.kernel.reference.requests import decode_request
from gantrymq.kernel.values import (
    BLANK_BYTES_MIN,
    LaneStop,
    Record,
    SendRequest,
    SendRun,
    SendTurn,
)
from gantrymq.limits import (
    BATCH_MESSAGES_MAX,
    FRAME_BYTES_MAX,
    PROPERTIES_BYTES_MAX,
    QUEUES_MAX,
    TOPIC_BYTES_MAX,
)

if TYPE_CHECKING:
    from collections.abc import Sequence

    from gantrymq.kernel.interface import Buffer, WritableBuffer

_ORDINARY_SYS_FLAG: Final = 0x701
"""Compressed, and how; every other bit means work for Python."""
_OFFSET_MAX: Final = 2**62
_COUNT_MAX: Final = 2**31
_VERSION_MAX: Final = 32767
_INNER_BYTES_MIN: Final = 22
_SHARED_ENTRIES_MAX: Final = 16
_SHARED_BYTES_MAX: Final = 1024
"""Each message of a batch gets the request's properties; more than these are no ordinary batch."""


class _Message(NamedTuple):
    """One message of a send: the request's own, or one of its batch."""

    flag: int
    body: bytes
    properties: bytes


class _Send(NamedTuple):
    """An ordinary send, ready to be stored."""

    request: SendRequest
    topic: bytes
    messages: list[_Message]


class SendLane:
    """Frames in, records and replies out. Owned by one task; see `lanes.SendLane`."""

    def __init__(
        self,
        *,
        store_host: bytes,
        cluster: bytes,
        region: bytes,
        trace_on: bool,
        version: int,
        body_bytes_max: int,
        policy_names: Sequence[bytes],
        refuses_extra_fields: bool = False,
    ) -> None:
        if len(store_host) not in {8, 20}:
            raise InvalidValue(f"lane: store host has {len(store_host)} bytes, not 8 or 20")
        if not cluster or b"\x01" in cluster or b"\x02" in cluster:
            raise InvalidValue("lane: the cluster name must be plain text")
        printable("region", region)
        if not 0 <= version <= _VERSION_MAX:
            raise InvalidValue("lane: version must be between 0 and 32767")
        self.limit_bodies(body_bytes_max)
        self._store_host = store_host
        self._cluster = cluster
        self._region = region
        self._trace_on = trace_on
        self._version = version
        self._policy_names = frozenset(policy_names)
        self._refuses_extra_fields = refuses_extra_fields
        self._next: dict[bytes, list[int]] = {}
        self._counts: dict[bytes, tuple[int, int]] = {}

    def limit_bodies(self, body_bytes_max: int) -> None:
        """Take other sizes of bodies from now on."""
        if body_bytes_max < 1:
            raise InvalidValue("lane: body_bytes_max must be positive")
        self._body_bytes_max = body_bytes_max

    # -- topics ---------------------------------------------------------------------------------

    def open_topic(self, topic: bytes, next_offsets: Sequence[int]) -> None:
        """Take ordinary sends for `topic`; queue i gets `next_offsets[i]` next."""
        if not 1 <= len(topic) <= TOPIC_BYTES_MAX:
            raise InvalidValue(f"lane: topic of {len(topic)} bytes, not 1 to {TOPIC_BYTES_MAX}")
        offsets = list(next_offsets)
        if not 1 <= len(offsets) <= QUEUES_MAX or not all(0 <= n <= _OFFSET_MAX for n in offsets):
            raise InvalidValue("lane: next offsets must be 1 to 65536 numbers from 0 to 2**62")
        self._next[topic] = offsets

    def close_topic(self, topic: bytes) -> None:
        """Take no more sends for `topic`; nothing happens if it is not open."""
        self._next.pop(topic, None)

    def next_offsets(self, topic: bytes) -> list[int] | None:
        """Return the next queue offset of each queue, or None if the topic is not open."""
        offsets = self._next.get(topic)
        return None if offsets is None else list(offsets)

    def advance(self, topic: bytes, queue_id: int, count: int) -> int:
        """Reserve `count` queue offsets for records that Python writes; return the first."""
        offsets = self._next.get(topic)
        if offsets is None:
            raise InvalidValue(f"lane: topic {topic!r} is not open")
        if not 0 <= queue_id < len(offsets):
            raise InvalidValue(f"lane: topic {topic!r} has no queue {queue_id}")
        if not 0 <= count <= _COUNT_MAX:
            raise InvalidValue("lane: count must be between 0 and 2147483648")
        first = offsets[queue_id]
        offsets[queue_id] = first + count
        return first

    def take_counts(self) -> list[tuple[bytes, int, int]]:
        """Return (topic, messages, record bytes) stored since the last call, sorted by topic."""
        counts = sorted((topic, *count) for topic, count in self._counts.items())
        self._counts.clear()
        return counts

    # -- sends ----------------------------------------------------------------------------------

    def append(
        self,
        buffer: Buffer,
        start: int,
        end: int,
        log: WritableBuffer,
        position: int,
        limit: int,
        log_base: int,
        born_host: bytes,
        now_ms: int,
    ) -> SendRun:
        """Store the ordinary sends at the front of the buffer into `log[position:limit]`."""
        check_range(buffer, start, end)
        check_room(log, position, limit)
        if len(born_host) not in {8, 20}:
            raise InvalidValue(f"lane: born host has {len(born_host)} bytes, not 8 or 20")
        if not 0 <= log_base <= _OFFSET_MAX or not 0 <= now_ms <= _OFFSET_MAX:
            raise InvalidValue("lane: log_base and now_ms must be between 0 and 2**62")
        return self._walk(buffer, start, end, log, position, limit, log_base, born_host, now_ms)

    def append_each(
        self,
        buffer: Buffer,
        parts: Sequence[tuple[int, int, bytes]],
        log: WritableBuffer,
        position: int,
        limit: int,
        log_base: int,
        now_ms: int,
    ) -> SendTurn:
        """Do the same with the ranges of several connections, one after the other."""
        check_buffer(buffer)
        check_room(log, position, limit)
        if not 0 <= log_base <= _OFFSET_MAX or not 0 <= now_ms <= _OFFSET_MAX:
            raise InvalidValue("lane: log_base and now_ms must be between 0 and 2**62")
        for start, end, born_host in parts:
            check_range(buffer, start, end)
            if len(born_host) not in {8, 20}:
                raise InvalidValue(f"lane: born host has {len(born_host)} bytes, not 8 or 20")
        runs: list[tuple[int, bytes]] = []
        requests, messages, stop = 0, 0, LaneStop.DRAINED
        for start, end, born_host in parts:
            try:
                run = self._walk(
                    buffer, start, end, log, position, limit, log_base, born_host, now_ms
                )
            except ProtocolError:
                run = SendRun(start, position, 0, 0, b"", LaneStop.POLICY)
            runs.append((run.consumed, run.replies))
            position, stop = run.log_position, run.stop
            requests, messages = requests + run.requests, messages + run.messages
            if stop is not LaneStop.DRAINED:
                break
        return SendTurn(runs, position, requests, messages, stop)

    def _walk(
        self,
        buffer: Buffer,
        start: int,
        end: int,
        log: WritableBuffer,
        position: int,
        limit: int,
        log_base: int,
        born_host: bytes,
        now_ms: int,
    ) -> SendRun:
        consumed, requests, messages, replies = start, 0, 0, bytearray()
        while True:
            send = self._ordinary_send(buffer, consumed, end, is_first=consumed == start)
            if isinstance(send, LaneStop):
                stop = send
                break
            records = self._records(send, log_base + position, born_host, now_ms)
            needed = sum(map(record_bytes, records)) + BLANK_BYTES_MIN
            if needed > limit - position:
                # What not even an empty file could hold is not the log's business.
                stop = LaneStop.LOG_FULL if needed <= limit else LaneStop.POLICY
                break
            begun_at = position
            for record in records:
                position = encode_record(log, position, limit, record)
            self._count(send, len(records), position - begun_at)
            if not send.request.oneway:
                replies += self._reply(send.request, records)
            consumed = send.request.body_end
            requests += 1
            messages += len(records)
        return SendRun(consumed, position, requests, messages, bytes(replies), stop)

    def _ordinary_send(
        self, buffer: Buffer, position: int, end: int, *, is_first: bool
    ) -> _Send | LaneStop:
        """Return the send at `position` if it is an ordinary one, or why the run stops here."""
        try:
            frame = frame_at(buffer, position, end, FRAME_BYTES_MAX)
        except ProtocolError:
            if is_first:
                raise
            return LaneStop.POLICY
        if frame is None:
            return LaneStop.DRAINED
        request = decode_request(buffer, frame)
        if not isinstance(request, SendRequest) or not self._is_ordinary(request):
            return LaneStop.POLICY
        body = bytes(buffer[request.body_start : request.body_end])
        messages = self._messages(request, body)
        if not messages or not all(_is_plain(m.properties) for m in messages):
            return LaneStop.POLICY
        return _Send(request, request.topic.encode(), messages)

    def _is_ordinary(self, request: SendRequest) -> bool:
        queues = len(self._next.get(request.topic.encode(), ()))
        pairs = entries(request.properties)
        return (
            0 <= request.queue_id < queues
            and not request.sys_flag & ~_ORDINARY_SYS_FLAG
            and 0 < request.body_end - request.body_start <= self._body_bytes_max
            and not (request.batch and len(pairs) > _SHARED_ENTRIES_MAX)
            and not (request.batch and len(request.properties) > _SHARED_BYTES_MAX)
            and not (request.extra_fields and self._refuses_extra_fields)
            and self._policy_names.isdisjoint(name for name, _value in pairs)
            and all(value.lower() == b"true" for name, value in pairs if name == b"WAIT")
        )

    def _messages(self, request: SendRequest, body: bytes) -> list[_Message]:
        """Return what is to be stored for a request; nothing if it is no batch as it should be."""
        cluster = (b"CLUSTER", self._cluster)
        shared = [pair for pair in entries(request.properties) if pair[0] != b"CLUSTER"]
        if not request.batch:
            kept = [pair for pair in shared if pair[0] != b"WAIT"]
            return [_Message(request.flag, body, joined([*kept, cluster]))]
        messages: list[_Message] = []
        for inner in split_batch(body):
            own = entries(inner.properties)
            names = {name for name, _value in own}
            added = [pair for pair in [*shared, cluster] if pair[0] not in names]
            messages.append(inner._replace(properties=joined([*own, *added])))
        return messages

    def _records(self, send: _Send, log_offset: int, born_host: bytes, now_ms: int) -> list[Record]:
        request = send.request
        queue_offset = self._next[send.topic][request.queue_id]
        born_ipv6 = 0x10 if len(born_host) == 20 else 0
        store_ipv6 = 0x20 if len(self._store_host) == 20 else 0
        records: list[Record] = []
        for message in send.messages:
            record = Record(
                queue_id=request.queue_id,
                flag=message.flag,
                queue_offset=queue_offset + len(records),
                log_offset=log_offset,
                sys_flag=request.sys_flag | born_ipv6 | store_ipv6,
                born_timestamp=request.born_timestamp,
                born_host=born_host,
                store_timestamp=now_ms,
                store_host=self._store_host,
                reconsume_times=request.reconsume_times,
                prepared_offset=0,
                body=message.body,
                topic=send.topic,
                properties=message.properties,
            )
            records.append(record)
            log_offset += record_bytes(record)
        return records

    def _count(self, send: _Send, messages: int, stored_bytes: int) -> None:
        self._next[send.topic][send.request.queue_id] += messages
        earlier_messages, earlier_bytes = self._counts.get(send.topic, (0, 0))
        self._counts[send.topic] = (earlier_messages + messages, earlier_bytes + stored_bytes)

    def _reply(self, request: SendRequest, records: list[Record]) -> bytes:
        ids = b",".join(
            (record.store_host + struct.pack(">q", record.log_offset)).hex().upper().encode()
            for record in records
        )
        return encode_send_reply(
            request.opaque,
            request.serialize_type,
            self._version,
            request.queue_id,
            records[0].queue_offset,
            ids,
            self._region,
            self._trace_on,
        )


def _is_plain(properties: bytes) -> bool:
    """Tell whether properties can be stored without a look: a zero may mean a torn record."""
    return len(properties) <= PROPERTIES_BYTES_MAX and 0 not in properties


def split_batch(body: bytes) -> list[_Message]:
    """Return the messages of a batch body; none if it is not well-formed.

    Each: i32 total, i32 magic, i32 CRC, i32 flag, i32 n, body of n, i16 n, properties of n. Magic
    and CRC are zero from every client, and nobody reads them.
    """
    messages: list[_Message] = []
    at = 0
    while at < len(body):
        # What the body and the properties of this message can have at most.
        spare = len(body) - at - _INNER_BYTES_MIN
        if spare < 0 or len(messages) == BATCH_MESSAGES_MAX:
            return []
        total, _magic, _crc, flag, body_bytes = struct.unpack_from(">iiiii", body, at)
        if not 0 < body_bytes <= spare:
            return []
        properties_at = at + _INNER_BYTES_MIN + body_bytes
        (properties_bytes,) = struct.unpack_from(">h", body, properties_at - 2)
        if not 0 <= properties_bytes <= spare - body_bytes:
            return []
        if total != _INNER_BYTES_MIN + body_bytes + properties_bytes:
            return []
        message_end = properties_at + properties_bytes
        messages.append(
            _Message(flag, body[at + 20 : properties_at - 2], body[properties_at:message_end])
        )
        at = message_end
    return messages
