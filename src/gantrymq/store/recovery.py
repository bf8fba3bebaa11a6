"""Finding where the log really ends, and making queues and index agree with it.

A clean stop leaves nothing to do but to look: the queues know where the last message ends, and the
walk begins a little before it (`clean_walk.py`). After a crash the walk begins at the newest file
whose first record is old enough to be in everything that the checkpoint vouches for, and every good
record from there on is dispatched again; what a queue has already is absorbed. The first record
that is not one ends the log: what lies behind it was never acknowledged as safe, and is cut off and
wiped, so that no later walk takes it for data.

Nothing here changes the disk before `LogRecovery.cut`; a reader that must leave a store untouched
stops before it.
"""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, closing
from typing import TYPE_CHECKING, Final, NamedTuple, TypeVar

from gantrymq.kernel import Scan, Stop, kernel
from gantrymq.store.file_queue import drop_unfinished, file_paths
from gantrymq.store.torn import find_torn, is_half_copied

if TYPE_CHECKING:
    from collections.abc import Callable, Generator, Iterable, Sequence
    from pathlib import Path

    from gantrymq.kernel import Dispatch
    from gantrymq.store.files import Files, Region
    from gantrymq.store.log_directories import LogDirectories

T = TypeVar("T")

CLEAN_FILES: Final = 3
"""Files that are walked after a clean stop that leaves doubts."""
RECORDS_MAX: Final = 16384
"""Records in one call of the kernel: small ones stay in a processor's cache until dispatched."""
AHEAD_BYTES: Final = 32 << 20
"""What the disk is asked for while what comes before it is looked at."""
PARALLEL_BYTES_MIN: Final = 8 << 20
"""Files from this size on are scanned on a thread of their own."""
WIPE_BYTES: Final = 1 << 20
"""Zeros written at once."""


class LogEnd(NamedTuple):
    """What a walk over the log found."""

    began_at: int
    """Log offset of the first file that was walked."""
    offset: int
    """Log offset behind the last good record; behind its file if a blank record follows it."""
    records: int
    stop: Stop
    """What stands at the end: BLANK and BAD_MAGIC are usual, the rest is damage."""
    last_store_timestamp: int


class RecoveryReport(NamedTuple):
    """What opening a store found and did."""

    clean: bool
    log_min: int
    log_end: LogEnd
    files_dropped: int
    bytes_wiped: int
    """Bytes behind the end of the last file: what a crash left half done."""
    queues: int
    dispatched_from: int
    seconds: float

    def __str__(self) -> str:
        """Return one line for the log."""
        how = "clean" if self.clean else "after a crash"
        return (
            f"store opened {how}: log {self.log_min} to {self.log_end.offset}, "
            f"{self.log_end.records} records walked from {self.log_end.began_at}, "
            f"ended by {self.log_end.stop.name}, {self.files_dropped} files dropped, "
            f"{self.queues} queues, {self.seconds:.2f} s"
        )


