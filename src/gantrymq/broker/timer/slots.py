"""Which timers are due in which minute: files of fixed-size entries, one for each minute to come.

    ROOT/timerslots/<minute>      entries: i64 second, i64 queue offset * 2 + (1 for a marker)
    ROOT/timerslots/progress      how much of all that counts, and its check sums

An entry names a record of the timer's topic. What is due within the hour lies in the file of its
minute; what is due later lies in the file of the last minute of that hour, and is put further when
that minute comes. So there are about sixty files, whatever waits, and only one minute is in memory.

Entries are collected in memory and written by a worker, one job at a time: it writes and forces the
files, then replaces the progress, which says up to which byte each file counts and up to which
offset the topic has been read. Whatever a crash leaves behind that is found again in the topic. So
is everything of a file that is missing, cut short, or has another check sum than it was saved with:
`lost` is told from which offset on.

Owned by one task; what runs on the worker gets plain values.
"""

from __future__ import annotations

import logging
import struct
from array import array
from functools import partial
from typing import TYPE_CHECKING, Final

import msgspec

from gantrymq.broker.timer.minute_file import PROGRESS, Slot, Taken, Write, content_of, perform
from gantrymq.broker.timer.progress import encode_progress, parse_progress
from gantrymq.store import config_files

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping
    from pathlib import Path

    from gantrymq.broker.timer.progress import Progress
    from gantrymq.clock import Clock
    from gantrymq.store.files import Files
    from gantrymq.store.worker import Worker

log = logging.getLogger(__name__)

_ENTRY: Final = struct.Struct(">qq")
MINUTE_S: Final = 60
HORIZON_MINUTES: Final = 60
BUFFER_BYTES_MAX: Final = 16 << 20
"""Entries that wait for the worker; then the topic is not read further until it has caught up."""
_DIRECTORY: Final = "timerslots"


