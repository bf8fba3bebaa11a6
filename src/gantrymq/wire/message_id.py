"""Message ids: the one a broker gives, and the one a client gives. Both are hexadecimal text.

    offset id    address 4 or 16 | port 4 | log offset 8                        by the broker
    unique key   address 4 or 16 | pid 2 | process 4 | month ms 4 | count 2     by the client

Brokers and Java clients write upper case; the Go client writes parts of its keys in lower case,
so both are read. A unique key is only an agreement among clients: servers never look inside. The
month is that of UTC here, while Java takes the machine's zone; it only spreads keys, and a reader
gets the time to within that difference.
"""

from __future__ import annotations

import binascii
import struct
from datetime import UTC, datetime
from ipaddress import ip_address
from typing import TYPE_CHECKING, Final

import msgspec

from gantrymq.errors import InvalidValue
from gantrymq.model.message import OffsetId

if TYPE_CHECKING:
    from gantrymq.clock import Clock

__all__ = ["OffsetId", "UniqueKey", "UniqueKeys", "offset_id_text"]

_TAIL: Final = struct.Struct(">HIIH")
_KEY_BYTES: Final = frozenset({4 + _TAIL.size, 16 + _TAIL.size})
_UINT16: Final = 0xFFFF
_UINT32: Final = 0xFFFFFFFF
_HEX: Final = tuple(f"{number:02X}" for number in range(256))
"""Looking up two digits is quicker than formatting a number."""


def offset_id_text(store_host: bytes, log_offset: int) -> str:
    """Return the offset id of a record, from the bytes of its store host."""
    return (store_host + log_offset.to_bytes(8, signed=True)).hex().upper()


class UniqueKey(msgspec.Struct, frozen=True):
    """What a client wrote into a unique key."""

    address: str
    pid: int
    """The low 16 bits."""
    process: int
    """Tells apart processes of the same pid; Java takes the hash of a class loader."""
    month_ms: int
    count: int

    @property
    def text(self) -> str:
        """Return the key as it stands in the property UNIQ_KEY.

        Raises InvalidValue for a number that does not fit its place, or an address that is none.
        """
        try:
            tail = _TAIL.pack(self.pid, self.process, self.month_ms, self.count)
            return (ip_address(self.address).packed + tail).hex().upper()
        except (struct.error, ValueError) as error:
            raise InvalidValue(f"{self} makes no unique key: {error}") from error

    @classmethod
    def parse(cls, text: str) -> UniqueKey:
        """Read a key of 32 or 56 digits in any case.

        Raises InvalidValue for any other text.
        """
        try:
            data = binascii.unhexlify(text)
        except ValueError:
            data = b""
        if len(data) not in _KEY_BYTES:
            raise InvalidValue(f"a unique key has 32 or 56 hexadecimal digits, not {text[:64]!r}")
        address = str(ip_address(data[: -_TAIL.size]))
        pid, process, month_ms, count = _TAIL.unpack_from(data, len(data) - _TAIL.size)
        return cls(address, pid, process, month_ms, count)

    def made_at_ms(self, now_ms: int) -> int:
        """Return when the key was made, if that is less than a month before `now_ms`."""
        start = _month_start_ms(now_ms)
        if start + self.month_ms > now_ms:
            start = _month_start_ms(start - 1)
        return start + self.month_ms


class UniqueKeys:
    """Makes unique keys; used by one task. `process` is a random number chosen once per process."""

    __slots__ = (
        "_clock",
        "_count",
        "_head",
        "_head_ms",
        "_month_end_ms",
        "_month_start_ms",
        "_prefix",
    )

    def __init__(self, address: str, pid: int, process: int, clock: Clock) -> None:
        head = struct.pack(">HI", pid & _UINT16, process & _UINT32)
        self._prefix = (ip_address(address).packed + head).hex().upper()
        self._clock = clock
        self._count = 0
        self._month_start_ms = 0
        self._month_end_ms = 0
        self._head = ""
        self._head_ms = -1

    def next(self) -> str:
        """Return a key that no other call has returned, here or elsewhere."""
        return self.at(self._clock.now_ms())

    def at(self, now_ms: int) -> str:
        """Return the next key for a time that the caller has asked for already."""
        if now_ms != self._head_ms:
            self._set_head(now_ms)
        count = self._count
        self._count = count + 1 & _UINT16
        return f"{self._head}{_HEX[count >> 8]}{_HEX[count & 255]}"

    def _set_head(self, now_ms: int) -> None:
        if not self._month_start_ms <= now_ms < self._month_end_ms:
            self._month_start_ms = _month_start_ms(now_ms)
            self._month_end_ms = _month_start_ms(self._month_start_ms + 32 * 86_400_000)
        self._head = f"{self._prefix}{now_ms - self._month_start_ms & _UINT32:08X}"
        self._head_ms = now_ms


def _month_start_ms(now_ms: int) -> int:
    now = datetime.fromtimestamp(now_ms / 1000, UTC)
    return int(datetime(now.year, now.month, 1, tzinfo=UTC).timestamp()) * 1000
