"""A folder of journals of redrives: the newest are whole, the older ones are short.

A journal that is deleted would have the same order, given again, send all dead letters again. So of
an old one stays what makes sure that nothing goes twice (`redrive.shorten`), which is one line; and
one more than there may be is refused, not bought with another.
"""

from __future__ import annotations

import json
from contextlib import suppress
from typing import TYPE_CHECKING, Final

from gantrymq.admin import redrive
from gantrymq.admin.journal import JobInUse, Journal
from gantrymq.errors import InvalidValue

if TYPE_CHECKING:
    from pathlib import Path

SUFFIX: Final = ".jsonl"
FILES_MAX: Final = 1_000
WHOLE_MAX: Final = 20
"""Journals that keep the outcome of each message."""
SHORT_BYTES: Final = 4_096
"""What is no longer than this is not worth a look."""


def make_room(path: Path) -> None:
    """Get a folder ready for a journal, new or known.

    Raises:
        InvalidValue: it is new, and there are too many.
    """
    found = [each for each in path.parent.glob(f"*{SUFFIX}") if each != path]
    if not path.exists() and len(found) >= FILES_MAX:
        raise InvalidValue(
            f"{path.parent} has the journals of {len(found)} redrives: remove those of groups whose"
            " dead letters are gone, and try again"
        )
    whole = [each for each in found if _bytes(each) > SHORT_BYTES]
    for old in sorted(whole, key=_changed_ns, reverse=True)[WHOLE_MAX:]:
        # One that is in use, damaged or on a full disk stays as it is.
        with suppress(InvalidValue, JobInUse, OSError, ValueError):
            _shorten(old)


def _shorten(path: Path) -> None:
    with path.open("rb") as file:
        job = json.loads(file.readline())
    job.pop("id", None)
    with Journal(path, job) as journal:
        redrive.shorten(journal, keep=False)


def _changed_ns(path: Path) -> int:
    with suppress(OSError):
        return path.stat().st_mtime_ns
    return 0


def _bytes(path: Path) -> int:
    with suppress(OSError):
        return path.stat().st_size
    return 0
