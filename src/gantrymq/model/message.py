"""A message as an application gives it, and as a broker gives it back.

`Message` is what someone wants to send: its tags, keys and delay have fields of their own, and
`properties` holds the application's additions only. `StoredMessage` is one record: `properties`
holds everything that was stored with it, and the fields are views of it where they overlap. How
properties are spelled on the wire is `wire`'s business.
"""

from collections.abc import Mapping
from ipaddress import ip_address
from typing import Final

import msgspec

from gantrymq.errors import InvalidValue
from gantrymq.model import names
from gantrymq.model.queue import LogOffset, QueueId, QueueOffset

DELAY_LEVELS_MAX: Final = 18
"""Levels of an unchanged `messageDelayLevel`; brokers cut higher ones to their highest."""
_SEPARATORS: Final = "\x01\x02"
_PORT_MAX: Final = 65535
_LOG_OFFSET_MAX: Final = 2**63 - 1


class Host(msgspec.Struct, frozen=True, order=True):
    """An address and a port; IPv4 or IPv6, never a name."""

    address: str
    port: int

    def __post_init__(self) -> None:
        """Refuse what has no place in a record."""
        try:
            ip_address(self.address)
        except ValueError:
            raise InvalidValue(
                f"{self.address[:64]!r} is not an IP address: give one, not a host name"
            ) from None
        if not 0 <= self.port <= _PORT_MAX:
            raise InvalidValue(f"{self.port} is not a port: give 0 to {_PORT_MAX}")

    @property
    def packed(self) -> bytes:
        """Return the address in network order, 4 or 16 bytes."""
        return ip_address(self.address).packed

    @property
    def text(self) -> str:
        """Return `address:port`, as routes and headers spell it."""
        return f"{self.address}:{self.port}"


class OffsetId(msgspec.Struct, frozen=True, order=True):
    """The id that a broker gives: where the record is. Its text is hexadecimal, 32 or 56 digits."""

    host: Host
    log_offset: LogOffset

    @property
    def text(self) -> str:
        """Return the id as clients know it."""
        tail = self.host.port.to_bytes(4) + self.log_offset.to_bytes(8)
        return (self.host.packed + tail).hex().upper()

    @classmethod
    def parse(cls, text: str) -> "OffsetId":
        """Read an id.

        Raises:
            InvalidValue: it is not one; a client's own message id, for example.
        """
        try:
            data = bytes.fromhex(text) if text.isalnum() else b""
        except ValueError:
            data = b""
        if len(data) not in {16, 28}:
            raise InvalidValue(
                f"an offset message id has 32 or 56 hexadecimal digits, not {text[:64]!r}"
            )
        address, port, offset = data[:-12], data[-12:-8], data[-8:]
        log_offset = int.from_bytes(offset)
        if log_offset > _LOG_OFFSET_MAX:
            raise InvalidValue(f"the log offset of message id {text!r} is negative")
        return cls(Host(str(ip_address(address)), int.from_bytes(port)), LogOffset(log_offset))


def _shown(value: object) -> str:
    """Return a value as an error may repeat it."""
    return repr(value)[:64]


def _is_whole(value: object) -> bool:
    return isinstance(value, int) and not isinstance(value, bool)


class Message(msgspec.Struct, frozen=True, kw_only=True):
    """A message to be sent."""

    topic: str
    body: bytes
    tags: str | None = None
    """One tag; subscribers filter by it."""
    keys: tuple[str, ...] = ()
    """What it can be looked up by later."""
    properties: Mapping[str, str] = {}
    flag: int = 0
    """The application's own 32 bits."""
    delay_level: int = 0
    deliver_at_ms: int | None = None
    """5.x: deliver at this time, in milliseconds since 1970."""
    sharding_key: str | None = None
    """Ordered messages: same key, same queue."""
    wait_stored: bool = True
    """Whether the answer waits for disk and slave as the broker's role asks."""

    def __post_init__(self) -> None:
        """Refuse what could be sent but not read back."""
        names.check_topic(self.topic)
        if not isinstance(self.body, bytes | bytearray | memoryview):
            raise InvalidValue(f"body is {_shown(self.body)}: give bytes, such as text.encode()")
        if not (_is_whole(self.flag) and -(2**31) <= self.flag < 2**31):
            raise InvalidValue(f"flag is {_shown(self.flag)}: give a number of 32 bits")
        self._check_delay()
        keys: object = self.keys
        if isinstance(keys, str):  # one key, as `send` takes it, and not its characters
            msgspec.structs.force_setattr(self, "keys", (keys,))
        self._check_texts()

    def _check_delay(self) -> None:
        if not _is_whole(self.delay_level) or self.delay_level < 0:
            raise InvalidValue(
                f"delay level is {_shown(self.delay_level)}: give 1 to 18, or 0 for no delay"
            )
        if self.deliver_at_ms is None:
            return
        if not _is_whole(self.deliver_at_ms):
            raise InvalidValue(
                f"deliver_at_ms is {_shown(self.deliver_at_ms)}: give milliseconds since 1970"
            )
        if self.delay_level:
            raise InvalidValue("a delay level and a time of delivery exclude each other: give one")

    def _check_texts(self) -> None:
        if not isinstance(self.keys, tuple | list):
            raise InvalidValue(f"keys is {_shown(self.keys)}: give a tuple of texts")
        for key in self.keys:
            if not isinstance(key, str) or not key or any(sign.isspace() for sign in key):
                raise InvalidValue(
                    f"key {_shown(key)} is no text, empty or has blanks: give several keys instead"
                )
        if not isinstance(self.properties, Mapping):
            raise InvalidValue(f"properties is {_shown(self.properties)}: give a dict of texts")
        for name, value in self.properties.items():
            if not name or not value:
                raise InvalidValue(f"property {_shown(name)} is empty: leave it out")
            if not (isinstance(name, str) and isinstance(value, str)):
                raise InvalidValue(f"property {_shown(name)} is not text to text: make it so")
        for what, one in (("tags", self.tags), ("sharding_key", self.sharding_key)):
            if one is not None and not isinstance(one, str):
                raise InvalidValue(f"{what} is {_shown(one)}: give text")
        texts = (self.tags or "", self.sharding_key or "", *self.keys)
        for text in (*texts, *self.properties, *self.properties.values()):
            if any(sign in text for sign in _SEPARATORS):
                raise InvalidValue(
                    f"{text[:64]!r} contains the control characters 1 or 2: remove them"
                )


class StoredMessage(msgspec.Struct, frozen=True, kw_only=True):
    """A record of the commit log with a broker's answers to: which, where and when."""

    topic: str
    body: bytes
    """As stored: still compressed if `system_flags` says so."""
    queue_id: QueueId
    queue_offset: QueueOffset
    log_offset: LogOffset
    born_time_ms: int
    born_host: Host
    store_time_ms: int
    store_host: Host
    properties: Mapping[str, str] = {}
    tags: str | None = None
    keys: tuple[str, ...] = ()
    unique_id: str | None = None
    """The id that the client gave it; messages from some clients have none."""
    flag: int = 0
    system_flags: int = 0
    body_crc: int = 0
    reconsume_times: int = 0
    prepared_offset: int = 0
    """Transactions: where the half message is in its queue."""
    stored_bytes: int = 0
    broker_name: str | None = None
    """Known to whoever pulled it; not part of the record."""

    @property
    def offset_id(self) -> OffsetId:
        """Return the id under which the broker finds the record again."""
        return OffsetId(self.store_host, self.log_offset)

    @property
    def message_id(self) -> str:
        """Return the id that applications see: the client's own where there is one."""
        return self.unique_id or self.offset_id.text