class TimerSlots:
    """The entries of all timers that wait."""

    def __init__(
        self, files: Files, root: Path, config: Path, worker: Worker, clock: Clock
    ) -> None:
        self._files = files
        self._clock = clock
        self._directory = root / _DIRECTORY
        self._apache = config / "timercheck"
        self._worker = worker
        self._slots: dict[int, Slot] = {}
        self._gone: list[int] = []
        self._window: dict[int, array[int]] = {}
        self._loaded = -1
        self._trusted = 0  # entries of earlier processes count below this queue offset
        self.is_busy = False
        """A job is under way; there is one at a time."""
        self.buffered_bytes = 0
        self.lost: Callable[[int], None] = lambda _offset: None
        """Told from which queue offset on the topic has to be read again."""

    # -- start ----------------------------------------------------------------------------------

    def open(self) -> Progress | None:
        """Return what was saved last, if anything. Blocks.

        Raises:
            StoreDamaged: there is a file, and neither it nor its backup can be understood.
        """
        self._files.make_directory(self._directory)
        found = config_files.load(self._files, self._directory / PROGRESS, parse_progress)
        return None if found is None else found.value

    def apache_check(self) -> bytes:
        """Return the content of Apache's own file; empty without one. Blocks."""
        return self._files.read(self._apache) if self._files.exists(self._apache) else b""

    def begin(self, progress: Progress) -> None:
        """Go on from what was saved. Files that it does not name are of no use. Blocks."""
        now_minute = progress.next_second // MINUTE_S
        for text, (written, lowest) in progress.slots.items():
            if int(text) >= now_minute and written > 0:
                self._slots[int(text)] = Slot(written, lowest, progress.sums.get(text))
        self._loaded = now_minute - 1
        self._trusted = progress.read_offset
        for name in self._files.names(self._directory):
            if name.isdecimal() and int(name) not in self._slots:
                self._files.remove(self._directory / name)

    # -- entries --------------------------------------------------------------------------------

    def add(self, second: int, queue_offset: int, next_second: int, *, marker: bool) -> None:
        """Keep an entry; one that is due before `next_second` is due then."""
        second = max(second, next_second)
        code = queue_offset * 2 + marker
        # Who is far behind does not go there hour by hour.
        first = max(next_second, self._clock.now_ms() // 1000) // MINUTE_S
        minute = min(second // MINUTE_S, first + HORIZON_MINUTES)
        if minute <= self._loaded:
            self._window.setdefault(second, array("q")).append(code)
        slot = self._slots.get(minute)
        if slot is None:
            slot = self._slots[minute] = Slot()
        slot.buffer += _ENTRY.pack(second, code)
        slot.lowest = min(slot.lowest, queue_offset)
        self.buffered_bytes += _ENTRY.size

    @property
    def is_full(self) -> bool:
        """Tell whether entries have to wait for the worker."""
        return self.buffered_bytes >= BUFFER_BYTES_MAX

    @property
    def is_empty(self) -> bool:
        """Tell whether nothing waits."""
        return not self._slots and not self._window

    @property
    def has_news(self) -> bool:
        """Tell whether there are entries that no save has written."""
        return self.buffered_bytes > 0

    def is_loaded(self, second: int) -> bool:
        """Tell whether `take` knows of everything that is due in a second."""
        return second // MINUTE_S <= self._loaded

    def next_second(self, second: int, limit: int) -> int:
        """Return the first second from one on, below a limit, in which something may be due."""
        known = [one for one in self._window if second <= one < limit]
        known += [
            max(minute * MINUTE_S, second)
            for minute in self._slots
            if minute > self._loaded and minute * MINUTE_S < limit
        ]
        return min(known, default=limit)

    def take(self, second: int) -> list[int]:
        """Return the codes of a second in the order of their offsets, each once, and forget them.

        Twice is possible behind a crash: in a file, and found again in the topic.
        """
        return sorted(set(self._window.pop(second, ())))

    def lowest_offset(self, otherwise: int) -> int:
        """Return the lowest queue offset of anything that waits."""
        return min((slot.lowest for slot in self._slots.values()), default=otherwise)

    # -- jobs -----------------------------------------------------------------------------------

    def load(
        self, second: int, loaded: Callable[[], None], failed: Callable[[Exception], None]
    ) -> None:
        """Bring the minute of a second into memory; what is due later is put further."""
        minute = second // MINUTE_S
        slot = self._slots.get(minute)
        if slot is None or not slot.written:
            self._take_in(minute, b"", second)
            loaded()
            return
        self.is_busy = True

        def done(content: bytes) -> None:
            self.is_busy = False
            is_right = slot.is_right(content)
            if not is_right:
                self._miss(minute, slot)
            self._take_in(minute, content if is_right else b"", second)
            loaded()

        def broken(error: Exception) -> None:
            self.is_busy = False
            failed(error)

        path = self._directory / str(minute)
        self._worker.submit(partial(content_of, self._files, path, slot.written), done, broken)

    def _miss(self, minute: int, slot: Slot) -> None:
        """Have the entries of a damaged file made again."""
        log.error(
            "%s is missing or damaged: its timers are read again from the topic, from offset %d "
            "on; some may be delivered twice", self._directory / str(minute), slot.lowest,
        )  # fmt: skip
        slot.give_up()
        self.lost(slot.lowest)

    def _take_in(self, minute: int, content: bytes, next_second: int) -> None:
        """Take entries into memory.

        Those behind the offset that counts are found again in the topic; the record that they name
        may be another one by now, for a power cut may have taken the end of the log.
        """
        slot = self._slots.get(minute)
        self._loaded = max(self._loaded, minute)
        if slot is None:
            return
        raw = content + bytes(slot.buffer)
        position = 0
        for second, code in _ENTRY.iter_unpack(raw[: len(raw) - len(raw) % _ENTRY.size]):
            position += _ENTRY.size
            if position <= slot.found and code >> 1 >= self._trusted:
                continue
            if second // MINUTE_S > minute:
                self.add(second, code >> 1, next_second, marker=bool(code & 1))
            elif second >= next_second:
                self._window.setdefault(second, array("q")).append(code)

    def drop_before(self, second: int) -> None:
        """Forget the minutes that have been delivered; their files go with the next save."""
        minute = second // MINUTE_S
        for gone in [one for one in self._slots if one < minute and one <= self._loaded]:
            self.buffered_bytes -= len(self._slots.pop(gone).buffer)
            self._gone.append(gone)

    def save(
        self,
        progress: Progress,
        apache: bytes,
        saved: Callable[[], None],
        failed: Callable[[Exception], None],
    ) -> None:
        """Write what was collected, then that it counts; what is not there any more goes."""
        job, undo = self._save_job(progress, apache)
        self.is_busy = True

        def done(_: None) -> None:
            self.is_busy = False
            saved()

        def broken(error: Exception) -> None:
            self.is_busy = False
            undo()
            failed(error)

        self._worker.submit(job, done, broken)

    def finish(self, progress: Progress, apache: bytes) -> None:
        """Save and wait for it: the end of a broker. Blocks.

        Raises:
            OSError: the disk refuses.
        """
        self._worker.begin(self._save_job(progress, apache)[0]).result()

    def _save_job(
        self, progress: Progress, apache: bytes
    ) -> tuple[Callable[[], None], Callable[[], None]]:
        """Return what the worker does, and how to take it back in memory if it fails."""
        writes, taken = [], {}
        for minute, slot in self._slots.items():
            if slot.buffer:
                data = bytes(slot.buffer)
                writes.append(Write(self._directory / str(minute), slot.written, data))
                taken[minute] = Taken(data, slot.sum)
                slot.note_written(data)
                slot.buffer.clear()
        gone, self._gone, self.buffered_bytes = self._gone, [], 0
        slots = {str(one): (slot.written, slot.lowest) for one, slot in self._slots.items()}
        sums = {str(one): slot.sum for one, slot in self._slots.items() if slot.sum is not None}
        content = encode_progress(msgspec.structs.replace(progress, slots=slots, sums=sums))

        def job() -> None:
            perform(self._files, self._directory, writes, content, gone)
            if apache:
                config_files.save(self._files, self._apache, apache)

        return job, partial(self._take_back, taken, gone)

    def _take_back(self, taken: Mapping[int, Taken], gone: Iterable[int]) -> None:
        for minute, (data, before) in taken.items():
            slot = self._slots.get(minute)
            if slot is not None:
                slot.written -= len(data)
                slot.sum = before
                slot.buffer[:0] = data
                self.buffered_bytes += len(data)
        self._gone += gone