class LogRecovery:
    """The files of a log as a crash or a clean stop left them."""

    def __init__(self, directories: LogDirectories, file_bytes: int, files: Files) -> None:
        """Look at the files.

        Raises:
            StoreDamaged: they are not those of one log; see `file_paths`.
        """
        directories.check(files)
        self.files = files
        self.file_bytes = file_bytes
        self._directories = directories
        left_behind = directories.left_behind(files)
        self._paths = file_paths(files, directories.all, file_bytes, left_behind)
        self.starts = list(self._paths)

    @property
    def files_end(self) -> int:
        """Return the log offset behind the last file; 0 without one."""
        return self.starts[-1] + self.file_bytes if self.starts else 0

    def path(self, start: int) -> Path:
        """Return where a file lies."""
        return self._paths[start]

    def is_read_only(self, start: int) -> bool:
        """Tell whether a file is never written to: the last one is, wherever it lies."""
        return start != self.starts[-1] and self.path(start).parent in self._directories.read_only

    def clean_start(self) -> int:
        """Return the index of the file to begin with after a clean stop."""
        return max(0, len(self.starts) - CLEAN_FILES)

    def crash_start(self, safe_timestamp: int) -> int:
        """Return the index of the newest file whose first record everything else already knows."""
        for index in range(len(self.starts) - 1, 0, -1):
            first = self.first_store_timestamp(self.starts[index])
            if first is not None and first <= safe_timestamp:
                return index
        return 0

    def first_store_timestamp(self, start: int) -> int | None:
        """Return when the first record of a file was stored; None if it begins with none."""
        region = self.files.open(self.path(start), writable=False)
        try:
            found = kernel.scan_records(region.buffer, 0, region.size, start, False, 1)
            return found.first_store_timestamp if found.records else None
        finally:
            region.close()

    def walk(
        self,
        begin: int,
        *,
        verify_crc: bool,
        forced_until_ms: int | None = None,
        delays_ms: Sequence[int] = (),
        take: Callable[[Dispatch], None] | None = None,
        progress: Callable[[int], None] | None = None,
    ) -> LogEnd:
        """Walk the files from index `begin` to the end of the log.

        With `take` every record is dispatched to it; otherwise they are only checked. After a crash
        `forced_until_ms` is a store timestamp before which the log is known to be on the disk;
        records that may be younger are searched for tears that no CRC shows.
        """
        began_at = self.starts[begin] if self.starts else 0
        end = LogEnd(began_at, began_at, 0, Stop.BAD_MAGIC, 0)
        for start in self.starts[begin:]:
            region = self.files.open(self.path(start), writable=False)
            try:
                check = _Check(start, region, verify_crc, forced_until_ms)
                end = _walk_file(check, end, delays_ms, take, progress)
            finally:
                region.close()
            if end.stop is not Stop.BLANK and end.offset != start + self.file_bytes:
                break
        return self.behind_blank(end)

    def behind_blank(self, end: LogEnd) -> LogEnd:
        """Return the end of a log whose last file is closed, though the next one was never made.

        The disk was full, say. The blank record counts: a slave may have it, and would never ask
        for what was stored in its place. (Apache stores there.)
        """
        if end.stop is not Stop.BLANK:
            return end
        return end._replace(offset=end.offset - end.offset % self.file_bytes + self.file_bytes)

    def cut(self, end: int, *, trusts_zeros: bool = True) -> tuple[int, int]:
        """Wipe what lies behind the end and force it; return (files dropped, bytes wiped).

        Zeros are written again where they stand already only if it is not known that the disk has
        them. Whatever moment this is interrupted at, the next recovery finds the same end.
        """
        drop_unfinished(self.files, *self._directories.all)
        dropped = [start for start in self.starts[1:] if start >= end]
        kept = self.starts[: len(self.starts) - len(dropped)]
        for start in reversed(dropped):
            # One by one: a power cut that brought back the later one alone would leave a gap.
            self.files.remove(self.path(start))
            self.files.sync_directory(self.path(start).parent)
        wiped = 0
        if kept:
            last = self.path(kept[-1])
            position = min(end - kept[-1], self.file_bytes)
            wiped = self._wipe(last, position, trusts_zeros=trusts_zeros)
        self.starts = kept
        return len(dropped), wiped

    def rewrite(self, begin: int, end: int) -> None:
        """Write the log from an offset on once more, so that its pages are dirty again."""
        for start in self.starts:
            position = max(begin - start, 0)
            stop = min(end - start, self.file_bytes)
            while position < stop:
                data = self.files.read_at(
                    self.path(start), position, min(WIPE_BYTES, stop - position)
                )
                self.files.write_at(self.path(start), position, data, self.file_bytes)
                position += len(data)

    def _wipe(self, path: Path, position: int, *, trusts_zeros: bool) -> int:
        """Overwrite the rest of a file with zeros; return how far behind the position it had any.

        Most of it is zeros already, in a file that was touched ahead, and writing costs more than
        reading. What is wiped is forced, and nothing else: a second of appends may lie before it
        that nobody has asked the disk to hold yet.
        """
        begin, last, end = position, position, self.files.data_end(path)
        while position < end:
            data = self.files.read_at(path, position, min(WIPE_BYTES, end - position))
            zeros = bytes(len(data))
            if data != zeros:
                last = position + len(data.rstrip(b"\0"))
            if data != zeros or not trusts_zeros:
                self.files.write_at(path, position, zeros, self.file_bytes)
            position += len(data)
        if end > begin:
            region = self.files.open(path)
            try:
                region.sync(begin, end)
            finally:
                region.close()
        return last - begin


