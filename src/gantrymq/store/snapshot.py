"""The queues and the log of a store as files, for readers that take ranges of them: Spark's tasks.

A planner asks what there is, many tasks in other processes read parts of it, and meanwhile the
broker may go on. So nothing here is shared but offsets, and there are two ways to look:

- **files**: a broker runs on the store, or it was stopped cleanly. Its queue files are the truth up
  to their last whole unit: a broker writes a unit only when the message may be read, and with
  SYNC_FLUSH that is when it is on the disk. Ours writes them about once a second.
- **recovered**: the broker died. What its recovery would serve is found by that recovery, in
  memory (`StoreReader`); every process that reads does it once.

Which of the two is `open_snapshot`'s decision, and tasks are told it. Nothing is written, no lock
is taken. Owned by one thread.
"""

from __future__ import annotations

import re
import struct
from collections import OrderedDict
from threading import Event
from typing import TYPE_CHECKING, Final, Protocol

from gantrymq.kernel import RECORD_MAGIC_V1, RECORD_MAGIC_V2, UNIT_BYTES
from gantrymq.model.names import is_path_safe
from gantrymq.store.errors import StoreDamaged
from gantrymq.store.files import OsFiles
from gantrymq.store.lock_holder import holder_of
from gantrymq.store.log_directories import log_directories
from gantrymq.store.log_walk import Span
from gantrymq.store.process_lock import was_aborted
from gantrymq.store.queue_files import QueueFiles
from gantrymq.store.queue_table import QUEUES_DIRECTORY
from gantrymq.store.reader import QueueRange, StoreReader
from gantrymq.store.shape import settings_of
from gantrymq.store.unit_walk import UNIT, find_message, walk

if TYPE_CHECKING:
    from pathlib import Path

    from gantrymq.store.files import Region
    from gantrymq.store.settings import StoreSettings

__all__ = ["FileSnapshot", "RecoveredSnapshot", "Snapshot", "open_snapshot"]

MAPPED_MAX: Final = 16
"""Log files that are mapped at once."""
LOOKS_MAX: Final = 50
"""How often a queue is looked at whose files are being made just now."""
_LOOK_S: Final = 0.02
_DISTRUSTED_MAX: Final = 4
"""Units at the end of a queue that may point to what is not there yet."""
_QUEUE_ID: Final = re.compile(r"0|[1-9][0-9]{0,9}")
_HEAD: Final = struct.Struct(">iI12xqq")
"""Of a record: size, magic, queue offset, log offset."""
_MAGICS: Final = frozenset({RECORD_MAGIC_V1, RECORD_MAGIC_V2})


class Snapshot(Protocol):
    """Queues and log of a store."""

    @property
    def is_recovered(self) -> bool:
        """Tell whether a recovery in memory was needed to see this."""
        ...

    def queues(self) -> list[QueueRange]:
        """Return all queues with their offsets, as they are now."""
        ...

    def units(self, topic: str, queue_id: int, offset: int, units_max: int) -> bytes:
        """Return units from a queue offset on: fewer at the end, none where there are none.

        Raises:
            StoreDamaged: a file is not what it was.
        """
        ...

    def span_at(self, log_offset: int) -> Span | None:
        """Return the log file that holds a log offset; None if there is none."""
        ...

    def close(self) -> None:
        """Give up the mappings."""
        ...


class RecoveredSnapshot:
    """What a broker would serve after its recovery; stays as it was when it was opened."""

    is_recovered: Final = True

    def __init__(self, reader: StoreReader) -> None:
        self._reader = reader

    def queues(self) -> list[QueueRange]:
        """Return all queues with their offsets."""
        return self._reader.queues()

    def units(self, topic: str, queue_id: int, offset: int, units_max: int) -> bytes:
        """Return units from a queue offset on."""
        queue = self._reader.queue_table.find(topic, queue_id)
        return b"" if queue is None else queue.read(offset, units_max)

    def span_at(self, log_offset: int) -> Span | None:
        """Return the log file that holds a log offset."""
        if not self._reader.min_log_offset <= log_offset < self._reader.max_log_offset:
            return None
        file = self._reader.log.file_at(log_offset)
        return None if file is None else Span(file.region.buffer, 0, file.wrote, file.start)

    def close(self) -> None:
        """Give up the mappings."""
        self._reader.close()


