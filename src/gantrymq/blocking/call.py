"""One call of a thread to an event loop on another: begun there, waited for here."""

from __future__ import annotations

import threading
from contextlib import suppress
from typing import TYPE_CHECKING, Any, Generic, TypeVar

if TYPE_CHECKING:
    import asyncio
    from collections.abc import Coroutine

Result = TypeVar("Result")


class Call(Generic[Result]):
    """A coroutine that runs on a loop, and the lock that its caller waits at.

    `start` is for the loop's thread, all else for the caller's. The lock is taken when a call is
    made and released when it has ended, which is cheaper than any event.
    """

    __slots__ = ("_ended", "_is_unwanted", "_loop", "_task", "_work")

    def __init__(self, work: Coroutine[Any, Any, Result], loop: asyncio.AbstractEventLoop) -> None:
        self._work = work
        self._loop = loop
        self._task: asyncio.Task[Result] | None = None
        self._is_unwanted = False
        self._ended = threading.Lock()
        self._ended.acquire()

    @property
    def is_done(self) -> bool:
        """Tell whether it has ended."""
        return self._task is not None and self._task.done()

    def start(self) -> None:
        """Begin; called by the loop."""
        self._task = self._loop.create_task(self._work)
        self._task.add_done_callback(self._end)
        if self._is_unwanted:
            self._task.cancel()

    def _end(self, task: asyncio.Task[Result]) -> None:
        if not task.cancelled():
            task.exception()  # who waited has it; nobody may have
        self._ended.release()

    def wait(self, wait_s: float | None) -> bool:
        """Return whether it has ended, within so many seconds or whenever it does.

        An interrupt comes through: a lock that is waited for lets signals be handled.
        """
        if not self._ended.acquire(timeout=-1 if wait_s is None else max(wait_s, 0.0)):
            return False
        self._ended.release()
        return True

    def result(self) -> Result:
        """Return or raise what the coroutine did, once `wait` has said that it ended.

        Raises:
            CancelledError: it was cancelled.
            RuntimeError: it has not begun.
        """
        if self._task is None:
            raise RuntimeError("the call has not begun: wait for its end first")
        return self._task.result()

    def cancel(self) -> None:
        """Have it end; nothing if it has. It goes on for as long as it resists."""
        self._is_unwanted = True
        if not self.is_done:
            with suppress(RuntimeError):  # the loop is closed, and everything on it has ended
                self._loop.call_soon_threadsafe(self._cancel)

    def _cancel(self) -> None:
        if self._task is not None:
            self._task.cancel()
