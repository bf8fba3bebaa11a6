"""Handlers that are plain functions run here, so that one which blocks holds up nothing else.

Threads of a standard executor would keep a program from ending while a handler hangs, and wake the
loop once for each result. These are daemons, and results that come together wake the loop once.
"""

from __future__ import annotations

import asyncio
import threading
from collections import deque
from contextvars import copy_context
from queue import SimpleQueue
from typing import TYPE_CHECKING, Any, TypeAlias

from gantrymq.client.callers import Caller, note_caller

if TYPE_CHECKING:
    from collections.abc import Callable
    from contextvars import Context

_Job: TypeAlias = "tuple[Context, Callable[[Any], Any], Any, asyncio.Future[Any]]"
_Done: TypeAlias = "tuple[asyncio.Future[Any], Any, BaseException | None]"


class HandlerThreads:
    """A fixed number of threads, started as they are needed. Used from one event loop."""

    def __init__(self, count: int, name: str) -> None:
        self._count = count
        self._name = name
        self._loop = asyncio.get_running_loop()
        self._jobs: SimpleQueue[_Job | None] = SimpleQueue()
        self._done: deque[_Done] = deque()
        self._is_waking = False
        self._running = 0
        self._threads: list[threading.Thread] = []

    async def call(self, function: Callable[[Any], Any], argument: object) -> Any:  # noqa: ANN401
        """Return what the function returns, or raise what it raises, called in a thread."""
        future = self._loop.create_future()
        self._running += 1
        if self._running > len(self._threads) < self._count:
            self._start()
        # As asyncio.to_thread has it: a span that was begun outside is there inside.
        context, caller = copy_context(), Caller(asyncio.current_task())
        context.run(note_caller, caller)
        self._jobs.put((context, function, argument, future))
        try:
            return await future
        finally:
            self._running -= 1
            caller.task = None

    def close(self) -> None:
        """Let threads end when they have done what they are at; wait for none."""
        for _ in self._threads:
            self._jobs.put(None)
        self._threads.clear()

    def _start(self) -> None:
        number = len(self._threads) + 1
        thread = threading.Thread(target=self._work, name=f"{self._name}-{number}", daemon=True)
        self._threads.append(thread)
        thread.start()

    def _work(self) -> None:
        while (job := self._jobs.get()) is not None:
            context, function, argument, future = job
            if future.done():
                continue  # it waited for a thread, and nobody waits for it any more
            try:
                result, error = context.run(function, argument), None
            except BaseException as raised:  # noqa: BLE001 - it is the caller's to see
                result, error = None, raised
            self._done.append((future, result, error))
            # Two threads that both find it unset wake the loop twice, which is harmless.
            if not self._is_waking:
                self._is_waking = True
                try:
                    self._loop.call_soon_threadsafe(self._hand_over)
                except RuntimeError:
                    return  # the loop was closed meanwhile: nobody waits

    def _hand_over(self) -> None:
        """Give the results to who waits for them; runs on the loop."""
        # Unset first: a result that comes from here on wakes the loop again.
        self._is_waking = False
        done = self._done
        while done:
            future, result, error = done.popleft()
            if future.done():
                continue
            if error is None:
                future.set_result(result)
            elif isinstance(error, StopIteration) or not isinstance(error, Exception):
                # A future takes no StopIteration, and sys.exit() ends a thread, not the program.
                failed = RuntimeError(f"the handler raised {type(error).__name__}")
                failed.__cause__ = error
                future.set_exception(failed)
            else:
                future.set_exception(error)
