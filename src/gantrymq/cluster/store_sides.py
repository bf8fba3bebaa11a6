"""What replication sees of a message store: a log to send, and a log to write behind.

Owned by the task that owns the store. A slave that is far behind needs what is not in the page
cache; that is read by a worker, a chunk at a time, and the link is woken when it is there.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from gantrymq.errors import InvalidValue
from gantrymq.store.holding import waits_for_disk

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from gantrymq.kernel.interface import Buffer
    from gantrymq.store.files import Files
    from gantrymq.store.message_store import MessageStore
    from gantrymq.store.settings import StoreSettings
    from gantrymq.store.worker import Worker

HOT_BYTES: Final = 8 << 20
"""The end of the log that is taken for hot without asking."""
CHUNK_BYTES: Final = 1 << 20
"""What a cold read takes at once."""


class StoreSentLog:
    """A master's log for one slave; see `master_link.SentLog`."""

    def __init__(
        self,
        store: MessageStore,
        settings: StoreSettings,
        files: Files,
        worker: Worker,
        wake: Callable[[], None],
    ) -> None:
        self._store = store
        self._is_forced_first = waits_for_disk(settings)
        self._files = files
        self._worker = worker
        self._wake = wake
        self._chunk = memoryview(b"")
        self._chunk_at = 0
        self._is_reading = False
        self.failure: str | None = None
        """Why the disk did not give what was asked of it."""

    @property
    def file_bytes(self) -> int:
        """Return the length of a file."""
        return self._store.log.file_bytes

    @property
    def begin(self) -> int:
        """Return where the log begins."""
        return self._store.log.min_offset

    @property
    def end(self) -> int:
        """Return how far it may be sent: what a crash of this broker does not take back."""
        if self._is_forced_first:
            return self._store.flush.flushed_offset
        return self._store.log.committed_offset

    def read(self, offset: int, count: int) -> memoryview | None:
        """Return bytes of one file; None while a worker reads them."""
        log = self._store.log
        if offset >= log.committed_offset - HOT_BYTES:
            return log.read(offset, count)
        at = offset - self._chunk_at
        if 0 <= at <= at + count <= len(self._chunk):
            return self._chunk[at : at + count]
        file = log.file_at(offset)
        if file is None:
            self.failure = f"the log has no offset {offset} any more"
            return None
        position = offset - file.start
        if file.region.resident_end(position, position + count) >= position + count:
            return file.read(position, count)
        if not self._is_reading:
            size = max(count, min(CHUNK_BYTES, file.committed - position))
            self._begin_read(file.region.path, position, size, offset)
        return None

    def _begin_read(self, path: Path, position: int, count: int, offset: int) -> None:
        self._is_reading = True

        def done(data: bytes) -> None:
            self._is_reading = False
            self._chunk, self._chunk_at = memoryview(data), offset
            if len(data) < count:
                self.failure = f"{path} ends before byte {position + count}"
            self._wake()

        def failed(error: Exception) -> None:
            self._is_reading = False
            self.failure = f"{path} cannot be read: {error}"
            self._wake()

        self._worker.submit(lambda: self._files.read_at(path, position, count), done, failed)


class StoreCopiedLog:
    """A slave's log; see `slave_link.CopiedLog`."""

    def __init__(self, store: MessageStore, settings: StoreSettings) -> None:
        self._store = store
        self._is_forced_first = waits_for_disk(settings)

    @property
    def begin(self) -> int:
        """Return where the log begins."""
        return self._store.log.min_offset

    @property
    def end(self) -> int:
        """Return where the log ends."""
        return self._store.log.wrote_offset

    @property
    def safe_end(self) -> int:
        """Return what may be reported: with SYNC_FLUSH that which is forced."""
        if self._is_forced_first:
            return self._store.flush.flushed_offset
        return self._store.log.wrote_offset

    def append(self, offset: int, data: Buffer) -> None:
        """Store bytes of the master."""
        self._store.append_replica(offset, data)

    def equals(self, offset: int, data: Buffer) -> bool:
        """Compare with what is there, file by file."""
        log = self._store.log
        view, at = memoryview(data), 0
        for file, begin, stop in log.spans(offset, offset + len(view)):
            own = file.read(begin, stop - begin)
            if own is None:
                raise InvalidValue(f"no bytes at offset {file.start + begin} to compare with")
            if own != view[at : at + stop - begin]:
                return False
            at += stop - begin
        return at == len(view)
