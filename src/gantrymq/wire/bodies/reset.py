"""Where members of a group shall go on reading (220 to clients, 222 back to the admin).

C++ clients read a list of queues with their offsets; all others read a map keyed by queue. Reading
takes both.
"""

from collections.abc import Mapping
from typing import Final, cast

from gantrymq.model.queue import MessageQueue, QueueId, QueueOffset
from gantrymq.wire import fastjson
from gantrymq.wire.bodies.codec import JsonBody
from gantrymq.wire.bodies.reading import read
from gantrymq.wire.bodies.schema import Body


class ResetOffsets(Body, frozen=True, kw_only=True):
    """The new offset of each queue."""

    offset_table: Mapping[MessageQueue, QueueOffset] = {}


class _CppOffset(Body, frozen=True, kw_only=True):
    """One queue in the C++ form."""

    broker_name: str
    queue_id: QueueId
    topic: str
    offset: QueueOffset


class _CppResetOffsets(Body, frozen=True, kw_only=True):
    """All queues in the C++ form."""

    offset_table: tuple[_CppOffset, ...] = ()


_CPP: Final = JsonBody(_CppResetOffsets)


class ResetOffsetsBody(JsonBody[ResetOffsets]):
    """Reads both forms, writes the one that Java and Go read."""

    __slots__ = ()

    def decode(self, body: bytes) -> ResetOffsets:
        """Return the offsets.

        Raises:
            ContentError: it is neither form; names the field.
        """
        raw = fastjson.parse(body)
        if not (isinstance(raw, dict) and isinstance(raw.get("offsetTable"), list)):
            return cast("ResetOffsets", read(ResetOffsets, raw, "body"))
        listed = cast("_CppResetOffsets", read(_CppResetOffsets, raw, "body"))
        return ResetOffsets(
            offset_table={
                MessageQueue(item.topic, item.broker_name, item.queue_id): item.offset
                for item in listed.offset_table
            }
        )

    def encode_for_cpp(self, value: ResetOffsets) -> bytes:
        """Return the form that C++ clients read."""
        items = tuple(
            _CppOffset(
                broker_name=queue.broker_name,
                queue_id=queue.queue_id,
                topic=queue.topic,
                offset=offset,
            )
            for queue, offset in sorted(value.offset_table.items())
        )
        return _CPP.encode(_CppResetOffsets(offset_table=items))


RESET_OFFSETS: Final = ResetOffsetsBody(ResetOffsets)
