"""Where a consumer keeps how far it is: with the broker, or in a file of its own.

Members of a group share a topic's queues, so the broker keeps their offsets. A broadcasting
consumer reads everything by itself and keeps its own, in the file that Java's client writes too
(`offsets.json`), replaced as a whole so that a crash leaves the old one or the new one.
"""

from __future__ import annotations

import asyncio
import fcntl
import logging
import os
from typing import TYPE_CHECKING, Protocol

from gantrymq.client.errors import ClientError, GantryError, InvalidValue, ResponseError
from gantrymq.wire.bodies.reset import RESET_OFFSETS, ResetOffsets

if TYPE_CHECKING:
    from collections.abc import Iterable
    from io import FileIO
    from pathlib import Path

    from gantrymq.client.consuming.calls import ConsumerCalls
    from gantrymq.client.consuming.process_queue import ProcessQueue
    from gantrymq.model.queue import MessageQueue, QueueOffset

logger = logging.getLogger(__name__)


class OffsetStore(Protocol):
    """Keeps offsets."""

    async def load(self, queue: MessageQueue) -> int | None:
        """Return the offset to go on from, or None for a queue that was never read."""
        ...

    async def save(self, queues: Iterable[ProcessQueue]) -> bool:
        """Keep the offsets that have changed; False if some could not be kept, to be tried again.

        A queue that is dropped is passed over: it may be another member's by now.
        """
        ...

    async def save_one(self, queue: ProcessQueue) -> bool:
        """Keep one offset for the last time before the queue is given up."""
        ...

    async def close(self) -> None:
        """Let go of what is held."""
        ...


class RemoteOffsets:
    """Offsets that the broker keeps for the group."""

    def __init__(self, calls: ConsumerCalls) -> None:
        self._calls = calls

    async def load(self, queue: MessageQueue) -> int | None:
        """Return what the group has committed.

        Raises:
            GantryError: the broker does not say.
        """
        return await self._calls.committed(queue)

    async def save(self, queues: Iterable[ProcessQueue]) -> bool:
        """Commit what has changed; a broker that does not answer is not asked again this time."""
        silent: set[str] = set()
        for one in list(queues):
            name = one.queue.broker_name
            if name not in silent and not one.dropped and not await self._commit(one):
                silent.add(name)
        return not silent

    async def save_one(self, queue: ProcessQueue) -> bool:
        """Commit one queue's offset."""
        return await self._commit(queue, is_last=True)

    async def _commit(self, queue: ProcessQueue, *, is_last: bool = False) -> bool:
        async with queue.committing:
            offset = queue.uncommitted
            if offset is None or (queue.dropped and not is_last):
                return True  # it may have been dropped while this waited for its turn
            try:
                await self._calls.commit(queue.queue, offset)
            except ResponseError as error:
                # The broker is there and does not want it: a group or topic that was deleted.
                logger.warning("offset %d of %s was not taken: %s", offset, queue.queue, error)
            except GantryError as error:
                logger.info("offset %d of %s is committed later: %s", offset, queue.queue, error)
                return False
            else:
                queue.note_committed(offset)
            return True

    async def close(self) -> None:
        """Hold nothing."""


class LocalOffsets:
    """Offsets in a file that one process has to itself."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._table: dict[MessageQueue, QueueOffset] = {}
        self._lock: FileIO | None = None
        self._writing = asyncio.Lock()

    async def open(self) -> None:
        """Read the file and keep others from it.

        Raises:
            ClientError: another consumer uses it, or it cannot be read.
        """
        await asyncio.to_thread(self._open)

    def _open(self) -> None:
        path = self._path
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            lock = path.with_suffix(".lock").open("ab", buffering=0)
        except OSError as error:
            raise ClientError(f"offsets cannot be kept in {path}: {error}") from error
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            if path.exists():
                self._table = dict(RESET_OFFSETS.decode(path.read_bytes()).offset_table)
        except BlockingIOError:
            lock.close()
            raise ClientError(
                f"{path} is used by another consumer: broadcasting consumers of one group on one"
                " machine need names of their own; give each another instance="
            ) from None
        except (OSError, GantryError) as error:
            lock.close()
            raise InvalidValue(
                f"{path} cannot be read: {error}; mend it, or delete it to begin anew"
            ) from error
        self._lock = lock

    async def load(self, queue: MessageQueue) -> int | None:
        """Return what was kept."""
        return self._table.get(queue)

    async def save(self, queues: Iterable[ProcessQueue]) -> bool:
        """Keep what has changed; one at a time, so that an older picture never comes last."""
        async with self._writing:
            return await self._save(queues)

    async def _save(self, queues: Iterable[ProcessQueue]) -> bool:
        changed: list[tuple[ProcessQueue, int]] = []
        for one in list(queues):
            offset = one.uncommitted
            if offset is not None:
                changed.append((one, offset))
                self._table[one.queue] = offset  # type: ignore[assignment]
        if not changed:
            return True
        content = RESET_OFFSETS.encode(ResetOffsets(offset_table=dict(self._table)))
        try:
            await asyncio.to_thread(self._write, content)
        except OSError as error:
            logger.warning("offsets cannot be written to %s: %s", self._path, error)
            return False
        for one, offset in changed:
            one.note_committed(offset)
        return True

    async def save_one(self, queue: ProcessQueue) -> bool:
        """Keep one queue's offset."""
        return await self.save([queue])

    def _write(self, content: bytes) -> None:
        unfinished = self._path.with_suffix(".unfinished")
        with unfinished.open("wb") as target:
            target.write(content)
            target.flush()
            os.fsync(target.fileno())
        unfinished.replace(self._path)

    async def close(self) -> None:
        """Let others have the file."""
        if self._lock is not None:
            self._lock.close()
            self._lock = None
