"""The body of a batch: several messages of one topic and queue in one send.

    i32 total | i32 magic | i32 CRC | i32 flag | i32 n | body of n | i16 n | properties of n

once for each message, back to back. `total` is 22 + body + properties and must be right, since a
reader that trusts the inner lengths and one that trusts the total must find the same messages.
Magic and CRC are zero from every client and read by nobody. A message with an empty body has the
right form; whether it may be stored is the broker's question.
"""

from __future__ import annotations

import struct
from typing import TYPE_CHECKING, Final, NamedTuple

from gantrymq.errors import InvalidValue, RecordError
from gantrymq.limits import BATCH_MESSAGES_MAX, PROPERTIES_BYTES_MAX

if TYPE_CHECKING:
    from collections.abc import Sequence

_HEAD: Final = struct.Struct(">iiiii")
_INT16: Final = struct.Struct(">h")
_OVERHEAD: Final = _HEAD.size + _INT16.size


class BatchMessage(NamedTuple):
    """One message of a batch."""

    flag: int
    body: bytes
    properties: bytes
    """A property string; see `properties`."""


def encode_batch(messages: Sequence[BatchMessage]) -> bytes:
    """Return the body of a batch.

    Raises InvalidValue for no messages or too many, too long properties, a flag over 32 bits.
    """
    if not 0 < len(messages) <= BATCH_MESSAGES_MAX:
        raise InvalidValue(f"a batch of {len(messages)} messages: 1 to {BATCH_MESSAGES_MAX} can be")
    parts: list[bytes] = []
    for index, message in enumerate(messages):
        if len(message.properties) > PROPERTIES_BYTES_MAX:
            raise InvalidValue(
                f"batch[{index}]: {len(message.properties)} bytes of properties;"
                f" at most {PROPERTIES_BYTES_MAX} can be stored"
            )
        total = _OVERHEAD + len(message.body) + len(message.properties)
        try:
            parts.append(_HEAD.pack(total, 0, 0, message.flag, len(message.body)))
        except struct.error as error:
            raise InvalidValue(f"batch[{index}]: {error}") from error
        parts += [message.body, _INT16.pack(len(message.properties)), message.properties]
    return b"".join(parts)


def decode_batch(body: bytes) -> list[BatchMessage]:
    """Return the messages of a batch body.

    Raises RecordError naming the message and its length that is wrong: `batch[3].bodyLength`.
    """
    if not body:
        raise RecordError("batch", "is empty")
    messages: list[BatchMessage] = []
    position = 0
    while position < len(body):
        if len(messages) == BATCH_MESSAGES_MAX:
            raise RecordError("batch", f"has more than {BATCH_MESSAGES_MAX} messages")
        message, position = _decode_message(body, position, f"batch[{len(messages)}]")
        messages.append(message)
    return messages


def _decode_message(body: bytes, start: int, place: str) -> tuple[BatchMessage, int]:
    left = len(body) - start
    if left < _OVERHEAD:
        raise RecordError(f"{place}.total", f"{left} bytes are left, of at least {_OVERHEAD}")
    total, _magic, _crc, flag, body_bytes = _HEAD.unpack_from(body, start)
    if not _OVERHEAD <= total <= left:
        raise RecordError(f"{place}.total", f"{total} is not between {_OVERHEAD} and {left}")
    if not 0 <= body_bytes <= total - _OVERHEAD:
        raise RecordError(f"{place}.bodyLength", f"{body_bytes} in a message of {total} bytes")
    body_start = start + _HEAD.size
    body_end = body_start + body_bytes
    (properties_bytes,) = _INT16.unpack_from(body, body_end)
    if properties_bytes != total - _OVERHEAD - body_bytes:
        raise RecordError(
            f"{place}.propertiesLength",
            f"{properties_bytes} beside a body of {body_bytes} in a message of {total} bytes",
        )
    end = start + total
    message = BatchMessage(flag, body[body_start:body_end], body[body_end + _INT16.size : end])
    return message, end
