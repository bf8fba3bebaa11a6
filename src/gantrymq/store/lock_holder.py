"""Who holds the lock of a store: asked of the kernel, so that no file has to say it.

A pid in a file of our own would be in the way of nobody, but a broker that died would leave a lie
behind. The kernel knows the process that holds a record lock, ours or a Java broker's.

Asking opens the file, and a process that closes any handle of a file loses its record locks on it.
So what this process holds itself is not asked for but remembered (`held_here`).
"""

from __future__ import annotations

import fcntl
import os
import struct
import sys
from contextlib import suppress
from pathlib import Path
from typing import Final, NamedTuple

COMMAND_MAX: Final = 160
_FLOCK: Final = struct.Struct("hhqqi4x")
"""Linux: type, whence, start, length, pid."""

held_here: Final[set[Path]] = set()
"""The lock file of each store that this process has open on the machine's disk, resolved."""


class Holder(NamedTuple):
    """A process."""

    pid: int
    command: str
    """As much of its command line as fits on a line; empty if it may not be seen."""

    def __str__(self) -> str:
        """Return it as it stands in an error."""
        return f"process {self.pid} ({self.command})" if self.command else f"process {self.pid}"


def holder_of(path: Path) -> Holder | None:
    """Return the process that holds the lock on byte 0 of a file, if this machine can tell.

    The file is opened for reading, as on a disk that cannot be written to: nothing is locked, and
    Linux tells of a lock whatever the handle may be used for.
    """
    if not sys.platform.startswith("linux"):
        return None
    if path.resolve() in held_here:
        return Holder(os.getpid(), _command(os.getpid()))
    with suppress(OSError):
        handle = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
        try:
            # Whoever holds any lock is in the way of an exclusive one.
            wish = _FLOCK.pack(fcntl.F_WRLCK, os.SEEK_SET, 0, 1, 0)
            kind, _, _, _, pid = _FLOCK.unpack(fcntl.fcntl(handle, fcntl.F_GETLK, wish))
        finally:
            os.close(handle)
        if kind != fcntl.F_UNLCK and pid > 0:
            return Holder(pid, _command(pid))
    return None


def _command(pid: int) -> str:
    try:
        raw = Path(f"/proc/{pid}/cmdline").read_bytes()
    except OSError:
        return ""
    words = raw.decode("utf-8", "replace").replace("\0", " ").strip()
    if len(words) <= COMMAND_MAX:
        return words
    # A Java command line is mostly class path: what runs, and with which file, stands at its end.
    program, _, rest = words.partition(" ")
    return f"{program[-40:]} ... {rest[-(COMMAND_MAX - 45) :]}"
