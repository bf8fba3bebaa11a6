"""Writing the tables of a broker to `config/`, on a timer and at the end.

Each table (`SavedState`) has an interval. When it is due and has changed, a picture of it is taken
on the loop, and a worker encodes the picture and replaces the file. At most one job of a table is
under way, so there are never more jobs than tables. What changes meanwhile counts as a change for
the next interval. A save that fails is reported and tried again at the next interval; the table
stays dirty until one has succeeded, and the file on the disk is the old one or the new one, whole.

Owned by one task; `tick` is called by the broker's loop, as that of the store's timers is.
"""

from __future__ import annotations

import logging
import re
import zlib
from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING, Final, NamedTuple

from gantrymq.errors import ContentError
from gantrymq.store import config_files

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from gantrymq.broker.saved_state import SavedState
    from gantrymq.clock import Clock
    from gantrymq.store.files import Files
    from gantrymq.store.worker import Worker

log = logging.getLogger(__name__)

DEFAULT_INTERVAL_MS: Final = 5_000
"""`flushConsumerOffsetInterval`."""
SOON_S: Final = 0.1
"""Between the beginnings of two saves of changes that nobody waits for."""
WAITING_MAX: Final = 10_000
"""Callers that wait for the save of one table."""
_STAMP: Final = re.compile(rb',\s*"gantrymqJournal":\s*([0-9]{1,19})\s*\}\s*$')
"""How the file of a table ends that says how much of the journal is in it. Apache's broker passes
over the name, and what it writes is without: then its word counts, and not the journal's."""
_CHECK: Final = re.compile(rb',"gantrymqCheck":"([0-9a-f]{8})"\}$')
"""How it ends if it has a check sum: of all that is before."""


class SaveFailed(NamedTuple):
    """A table that could not be written; it will be tried again."""

    file_name: str
    error: Exception


@dataclass(slots=True)
class _Entry:
    state: SavedState
    path: Path
    interval_s: float
    due: float
    is_running: bool = False
    begun: float = float("-inf")
    """When the last save began."""
    is_wanted: bool = False
    """Whether another one is to follow soon."""
    journal_position: int | None = 0
    """How much of the journal the file has; None if it does not say so."""
    waiting: list[tuple[int, Callable[[Exception | None], None]]] = field(default_factory=list)
    """Who wants to know when the table is saved up to which change."""


