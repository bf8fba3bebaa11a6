"""Ordered files of one kind, each named by the offset of its first byte in twenty digits.

Only names, sizes and order are known here: what is in the files is their users' business. The rules
are Apache RocketMQ's: every file has the configured length, and nothing else lies in the directory.
The files of one kind may lie in several directories, as those of a log on several disks do.
"""

from __future__ import annotations

import re
from itertools import pairwise
from operator import itemgetter
from typing import TYPE_CHECKING, Final, TypeVar

from gantrymq.store.errors import StoreDamaged

if TYPE_CHECKING:
    from collections.abc import Container, Iterable, Sequence
    from pathlib import Path

    from gantrymq.store.files import Files, StrPath

AnyPath = TypeVar("AnyPath", bound="StrPath")

NAME_DIGITS: Final = 20
_NAME: Final = re.compile(rf"\d{{{NAME_DIGITS}}}")


def file_name(start: int) -> str:
    """Return the name of the file that begins at an offset."""
    return f"{start:0{NAME_DIGITS}d}"


def is_file_name(name: str) -> bool:
    """Tell whether a name is an offset, as those of data files are."""
    return _NAME.fullmatch(name) is not None


def file_starts(
    directory: StrPath, listing: Iterable[tuple[str, int]], file_bytes: int
) -> list[int]:
    """Return where the files of a directory begin, in order; see `file_paths`."""
    return list(_checked([(name, length, directory) for name, length in listing], file_bytes))


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
    found = [one for one in _found(files, directories) if one[2] / one[0] not in left_out]
    return {
        start: directory / file_name(start)
        for start, directory in _checked(found, file_bytes).items()
    }


def _checked(found: Sequence[tuple[str, int, AnyPath]], file_bytes: int) -> dict[int, AnyPath]:
    """Return the directories of files by where they begin; takes (name, length, directory)."""
    places: dict[int, AnyPath] = {}
    for number, (name, length, directory) in enumerate(found, 1):
        if length < 0 or not is_file_name(name):
            raise StoreDamaged(
                f"{directory}/{name} is not a data file; move it elsewhere: a broker refuses to "
                "start over it"
            )
        if length == 0 and number == len(found):
            break
        if length != file_bytes:
            raise StoreDamaged(
                f"{directory}/{name} has {length} bytes, the settings say {file_bytes}; "
                "open the store with the file size that it was written with"
            )
        start = int(name)
        if start in places:
            raise StoreDamaged(
                f"{places[start]}/{name} and {directory}/{name} are one file of the log; move the "
                "one elsewhere that does not belong here"
            )
        places[start] = directory
    for earlier, later in pairwise(places):
        if later - earlier != file_bytes:
            raise StoreDamaged(
                f"{places[earlier]}/{file_name(earlier)} is followed by "
                f"{places[later]}/{file_name(later)}, "
                f"{later - earlier - file_bytes} bytes are missing between them; "
                f"{file_name(earlier + file_bytes)} should be there"
            )
    return places


def _found(files: Files, directories: Iterable[Path]) -> list[tuple[str, int, Path]]:
    """Return all that is in some directories as (name, length, directory), sorted by name."""
    found = [(*entry, one) for one in dict.fromkeys(directories) for entry in files.listing(one)]
    found.sort(key=itemgetter(0))
    return found


def drop_unfinished(files: Files, *directories: Path) -> Path | None:
    """Remove a last file of length 0; return its path if there was one."""
    for name, length, directory in _found(files, directories)[-1:]:
        if length == 0:
            files.remove(directory / name)
            return directory / name
    return None
