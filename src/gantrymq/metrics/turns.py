"""A scrape goes through ten thousand topics while producers send: it works a little at a time.

`next` is called for every row. When the scrape has had the loop for `SLICE_S`, it lets everything
else that is ready run first.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from gantrymq.clock import Clock

SLICE_S: Final = 0.002


class Turns:
    """The time that one scrape has had the loop for."""

    def __init__(self, clock: Clock, slice_s: float = SLICE_S) -> None:
        self._clock = clock
        self._slice_s = slice_s
        self._until = clock.monotonic() + slice_s
        self.pauses = 0
        """How often others had their turn."""

    async def next(self) -> None:
        """Let others run if it is their turn."""
        if self._clock.monotonic() >= self._until:
            self.pauses += 1
            await asyncio.sleep(0)
            self._until = self._clock.monotonic() + self._slice_s