class ConfigSaver:
    """Loads and saves the tables of one broker."""

    def __init__(
        self,
        files: Files,
        directory: Path,
        worker: Worker,
        clock: Clock,
        failed: Callable[[SaveFailed], None] | None = None,
    ) -> None:
        self._files = files
        self._directory = directory
        self._worker = worker
        self._clock = clock
        self._failed = failed or _log_failed
        self._entries: dict[str, _Entry] = {}
        self.journal: Callable[[], int | None] = lambda: None
        """Returns how much of the journal is in the tables now; None: nothing is said of it."""

    def add(self, state: SavedState, interval_ms: int = DEFAULT_INTERVAL_MS) -> str | None:
        """Load a table from its file, if there is one, and keep it saved from now on.

        Blocks; called at the start. Returns why the backup was used, if it was; the file that was
        passed over is kept as NAME.damaged.

        Raises:
            StoreDamaged: there is a file, and neither it nor its backup can be understood.
        """
        path = self._directory / state.file_name
        loaded = config_files.load(self._files, path, partial(_load, state))
        interval_s = interval_ms / 1000
        due = self._clock.monotonic() + interval_s
        entry = self._entries[state.file_name] = _Entry(state, path, interval_s, due)
        if loaded is not None:
            entry.journal_position = loaded.value
        if loaded is None or loaded.trouble is None:
            return None
        log.warning("%s; its backup was read, which is older", loaded.trouble)
        if self._files.exists(path):
            # The next save makes a backup of the file that is there: not of this one.
            self._files.rename(path, path.with_name(f"{path.name}.damaged"))
        return loaded.trouble

    def change_interval(self, state: SavedState, interval_ms: int) -> None:
        """Save a table more often, or less, from now on."""
        entry = self._entries[state.file_name]
        entry.interval_s = interval_ms / 1000
        entry.due = min(entry.due, self._clock.monotonic() + entry.interval_s)

    def journal_position(self, state: SavedState) -> int | None:
        """Return how much of the journal a table's file had; None if it did not say, 0 without."""
        return self._entries[state.file_name].journal_position

    def freshen(self, behind_max: int) -> None:
        """Have files written anew that know too little of the journal, changed or not.

        Otherwise a start would read all of it for the sake of a table that hardly ever changes.
        """
        position = self.journal()
        for entry in self._entries.values():
            if position is None or not entry.state.is_journaled or entry.state.is_dirty:
                continue
            if position - (entry.journal_position or 0) > behind_max:
                entry.state.want_saved()

    def _picture(self, entry: _Entry) -> tuple[int, Callable[[], bytes]]:
        """Return which changes a picture of a table has, and what makes bytes of it."""
        state = entry.state
        changes, encode = state.changes, state.snapshot()
        position = self.journal() if state.is_journaled else None
        is_checked = state.is_checked
        if position is not None:
            entry.journal_position = position

        def content() -> bytes:
            made = encode() if position is None else stamped(encode(), position)
            return checked(made) if is_checked else made

        return changes, content

    def tick(self, now: float) -> float:
        """Begin the saves that are due; return when to be called again."""
        for entry in self._entries.values():
            if now >= entry.due:
                entry.due = now + entry.interval_s
                self._begin(entry)
        return min((entry.due for entry in self._entries.values()), default=now + 1.0)

    def soon(self, state: SavedState) -> float:
        """Save a table now, or `SOON_S` after its last save began; return when to `tick`.

        It is for changes that nobody waits for. One of them is saved at once, many are saved
        together.
        """
        entry = self._entries[state.file_name]
        now = self._clock.monotonic()
        if now >= entry.begun + SOON_S and not entry.is_running:
            self._begin(entry)
        else:
            entry.is_wanted = True
            entry.due = min(entry.due, max(now, entry.begun + SOON_S))
        return entry.due

    def save(self, state: SavedState, done: Callable[[Exception | None], None]) -> None:
        """Save a table now; `done` is called with None once all its changes so far are in the file.

        It is called with the error if the save fails. At once, if nothing has to be written.
        """
        entry = self._entries[state.file_name]
        if not state.is_dirty:
            done(None)
        elif len(entry.waiting) >= WAITING_MAX:
            done(OverflowError(f"{WAITING_MAX} callers wait for {state.file_name} to be saved"))
        else:
            entry.waiting.append((state.changes, done))
            self._begin(entry)

    def finish(self) -> list[SaveFailed]:
        """Save whatever is dirty and wait for it: the end of a broker. Blocks."""
        failures: list[SaveFailed] = []
        for name, entry in self._entries.items():
            if not entry.state.is_dirty:
                continue
            changes, encode = self._picture(entry)
            # Jobs run one after the other: one that is under way is done when this one is.
            future = self._worker.begin(partial(self._write, entry.path, encode))
            try:
                future.result()
            except Exception as error:  # noqa: BLE001 - the other tables are saved all the same
                failures.append(SaveFailed(name, error))
                self._failed(failures[-1])
                self._answer(entry, -1, error)
            else:
                entry.state.mark_saved(changes)
                self._answer(entry, changes, None)
        return failures

    def _begin(self, entry: _Entry) -> None:
        if entry.is_running or not entry.state.is_dirty:
            return
        entry.is_running = True
        entry.begun, entry.is_wanted = self._clock.monotonic(), False
        changes, encode = self._picture(entry)

        def done(_: None) -> None:
            entry.is_running = False
            entry.state.mark_saved(changes)
            self._answer(entry, changes, None)
            late = self._clock.monotonic() >= entry.begun + SOON_S
            if entry.waiting or (entry.is_wanted and late):
                self._begin(entry)

        def failed(error: Exception) -> None:
            entry.is_running = False
            self._failed(SaveFailed(entry.state.file_name, error))
            self._answer(entry, -1, error)

        self._worker.submit(partial(self._write, entry.path, encode), done, failed)

    def _write(self, path: Path, encode: Callable[[], bytes]) -> None:
        """Replace a file; runs on the worker."""
        config_files.save(self._files, path, encode())

    @staticmethod
    def _answer(entry: _Entry, changes: int, error: Exception | None) -> None:
        """Tell those who waited for what was saved, or everyone that it failed."""
        waiting, entry.waiting = entry.waiting, []
        for wanted, done in waiting:
            if error is None and wanted > changes:
                entry.waiting.append((wanted, done))
            else:
                done(error)


def _log_failed(failure: SaveFailed) -> None:
    log.error("%s could not be saved and is tried again: %s", failure.file_name, failure.error)


def stamped(content: bytes, position: int) -> bytes:
    """Return a file that says how much of the journal is in it."""
    if not content.endswith(b"}") or content == b"{}":
        return content
    return content[:-1] + b',"gantrymqJournal":%d}' % position


def checked(content: bytes) -> bytes:
    """Return a file that ends with its check sum."""
    if not content.endswith(b"}") or content == b"{}":
        return content
    return content[:-1] + b',"gantrymqCheck":"%08x"}' % zlib.crc32(content[:-1])


def _unchecked(name: str, content: bytes) -> bytes:
    """Return a file without its check sum.

    Raises:
        ContentError: it is not that of the rest.
    """
    said = _CHECK.search(content)
    if said is None:
        return content
    if int(said[1], 16) != zlib.crc32(content[: said.start()]):
        raise ContentError(
            name,
            "its check sum is that of something else: it is damaged, or was changed by hand, and "
            "then gantrymqCheck has to be taken out",
        )
    return content[: said.start()] + b"}"


def _load(state: SavedState, content: bytes) -> int | None:
    """Let a table take a file over; return how much of the journal that has.

    Raises:
        ContentError: it is not that of the table, or damaged.
    """
    content = _unchecked(state.file_name, content)
    said = _STAMP.search(content)
    if said is None and state.is_checked and b'"gantrymqJournal":' in content:
        raise ContentError(state.file_name, "gantrymqJournal does not stand at its end")
    state.load(content)
    return None if said is None else int(said[1])
