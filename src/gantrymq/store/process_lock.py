"""One process at a time: ROOT/lock, and ROOT/abort, which says that the last one did not finish.

The lock is a POSIX record lock on byte 0, as a Java broker takes it, so that either keeps the other
out; the file holds the text `lock`, as there. Two properties of such locks shape this module:

- closing *any* handle of the file lets the lock go. So the text is written before the lock is
  taken, and nobody opens the file while it is held: not even a reader of the store within the same
  process, which comes by here too. Only the file's length is asked for;
- a process does not lock itself out. So the stores that are open here are remembered by name.

ROOT/abort is there from the first change of a start to the end of a clean stop. RocketMQ 4.9 asks
whether it exists; 5.x writes the process id into it, and so do we.
"""

from __future__ import annotations

from contextlib import suppress
from threading import Lock
from typing import TYPE_CHECKING, Final

from gantrymq.store.errors import StoreLocked
from gantrymq.store.files import OsFiles
from gantrymq.store.lock_holder import Holder, held_here, holder_of

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from gantrymq.store.files import Files

_TEXT: Final = b"lock"
_guard: Final = Lock()


class ProcessLock:
    """The right to write to a store, until `release`."""

    def __init__(
        self,
        files: Files,
        root: Path,
        find_holder: Callable[[Path], Holder | None] = holder_of,
    ) -> None:
        """Take the lock.

        Raises:
            StoreLocked: another process has the store open, or this one has; names it.
        """
        self._files = files
        self._path = root / "lock"
        # A disk that is not the machine's keeps its own locks, one process or not.
        self._entry = self._path.resolve() if isinstance(files, OsFiles) else None
        self._held = -1
        with _guard:
            if self._entry in held_here:
                raise StoreLocked(f"{root} is open in this very process; close it there first")
            self._held = self._take(root, find_holder)
            if self._entry is not None:
                held_here.add(self._entry)

    def _take(self, root: Path, find_holder: Callable[[Path], Holder | None]) -> int:
        self._files.make_directory(root)
        if not self._files.exists(self._path) or self._files.size(self._path) != len(_TEXT):
            self._files.write_at(self._path, 0, _TEXT, len(_TEXT))
            self._files.sync(self._path)
        try:
            return self._files.lock(self._path)
        except BlockingIOError:
            holder = find_holder(self._path)
            raise StoreLocked(_refusal(root, holder)) from None

    def release(self) -> None:
        """Let others open the store."""
        if self._held < 0:
            return
        held, self._held = self._held, -1
        self._files.unlock(held)
        if self._entry is not None:
            with _guard:
                held_here.discard(self._entry)


def _refusal(root: Path, holder: Holder | None) -> str:
    who = "a process that cannot be seen from here" if holder is None else str(holder)
    return f"{root} is open in {who}; stop it, or give this broker another storePathRootDir"


def was_aborted(files: Files, root: Path) -> bool:
    """Tell whether the last process on this store did not come to a clean end."""
    return files.exists(root / "abort")


def mark_running(files: Files, root: Path, pid: int) -> None:
    """Leave the mark that says so, and force it, before the first write needs it."""
    path = root / "abort"
    files.truncate(path, 0)
    text = str(pid).encode()
    files.write_at(path, 0, text, len(text))
    files.sync(path)
    files.sync_directory(root)


def mark_stopped(files: Files, root: Path) -> None:
    """Take the mark away: everything is on the disk, and recovery has nothing to look for."""
    with suppress(FileNotFoundError):
        files.remove(root / "abort")
    files.sync_directory(root)
