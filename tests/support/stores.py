"""The golden stores, read once: what Apache brokers left behind, and what they say of it.

The archives are small, so they are read into memory; nothing is written anywhere.
"""

from __future__ import annotations

import struct
import tarfile
from functools import cache, cached_property
from typing import TYPE_CHECKING, NamedTuple

import msgspec

from support.golden import STORE, stored_messages

if TYPE_CHECKING:
    from collections.abc import Iterator

    from gantrymq.kernel.interface import Kernel
    from gantrymq.kernel.values import Record

UNIT_BYTES = 20
EXT_FILE_BYTES = 4096
MS = {"s": 1000, "m": 60_000, "h": 3_600_000, "d": 86_400_000}


class LogFile(NamedTuple):
    """One file of the commit log."""

    base: int
    raw: bytes


class Place(NamedTuple):
    """A record and the bytes it was read from."""

    log_offset: int
    raw: bytes
    record: Record


class _Manifest(msgspec.Struct):
    endOfLastReadableRecord: int
    settings: dict[str, str | int]
    damage: list[str] = []


class GoldenStore:
    """A directory that an Apache broker left behind."""

    def __init__(self, label: str) -> None:
        self.label = label
        self.files: dict[str, bytes] = {}
        with tarfile.open(STORE / label / "store.tar.gz") as archive:
            for member in archive:
                content = archive.extractfile(member)
                if content is not None:
                    self.files[member.name.removeprefix("store/")] = content.read()
        raw = (STORE / label / "manifest.json").read_bytes()
        self._manifest = msgspec.json.decode(raw, type=_Manifest)

    @property
    def end(self) -> int:
        """Return the log offset behind the last record that Apache can read."""
        return self._manifest.endOfLastReadableRecord

    @property
    def is_torn(self) -> bool:
        """Say whether somebody damaged the files."""
        return bool(self._manifest.damage)

    @cached_property
    def messages(self) -> dict[int, dict[str, object]]:
        """Return what an Apache broker serves, by log offset."""
        found: dict[int, dict[str, object]] = {}
        for message in stored_messages(self.label):
            offset = message["commitLogOffset"]
            assert isinstance(offset, int)
            found[offset] = message
        return found

    @cached_property
    def delays_ms(self) -> list[int]:
        """Return the delay of each level."""
        levels = str(self._manifest.settings["messageDelayLevel"]).split()
        return [int(level[:-1]) * MS[level[-1]] for level in levels]

    def log_files(self) -> list[LogFile]:
        """Return the commit log in order."""
        names = sorted(name for name in self.files if name.startswith("commitlog/"))
        return [LogFile(int(name.rpartition("/")[2]), self.files[name]) for name in names]

    def queue_units(self) -> dict[tuple[str, int, int], bytes]:
        """Return the units on disk by topic, queue id and queue offset, up to the zero tail."""
        found: dict[tuple[str, int, int], bytes] = {}
        for name, raw in self.files.items():
            kind, _slash, rest = name.partition("/")
            if kind != "consumequeue":
                continue
            topic, queue_id, first = rest.rsplit("/", 2)
            for at in range(0, len(raw), UNIT_BYTES):
                unit = raw[at : at + UNIT_BYTES]
                if any(unit):
                    offset = (int(first) + at) // UNIT_BYTES
                    found[topic, int(queue_id), offset] = unit
        return found

    def extended(self, topic: str, queue_id: int, address: int) -> tuple[int, int]:
        """Return tags code and store timestamp from the consume queue extension."""
        offset = address + 2**63
        first = offset - offset % EXT_FILE_BYTES
        raw = self.files[f"consumequeue_ext/{topic}/{queue_id}/{first:020d}"]
        _size, tags_code, store_timestamp = struct.unpack_from(">hqq", raw, offset - first)
        return tags_code, store_timestamp

    def index_entries(self) -> list[tuple[int, int]]:
        """Return (hash, log offset) of every index entry, in the order they were written."""
        slots = int(self._manifest.settings["maxHashSlotNum"])
        found: list[tuple[int, int]] = []
        for name in sorted(self.files):
            if name.startswith("index/"):
                raw = self.files[name]
                (count,) = struct.unpack_from(">i", raw, 36)
                for number in range(1, count):
                    entry = struct.unpack_from(">iq", raw, 40 + 4 * slots + 20 * number)
                    found.append((entry[0], entry[1]))
        return found

    def records(self, kernel: Kernel) -> Iterator[Place]:
        """Yield every good record before the end, decoded one by one."""
        for base, raw in self.log_files():
            end = min(len(raw), self.end - base)
            position = 0
            while position < end and raw[position + 4 : position + 8] != b"\xcb\xd4\x31\x94":
                record, behind = kernel.decode_record(raw, position, end, True)
                yield Place(base + position, raw[position:behind], record)
                position = behind


@cache
def golden_store(label: str) -> GoldenStore:
    """Return a golden store; each is read once in a run."""
    return GoldenStore(label)
