"""A message on its way out: checked, its properties spelled, its body compressed if that pays."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable
from datetime import datetime
from typing import TYPE_CHECKING, Final

from gantrymq.errors import InvalidValue, shown
from gantrymq.limits import PROPERTIES_BYTES_MAX
from gantrymq.model.message import Message
from gantrymq.wire import properties as names
from gantrymq.wire.codes import RequestCode
from gantrymq.wire.compression import compress
from gantrymq.wire.sysflag import Compression, with_compression

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

RESERVED: Final = frozenset(
    value
    for name, value in vars(names).items()
    if name.isupper() and isinstance(value, str) and value.isprintable()
) - {names.CHECK_IMMUNITY_TIME, names.MESSAGE_TYPE_REPLY, names.PRIORITY, names.LITE_TOPIC}
"""Properties that the system sets. A user sets those behind the minus."""
_ARGUMENTS: Final = {
    names.TAGS: "tags=",
    names.KEYS: "keys=",
    names.DELAY: "delay_level=",
    names.TIMER_DELIVER_MS: "deliver_at=",
    names.SHARDING_KEY: "Message(sharding_key=...)",
    names.WAIT: "Message(wait_stored=...)",
}
_KINDS: Final = {"zlib": Compression.ZLIB, "lz4": Compression.LZ4, "zstd": Compression.ZSTD}
THREAD_FROM_BYTES: Final = 128 * 1024
"""Bodies of this size are compressed in a thread: smaller ones are done before one has begun."""
SEND: Final = int(RequestCode.SEND_MESSAGE_V2)


class Outgoing:
    """What is sent of one message; the frame adds queue, time and opaque."""

    __slots__ = ("body", "code", "flag", "message_id", "properties", "sys_flag", "topic")

    def __init__(
        self,
        topic: str,
        message_id: str,
        properties: bytes,
        body: bytes,
        *,
        sys_flag: int = 0,
        flag: int = 0,
        code: int = SEND,
    ) -> None:
        self.topic = topic
        """Full name."""
        self.message_id = message_id
        self.properties = properties
        self.body = body
        self.sys_flag = sys_flag
        self.flag = flag
        self.code = code


def compression_kind(name: str | None) -> Compression | None:
    """Return the kind of compression that a producer's argument names.

    Raises:
        InvalidValue: there is no such kind.
    """
    if name is None:
        return None
    if name not in _KINDS:
        raise InvalidValue(
            f"compression is {shown(repr(name))}: say zlib, lz4, zstd, or None for none"
        )
    return _KINDS[name]


def check_body(body: object, bytes_max: int) -> bytes:
    """Return a body that can be sent.

    Raises:
        InvalidValue: it is not bytes, empty, or too large.
    """
    if isinstance(body, bytearray | memoryview):
        body = bytes(body)
    if not isinstance(body, bytes):
        raise InvalidValue(f"body is {shown(repr(body))}: give bytes, for example text.encode()")
    if not body:
        raise InvalidValue("body is empty: brokers refuse that, give at least one byte")
    if len(body) > bytes_max:
        raise InvalidValue(
            f"body has {len(body)} bytes: at most {bytes_max} can be sent (message_bytes_max,"
            " which is to agree with the broker's maxMessageSize)"
        )
    return body


def make_message(
    topic: str,
    body: bytes,
    tags: str | None,
    keys: str | Sequence[str],
    properties: Mapping[str, str] | None,
    delay_level: int,
    deliver_at: datetime | int | None,
) -> Message:
    """Return the message that the arguments of `Producer.send` make.

    Raises:
        InvalidValue: one of them cannot be.
    """
    return Message(
        topic=topic,
        body=body,
        tags=tags or None,
        keys=_keys(keys),
        properties=properties or {},
        delay_level=delay_level,
        deliver_at_ms=deliver_ms(deliver_at),
    )


def _keys(keys: str | Sequence[str]) -> tuple[str, ...]:
    if isinstance(keys, str):
        return (keys,)
    if not isinstance(keys, Iterable):
        raise InvalidValue(f"keys is {shown(repr(keys))}: give a text, or a list of them")
    return tuple(keys)


def deliver_ms(at: datetime | int | None) -> int | None:
    """Return a time of delivery in milliseconds since 1970.

    Raises:
        InvalidValue: it has no time zone, or is none.
    """
    if at is None:
        return None
    if isinstance(at, datetime):
        if at.tzinfo is None:
            raise InvalidValue(
                f"deliver_at is {at.isoformat()}, which has no time zone: give one, for example"
                " datetime.now(UTC) + timedelta(minutes=5)"
            )
        return int(at.timestamp() * 1000)
    if isinstance(at, bool) or not isinstance(at, int) or at < 0:
        raise InvalidValue(
            f"deliver_at is {shown(repr(at))}: give a datetime, or milliseconds since 1970"
        )
    return at


def check_properties(properties: Mapping[str, str]) -> None:
    """Refuse properties that the system sets itself.

    Raises:
        InvalidValue: one of them is such.
    """
    for name, value in properties.items():
        if not (isinstance(name, str) and isinstance(value, str)):
            raise InvalidValue(f"property {shown(repr(name))} is not text to text: make it so")
        if name in RESERVED:
            hint = _ARGUMENTS.get(name, "another name")
            raise InvalidValue(f"property {name!r} is the system's own: use {hint} instead")


def property_text(
    message: Message, message_id: str, namespace: str, extra: Mapping[str, str]
) -> bytes:
    """Return the property string of a message; `extra` are the system's own beside the usual.

    Raises:
        InvalidValue: they are too large, or not Unicode.
    """
    pairs = {names.UNIQ_KEY: message_id}
    if message.tags:
        pairs[names.TAGS] = message.tags
    if message.keys:
        pairs[names.KEYS] = " ".join(message.keys)
    if not message.wait_stored:
        pairs[names.WAIT] = "false"
    if message.delay_level:
        pairs[names.DELAY] = str(message.delay_level)
    elif message.deliver_at_ms is not None:
        pairs[names.TIMER_DELIVER_MS] = str(message.deliver_at_ms)
    if message.sharding_key:
        pairs[names.SHARDING_KEY] = message.sharding_key
    if namespace:
        pairs[names.INSTANCE_ID] = namespace
    if message.properties:
        check_properties(message.properties)
        pairs.update(message.properties)
    pairs.update(extra)
    return encoded(names.ENTRY_END.join(f"{name}\x01{value}" for name, value in pairs.items()))


def encoded(text: str) -> bytes:
    """Return a property string as bytes.

    Raises:
        InvalidValue: it is too large, or not Unicode.
    """
    try:
        found = text.encode()
    except UnicodeEncodeError as error:
        raise InvalidValue(f"a property is not Unicode: {error}") from None
    if len(found) > PROPERTIES_BYTES_MAX:
        raise InvalidValue(
            f"keys, tags and properties take {len(found)} bytes: at most {PROPERTIES_BYTES_MAX}"
            " can be stored with a message"
        )
    return found


async def compressed(body: bytes, kind: Compression) -> tuple[bytes, int]:
    """Return a body compressed, and the system flags that say so; as it is if that is no less."""
    if len(body) < THREAD_FROM_BYTES:
        packed = compress(body, kind)
    else:
        packed = await asyncio.to_thread(compress, body, kind)
    if len(packed) >= len(body):
        return body, 0
    return packed, with_compression(0, kind)
