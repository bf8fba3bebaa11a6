"""Ordered files of one kind, each named by the offset of its first byte in twenty digits.

Only names, sizes and order are known here: what is in the files is their users' business. The rules
are Apache RocketMQ's: every file has the configured length, and nothing else lies in the directory.
"""

from __future__ import annotations

import re
from itertools import pairwise
from typing import TYPE_CHECKING, Final

from gantrymq.store.errors import StoreDamaged

if TYPE_CHECKING:
    from pathlib import Path

    from gantrymq.store.files import Files

NAME_DIGITS: Final = 20
_NAME: Final = re.compile(rf"\d{{{NAME_DIGITS}}}")


def file_name(start: int) -> str:
    """Return the name of the file that begins at an offset."""
    return f"{start:0{NAME_DIGITS}d}"


def file_starts(files: Files, directory: Path, file_bytes: int) -> list[int]:
    """Return where the files of a directory begin, in order, after looking at each of them.

    A last file of length 0 is the trace of a crash while it was being made, and is left out; the
    caller may remove it with `drop_unfinished`.

    Raises:
        StoreDamaged: a name that is not an offset, a length other than `file_bytes`, a gap.
    """
    names = files.names(directory)
    starts: list[int] = []
    for name in names:
        path = directory / name
        if _NAME.fullmatch(name) is None or files.is_directory(path):
            raise StoreDamaged(
                f"{path} is not a data file; move it elsewhere: a broker refuses to start over it"
            )
        length = files.size(path)
        if length == 0 and name == names[-1]:
            break
        if length != file_bytes:
            raise StoreDamaged(
                f"{path} has {length} bytes, the settings say {file_bytes}; "
                "open the store with the file size that it was written with"
            )
        starts.append(int(name))
    _check_order(directory, starts, file_bytes)
    return starts


def _check_order(directory: Path, starts: list[int], file_bytes: int) -> None:
    for earlier, later in pairwise(starts):
        if later - earlier != file_bytes:
            raise StoreDamaged(
                f"{directory}: {file_name(earlier)} is followed by {file_name(later)}, "
                f"{later - earlier - file_bytes} bytes are missing between them"
            )


def drop_unfinished(files: Files, directory: Path) -> Path | None:
    """Remove a last file of length 0; return its path if there was one."""
    names = files.names(directory)
    if names and files.size(directory / names[-1]) == 0:
        path = directory / names[-1]
        files.remove(path)
        return path
    return None