class _Check(NamedTuple):
    """A file of the log and how closely it is looked at."""

    start: int
    region: Region
    verify_crc: bool
    forced_until_ms: int | None

    def scan(self, position: int) -> Scan:
        """Find the good records from a position on."""
        buffer, end = self.region.buffer, self.region.size
        found = kernel.scan_records(buffer, position, end, self.start, self.verify_crc, RECORDS_MAX)
        if self.forced_until_ms is None or found.last_store_timestamp < self.forced_until_ms:
            return found
        torn = find_torn(buffer, position, found.end)
        if torn is None:
            torn = self._half_copied(position, found)
        if torn is None:
            return found
        found = kernel.scan_records(buffer, position, torn, self.start, False, RECORDS_MAX)
        return found._replace(stop=Stop.BAD_CRC)

    def _half_copied(self, position: int, found: Scan) -> int | None:
        """Return where the last record of a scan begins if it lacks its end, or None."""
        buffer = self.region.buffer
        if not found.records or buffer[found.end - 1] != 0:
            return None
        last = position
        if found.records > 1:
            last = kernel.scan_records(
                buffer, position, found.end, self.start, False, found.records - 1
            ).end
        return last if is_half_copied(buffer, last, found.end) else None

    def ask_ahead(self, position: int, asked: int) -> int:
        """Have the disk read on before it is needed; return how far it was asked to."""
        if position + AHEAD_BYTES <= asked or asked == self.region.size:
            return asked
        begin = max(position, asked)
        end = min(begin + 2 * AHEAD_BYTES, self.region.size)
        self.region.will_read(begin, end)
        return end


def _walk_file(
    check: _Check,
    end: LogEnd,
    delays_ms: Sequence[int],
    take: Callable[[Dispatch], None] | None,
    progress: Callable[[int], None] | None,
) -> LogEnd:
    """Walk over one file: scan it, make units and keys of what was found, hand them to `take`.

    Of a long file the first two run ahead, on a thread each: the kernel does its work without the
    interpreter's lock, so that recovery keeps two cores busy.
    """
    records, stamp, asked = end.records, end.last_store_timestamp, 0
    scan = Scan(0, 0, Stop.BAD_MAGIC, 0, 0)
    with ExitStack() as stack:
        is_long = check.region.size >= PARALLEL_BYTES_MIN
        chunks = _scanned(check)
        if is_long:
            chunks = stack.enter_context(closing(_ahead(chunks)))
        made = _dispatched(check, chunks, None if take is None else tuple(delays_ms))
        if is_long:
            made = stack.enter_context(closing(_ahead(made)))
        for scan, dispatch in made:
            asked = check.ask_ahead(scan.end, asked)
            if take is not None and dispatch is not None:
                take(dispatch)
            records += scan.records
            stamp = max(stamp, scan.last_store_timestamp)
            if progress is not None:
                progress(check.start + scan.end)
    return LogEnd(end.began_at, check.start + scan.end, records, scan.stop, stamp)


def _scanned(check: _Check) -> Generator[tuple[int, Scan], None, None]:
    """Yield (position, what a scan found from there on) up to the end of the good records."""
    position, stop = 0, Stop.LIMIT
    while stop is Stop.LIMIT:
        scan = check.scan(position)
        yield position, scan
        position, stop = scan.end, scan.stop


def _dispatched(
    check: _Check, chunks: Iterable[tuple[int, Scan]], delays_ms: tuple[int, ...] | None
) -> Generator[tuple[Scan, Dispatch | None], None, None]:
    """Yield scans with the units and keys of their records; None where there is nothing to make."""
    buffer = check.region.buffer
    for position, scan in chunks:
        made = None
        if delays_ms is not None and scan.records:
            made = kernel.dispatch_records(
                buffer, position, scan.end, check.start, False, RECORDS_MAX, delays_ms
            )
        yield scan, made


def _ahead(items: Generator[T, None, None]) -> Generator[T, None, None]:
    """Yield the same, with the next one being made on a thread meanwhile."""
    with ThreadPoolExecutor(1, "gantrymq-recovery") as thread:
        following = thread.submit(next, items, None)
        while (item := following.result()) is not None:
            following = thread.submit(next, items, None)
            yield item
