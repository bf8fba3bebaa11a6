"""The commit log: every message of the broker, one after the other, in files of equal size.

Appending is the only way in, and there are three: a run of ordinary sends straight from a receive
buffer, single records that policy has made, and raw bytes from a master. All of them end at the
same tail, so that log offsets, queue offsets and store timestamps are given in one place and in
one order. A record never crosses a file: what does not fit leaves a blank record behind and goes
to the next file.

Behind the tail there is nothing but zeros, always. A walk after a crash takes a whole record at the
end for a message, so what an append that failed has left there is wiped before anybody else comes.

With a transient store pool a new file may have a buffer of its own. Only the last file ever holds
bytes that are not committed: a file is committed before the next one is begun.

Owned by one task. Flush threads get a `Region` and an offset, and never look at anything else.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from gantrymq.errors import InvalidValue
from gantrymq.kernel import BLANK_BYTES_MIN, LaneStop, Record, SendRun, SendTurn, kernel
from gantrymq.store.allocation import FileNotMade
from gantrymq.store.mapped_file import PAGE_BYTES, is_due
from gantrymq.store.torn import check_never_torn

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from gantrymq.clock import Clock
    from gantrymq.kernel.interface import Buffer
    from gantrymq.kernel.lanes import SendLane
    from gantrymq.store.allocation import LogFiles
    from gantrymq.store.mapped_file import MappedFile


class Appended(NamedTuple):
    """Where records went."""

    log_offsets: tuple[int, ...]
    end: int
    store_timestamp: int


class CommitLog:
    """The files of the log, oldest first, and its tail."""

    def __init__(self, log_files: LogFiles, lane: SendLane, clock: Clock) -> None:
        self._log_files = log_files
        self._lane = lane
        self._clock = clock
        self._files: list[MappedFile] = []
        self._stamp_ms = 0
        self._committed_stamp_ms = 0
        self._is_prepared = False

    # -- what there is --------------------------------------------------------------------------

    @property
    def file_bytes(self) -> int:
        """Return the length of a file."""
        return self._log_files.file_bytes

    @property
    def files(self) -> Sequence[MappedFile]:
        """Return the files, oldest first."""
        return self._files

    @property
    def min_offset(self) -> int:
        """Return the log offset of the first byte; 0 while there is no file."""
        return self._files[0].start if self._files else 0

    @property
    def wrote_offset(self) -> int:
        """Return the log offset behind the last record appended."""
        return self._files[-1].start + self._files[-1].wrote if self._files else 0

    @property
    def committed_offset(self) -> int:
        """Return the log offset up to which the files hold what was appended."""
        return self._files[-1].start + self._files[-1].committed if self._files else 0

    @property
    def committed_pages_offset(self) -> int:
        """Return the same without the page of the tail, which is still being written to."""
        if not self._files:
            return 0
        tail = self._files[-1]
        if tail.committed == tail.size:
            return tail.start + tail.size
        return tail.start + tail.committed // PAGE_BYTES * PAGE_BYTES

    @property
    def committed_stamp_ms(self) -> int:
        """Return a store timestamp that no record behind `committed_offset` is older than."""
        if self._files and self._files[-1].is_buffered:
            return self._committed_stamp_ms
        return self._stamp_ms

    def read(self, log_offset: int, count: int) -> memoryview | None:
        """Return committed bytes of one file as a slice of its map; None if they are not there."""
        file = self.file_at(log_offset)
        return None if file is None else file.read(log_offset - file.start, count)

    def file_at(self, log_offset: int) -> MappedFile | None:
        """Return the file that an offset lies in."""
        if not self._files:
            return None
        index = (log_offset - self._files[0].start) // self.file_bytes
        return self._files[index] if 0 <= index < len(self._files) else None

    def spans(self, start: int, end: int) -> Iterator[tuple[MappedFile, int, int]]:
        """Cut [start, end) of the log into (file, from, to), positions within each file.

        What lies before the first file is passed over.
        """
        start = max(start, self.min_offset)
        while start < end:
            file = self.file_at(start)
            if file is None:
                return
            stop = min(end, file.start + self.file_bytes)
            yield file, start - file.start, stop - file.start
            start = stop

    # -- appending ------------------------------------------------------------------------------

    def limit_bodies(self, body_bytes_max: int) -> None:
        """Let the lane take other sizes of bodies from now on."""
        self._lane.limit_bodies(body_bytes_max)

    def append_sends(self, buffer: Buffer, start: int, end: int, born_host: bytes) -> SendRun:
        """Store the ordinary sends at the front of a receive buffer; see `SendLane.append`.

        When the next file cannot be made, the run ends with `LaneStop.LOG_FULL` behind those that
        were stored, so that they are answered.

        Raises:
            FileNotMade: the next file cannot be made, and nothing was stored.
        """
        total: SendRun | None = None
        while True:
            try:
                tail = self._tail()
            except FileNotMade:
                if total is None or not total.requests:
                    raise
                return total
            run = self._lane.append(
                buffer,
                start if total is None else total.consumed,
                end,
                tail.tail,
                tail.wrote,
                tail.size,
                tail.start,
                born_host,
                self._stamp(),
            )
            self._advance(tail, run.log_position)
            total = run if total is None else _joined(total, run)
            if run.stop is not LaneStop.LOG_FULL:
                return total
            if tail.wrote == 0:
                # A whole empty file is too small for it: Python says so to the sender.
                return total._replace(stop=LaneStop.POLICY)
            self._roll()

    def append_turn(self, buffer: Buffer, parts: Sequence[tuple[int, int, bytes]]) -> SendTurn:
        """Store the ordinary sends of several connections; see `SendLane.append_each`.

        It never makes or takes a file: where the last one is full, the walk ends with
        `LaneStop.LOG_FULL`, and `append_sends` goes on.
        """
        tail = self._files[-1] if self._files else None
        if tail is None or tail.is_full:
            return SendTurn([], 0, 0, 0, LaneStop.LOG_FULL)
        turn = self._lane.append_each(
            buffer, parts, tail.tail, tail.wrote, tail.size, tail.start, self._stamp()
        )
        self._advance(tail, turn.log_position)
        return turn

    def append(self, records: Sequence[Record]) -> Appended:
        """Store records one behind the other in one file; offsets and times are given here.

        The queue offsets are the caller's: prepared messages have none.

        Raises:
            InvalidValue: they do not fit, or recovery might take one for a torn record.
            FileNotMade: the next file cannot be made.
        """
        for record in records:
            check_never_torn(record)
        sizes = [kernel.record_bytes(record) for record in records]
        tail = self._tail()
        if sum(sizes) + BLANK_BYTES_MIN > tail.size - tail.wrote:
            if sum(sizes) + BLANK_BYTES_MIN > tail.size:
                raise InvalidValue(
                    f"{sum(sizes)} bytes do not fit into a log file of {tail.size}; "
                    "raise mappedFileSizeCommitLog or send less at once"
                )
            self._roll()
            tail = self._tail()
        stamp, position = self._stamp(), tail.wrote
        offsets = []
        try:
            for record in records:
                offsets.append(tail.start + position)
                stored = record._replace(log_offset=offsets[-1], store_timestamp=stamp)
                position = kernel.encode_record(tail.tail, position, tail.size, stored)
        except BaseException:
            # The records before the bad one are whole, and would pass for messages some day.
            tail.tail[tail.wrote : tail.wrote + sum(sizes)] = bytes(sum(sizes))
            raise
        self._advance(tail, position)
        return Appended(tuple(offsets), tail.start + position, stamp)

    def append_raw(self, log_offset: int, data: Buffer) -> None:
        """Store bytes that another log holds at the same offset; they never cross a file.

        A log without files may begin anywhere a file may begin, and nowhere else: a walk over it
        would find nothing behind a hole.
        """
        if not self._files and log_offset % self.file_bytes == 0:
            self._add(self._log_files.take(log_offset))
        if log_offset != self.wrote_offset:
            raise InvalidValue(
                f"bytes of offset {log_offset} for a log that ends at {self.wrote_offset}"
            )
        tail = self._tail()
        end = tail.wrote + len(data)
        if end > tail.size:
            raise InvalidValue(f"{len(data)} bytes at offset {log_offset} cross the end of a file")
        tail.tail[tail.wrote : end] = data
        self._advance(tail, end)

    def cut_tail(self, log_offset: int) -> None:
        """Drop what lies behind an offset of the last file: the beginning of a record, no more.

        Raises:
            InvalidValue: it lies before the last file.
        """
        if log_offset == self.wrote_offset:
            return
        tail = self._files[-1] if self._files else None
        if tail is None or not tail.start <= log_offset < self.wrote_offset:
            raise InvalidValue(f"offset {log_offset} is not in the last file of the log")
        tail.cut(log_offset - tail.start)

    def commit(self, least_pages: int = 0) -> bool:
        """Bring what lies in a transient buffer into its file, if so many pages have begun.

        Tells whether there is anything more to read.
        """
        tail = self._files[-1] if self._files else None
        if tail is None or not tail.is_buffered:
            return False
        if not is_due(tail.wrote, tail.committed, tail.size, least_pages):
            return False
        return self._commit(tail) > 0

    def _commit(self, file: MappedFile) -> int:
        count = file.commit()
        self._committed_stamp_ms = self._stamp_ms
        buffer = file.release_transient()
        if buffer is not None:
            self._log_files.give_back(buffer)
        return count

    def stamp_from(self, store_timestamp: int) -> None:
        """Give no store timestamp earlier than one that the log holds from elsewhere."""
        self._stamp_ms = max(self._stamp_ms, store_timestamp)

    def _stamp(self) -> int:
        """Return a store timestamp: the clock, but never earlier than the record before."""
        self._stamp_ms = max(self._stamp_ms, self._clock.now_ms())
        return self._stamp_ms

    def _advance(self, tail: MappedFile, position: int) -> None:
        """Note what was appended; from the middle of a file on, the next one is wanted."""
        tail.advance(position)
        self._log_files.advanced(tail)
        if not self._is_prepared:
            self.prepare()

    def prepare(self) -> None:
        """Have the next file made ahead if the last one is half full: a start has taken none."""
        if self._files and 2 * self._files[-1].wrote >= self.file_bytes:
            self._is_prepared = True
            self._log_files.prepare(self._files[-1].start + self.file_bytes)

    def _tail(self) -> MappedFile:
        """Return the file that takes the next record."""
        if not self._files:
            self._add(self._log_files.take(0))
        elif self._files[-1].is_full:
            self._add(self._log_files.take(self._files[-1].start + self.file_bytes))
        return self._files[-1]

    def _roll(self) -> None:
        """Close the last file with a blank record."""
        tail = self._files[-1]
        kernel.encode_blank(tail.tail, tail.wrote, tail.size)
        tail.advance(tail.size)

    def _add(self, file: MappedFile) -> None:
        if self._files and self._files[-1].is_buffered:
            self._commit(self._files[-1])
        self._files.append(file)
        self._is_prepared = True  # whoever takes a file has the next one begun

    # -- recovery and retention -----------------------------------------------------------------

    def load(self, files: Sequence[MappedFile], last_store_timestamp: int = 0) -> None:
        """Begin with files that recovery has found; their positions are set."""
        self._files = list(files)
        self._is_prepared = False
        self._stamp_ms = max(self._stamp_ms, last_store_timestamp)

    def drop_first(self) -> MappedFile:
        """Let the oldest file go; never the last one."""
        if len(self._files) < 2:
            raise InvalidValue("the last file of a log is never dropped")
        return self._files.pop(0)


def _joined(first: SendRun, second: SendRun) -> SendRun:
    return SendRun(
        second.consumed,
        second.log_position,
        first.requests + second.requests,
        first.messages + second.messages,
        first.replies + second.replies,
        second.stop,
    )
