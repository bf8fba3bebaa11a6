"""Queues with an extension (enableConsumeQueueExt): each unit leads to one that knows more.

As Apache does it in ConsumeQueue.putMessagePositionInfoWrapper: the tags code, the store timestamp
and the filter's bitmap go into the extension, and the unit keeps the address. A unit that has none
keeps its tags code, and is served as if there were no extension: one whose message cannot be read
while it is dispatched. After a crash those are the ones that recovery walks over, for the log is
not open yet; who filters by SQL92 looks into the messages then.

Nothing of this is touched without the setting. Owned by the task that owns the log.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from gantrymq.errors import RecordError
from gantrymq.kernel import kernel
from gantrymq.store.consume_queue import ConsumeQueue
from gantrymq.store.consume_queue_ext import ExtUnit
from gantrymq.store.unit_walk import UNIT
from gantrymq.wire.properties import decode_properties

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from typing import TypeAlias

    from gantrymq.kernel import QueueRun
    from gantrymq.store.consume_queue_ext import ConsumeQueueExt
    from gantrymq.store.files import Files, StrPath
    from gantrymq.store.jumps import Jumps

    ReadLog: TypeAlias = Callable[[int, int], memoryview | None]
    MakeBitmap: TypeAlias = Callable[[str, Mapping[str, str]], bytes | None]


class Extending:
    """Makes the units of extensions out of messages."""

    def __init__(self, read_log: ReadLog) -> None:
        """Read messages with `read_log`, by log offset and size."""
        self._read_log = read_log
        self.bitmap: MakeBitmap | None = None
        """Says by a message's properties who wants it; None where nobody is to be asked."""

    def unit(self, topic: str, log_offset: int, size: int, tags_code: int) -> ExtUnit | None:
        """Return what the extension keeps of a message; None if it cannot be read now."""
        raw = self._read_log(log_offset, size)
        if raw is None:
            return None
        try:
            record, _end = kernel.decode_record(raw, 0, len(raw), False)
        except RecordError:
            return None
        bitmap = None
        if self.bitmap is not None:
            bitmap = self.bitmap(topic, decode_properties(record.properties))
        return ExtUnit(tags_code, record.store_timestamp, bitmap or b"")


class ExtendedQueue(ConsumeQueue):
    """A queue whose units lead to its extension."""

    __slots__ = ("_extending", "_extension")

    def __init__(
        self,
        topic: str,
        queue_id: int,
        directory: StrPath,
        file_bytes: int,
        files: Files,
        changed: Callable[[ConsumeQueue], object],
        extension: ConsumeQueueExt,
        extending: Extending,
    ) -> None:
        super().__init__(topic, queue_id, directory, file_bytes, files, changed)
        self._extension = extension
        self._extending = extending

    def append(self, run: QueueRun, jumps: Jumps | None = None) -> int:
        """Add the units of a run that are not there yet; see `ConsumeQueue.append`."""
        if jumps is not None and jumps.takes(self, run):
            return 0
        fresh = self.fresh(run)
        if fresh is None:
            return 0
        units = b"".join(self._extended(*unit) for unit in UNIT.iter_unpack(fresh.units))
        return super().append(fresh._replace(units=units))

    def _extended(self, log_offset: int, size: int, tags_code: int) -> bytes:
        more = self._extending.unit(self.topic, log_offset, size, tags_code)
        address = None if more is None else self._extension.append(more)
        return UNIT.pack(log_offset, size, tags_code if address is None else address)