class FileSnapshot:
    """The files of a store that is in order, as they are now."""

    is_recovered: Final = False

    def __init__(self, directory: Path, configuration: Path | None = None) -> None:
        self._directory = directory
        self._configuration = configuration
        self._files = OsFiles()
        self._settings = settings_of(directory, self._files, configuration)
        self._log = LogMaps(self._settings, self._files)
        self._known: dict[tuple[str, int], _Queue] = {}

    def queues(self) -> list[QueueRange]:
        """Return all queues with their offsets, as they are now."""
        if not self._known:
            # The sizes of files come from files, and there may not have been any.
            self._settings = settings_of(self._directory, self._files, self._configuration)
            self._log.close()
            self._log = LogMaps(self._settings, self._files)
        log_min = self._log.min_offset()
        found = {}
        root = self._settings.paths.root / QUEUES_DIRECTORY
        for topic in self._files.names(root):
            if not is_path_safe(topic):
                continue
            for name in self._names(root / topic):
                if not _QUEUE_ID.fullmatch(name):
                    continue
                key = topic, int(name)
                found[key] = self._known.get(key) or self._queue(topic, int(name))
        self._known = found
        return sorted(queue.look(log_min, self._log) for queue in found.values())

    def _names(self, directory: Path) -> list[str]:
        try:
            return self._files.names(directory)
        except NotADirectoryError:
            return []

    def _queue(self, topic: str, queue_id: int) -> _Queue:
        directory = self._settings.paths.root / QUEUES_DIRECTORY / topic / str(queue_id)
        return _Queue(topic, queue_id, directory, self._settings, self._files)

    def units(self, topic: str, queue_id: int, offset: int, units_max: int) -> bytes:
        """Return units from a queue offset on; a name that leads elsewhere has none."""
        if not is_path_safe(topic):
            return b""
        return self._queue(topic, queue_id).read(offset, units_max)

    def span_at(self, log_offset: int) -> Span | None:
        """Return the log file that holds a log offset."""
        return self._log.span_at(log_offset)

    def close(self) -> None:
        """Give up the mappings."""
        self._log.close()


