"""The index: which messages have a key, over all index files (IndexService.java).

A file is named by the local wall clock of its making, `yyyyMMddHHmmssSSS`, so that the names are in
the order of the files; a clock that went back, or a change to winter time, does not change that
order here. A file that is full is followed by another, which begins with the end of the one before.

An index is complete from the first file's begin offset to `end_log_offset`: whoever finds it behind
the log, after a crash say, dispatches from there again. Entries may outlive what they point to (the
log is cut from both ends); the reader of the message sees that.

Owned by the task that owns the log. Full files are worth a flush and a note in the checkpoint;
`take_full` hands them over for that.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from datetime import UTC, datetime
from itertools import islice
from typing import TYPE_CHECKING, Final, NamedTuple

from gantrymq.errors import InvalidValue
from gantrymq.kernel import kernel
from gantrymq.store.errors import StoreDamaged
from gantrymq.store.index_file import IndexFile, index_file_bytes

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from pathlib import Path

    from gantrymq.clock import Clock
    from gantrymq.kernel.interface import Buffer
    from gantrymq.store.files import Files

INDEX_DIRECTORY: Final = "index"
MATCHES_MAX: Final = 64
"""Default of maxMsgsNumBatch: no query answers more, whatever it asks for."""
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
        self._is_cut_short = True
        if self._list:
            position = self._list[-1].insert(keys, position)
        while len(keys) - position >= _KEY_BYTES:
            position = self._roll().insert(keys, position)
        self._is_cut_short = False

    def _first_new(self, keys: Buffer) -> int:
        """Return the position of the first key of a message that is not indexed."""
        if not self._list or self._is_cut_short:
            return 0
        last = self._list[-1].header
        if len(self._list) == 1 and last.next_number <= 1:
            return 0

        def log_offset(number: int) -> int:
            return int.from_bytes(keys[_KEY_BYTES * number + 4 : _KEY_BYTES * number + 12])

        numbers = range(len(keys) // _KEY_BYTES)
        if not numbers or log_offset(0) > last.end_log_offset:
            return 0
        return _KEY_BYTES * bisect_right(numbers, last.end_log_offset, key=log_offset)

    def take_full(self) -> list[IndexFile]:
        """Return the files that have become full since the last call.

        Once `region.sync()` has forced one, the checkpoint's index timestamp is its end timestamp.
        """
        full, self._full = self._full, []
        return full

    def _roll(self) -> IndexFile:
        """Make the next file."""
        self._files.make_directory(self._directory)
        region = self._files.create(
            self._directory / self._next_name(), index_file_bytes(self._slots, self._entries_max)
        )
        file = IndexFile(region, self._slots, self._entries_max)
        if self._list:
            file.follow(self._list[-1].header)
            self._full.append(self._list[-1])
        self._list.append(file)
        return file

    def _next_name(self) -> str:
        moment = datetime.fromtimestamp(self._clock.now_ms() // 1000, UTC).astimezone()
        name = f"{moment:%Y%m%d%H%M%S}{self._clock.now_ms() % 1000:03d}"
        if self._list and int(name) <= int(self._list[-1].path.name):
            # Made in the same millisecond, or the clock went back: only the order matters.
            name = str(int(self._list[-1].path.name) + 1)
        return name

    # -- query -----------------------------------------------------------------------------------

    def query(self, topic: str, key: str, count_max: int, begin_ms: int, end_ms: int) -> Found:
        """Return the newest messages with a key that were stored within a range of time.

        Messages with another key of the same hash may be among them.
        """
        wanted, found = key_hash(topic, key), list[int]()
        count_max = min(count_max, self._matches_max)
        for file in reversed(self._list):
            if file.overlaps(begin_ms, end_ms):
                matches = file.find(wanted, begin_ms, end_ms)
                found += islice(matches, max(count_max - len(found), 0))
            if file.header.begin_timestamp < begin_ms or len(found) >= count_max:
                break
        if not self._list:
            return Found(found, 0, 0)
        last = self._list[-1].header
        return Found(found, last.end_timestamp, last.end_log_offset)

    # -- recovery and retention ------------------------------------------------------------------

    def load(self, safe_until_ms: int | None = None) -> list[Path]:
        """Map the files that are there; other things in the directory are left alone.

        After a crash `safe_until_ms` is the checkpoint's index timestamp: files with later entries
        may be damaged and are removed, and so are files without any. Returns what was removed.

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
            if safe_until_ms is not None and not _is_safe(file, safe_until_ms):
                file.close()
                removed.append(path)
                continue
            self._list.append(file)
        for path in removed:
            self._files.remove(path)
            self._is_cut_short = True
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


def _is_safe(file: IndexFile, safe_until_ms: int) -> bool:
    """Tell whether a file was forced before a crash, as far as the checkpoint knows."""
    header = file.header
    return header.next_number > 1 and header.end_timestamp <= safe_until_ms
