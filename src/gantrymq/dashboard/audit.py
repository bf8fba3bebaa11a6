"""Who changed what: one JSON value in a line, only ever added to, in a bounded number of files.

`audit.jsonl` is written to; when it is full it becomes `audit.1.jsonl`, and the oldest goes. A
change that cannot be written down is not made: the entry of the attempt comes first. What was
refused is in `refused.jsonl` and its like, so that nobody who may change nothing can push out what
others have changed.
"""

from __future__ import annotations

import errno
import heapq
import os
from typing import TYPE_CHECKING, Final

import msgspec

from gantrymq.dashboard.accounts import make_folder
from gantrymq.dashboard.throttle import Throttle
from gantrymq.errors import GantryError, shown

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from gantrymq.clock import Clock

FILE_BYTES_MAX: Final = 8 * 1024 * 1024
FILES_MAX: Final = 5
BASE: Final = "audit"
REFUSED_BASE: Final = "refused"
REFUSALS_MAX: Final = 60
"""In a minute, for one user and for one address."""
TEXT_CHARACTERS_MAX: Final = 500
TRIED: Final = "tried"
DONE: Final = "done"
FAILED: Final = "failed"
REFUSED: Final = "refused"


class NotWritten(GantryError):
    """The audit log takes no entries, so nothing may be changed."""

    def __init__(self, reason: str) -> None:
        super().__init__(f"{reason}; nothing is changed without an entry")
        self.reason = reason


class Entry(msgspec.Struct, frozen=True, omit_defaults=True):
    """One line."""

    time_ms: int
    user: str
    role: str
    address: str
    action: str
    outcome: str
    id: str = ""
    """Joins the attempt and what came of it."""
    target: str = ""
    detail: str = ""


class AuditLog:
    """The files."""

    def __init__(
        self,
        folder: Path,
        clock: Clock,
        bytes_max: int = FILE_BYTES_MAX,
        files_max: int = FILES_MAX,
    ) -> None:
        self._folder = folder
        self._clock = clock
        self._bytes_max = bytes_max
        self._files_max = files_max
        self._refusals = Throttle(clock, REFUSALS_MAX)

    def add(
        self,
        who: tuple[str, str, str],
        action: str,
        outcome: str,
        target: str = "",
        detail: str = "",
        entry_id: str = "",
    ) -> None:
        """Write down what somebody (name, role, address) does.

        Raises:
            NotWritten: the disk does not take it.
        """
        name, role, address = who
        entry = Entry(
            self._clock.now_ms(), name, role, address, action, outcome, entry_id,
            shown(target, TEXT_CHARACTERS_MAX), shown(detail, TEXT_CHARACTERS_MAX),
        )  # fmt: skip
        base = REFUSED_BASE if outcome == REFUSED else BASE
        if outcome == REFUSED and self._refusals.wait_s(*_keys_of(who)) > 0:
            return  # enough of them are there to see what goes on
        line = msgspec.json.encode(entry) + b"\n"
        try:
            make_folder(self._folder)
            self._rotate(base, len(line))
            _append(self._path(base, 0), line)
        except OSError as error:
            raise NotWritten(f"{self._path(base, 0)}: {error.strerror or error}") from None

    def _path(self, base: str, number: int) -> Path:
        return self._folder / (f"{base}.{number}.jsonl" if number else f"{base}.jsonl")

    def _rotate(self, base: str, more: int) -> None:
        try:
            size = self._path(base, 0).stat().st_size
        except FileNotFoundError:
            return
        if size + more <= self._bytes_max:
            return
        for number in range(self._files_max - 2, -1, -1):
            if self._path(base, number).exists():
                self._path(base, number).replace(self._path(base, number + 1))

    def newest_first(self) -> Iterator[Entry]:
        """Give every entry; of an attempt that came to something, only what it came to.

        Lines that are none are left out: the file may be being written to.
        """
        ended: set[str] = set()
        both = self._lines(REFUSED_BASE), self._lines(BASE)
        for entry in heapq.merge(*both, key=lambda each: -each.time_ms):
            if entry.outcome != TRIED:
                ended.add(entry.id)
            elif entry.id in ended:
                continue
            yield entry

    def _lines(self, base: str) -> Iterator[Entry]:
        for number in range(self._files_max):
            try:
                lines = self._path(base, number).read_bytes().splitlines()
            except FileNotFoundError:
                continue
            for line in reversed(lines):
                try:
                    yield msgspec.json.decode(line, type=Entry)
                except (ValueError, RecursionError):  # also what is no UTF-8
                    continue


def _keys_of(who: tuple[str, str, str]) -> tuple[str, str]:
    """Return by what refusals are counted; who guesses at a name has no role, and is another."""
    name, role, address = who
    return f"user {role} {name}", f"address {address}"


def _append(path: Path, line: bytes) -> None:
    """Add a line, whole or not at all.

    Raises:
        OSError: the disk does not take it.
    """
    handle = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
    try:
        size = os.fstat(handle).st_size
        if os.write(handle, line) != len(line):
            os.ftruncate(handle, size)  # else the next line would be lost with this one
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
    finally:
        os.close(handle)
