"""Answers that several requests of a moment share: asked for once, kept for a few seconds.

Many rows, tabs and people ask for the same lists; the cluster is asked once. A failure is handed to
all who wait for it and is not kept. Owned by the event loop.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Final, TypeVar, cast

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from gantrymq.clock import Clock

Value = TypeVar("Value")

ENTRIES_MAX: Final = 256
KEPT_S: Final = 3.0


class Cache:
    """Answers by name."""

    def __init__(self, clock: Clock, kept_s: float = KEPT_S) -> None:
        self._clock = clock
        self._kept_s = kept_s
        self._entries: dict[str, tuple[float, asyncio.Task[object]]] = {}

    async def get(self, key: str, ask: Callable[[], Awaitable[Value]]) -> Value:
        """Return the answer of this moment; `ask` is called if there is none."""
        now = self._clock.monotonic()
        kept = self._entries.get(key)
        if kept is not None and not self._is_usable(kept, now):
            kept = None
        if kept is None:
            self._make_room()

            async def run() -> object:
                return await ask()

            kept = now, asyncio.ensure_future(run())
            self._entries[key] = kept
        # Whoever stops waiting does not take the answer away from the others.
        return cast("Value", await asyncio.shield(kept[1]))

    def forget(self) -> None:
        """Have everything asked anew: something was changed."""
        self._entries.clear()

    def _is_usable(self, kept: tuple[float, asyncio.Task[object]], now: float) -> bool:
        asked_s, task = kept
        if not task.done():
            return True
        is_good = not task.cancelled() and task.exception() is None
        return is_good and now - asked_s < self._kept_s

    def _make_room(self) -> None:
        while len(self._entries) >= ENTRIES_MAX:
            del self._entries[next(iter(self._entries))]
