"""What a broker does by the clock, in one list: each entry says itself when it wants to run again.

There is no thread and no timer in it. Whoever owns the broker calls `tick` and is told when to call
again; `poke` brings an entry forward, and `moved` is called so that the owner looks earlier.

Owned by the event loop's task.
"""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Callable

    Run = Callable[[float], float | None]
    """Does what is due at a moment; returns when it wants to run again, or None: when poked."""

log = logging.getLogger(__name__)

FAILED_PAUSE_S: Final = 1.0
"""Before an entry that raised is run again."""


class Entry:
    """One thing that is done again and again; `due` is None while it sleeps."""

    __slots__ = ("due", "name", "run")

    def __init__(self, name: str, run: Run, due: float | None) -> None:
        self.name = name
        self.run = run
        self.due = due


class Schedule:
    """The entries, few enough to look at each of them."""

    def __init__(self, moved: Callable[[], None] = lambda: None) -> None:
        self._entries: list[Entry] = []
        self._moved = moved

    def add(self, name: str, run: Run, due: float | None) -> Entry:
        """Run something when it is due, and then whenever it says."""
        entry = Entry(name, run, due)
        self._entries.append(entry)
        return entry

    def every(self, name: str, seconds: float, run: Callable[[], object], now: float) -> Entry:
        """Run something at equal intervals, the first time after one of them."""

        def again(moment: float) -> float:
            run()
            return moment + seconds

        return self.add(name, again, now + seconds)

    def poke(self, entry: Entry, due: float) -> None:
        """Let an entry run at a moment, if it would run later or not at all."""
        if entry.due is None or due < entry.due:
            entry.due = due
            self._moved()

    def tick(self, now: float) -> float | None:
        """Run what is due; return when something is again."""
        for entry in self._entries:
            if entry.due is not None and entry.due <= now:
                entry.due = None
                try:
                    due = entry.run(now)
                except Exception:
                    # One that fails must not stop the others; what it meant to do is still due.
                    log.exception("%s failed; tried again in %g s", entry.name, FAILED_PAUSE_S)
                    due = now + FAILED_PAUSE_S
                poked: float | None = entry.due  # while it ran
                entry.due = due if poked is None else min(poked, poked if due is None else due)
        return min((one.due for one in self._entries if one.due is not None), default=None)
