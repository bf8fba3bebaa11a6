"""The entries of an index file, and an image of the file that is made of them anew.

Everything but the hashes, log offsets and times can be made again from those: the slots, and the
links between entries. `verify_chains.py` compares a file with such an image, and recovery takes the
slots from one.

An image has 420 MB where a file has its usual size, so it is private memory, and what was looked at
is given back to the system: what stays are the slots, 20 MB of them, and the portion at hand.
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
SLOT_BYTES: Final = 4
PORTION: Final = 65536
"""Entries, or slots, that are held at once."""
ENTRY: Final = struct.Struct(">iqii")
_SLOTS_AT: Final = index_file_bytes(0, 0)


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
        for begin in range(0, self.slots, PORTION):
            low, high = slot_range(begin, min(begin + PORTION, self.slots))
            yield begin, bytes(self.file.region.buffer[low:high])

    def __len__(self) -> int:
        return self.count

    def __getitem__(self, at: int) -> int:
        """Return the log offset of an entry, so that they can be searched."""
        return int(ENTRY.unpack(self.raw(at, at + 1))[1])


class Image:
    """A file that is made of the entries of another, in memory; `close` gives it back."""

    def __init__(self, entries: FileEntries) -> None:
        self._entries = entries
        size = index_file_bytes(entries.slots, entries.entries_max)
        self._map = mmap.mmap(-1, size, flags=mmap.MAP_PRIVATE)

    def portions(self) -> Iterator[tuple[bytes, bytes]]:
        """Insert all entries, some at a time; yield them as they were, and as they are here."""
        entries = self._entries
        start = index_file_bytes(entries.slots, 1)
        given_back = _page_behind(start)
        for begin, raw in entries.portions():
            keys = bytearray(len(raw))
            for byte in range(IDENTITY_BYTES):
                keys[byte::ENTRY_BYTES] = raw[byte::ENTRY_BYTES]
            kernel.insert_keys(self._map, entries.slots, entries.entries_max, keys, 0)
            at = start + begin * ENTRY_BYTES
            yield raw, self._map[at : at + len(raw)]
            given_back = _give_back(self._map, given_back, at + len(raw))

    @property
    def count(self) -> int:
        """Return how many entries were inserted; those that go back in the log are not."""
        return int.from_bytes(self._map[36:40]) - 1

    def slots(self, begin: int, end: int) -> bytes:
        """Return the bytes of some slots."""
        low, high = slot_range(begin, end)
        return self._map[low:high]

    def close(self) -> None:
        """Give up its memory."""
        self._map.close()


def mend_slots(entries: FileEntries) -> int:
    """Have every slot lead to the newest of the entries that a header counts.

    A file that was forced, and written to again before a crash, may have its header as it was
    forced and slots that lead to later entries. Such a slot counts as empty, and the entries that
    it led to before would be lost. Returns how many slots were changed.
    """
    if all(max(big_endian(raw, "i")) <= entries.count for _begin, raw in entries.slot_portions()):
        return 0
    image, buffer, mended = Image(entries), entries.file.region.buffer, 0
    try:
        for _ in image.portions():
            pass
        if image.count != entries.count:
            return 0  # damaged in another way, which no crash explains
        for begin, raw in entries.slot_portions():
            low, high = slot_range(begin, begin + len(raw) // SLOT_BYTES)
            wanted = image.slots(begin, begin + len(raw) // SLOT_BYTES)
            if raw != wanted:
                buffer[low:high] = wanted
                pairs = zip(big_endian(raw, "i"), big_endian(wanted, "i"), strict=True)
                mended += sum(one != other for one, other in pairs)
    finally:
        image.close()
    return mended


def slot_range(begin: int, end: int) -> tuple[int, int]:
    """Return where some slots lie in a file."""
    return _SLOTS_AT + begin * SLOT_BYTES, _SLOTS_AT + end * SLOT_BYTES


def _page_behind(position: int) -> int:
    return -(-position // mmap.PAGESIZE) * mmap.PAGESIZE


def _give_back(image: mmap.mmap, start: int, end: int) -> int:
    """Let the system have the whole pages of a range; return where the next range begins."""
    end -= end % mmap.PAGESIZE
    if end <= start or not sys.platform.startswith("linux"):
        return start
    image.madvise(mmap.MADV_DONTNEED, start, end - start)
    return end


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
