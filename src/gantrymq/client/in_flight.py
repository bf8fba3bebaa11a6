"""How many sends may be under way: a bound that makes the next one wait, in the order they came."""

from __future__ import annotations

import asyncio
from collections import deque

from gantrymq.client.errors import ClientClosed, TooManyInFlight
from gantrymq.errors import InvalidValue


class InFlight:
    """Counts what is under way. Owned by the event loop's thread."""

    __slots__ = ("_idle", "_is_closed", "_max", "_waiting", "free")

    def __init__(self, count_max: int) -> None:
        if count_max < 1:
            raise InvalidValue(f"in_flight_max is {count_max}: give at least 1")
        self._max = count_max
        self.free = count_max
        """Places that are left. Who sees one may take it without `enter`: `free -= 1`."""
        self._waiting: deque[asyncio.Future[None]] = deque()
        self._idle: asyncio.Future[None] | None = None
        self._is_closed = False

    @property
    def count(self) -> int:
        """Return how many are under way."""
        return self._max - self.free

    async def enter(self, timeout_s: float) -> None:
        """Take a place, when there is one.

        Raises:
            TooManyInFlight: there was none within `timeout_s`.
            ClientClosed: the client was closed meanwhile.
        """
        if self.free > 0:
            self.free -= 1
            return
        place: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._waiting.append(place)
        try:
            async with asyncio.timeout(timeout_s):
                await place
        except BaseException as error:
            if place.done() and not place.cancelled() and place.exception() is None:
                self.leave()  # it was given a place in the same moment
            elif not place.done() or place.cancelled():
                self._forget(place)
            if isinstance(error, TimeoutError):
                raise TooManyInFlight(
                    f"{self._max} sends are under way and none ended within {timeout_s:g} s:"
                    " send slower, or raise in_flight_max"
                ) from None
            raise

    def _forget(self, place: asyncio.Future[None]) -> None:
        if place in self._waiting:
            self._waiting.remove(place)

    def leave(self) -> None:
        """Give a place back: to who waits longest, if anybody does."""
        while self._waiting:
            place = self._waiting.popleft()
            if not place.done():
                place.set_result(None)
                return
        self.free += 1
        if self._idle is not None and self.free == self._max and not self._idle.done():
            self._idle.set_result(None)

    async def close(self, timeout_s: float) -> int:
        """Refuse those that wait, let the others end; return how many had not after `timeout_s`."""
        while self._waiting:
            place = self._waiting.popleft()
            if not place.done():
                place.set_exception(ClientClosed("the client was closed while a send waited"))
        if self.free < self._max:
            self._idle = asyncio.get_running_loop().create_future()
            await asyncio.wait([self._idle], timeout=timeout_s)
        return self.count
