"""A log in memory that replication can send and write behind, without a store."""

from __future__ import annotations

from typing import TYPE_CHECKING

from gantrymq.errors import InvalidValue

if TYPE_CHECKING:
    from gantrymq.kernel.interface import Buffer


class PlainLog:
    """Bytes at offsets; both a `SentLog` and a `CopiedLog`."""

    def __init__(self, file_bytes: int = 1000) -> None:
        self.file_bytes = file_bytes
        self.begin = 0
        self.unsafe_bytes = 0
        """How much of the end is not on the disk."""
        self.cold_before = 0
        """What lies before it is not in memory."""
        self._bytes = bytearray()

    @property
    def end(self) -> int:
        return self.begin + len(self._bytes)

    @property
    def safe_end(self) -> int:
        return self.end - self.unsafe_bytes

    def read(self, offset: int, count: int) -> bytes | None:
        if offset < self.cold_before:
            return None
        at = offset - self.begin
        return bytes(self._bytes[at : at + count])

    def append(self, offset: int, data: Buffer) -> None:
        if not self._bytes and self.begin == 0:
            self.begin = offset
        if offset != self.end:
            raise InvalidValue(f"{offset} is not {self.end}")
        self._bytes += data

    def equals(self, offset: int, data: Buffer) -> bool:
        return self.read(offset, len(data)) == bytes(data)
