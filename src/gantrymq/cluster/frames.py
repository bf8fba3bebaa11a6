"""The bytes of the replication socket, as Apache RocketMQ 4.9 has them; no I/O.

    slave to master    8 bytes: how far the slave's log reaches; nothing else, ever
    master to slave    8 bytes log offset, 4 bytes length n, n bytes of the log; n = 0: sign of life

There is no greeting, no length in front, no check sum. Agrees with HAConnection and HAClient.
"""

from __future__ import annotations

from struct import Struct
from typing import TYPE_CHECKING, Final, NamedTuple

from gantrymq.errors import GantryError

if TYPE_CHECKING:
    from collections.abc import Iterator

_REPORT: Final = Struct(">q")
_FRAME: Final = Struct(">qi")
REPORT_BYTES: Final = _REPORT.size
FRAME_HEAD_BYTES: Final = _FRAME.size
FRAME_BYTES_MAX: Final = 4 << 20
"""A frame with its head; Apache's slave has a buffer of this size."""


OFFSET_MAX: Final = 1 << 62
"""Where a log may reach: the kernel adds to offsets, and a store that begins behind this could not
be opened again."""
_MEMBER_BITS: Final = 16


class LinkBroken(GantryError):
    """A replication connection cannot go on; the text says why."""


class Frame(NamedTuple):
    """A piece of the log; its bytes are good until the next read."""

    offset: int
    body: memoryview


def encode_report(offset: int) -> bytes:
    """Return a slave's report."""
    return _REPORT.pack(offset)


def encode_head(offset: int, length: int) -> bytes:
    """Return what stands before a piece of the log."""
    return _FRAME.pack(offset, length)


def encode_hello(epoch: int, member: int) -> bytes:
    """Return what a member of a group with failover says before its first report.

    It is a report that no Apache slave sends: negative, of the epoch and the member's id.
    """
    return _REPORT.pack(-(epoch << _MEMBER_BITS | member))


def decode_hello(report: int) -> tuple[int, int]:
    """Return epoch and member of such a report."""
    return -report >> _MEMBER_BITS, -report & (1 << _MEMBER_BITS) - 1


class ReportReader:
    """Cuts what a slave sends into reports."""

    __slots__ = ("_rest",)

    def __init__(self) -> None:
        self._rest = b""

    def feed(self, data: bytes) -> list[int]:
        """Return the reports that are whole now, oldest first."""
        data = self._rest + data if self._rest else data
        whole = len(data) - len(data) % REPORT_BYTES
        self._rest = data[whole:]
        return [offset for (offset,) in _REPORT.iter_unpack(data[:whole])]


class FrameReader:
    """Cuts what a master sends into frames; a socket writes into `space`, without a copy."""

    __slots__ = ("_begin", "_buffer", "_end")

    def __init__(self, capacity: int = FRAME_BYTES_MAX) -> None:
        self._buffer = memoryview(bytearray(capacity))
        self._begin = 0
        self._end = 0

    def space(self) -> memoryview:
        """Return where the next bytes belong; never empty.

        Frames that were handed out before are overwritten.
        """
        if self._begin:
            rest = self._end - self._begin
            self._buffer[:rest] = bytes(self._buffer[self._begin : self._end])
            self._begin, self._end = 0, rest
        return self._buffer[self._end :]

    def feed(self, count: int) -> Iterator[Frame]:
        """Yield the frames that are whole now that `count` bytes were written into `space`.

        Raises:
            LinkBroken: no frame begins like this.
        """
        self._end += count
        while self._end - self._begin >= FRAME_HEAD_BYTES:
            offset, length = _FRAME.unpack_from(self._buffer, self._begin)
            size_max = len(self._buffer) - FRAME_HEAD_BYTES
            if not (0 <= length <= size_max and 0 <= offset <= OFFSET_MAX - length):
                raise LinkBroken(
                    f"no master sends a frame of {length} bytes at offset {offset}; is it the "
                    "replication port of a broker (listenPort + 1)?"
                )
            begin = self._begin + FRAME_HEAD_BYTES
            if self._end - begin < length:
                return
            self._begin = begin + length
            yield Frame(offset, self._buffer[begin : begin + length])
