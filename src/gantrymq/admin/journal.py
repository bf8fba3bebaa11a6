"""The file that a job writes as it goes, so that a killed one goes on where it stopped.

One JSON value in a line, only ever added to. The first line says what the job is; a job of other
settings refuses the file. A line that was cut by the end of its writer is taken off: what it would
have said is not known, and whoever reads on finds it out anew. One process at a time has it.

What has grown long can be begun anew with what still matters of it (`restart`): another file takes
its name in one step, so that there is always one of the two, whole.

A long one takes a second to read and a slow disk as long to force: `async with`, `read` and
`forced` do that on a thread, for a loop that has others to serve.
"""

from __future__ import annotations

import asyncio
import fcntl
import json
import os
import secrets
from typing import TYPE_CHECKING, Any, Final, TypeVar

import msgspec

from gantrymq.errors import GantryError, InvalidValue

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator
    from pathlib import Path
    from types import TracebackType
    from typing import BinaryIO, Self

Line = dict[str, Any]
_ENCODER: Final = msgspec.json.Encoder()
Told = TypeVar("Told")
OPENED_MAX: Final = 5
"""Times that a file is opened which another process has begun anew in the same moment."""


class JobInUse(GantryError):
    """Another process works with the file."""


class Journal:
    """A job's file; `with Journal(...)` or `async with` opens and locks it."""

    def __init__(self, path: Path, job: Line) -> None:
        self.path = path
        self._job = job
        self.was_there = False
        self.id = ""
        """Tells the job from all others; made when the file is."""

    def __enter__(self) -> Self:
        """Open it, and check that it is this job's.

        Raises:
            InvalidValue: it is another job's, or cannot be opened.
            JobInUse: another process has it.
        """
        self._file = self._open()
        try:
            self._begin()
        except BaseException:
            self._file.close()
            raise
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """Close it."""
        self._file.close()

    async def __aenter__(self) -> Self:
        """Open it as `with` does, on a thread. Raises the same."""
        return await _on_thread(self.__enter__, self._close)

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """Close it."""
        self._file.close()

    async def read(self, work: Callable[[Journal], Told]) -> Told:
        """Return what a function makes of it, on a thread."""
        return await _on_thread(lambda: work(self))

    async def forced(self) -> None:
        """Have what was written on the disk, on a thread."""
        await _on_thread(self.force)

    def _close(self) -> None:
        self._file.close()

    def _open(self) -> BinaryIO:
        """Open and lock the file that has the name: another run may have begun it anew."""
        for _ in range(OPENED_MAX):
            try:
                file = self.path.open("a+b")
            except OSError as error:
                raise InvalidValue(f"{self.path}: {error.strerror or error}") from None
            try:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
                if self.path.exists() and os.path.samestat(
                    os.fstat(file.fileno()), self.path.stat()
                ):
                    return file
            except OSError:
                file.close()
                break
            file.close()
        raise JobInUse(f"{self.path} is in use by another process")

    def _begin(self) -> None:
        end = self._whole_bytes()
        if end < self._file.seek(0, os.SEEK_END):
            self._file.truncate(end)
        first = next(iter(self.lines()), None)
        if first is None:
            self.id = secrets.token_hex(8)
            self.add([{**self._job, "id": self.id}])
            self.force()
            return
        self.was_there = True
        self.id = str(first.pop("id", ""))
        wanted = json.loads(json.dumps(self._job))
        if first != wanted:
            differs = sorted(k for k in {*first, *wanted} if first.get(k) != wanted.get(k))
            raise InvalidValue(
                f"{self.path} is of another job (it differs in {', '.join(differs)}): name another"
                " file, or give the same options"
            )

    def _whole_bytes(self) -> int:
        """Return the size of the file up to the end of its last whole line."""
        end = self._file.seek(0, os.SEEK_END)
        while end:
            begin = max(end - 65536, 0)
            self._file.seek(begin)
            at = self._file.read(end - begin).rfind(b"\n")
            if at >= 0:
                return begin + at + 1
            end = begin
        return 0

    @property
    def size(self) -> int:
        """Return its length in bytes."""
        return os.fstat(self._file.fileno()).st_size

    @property
    def changed_at_ms(self) -> int:
        """Return when it was last written to."""
        return self.path.stat().st_mtime_ns // 1_000_000

    def lines(self) -> Iterator[Line]:
        """Give every line, the job's own first."""
        self._file.seek(0)
        for number, line in enumerate(self._file, 1):
            try:
                yield json.loads(line)
            except (ValueError, RecursionError):
                raise InvalidValue(
                    f"{self.path}:{number} is not JSON: the file is damaged"
                ) from None

    def add(self, lines: Iterable[Line]) -> None:
        """Write lines with one call: a killed process leaves all of them, or a beginning."""
        self._file.write(b"".join(_ENCODER.encode(line) + b"\n" for line in lines))
        self._file.flush()

    def force(self) -> None:
        """Have what was written on the disk."""
        os.fsync(self._file.fileno())

    def restart(self, lines: Iterable[Line], keep: Path | None = None) -> None:
        """Have it hold its first line and these instead, whole or not at all.

        What it held stays under another name if one is given; a file of that name is lost.

        Raises:
            OSError: there is no room for the new one; the old one is as it was.
        """
        beside = self.path.with_name(f".{self.path.name}.{secrets.token_hex(4)}")
        file = beside.open("a+b")
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            old, self._file = self._file, file
            try:
                self.add([{**self._job, "id": self.id}, *lines])
                self.force()
                if keep is not None:
                    keep.unlink(missing_ok=True)
                    os.link(self.path, keep)
                beside.replace(self.path)
            except BaseException:
                self._file = old
                raise
        except BaseException:
            file.close()
            beside.unlink(missing_ok=True)
            raise
        old.close()


async def _on_thread(work: Callable[[], Told], undo: Callable[[], object] = lambda: None) -> Told:
    """Return what a thread makes of a file; it is done with it also when nobody waits any more."""
    working = asyncio.ensure_future(asyncio.to_thread(work))
    try:
        return await asyncio.shield(working)
    except asyncio.CancelledError:
        await asyncio.wait([working])
        if working.exception() is None:
            undo()
        raise
