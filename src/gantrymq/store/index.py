"""The index: which messages have a key, over all index files (IndexService.java).

A file is named by the local wall clock of its making, `yyyyMMddHHmmssSSS`, so that the names are in
the order of the files; a clock that went back, or a change to winter time, does not change that
order here. A file that is full is followed by another, which begins with the end of the one before.

An index is complete from the first file's begin offset to `end_log_offset`: whoever finds it behind
the log, after a crash say, dispatches from there again. Entries may outlive what they point to (the
log is cut from both ends); the reader of the message sees that.

Owned by the task that owns the log. Full files are worth a flush and a note in the checkpoint;
`take_full` hands them over for that. Once a broker serves, a file that is nearly full has the next
one made by a worker (`serve`): reserving 420 MB may take a disk a tenth of a second. It is not the
worker that makes log files: neither file waits until the other is made and warmed up.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from contextlib import suppress
from datetime import UTC, datetime
from functools import partial
from typing import TYPE_CHECKING, Final, NamedTuple

from gantrymq.errors import InvalidValue
from gantrymq.kernel import kernel
from gantrymq.store.errors import StoreDamaged
from gantrymq.store.index_file import HEADER_BYTES, IndexFile, index_file_bytes, mark_unused
from gantrymq.store.index_image import FileEntries, mend_slots
from gantrymq.store.presence import Waiting

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from concurrent.futures import Future
    from pathlib import Path

    from gantrymq.clock import Clock
    from gantrymq.kernel.interface import Buffer
    from gantrymq.store.files import Files, Region
    from gantrymq.store.presence import Presence
    from gantrymq.store.worker import Worker

INDEX_DIRECTORY: Final = "index"
MATCHES_MAX: Final = 64
"""Default of maxMsgsNumBatch: no query answers more, whatever it asks for."""
AHEAD_PART: Final = 4
"""The next file is made when the last so-manieth part of a file is begun: the disk may be busy with
a log file, and what was not made in time the owner has to make."""
_KEY_BYTES: Final = 20
_NAME: Final = re.compile(r"\d{1,18}")
_INT32_MIN: Final = -(2**31)


class Found(NamedTuple):
    """What the index says to a query."""

    log_offsets: list[int]
    """Newest first."""
    last_timestamp: int
    """Store time of the newest entry of all; 0 without one."""
    last_log_offset: int


def key_hash(topic: str, key: str) -> int:
    """Return the hash that a key of a topic is indexed under."""
    value = kernel.string_hash(f"{topic}#{key}".encode(errors="replace"))
    return 0 if value == _INT32_MIN else abs(value)


class Index:
    """The index files, oldest first."""

    def __init__(
        self,
        root: Path,
        slots: int,
        entries_max: int,
        files: Files,
        clock: Clock,
        matches_max: int = MATCHES_MAX,
    ) -> None:
        if slots < 1 or entries_max < 2:
            raise InvalidValue(
                f"an index file with {slots} slots and {entries_max} entries can hold nothing; "
                "maxHashSlotNum must be at least 1 and maxIndexNum at least 2"
            )
        self._directory = root / INDEX_DIRECTORY
        self._slots = slots
        self._entries_max = entries_max
        self._files = files
        self._clock = clock
        self._matches_max = matches_max
        self._list: list[IndexFile] = []
        self._full: list[IndexFile] = []
        self._is_cut_short = False  # an insertion failed within the keys of a message
        self._worker: Worker | None = None
        self._ahead: Future[Region] | None = None
        self._last_name = 0

    @property
    def files(self) -> Sequence[IndexFile]:
        """Return the files, oldest first."""
        return self._list

    @property
    def end_log_offset(self) -> int:
        """Return the log offset of the last message indexed; 0 without one."""
        return self._list[-1].header.end_log_offset if self._list else 0

    # -- dispatch --------------------------------------------------------------------------------

    def insert(self, keys: Buffer) -> None:
        """Index keys as dispatch makes them; those of earlier messages are passed over.

        The keys of one message come in one call, so that the last message indexed is known to be
        complete, and is passed over as well (Apache indexes it twice after a crash). It is not if
        files behind it were removed: one may have become full among its keys.

        Raises:
            OSError: a new file cannot be made; the keys before it are in.
        """
        position = self._first_new(keys)
        # Keys of earlier messages say nothing about the one that was cut short: a recovery walks
        # over many of them before it comes to it.
        stays = self._is_cut_short and not self._reaches_end(keys)
        self._is_cut_short = True
        if self._list:
            position = self._list[-1].insert(keys, position)
        while len(keys) - position >= _KEY_BYTES:
            position = self._roll().insert(keys, position)
        self._is_cut_short = stays
        if self._worker is not None and self._ahead is None and self._is_nearly_full():
            self._ahead = self._worker.begin(partial(self._make_ahead, self._next_name()))

    def serve(self, worker: Worker) -> None:
        """Have files made ahead of need from now on."""
        self._worker = worker

    def leave_off(self) -> None:
        """Have removed what was made ahead; it is gone when the worker has ended."""
        worker, self._worker = self._worker, None
        ahead, self._ahead = self._ahead, None
        if worker is not None and ahead is not None:
            worker.begin(lambda: self._remove(ahead))

    def _is_nearly_full(self) -> bool:
        entries = self._list[-1].header.next_number if self._list else 0
        return entries * AHEAD_PART >= self._entries_max * (AHEAD_PART - 1)

    def _make(self, name: str) -> Region:
        """Make a file; runs on the worker too."""
        self._files.make_directory(self._directory)
        length = index_file_bytes(self._slots, self._entries_max)
        return self._files.create(self._directory / name, length)

    def _make_ahead(self, name: str) -> Region:
        """Make a file that is not needed yet; runs on the worker."""
        region = self._make(name)
        mark_unused(region)
        return region

    def _remove(self, making: Future[Region]) -> None:
        """Remove a file that was made before; runs on the worker."""
        with suppress(OSError):
            region = making.result(0)
            region.close()
            self._files.remove(region.path)

    def _first_new(self, keys: Buffer) -> int:
        """Return the position of the first key of a message that is not indexed."""
        if not self._list or self._is_cut_short:
            return 0
        last = self._list[-1].header
        if len(self._list) == 1 and last.next_number <= 1:
            return 0

        numbers = range(len(keys) // _KEY_BYTES)
        if not numbers or _log_offset(keys, 0) > last.end_log_offset:
            return 0
        return _KEY_BYTES * bisect_right(
            numbers, last.end_log_offset, key=partial(_log_offset, keys)
        )

    def _reaches_end(self, keys: Buffer) -> bool:
        """Tell whether there are keys of the last message indexed, or of later ones."""
        last = len(keys) // _KEY_BYTES - 1
        return last >= 0 and _log_offset(keys, last) >= self.end_log_offset

    def take_full(self) -> list[IndexFile]:
        """Return the files that have become full since the last call.

        Once `region.sync()` has forced one, the checkpoint's index timestamp is its end timestamp.
        """
        full, self._full = self._full, []
        return full

    def _roll(self) -> IndexFile:
        """Take the next file, or make it: an error of some time ago says nothing."""
        ahead, self._ahead = self._ahead, None
        region: Region | None = None
        if ahead is not None and ahead.done():
            with suppress(OSError):
                region = ahead.result()
        elif ahead is not None and self._worker is not None:
            # The worker has something larger to do, and cannot be waited for.
            self._worker.begin(lambda: self._remove(ahead))
        if region is None:
            region = self._make(self._next_name())
        file = IndexFile(region, self._slots, self._entries_max)
        if self._list:
            file.follow(self._list[-1].header)
            self._full.append(self._list[-1])
        else:
            file.begin()
        self._list.append(file)
        return file

    def _next_name(self) -> str:
        moment = datetime.fromtimestamp(self._clock.now_ms() // 1000, UTC).astimezone()
        name = f"{moment:%Y%m%d%H%M%S}{self._clock.now_ms() % 1000:03d}"
        last = max(self._last_name, int(self._list[-1].path.name) if self._list else 0)
        if int(name) <= last:
            # Made in the same millisecond, or the clock went back: only the order matters.
            name = str(last + 1)
        self._last_name = int(name)
        return name

    # -- query -----------------------------------------------------------------------------------

    def query(
        self,
        topic: str,
        key: str,
        count_max: int,
        begin_ms: int,
        end_ms: int,
        presence: Presence | None = None,
    ) -> Found:
        """Return the newest messages with a key that were stored within a range of time.

        Messages with another key of the same hash may be among them.
        """
        presence = Waiting() if presence is None else presence
        wanted, found = key_hash(topic, key), list[int]()
        count_max = min(count_max, self._matches_max)
        for file in reversed(self._list):
            presence.need(file.region, 0, HEADER_BYTES)
            if file.overlaps(begin_ms, end_ms):
                found += file.find(wanted, begin_ms, end_ms, count_max - len(found), presence)
            if file.header.begin_timestamp < begin_ms or len(found) >= count_max:
                break
        if not self._list:
            return Found(found, 0, 0)
        last = self._list[-1].header
        return Found(found, last.end_timestamp, last.end_log_offset)

    # -- recovery and retention ------------------------------------------------------------------

    def load(self, safe_until_ms: int | None = None, safe_offset: int | None = None) -> list[Path]:
        """Map the files that are there; other things in the directory are left alone.

        After a crash `safe_until_ms` is the checkpoint's index timestamp, and `safe_offset` the log
        offset that goes with it, if there is one: files with later entries may be damaged and are
        removed, and so are files without any. The last one that is left was written to since, if
        it is not full, and its slots are mended. Returns what was removed.

        Raises:
            StoreDamaged: a file has another length than the settings say.
        """
        removed: list[Path] = []
        length = index_file_bytes(self._slots, self._entries_max)
        for name in sorted(filter(_NAME.fullmatch, self._files.names(self._directory)), key=int):
            path = self._directory / name
            if self._files.is_directory(path):
                continue
            size = self._files.size(path)
            if size not in {0, length}:
                raise StoreDamaged(
                    f"{path} has {size} bytes, the settings say {length}; open the store with the "
                    "maxHashSlotNum and maxIndexNum that it was written with, or remove the index"
                )
            if size == 0:
                removed.append(path)
                continue
            file = IndexFile(self._files.open(path), self._slots, self._entries_max)
            if safe_until_ms is not None and not _is_safe(file, safe_until_ms, safe_offset):
                file.close()
                removed.append(path)
                continue
            self._list.append(file)
        for path in removed:
            self._files.remove(path)
            self._is_cut_short = True
        if safe_until_ms is not None and self._list and not self._list[-1].is_full:
            mend_slots(FileEntries(self._list[-1], self._slots, self._entries_max))
        return removed

    def truncate_to(self, log_offset: int) -> list[Path]:
        """Remove the files that know of messages at or behind a log offset; return them.

        Whole files, for entries would have to be taken out of their chains. What they knew of
        earlier messages has to be dispatched again, from `end_log_offset` on.
        """
        paths = self._drop(lambda file: file.header.end_log_offset >= log_offset)
        for path in paths:
            self._files.remove(path)
            self._is_cut_short = True
        return paths

    def expired(self, log_min_offset: int) -> list[IndexFile]:
        """Return the files that only know of messages the log no longer has, oldest first.

        Never the last one, and none that `take_full` has yet to hand out.
        """
        return [
            file
            for file in self._list[:-1]
            if file.header.end_log_offset < log_min_offset and file not in self._full
        ]

    def forget(self, file: IndexFile) -> None:
        """Forget a file that was removed; it is not closed."""
        self._list = [one for one in self._list if one is not file]

    def delete(self) -> list[Path]:
        """Forget all files; return them for removal."""
        return self._drop(lambda _file: True)

    def close(self) -> None:
        """Give up the mappings."""
        for file in self._list:
            file.close()
        self._list.clear()
        self._full.clear()

    def _drop(self, is_over: Callable[[IndexFile], bool]) -> list[Path]:
        over = [file for file in self._list if is_over(file)]
        self._list = [file for file in self._list if file not in over]
        self._full = [file for file in self._full if file not in over]
        for file in over:
            file.close()
        return [file.path for file in over]


def _log_offset(keys: Buffer, number: int) -> int:
    """Return where the message of a key lies."""
    return int.from_bytes(keys[_KEY_BYTES * number + 4 : _KEY_BYTES * number + 12])


def _is_safe(file: IndexFile, safe_until_ms: int, safe_offset: int | None) -> bool:
    """Tell whether a file was forced before a crash, as far as the checkpoint knows."""
    header = file.header
    if safe_offset is not None and header.end_log_offset > safe_offset:
        return False
    return header.next_number > 1 and header.end_timestamp <= safe_until_ms
