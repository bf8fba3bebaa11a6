"""A consume queue: for each message of one queue where it lies in the log (ConsumeQueue.java).

A unit has 20 bytes: i64 log offset, i32 size, i64 tags code, which is the tag's hash, a time of
delivery or an address in the extension. The message with queue offset n has the unit at byte 20 n,
always: a queue that begins at another offset than 0, or misses messages, is filled with pre-blank
units of size 2147483647, which stand for no message. An all-zero unit ends the data.

Everything here can be built again from the commit log, by `append`ing the runs that dispatch makes
of it; appending a run twice changes nothing. Units are in log order, so that most questions ("where
do messages begin that the log still has?") are one walk over them (`unit_walk.py`).

Owned by the task that owns the log. `queue_files.py` says how units get to the disk.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from gantrymq.kernel import UNIT_BYTES, QueueUnit
from gantrymq.store.errors import QueueBeingSaved, StoreDamaged
from gantrymq.store.queue_expiry import QueueSearch
from gantrymq.store.queue_files import QueueFiles
from gantrymq.store.unit_walk import PRE_BLANK, UNIT, log_end_before, log_offset_of, walk

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from gantrymq.kernel import FileWrite, QueueRun
    from gantrymq.kernel.tails import QueueTail
    from gantrymq.store.files import Files, StrPath
    from gantrymq.store.jumps import Jumps
    from gantrymq.store.queue_expiry import QueueBegin
    from gantrymq.store.queue_files import Sync

_RECOVERED_FILES: Final = 3
"""Files from the end that recovery walks over, as Apache does; those before were full long ago."""
GAP_UNITS_MAX: Final = 1_000_000
"""Missing messages that are filled in; more of them mean that a queue offset is garbage."""
OFFSET_MAX: Final = 2**58
"""Where no queue begins: the position of a unit in bytes has to be a signed 64-bit number."""


class ConsumeQueue:
    """The units of one queue."""

    __slots__ = (
        "_bytes",
        "_changed",
        "_hidden",
        "_log_min",
        "_min",
        "ext_address",
        "is_being_saved",
        "queue_id",
        "topic",
    )

    def __init__(
        self,
        topic: str,
        queue_id: int,
        directory: StrPath,
        file_bytes: int,
        files: Files,
        changed: Callable[[ConsumeQueue], object] | None = None,
    ) -> None:
        self.topic = topic
        self.queue_id = queue_id
        self.ext_address = 0
        """Highest address in the extension that recovery or truncation saw; 0 without one."""
        self.is_being_saved = False
        """A thread has writes or forces of these files in hand; see `QueueTable.begin_flush`."""
        self._bytes = QueueFiles(directory, file_bytes, files)
        self._changed = changed
        self._min = 0
        self._log_min = -1  # of the message at _min, if that has been looked up
        self._hidden = 0  # messages before it are in the log and not served any more

    def __repr__(self) -> str:
        """Name the queue and what it holds."""
        return f"<ConsumeQueue {self.topic}/{self.queue_id} {self.min_offset}..{self.max_offset}>"

    # -- what there is ---------------------------------------------------------------------------

    @property
    def tail(self) -> QueueTail:
        """Return where dispatch adds to the queue."""
        return self._bytes.tail

    @property
    def log_end(self) -> int:
        """Return the log offset behind the last message; 0 without one."""
        return self._bytes.tail.log_end

    @property
    def min_offset(self) -> int:
        """Return the queue offset of the first unit that may be read."""
        return max(self._min, self._hidden) // UNIT_BYTES

    @property
    def max_offset(self) -> int:
        """Return the queue offset that the next message gets."""
        return self._bytes.end // UNIT_BYTES

    @property
    def is_empty(self) -> bool:
        """Tell whether there is no unit, so that the next one may have any offset."""
        return self._bytes.end == self._bytes.first

    @property
    def directory(self) -> Path:
        """Return where the files lie."""
        return self._bytes.directory

    @property
    def restarts(self) -> int:
        """Return how often the queue was begun anew."""
        return self._bytes.restarts

    @property
    def waiting_bytes(self) -> int:
        """Return how much is in memory only."""
        return self._bytes.waiting_bytes

    @property
    def is_pending(self) -> bool:
        """Tell whether there is anything to write out."""
        return self._bytes.is_pending

    def has_begun(self, pages: int) -> bool:
        """Tell whether so many pages have begun since the last write; see `QueueFiles`."""
        return self._bytes.has_begun(pages)

    def read(self, offset: int, units_max: int) -> bytes:
        """Return the units from an offset on, pre-blank ones included; none if out of range."""
        if offset < self.min_offset:
            return b""
        return self._bytes.read(offset * UNIT_BYTES, units_max * UNIT_BYTES)

    def read_now(self, offset: int, units_max: int) -> bytes | None:
        """Return what `read` returns, or None if that would wait for the disk."""
        if offset < self.min_offset:
            return b""
        return self._bytes.read_now(offset * UNIT_BYTES, units_max * UNIT_BYTES)

    def later(self, offset: int, units_max: int) -> Callable[[], object]:
        """Return a call that brings units into memory; it may be made on a thread."""
        view = self._bytes.view()
        return lambda: view.read(offset * UNIT_BYTES, units_max * UNIT_BYTES)

    def unit(self, offset: int) -> QueueUnit | None:
        """Return the unit of an offset, or None if out of range."""
        raw = self.read(offset, 1)
        return QueueUnit(*UNIT.unpack(raw)) if raw else None

    def last_unit(self) -> QueueUnit | None:
        """Return the last unit, or None if there is none to be read."""
        return self.unit(self.max_offset - 1)

    def next_file_offset(self, offset: int) -> int:
        """Return the first queue offset of the file behind the one that an offset lies in."""
        units = self._bytes.file_bytes // UNIT_BYTES
        return offset - offset % units + units

    # -- dispatch --------------------------------------------------------------------------------

    def fresh(self, run: QueueRun) -> QueueRun | None:
        """Return the part of a run that is not built yet, or None if all of it is."""
        log_end = self.log_end
        if run.log_end <= log_end:
            return None
        built = 0
        for log_offset, size, _tags_code in UNIT.iter_unpack(run.units):
            if log_offset + size > log_end:
                break
            built += 1
        first, missing = run.first_queue_offset + built, 0
        if self._bytes.end > self._bytes.first and first > 0:
            missing = max(self.max_offset - first, 0)
        if built + missing == 0:
            return run
        units = run.units[(built + missing) * UNIT_BYTES :]
        return run._replace(first_queue_offset=first + missing, units=units) if units else None

    def append(self, run: QueueRun, jumps: Jumps | None = None) -> int:
        """Add the units of a run that are not there yet; return how many had to be made up.

        That number is 0 unless messages before the run are missing from the queue. A run that
        begins with offset 0 although the queue has units of earlier messages is that of a topic
        deleted and made again: the queue begins anew. `jumps`, if given, sees first to a run that
        does not begin where the queue ends.

        Raises:
            StoreDamaged: a queue offset that cannot be.
            QueueBeingSaved: it would begin anew, and a thread has its files in hand.
        """
        files, tail = self._bytes, self._bytes.tail
        _topic, _queue_id, first, units, log_end, _stored = run
        missing, end = 0, tail.end
        # Units are in log order, so one that lies behind the last message is new.
        if first * UNIT_BYTES != end or int.from_bytes(units[:8]) < tail.log_end:
            if jumps is not None and jumps.takes(self, run):
                return 0
            fresh = self.fresh(run)
            if fresh is None:
                return 0
            missing, units = self._make_room(fresh.first_queue_offset), fresh.units
            end = files.end
        if end == files.written and self._changed is not None:
            self._changed(self)
        if missing:
            files.append(PRE_BLANK * missing)
            end = files.end
        tail.log_end = log_end
        if self._min == end:
            self._log_min = log_offset_of(units)
        files.append(units)
        # The next units need only to be added: there is a message, and a save knows of the queue.
        tail.is_open = files.is_held
        return missing

    def _make_room(self, first: int) -> int:
        """Be ready for a unit at a queue offset; return the units missing before it."""
        at, end = first * UNIT_BYTES, self._bytes.end
        if at == end:
            return 0
        gap_max = OFFSET_MAX if self.is_empty else GAP_UNITS_MAX
        if at < 0 or first - self.max_offset > gap_max:
            raise StoreDamaged(
                f"{self._bytes.directory}: a message says that it has queue offset {first}, the "
                f"queue ends at {self.max_offset}; run `gantrymq store verify` on the commit log"
            )
        if end == self._bytes.first or at < end:
            if self.is_being_saved:
                raise QueueBeingSaved(f"{self._bytes.directory} begins anew when it is saved")
            self._bytes.restart(at)
            self._set_min(at)
            self._hidden = 0
            if self._changed is not None:
                self._changed(self)
            self._bytes.append(PRE_BLANK * ((at - self._bytes.end) // UNIT_BYTES))
            return 0
        return (at - end) // UNIT_BYTES

    # -- writing out -----------------------------------------------------------------------------

    def pending_writes(self) -> list[FileWrite]:
        """Return what waits as writes for a thread; see `QueueFiles.pending_writes`."""
        return self._bytes.pending_writes()

    def wrote_out(self, up_to_offset: int) -> None:
        """Note that those writes are done up to a queue offset: `max_offset` of that time."""
        self._bytes.wrote_out(up_to_offset * UNIT_BYTES)

    @property
    def written_offset(self) -> int:
        """Return the queue offset up to which units are in the files."""
        return self._bytes.written // UNIT_BYTES

    @property
    def is_unsynced(self) -> bool:
        """Tell whether anything was written that is not forced yet."""
        return self._bytes.is_unsynced

    def pending_syncs(self) -> list[Sync]:
        """Return the files and directories to force; see `QueueFiles.pending_syncs`."""
        return self._bytes.pending_syncs()

    def synced(self, up_to_offset: int) -> None:
        """Note that units up to a queue offset are forced: `written_offset` of that time."""
        self._bytes.synced(up_to_offset * UNIT_BYTES)

    # -- recovery --------------------------------------------------------------------------------

    def load(self, *, after_crash: bool = False) -> None:
        """Learn from the names which files there are; `recover` finds out where the units end."""
        self._bytes.load(after_crash=after_crash)
        self._set_min(self._bytes.first)
        self._bytes.tail.log_end = 0

    def recover(self) -> bool:
        """Find the end of the good units, cut off what follows it, and learn `log_end`.

        Tell whether what followed was something else than room for units.
        """
        files = self._bytes
        files.drop_unfinished()
        if files.end == files.first:
            return False
        start = max(files.end - _RECOVERED_FILES * files.file_bytes, files.first)
        while start > files.first and walk(files, start, start + UNIT_BYTES).end == start:
            # Not a unit where a full file was: the whole file is missing, so look before it.
            start -= files.file_bytes
        found = walk(files, start, files.end)
        if start == files.first and found.log_offset is not None:
            self._set_min(start, found.log_offset)
        self.ext_address = found.ext_address
        files.cut(found.end, found.end + UNIT_BYTES if found.ends_in_garbage else found.end)
        self._note_end(found.log_end)
        if found.ends_in_garbage and self._changed is not None:
            self._changed(self)
        return found.ends_in_garbage

    def truncate_to(self, log_offset: int, *, wipes_later: bool = False) -> None:
        """Cut off the units of messages at or behind a log offset; see `QueueFiles.cut`.

        What is left behind the end of a queue without any unit is its offset: the first file stays,
        empty, and the next message gets the offset of the first that was cut off.
        """
        files = self._bytes
        if self.log_end <= log_offset:
            return
        if self._min == files.first and log_offset <= self._log_min:
            self._cut_all(wipes_later=wipes_later)
            return
        start = files.end
        while start > files.first:
            start = max((start - 1) // files.file_bytes * files.file_bytes, files.first)
            found = walk(files, start, files.end, log_offset)
            if found.log_end:
                # A message that stays; pre-blank units alone would not tell on which side they are.
                break
        self.ext_address = found.ext_address
        files.cut(found.end, files.written, wipes_later=wipes_later)
        if self._changed is not None:
            self._changed(self)
        self._note_end(found.log_end)

    def _cut_all(self, *, wipes_later: bool) -> None:
        """Cut off everything: the first unit is known to be of a message that goes."""
        files = self._bytes
        self.ext_address = 0
        files.cut(files.first, files.written, wipes_later=wipes_later)
        if self._changed is not None:
            self._changed(self)
        self._note_end(0)

    def _set_min(self, position: int, log_offset: int = -1) -> None:
        self._min, self._log_min = position, log_offset
        self._bytes.tail.is_open = False  # the next message may be the first

    def _note_end(self, log_end: int) -> None:
        """Set what follows from a new end; without a message in the walk, look before it."""
        self._hidden = min(self._hidden, self._bytes.end)
        if self._min >= self._bytes.end:
            self._set_min(self._bytes.end)
        self._bytes.tail.log_end = log_end or log_end_before(self._bytes, self._bytes.end)

    # -- retention -------------------------------------------------------------------------------

    def knows_min(self, log_min_offset: int) -> bool:
        """Tell whether `min_offset` is right for a log that begins at an offset."""
        return log_min_offset <= self._log_min or self._min >= self._bytes.end

    def search(self, log_min_offset: int, ext_end: int = 0) -> QueueSearch:
        """Return what a thread needs to find the first message that the log still has.

        `ext_end` is the address behind the extension's last unit; 0 without an extension.
        """
        files = self._bytes.view()
        return QueueSearch(files, max(self._min, files.first), log_min_offset, ext_end)

    def begin_at(self, search: QueueSearch, found: QueueBegin) -> bool:
        """Move `min_offset` to what a search has found; False if the queue was begun anew since.

        A queue without a message that the log still has is empty: it begins where it ends. (5.x
        does the same; 4.9 leaves the min offset where it was.)
        """
        if search.files.restarts != self._bytes.restarts:
            return False
        self._set_min(found.position, found.log_offset)
        return True

    def correct_min_offset(self, log_min_offset: int) -> None:
        """Move `min_offset` to the first message that the log still has, here and now.

        Pre-blank units are no messages, so a queue that was begun in the middle of a file does not
        go back to the file's start.
        """
        if not self.knows_min(log_min_offset):
            search = self.search(log_min_offset)
            self.begin_at(search, search.find())

    def hide_before(self, offset: int) -> None:
        """Serve nothing before an offset any more, whatever the log still has; never less again."""
        self._hidden = max(self._hidden, min(offset, self.max_offset) * UNIT_BYTES)

    @property
    def has_expired_files(self) -> bool:
        """Tell whether `files_before_min` returns any."""
        return self._bytes.keep_from(self._min) > self._bytes.first

    def files_before_min(self) -> tuple[int, list[Path]]:
        """Return the files without a message that the log still has, and where the next begins.

        Oldest first; never the last file.
        """
        keep = self._bytes.keep_from(self._min)
        return keep, self._bytes.paths_before(keep)

    def drop_files(self, keep: int) -> None:
        """Forget the files before the one that begins at `keep`."""
        self._bytes.drop_before(keep)

    def hold(self, *, held: bool) -> None:
        """Leave writing to the thread; see `QueueFiles.is_held`."""
        self._bytes.is_held = held
        self._bytes.tail.is_open = False

    def delete(self) -> list[Path]:
        """Return all that must be removed to be rid of the queue, in order.

        The same thread that writes out should remove them, for a write may be under way.
        """
        return self._bytes.all_paths()

    def forget(self) -> None:
        """Be empty to whoever still holds the queue, as its files are going."""
        self._bytes.forget()
        self._set_min(self._bytes.end)
