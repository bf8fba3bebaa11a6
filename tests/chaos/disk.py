"""The disk of one broker: a small file system of its own, which can be filled to the last byte."""

from __future__ import annotations

import errno
import os
import shutil
import subprocess
from contextlib import suppress
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from contextlib import ExitStack
    from pathlib import Path

COMMAND_S_MAX: Final = 20


def problem(folder: Path) -> str | None:
    """Return why no file system can be mounted below a folder, or None."""
    place = folder / "try"
    place.mkdir()
    try:
        _run("mount", "-t", "tmpfs", "-o", "size=1m", "tmpfs", str(place))
        _run("umount", str(place))
    except (subprocess.SubprocessError, OSError) as error:
        return f"a small disk cannot be mounted (it needs root): {error}"
    finally:
        place.rmdir()
    return None


class SmallDisk:
    """A file system in memory, until the stack is closed."""

    def __init__(self, stack: ExitStack, folder: Path, mebibytes: int) -> None:
        folder.mkdir(parents=True)
        self.folder = folder
        self._ballast = folder / "ballast"
        stack.callback(_unmount, folder)
        _run("mount", "-t", "tmpfs", "-o", f"size={mebibytes}m", "tmpfs", str(folder))

    def fill(self) -> None:
        """Leave no room, not even a page."""
        with self._ballast.open("ab") as ballast:
            try:
                while True:
                    room = os.statvfs(self.folder)
                    step = max(room.f_bavail, 1) * room.f_bsize
                    os.posix_fallocate(ballast.fileno(), ballast.seek(0, os.SEEK_END), step)
            except OSError as error:
                if error.errno != errno.ENOSPC:
                    raise

    def make_room(self) -> None:
        """Take the ballast away."""
        self._ballast.unlink(missing_ok=True)


def _run(*command: str) -> None:
    program = shutil.which(command[0]) or command[0]
    subprocess.run([program, *command[1:]], check=True, capture_output=True, timeout=COMMAND_S_MAX)


def _unmount(folder: Path) -> None:
    with suppress(subprocess.SubprocessError, OSError):
        _run("umount", str(folder))
        return
    with suppress(subprocess.SubprocessError, OSError):
        _run("umount", "--lazy", str(folder))
