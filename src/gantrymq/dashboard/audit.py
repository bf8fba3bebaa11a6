"""Who changed what: one JSON value in a line, only ever added to, in a bounded number of files.

`audit.jsonl` is written to; when it is full it becomes `audit.1.jsonl`, and the oldest goes. A
change that cannot be written down is not made: the entry of the attempt comes first.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Final

import msgspec

from gantrymq.dashboard.accounts import make_folder
from gantrymq.errors import GantryError, shown

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from gantrymq.clock import Clock

FILE_BYTES_MAX: Final = 8 * 1024 * 1024
FILES_MAX: Final = 5
TEXT_CHARACTERS_MAX: Final = 500
TRIED: Final = "tried"
DONE: Final = "done"
FAILED: Final = "failed"
REFUSED: Final = "refused"


class NotWritten(GantryError):
    """The audit log takes no entries, so nothing may be changed."""


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
        line = msgspec.json.encode(entry) + b"\n"
        try:
            make_folder(self._folder)
            self._rotate(len(line))
            handle = os.open(self._path(0), os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
            try:
                os.write(handle, line)
            finally:
                os.close(handle)
        except OSError as error:
            raise NotWritten(
                f"{self._path(0)}: {error.strerror or error}; nothing is changed without an entry"
            ) from None

    def _path(self, number: int) -> Path:
        return self._folder / (f"audit.{number}.jsonl" if number else "audit.jsonl")

    def _rotate(self, more: int) -> None:
        try:
            size = self._path(0).stat().st_size
        except FileNotFoundError:
            return
        if size + more <= self._bytes_max:
            return
        for number in range(self._files_max - 2, -1, -1):
            if self._path(number).exists():
                self._path(number).replace(self._path(number + 1))

    def newest_first(self) -> Iterator[Entry]:
        """Give every entry; of an attempt that came to something, only what it came to.

        Lines that are none are left out: the file may be being written to.
        """
        ended: set[str] = set()
        for entry in self._lines():
            if entry.outcome != TRIED:
                ended.add(entry.id)
            elif entry.id in ended:
                continue
            yield entry

    def _lines(self) -> Iterator[Entry]:
        for number in range(self._files_max):
            try:
                lines = self._path(number).read_bytes().splitlines()
            except FileNotFoundError:
                continue
            for line in reversed(lines):
                try:
                    yield msgspec.json.decode(line, type=Entry)
                except msgspec.MsgspecError:
                    continue
