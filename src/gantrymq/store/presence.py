"""Whether a place in a file can be read without waiting for the disk.

Who may wait (tools, recovery) reads with `Waiting`. The task that owns a store reads with `Looking`
where data may be cold: it looks at each place first, and a place that is not in memory is an
`Absent`, which says how a thread can bring it there. A place that was brought counts as present
from then on, whatever the system thinks: under memory pressure it may be gone again at once, and
then one read waits, once. So a question that is asked again after each `Absent` comes to an end.

What may be long although all of it is in memory, a chain of the index, is walked with a `Walk`: it
remembers how far it came, so that a question that is asked again goes on from there. The owner's
turn ends after ENTRIES_A_TURN entries, with an `Absent` that has nothing to bring.
"""

from __future__ import annotations

import mmap
from functools import partial
from typing import TYPE_CHECKING, Final, Protocol

if TYPE_CHECKING:
    from collections.abc import Callable, Hashable

    from gantrymq.store.consume_queue import ConsumeQueue
    from gantrymq.store.consume_queue_ext import ConsumeQueueExt, ExtUnit
    from gantrymq.store.files import Files, Region

ENTRIES_A_TURN: Final = 2048
"""Entries of a chain that are followed before others have their turn: some milliseconds."""


class Walk:
    """How far a chain of the index was followed, and what was found on the way."""

    __slots__ = ("found", "number")

    def __init__(self) -> None:
        self.found: list[int] = []
        self.number: int | None = None
        """The entry to look at next; 0 at the end, None before the beginning."""


class Absent(Exception):
    """A place that is not in memory; `bring` reads it, on any thread."""

    def __init__(self, place: Hashable, bring: Callable[[], object]) -> None:
        super().__init__(place)
        self.place = place
        self.bring = bring


class Presence(Protocol):
    """How places are read."""

    def units(self, queue: ConsumeQueue, offset: int, count: int) -> bytes:
        """Return units of a queue; see `ConsumeQueue.read`."""
        ...

    def extension(self, extension: ConsumeQueueExt, address: int) -> ExtUnit | None:
        """Return a unit of the extension of a queue; see `ConsumeQueueExt.read`."""
        ...

    def need(self, region: Region, position: int, count: int) -> None:
        """See to it that bytes of a mapped file can be read."""
        ...

    def walk(self, chain: Hashable) -> Walk:
        """Return how far a chain was followed by this question."""
        ...

    def step(self, walk: Walk) -> None:
        """Count an entry of a chain that was followed."""
        ...


class Waiting:
    """Reads whatever it takes."""

    __slots__ = ()

    def units(self, queue: ConsumeQueue, offset: int, count: int) -> bytes:
        """Return units of a queue."""
        return queue.read(offset, count)

    def extension(self, extension: ConsumeQueueExt, address: int) -> ExtUnit | None:
        """Return a unit of an extension."""
        return extension.read(address)

    def need(self, region: Region, position: int, count: int) -> None:
        """Leave it to the reader to wait."""

    def walk(self, chain: Hashable) -> Walk:
        """Begin anew: there is one attempt."""
        return Walk()

    def step(self, walk: Walk) -> None:
        """Go on for as long as it takes."""


class Looking:
    """Reads what is in memory, and says what is not; made for one attempt at a question."""

    __slots__ = ("_brought", "_files", "_pages", "_steps_left", "_walks")

    def __init__(
        self, files: Files, brought: set[Hashable], walks: dict[Hashable, Walk] | None = None
    ) -> None:
        """Take the places in `brought` for present, and go on with `walks`."""
        self._files = files
        self._brought = brought
        self._walks = {} if walks is None else walks
        self._steps_left = ENTRIES_A_TURN
        self._pages: set[tuple[Region, int]] = set()

    def units(self, queue: ConsumeQueue, offset: int, count: int) -> bytes:
        """Return units of a queue.

        Raises:
            Absent: they are not in memory.
        """
        place = queue, offset, count
        if place in self._brought:
            return queue.read(offset, count)
        units = queue.read_now(offset, count)
        if units is None:
            raise Absent(place, queue.later(offset, count))
        return units

    def extension(self, extension: ConsumeQueueExt, address: int) -> ExtUnit | None:
        """Return a unit of the extension of a queue.

        Raises:
            Absent: it is not in memory.
        """
        place = extension, address
        if place not in self._brought and not extension.is_resident(address):
            raise Absent(place, extension.later(address))
        return extension.read(address)

    def need(self, region: Region, position: int, count: int) -> None:
        """Look whether bytes of a mapped file are in memory.

        Raises:
            Absent: they are not.
        """
        first, last = position // mmap.PAGESIZE, (position + max(count, 1) - 1) // mmap.PAGESIZE
        if first == last and (region, first) in self._pages:
            return
        place = region, position, count
        if place not in self._brought and not _is_resident(region, position, position + count):
            raise Absent(place, partial(self._files.read_at, region.path, position, count))
        self._pages.update((region, page) for page in (first, last))

    def walk(self, chain: Hashable) -> Walk:
        """Return how far a chain was followed in the attempts before."""
        return self._walks.setdefault(chain, Walk())

    def step(self, walk: Walk) -> None:
        """Count an entry that was followed.

        Raises:
            Absent: others shall have their turn.
        """
        # The walk does not come back to the entries behind it, so neither do their pages: a long
        # chain that is cold is brought page by page, however many they are.
        self._brought.clear()
        self._steps_left -= 1
        if self._steps_left <= 0:
            raise Absent(walk, _nothing)


def _nothing() -> None:
    """Bring nothing; the way over the worker ends the owner's turn."""


def _is_resident(region: Region, position: int, end: int) -> bool:
    """Ask piece by piece, for one question covers no more than a mebibyte."""
    while position < end:
        until = region.resident_end(position, end)
        if until == position:
            return False
        position = until
    return True
