"""Chains of index files: slots lead to the newest entry of theirs, entries to the one before.

Seen by inserting the entries into an empty image of a file: it must come out with the same slots
and links. An image has 420 MB where a file has its usual size, so it is private memory, and what
was compared of it is given back to the system: what stays are the slots, 20 MB of them, and the
portion at hand. Only where the two differ each entry is looked at.
"""

from __future__ import annotations

import mmap
import struct
import sys
from array import array
from typing import TYPE_CHECKING, Final

from gantrymq.kernel import kernel
from gantrymq.store.index_file import index_file_bytes

if TYPE_CHECKING:
    from collections.abc import Iterator

    from gantrymq.store.index_file import IndexFile

ENTRY_BYTES: Final = 20
"""Of an entry: i32 hash, i64 log offset, i32 seconds, i32 previous; of a key: hash, offset, i64
time."""
IDENTITY_BYTES: Final = 12
PORTION: Final = 65536
"""Entries, or slots, that are held at once."""
ENTRY: Final = struct.Struct(">iqii")
_HASH_MASK: Final = 2**31 - 1
_SLOT_BYTES: Final = 4


class FileEntries:
    """The entries of one file; number 1 is at index 0."""

    def __init__(self, file: IndexFile, slots: int, entries_max: int) -> None:
        self.file = file
        self.header = file.header
        self.slots = slots
        self.entries_max = entries_max
        self.count = max(min(self.header.next_number, entries_max) - 1, 0)
        self._start = index_file_bytes(slots, 1)

    def raw(self, begin: int, end: int) -> bytes:
        """Return the bytes of some entries."""
        low, high = self._start + begin * ENTRY_BYTES, self._start + end * ENTRY_BYTES
        return bytes(self.file.region.buffer[low:high])

    def portions(self) -> Iterator[tuple[int, bytes]]:
        """Yield all entries, some at a time, and the index of the first of them."""
        for begin in range(0, self.count, PORTION):
            yield begin, self.raw(begin, min(begin + PORTION, self.count))

    def slot_portions(self) -> Iterator[tuple[int, bytes]]:
        """Yield all slots, some at a time, and the number of the first of them."""
        start = index_file_bytes(0, 0)
        for begin in range(0, self.slots, PORTION):
            end = min(begin + PORTION, self.slots)
            low, high = start + begin * _SLOT_BYTES, start + end * _SLOT_BYTES
            yield begin, bytes(self.file.region.buffer[low:high])

    def __len__(self) -> int:
        return self.count

    def __getitem__(self, at: int) -> int:
        """Return the log offset of an entry, so that they can be searched."""
        return int(ENTRY.unpack(self.raw(at, at + 1))[1])


def broken_chains(entries: FileEntries) -> Iterator[str]:
    """Yield what is wrong with the chains of a file."""
    if not _is_whole(entries):
        yield from _each_broken(entries)


def _is_whole(entries: FileEntries) -> bool:
    """Tell whether an image made of the entries has the file's slots and links."""
    slots, entries_max = entries.slots, entries.entries_max
    with mmap.mmap(-1, index_file_bytes(slots, entries_max), flags=mmap.MAP_PRIVATE) as image:
        start = index_file_bytes(slots, 1)
        given_back = _page_behind(start)
        for begin, raw in entries.portions():
            keys = bytearray(len(raw))
            for byte in range(IDENTITY_BYTES):
                keys[byte::ENTRY_BYTES] = raw[byte::ENTRY_BYTES]
            kernel.insert_keys(image, slots, entries_max, keys, 0)
            at = start + begin * ENTRY_BYTES
            if column(image[at : at + len(raw)], 16, 4) != column(raw, 16, 4):
                return False
            given_back = _give_back(image, given_back, at + len(raw))
        first = index_file_bytes(0, 0)
        for begin, raw in entries.slot_portions():
            at = first + begin * _SLOT_BYTES
            if image[at : at + len(raw)] != raw:
                return False
    return True


def _page_behind(position: int) -> int:
    return -(-position // mmap.PAGESIZE) * mmap.PAGESIZE


def _give_back(image: mmap.mmap, start: int, end: int) -> int:
    """Let the system have the whole pages of a range; return where the next range begins."""
    end -= end % mmap.PAGESIZE
    if end <= start or not sys.platform.startswith("linux"):
        return start
    image.madvise(mmap.MADV_DONTNEED, start, end - start)
    return end


def _each_broken(entries: FileEntries) -> Iterator[str]:
    newest = array("i", bytes(_SLOT_BYTES * entries.slots))
    for begin, raw in entries.portions():
        for number, (hashed, _at, _seconds, previous) in enumerate(
            ENTRY.iter_unpack(raw), begin + 1
        ):
            slot = (hashed & _HASH_MASK) % entries.slots
            if previous != newest[slot]:
                yield f"entry {number} leads to {previous}, the one before it is {newest[slot]}"
            newest[slot] = number
    for begin, raw in entries.slot_portions():
        found = big_endian(raw, "i")
        wanted = newest[begin : begin + len(found)]
        if found == wanted:
            continue
        for slot, (number, newest_number) in enumerate(zip(found, wanted, strict=True), begin):
            if number != newest_number:
                yield f"slot {slot} leads to {number}, its newest entry is {newest_number}"


def column(rows: bytes, start: int, width: int) -> bytes:
    """Return some bytes of every 20, one row behind the other."""
    cut = bytearray(len(rows) // ENTRY_BYTES * width)
    for byte in range(width):
        cut[byte::width] = rows[start + byte :: ENTRY_BYTES]
    return bytes(cut)


def big_endian(data: bytes, code: str) -> array[int]:
    """Return big-endian numbers: `i` of 32 bits, `q` of 64."""
    numbers = array(code, data)
    if sys.byteorder == "little":
        numbers.byteswap()
    return numbers