class _Queue:
    """One queue's files: how far their units go."""

    def __init__(
        self, topic: str, queue_id: int, directory: Path, settings: StoreSettings, files: OsFiles
    ) -> None:
        self.topic = topic
        self.queue_id = queue_id
        self._directory = directory
        self._file_bytes = settings.files.consume_queue_bytes
        self._files = files
        self._end = -1  # position behind the last unit that was seen
        self._begin = (-1, -1, 0)  # first byte, log's begin -> position of the first message

    def look(self, log_min: int, log: LogMaps) -> QueueRange:
        """Return the offsets there are now."""
        files = self._load()
        if files.end == files.first:
            offset = files.first // UNIT_BYTES
            return QueueRange(self.topic, self.queue_id, offset, offset)
        start = self._end
        if not files.first <= start <= files.end:
            start = max(files.end - 2 * self._file_bytes, files.first)
            while start > files.first and walk(files, start, start + UNIT_BYTES).end == start:
                start -= self._file_bytes
        end = self._trusted(files, walk(files, start, files.end).end, log)
        self._end = end
        begin = self._first_message(files, end, log_min)
        return QueueRange(self.topic, self.queue_id, begin // UNIT_BYTES, end // UNIT_BYTES)

    def _load(self) -> QueueFiles:
        """Read the names of the files; a broker may be making one, so look more than once."""
        for looks_left in reversed(range(LOOKS_MAX)):
            files = QueueFiles(self._directory, self._file_bytes, self._files)
            try:
                files.load()
            except (StoreDamaged, FileNotFoundError):
                if not looks_left:
                    raise
                Event().wait(_LOOK_S)
            else:
                return files
        raise AssertionError

    def _trusted(self, files: QueueFiles, end: int, log: LogMaps) -> int:
        """Return the end without units whose message is not, or not yet, where they say."""
        for _ in range(_DISTRUSTED_MAX):
            if end <= files.first:
                break
            log_offset, size, _code = UNIT.unpack(files.read(end - UNIT_BYTES, UNIT_BYTES))
            if log.holds(log_offset, size) is not False:
                break
            end -= UNIT_BYTES
        return end

    def _first_message(self, files: QueueFiles, end: int, log_min: int) -> int:
        first, known_log_min, begin = self._begin
        if (first, known_log_min) != (files.first, log_min):
            found = find_message(files, files.first, end, log_min)
            begin = end if found is None else found[0]
            self._begin = files.first, log_min, begin
        return min(begin, end)

    def read(self, offset: int, units_max: int) -> bytes:
        """Return units; the file that is being written may have fewer than are wanted."""
        position, parts = offset * UNIT_BYTES, []
        stop = position + units_max * UNIT_BYTES
        while position < stop:
            start = position - position % self._file_bytes
            part = min(stop, start + self._file_bytes) - position
            path = self._directory / f"{start:020d}"
            try:
                data = self._files.read_at(path, position - start, part)
            except FileNotFoundError:
                break
            parts.append(data)
            if len(data) < part:
                break
            position += part
        return b"".join(parts)


class LogMaps:
    """The files of a log, mapped when they are asked for."""

    def __init__(self, settings: StoreSettings, files: OsFiles) -> None:
        self._directories = log_directories(settings.paths).all
        self._file_bytes = settings.files.commit_log_bytes
        self._files = files
        self._mapped: OrderedDict[int, Region] = OrderedDict()

    def min_offset(self) -> int:
        """Return where the log begins, by the names of its files; 0 without any."""
        starts = [
            int(name)
            for directory in self._directories
            for name in self._files.names(directory)
            if name.isdecimal() and self._files.size(directory / name)
        ]
        return min(starts, default=0)

    def span_at(self, log_offset: int) -> Span | None:
        """Return the file that holds a log offset."""
        if log_offset < 0:
            return None
        start = log_offset - log_offset % self._file_bytes
        region = self._mapped.get(start)
        if region is None:
            region = self._map(start)
            if region is None:
                return None
        self._mapped.move_to_end(start)
        return Span(region.buffer, 0, region.size, start)

    def _map(self, start: int) -> Region | None:
        for directory in self._directories:
            path = directory / f"{start:020d}"
            try:
                region = self._files.open(path, writable=False)
            except FileNotFoundError:
                continue
            if len(self._mapped) >= MAPPED_MAX:
                self._mapped.popitem(last=False)[1].close()
            self._mapped[start] = region
            return region
        return None

    def holds(self, log_offset: int, size: int) -> bool | None:
        """Tell whether a record of a size begins at a log offset; None for a pre-blank unit."""
        if size == 0x7FFFFFFF:
            return None
        span = self.span_at(log_offset)
        if span is None or size < _HEAD.size or log_offset - span.log_base + size > span.end:
            return False
        found, magic, _queue, own = _HEAD.unpack_from(span.buffer, log_offset - span.log_base)
        return bool(found == size and magic in _MAGICS and own == log_offset)

    def close(self) -> None:
        """Give up the mappings."""
        while self._mapped:
            self._mapped.popitem()[1].close()


def is_live(directory: Path) -> bool:
    """Tell whether a broker on this machine has the store open."""
    return holder_of(directory / "lock") is not None


def open_snapshot(
    directory: Path, configuration: Path | None = None, *, recover: bool | None = None
) -> Snapshot:
    """Look at a store in the way that its state asks for, or in the way that a planner chose.

    Raises:
        StoreDamaged: there is no store, or its files are not what they must be.
        InvalidSettings: the configuration says something that cannot be.
        OSError: something cannot be read.
    """
    files = OsFiles()
    snapshot = FileSnapshot(directory, configuration)
    if recover is False or (recover is None and is_live(directory)):
        return snapshot
    if recover or was_aborted(files, directory):
        return RecoveredSnapshot(StoreReader.open(directory, configuration))
    # Stopped in order; yet somebody may have taken its queues away, to be built again. Where it is
    # the log that lacks something, the queues are left as they are: who reads them will say so.
    reader = RecoveredSnapshot(StoreReader.open(directory, configuration))
    known = {queue[:2]: queue.max_offset for queue in snapshot.queues()}
    if any(queue.max_offset > known.get(queue[:2], 0) for queue in reader.queues()):
        snapshot.close()
        return reader
    reader.close()
    return snapshot
