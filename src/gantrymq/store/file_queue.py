"""Ordered files of one kind, each named by the offset of its first byte in twenty digits.

Only names, sizes and order are known here: what is in the files is their users' business. The rules
are Apache RocketMQ's: every file has the configured length, and nothing else lies in the directory.
The files of one kind may lie in several directories, as those of a log on several disks do.
"""

from __future__ import annotations

import re
from itertools import pairwise
from operator import itemgetter
from typing import TYPE_CHECKING, Final

from gantrymq.store.errors import StoreDamaged

if TYPE_CHECKING:
    from collections.abc import Container, Iterable
    from pathlib import Path

    from gantrymq.store.files import Files

NAME_DIGITS: Final = 20
_NAME: Final = re.compile(rf"\d{{{NAME_DIGITS}}}")


def file_name(start: int) -> str:
    """Return the name of the file that begins at an offset."""
    return f"{start:0{NAME_DIGITS}d}"


def file_starts(files: Files, directory: Path, file_bytes: int) -> list[int]:
    """Return where the files of a directory begin, in order; see `file_paths`."""
    return list(file_paths(files, (directory,), file_bytes))


def file_paths(
    files: Files,
    directories: Iterable[Path],
    file_bytes: int,
    left_out: Container[Path] = (),
) -> dict[int, Path]:
    """Return the files of some directories by where they begin, in order, after a look at each.

    A last file of length 0 is the trace of a crash while it was being made, and is left out; the
    caller may remove it with `drop_unfinished`.

    Raises:
        StoreDamaged: a name that is not an offset, a length other than `file_bytes`, two files of
            one name, a gap.
    """
    found = [one for one in _found(files, directories) if one[1] / one[0] not in left_out]
    paths: dict[int, Path] = {}
    for number, (name, directory) in enumerate(found, 1):
        path = directory / name
        if _NAME.fullmatch(name) is None:
            raise StoreDamaged(_not_a_data_file(path))
        length = files.size(path)
        if length == 0 and number == len(found):
            break
        if length != file_bytes:
            if files.is_directory(path):
                raise StoreDamaged(_not_a_data_file(path))
            raise StoreDamaged(
                f"{path} has {length} bytes, the settings say {file_bytes}; "
                "open the store with the file size that it was written with"
            )
        start = int(name)
        if start in paths:
            raise StoreDamaged(
                f"{paths[start]} and {path} are one file of the log; move the one elsewhere that "
                "does not belong here"
            )
        paths[start] = path
    _check_order(paths, file_bytes)
    return paths


def _found(files: Files, directories: Iterable[Path]) -> list[tuple[str, Path]]:
    """Return every name in some directories with its directory, sorted by name."""
    found = [(name, one) for one in dict.fromkeys(directories) for name in files.names(one)]
    found.sort(key=itemgetter(0))
    return found


def _not_a_data_file(path: Path) -> str:
    return f"{path} is not a data file; move it elsewhere: a broker refuses to start over it"


def _check_order(paths: dict[int, Path], file_bytes: int) -> None:
    for earlier, later in pairwise(paths):
        if later - earlier != file_bytes:
            raise StoreDamaged(
                f"{paths[earlier]} is followed by {paths[later]}, "
                f"{later - earlier - file_bytes} bytes are missing between them; "
                f"{file_name(earlier + file_bytes)} should be there"
            )


def drop_unfinished(files: Files, *directories: Path) -> Path | None:
    """Remove a last file of length 0; return its path if there was one."""
    for name, directory in _found(files, directories)[-1:]:
        path = directory / name
        if files.size(path) == 0:
            files.remove(path)
            return path
    return None
