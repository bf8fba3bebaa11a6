"""Chains of index files: slots lead to the newest entry of theirs, entries to the one before.

Seen by inserting the entries into an empty image of a file (`index_image.py`): it must come out
with the same slots and links. Only where the two differ each entry is looked at.
"""

from __future__ import annotations

from array import array
from typing import TYPE_CHECKING, Final

from gantrymq.store.index_image import ENTRY, SLOT_BYTES, Image, big_endian, column

if TYPE_CHECKING:
    from collections.abc import Iterator

    from gantrymq.store.index_image import FileEntries

_HASH_MASK: Final = 2**31 - 1


def broken_chains(entries: FileEntries) -> Iterator[str]:
    """Yield what is wrong with the chains of a file."""
    if not _is_whole(entries):
        yield from _each_broken(entries)


def _is_whole(entries: FileEntries) -> bool:
    """Tell whether an image made of the entries has the file's slots and links."""
    image = Image(entries)
    try:
        for raw, made in image.portions():
            if column(made, 16, 4) != column(raw, 16, 4):
                return False
        return all(
            image.slots(begin, begin + len(raw) // SLOT_BYTES) == raw
            for begin, raw in entries.slot_portions()
        )
    finally:
        image.close()


def _each_broken(entries: FileEntries) -> Iterator[str]:
    newest = array("i", bytes(SLOT_BYTES * entries.slots))
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
