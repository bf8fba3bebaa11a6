"""An event loop on a thread of its own, for objects that block their callers.

Every blocking client owns one. The loop goes on while the caller computes or waits, so heartbeats
are sent and messages arrive whatever user code does. `call` may be used from several threads at
once; each waits for its own result.

- **KeyboardInterrupt** hits the waiting thread, not the loop: what was waited for is cancelled, and
  the object stays usable and can be closed.
- **fork** copies the object without its thread: a call in the child raises `UsedAfterFork` rather
  than wait for ever.
- The thread is a daemon: a program that forgets to close ends all the same.

Waking the loop and the caller again is most of what a call costs, so both are done in the cheapest
way there is: one callback on the loop, one lock for who waits (`Call`), and uvloop where it can be
had. `asyncio.run_coroutine_threadsafe` costs about twice as much.
"""

from __future__ import annotations

import asyncio
import logging
import os
import threading
from typing import TYPE_CHECKING, Any, Final, TypeVar

from gantrymq.blocking.call import Call
from gantrymq.client.errors import ClientClosed, NotStarted, PeerLate, UsedAfterFork
from gantrymq.client.loops import new_loop

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine

logger = logging.getLogger(__name__)

Result = TypeVar("Result")

STOP_S: Final = 10.0
"""How long a thread may take to end; then it is left to itself."""


class LoopThread:
    """Runs coroutines for other threads. Started and stopped by the object that owns it."""

    def __init__(self, name: str) -> None:
        self._name = name
        self._loop: asyncio.AbstractEventLoop | None = None
        self._thread: threading.Thread | None = None
        self._pid = 0
        self._lock = threading.Lock()
        self._is_closed = False

    @property
    def is_running(self) -> bool:
        """Tell whether there is a loop to call."""
        return self._loop is not None and not self._is_closed

    def start(self) -> None:
        """Start the thread and wait until its loop runs.

        Raises:
            ClientClosed: it was stopped.
        """
        with self._lock:
            if self._is_closed:
                raise ClientClosed(f"{self._name} was closed: make another one")
            if self._loop is not None:
                return
            loop, ready = new_loop(), threading.Event()
            self._thread = threading.Thread(
                target=self._run, args=(loop, ready), name=f"gantrymq-{self._name}", daemon=True
            )
            self._pid = os.getpid()
            self._thread.start()
            ready.wait()
            self._loop = loop

    def call(self, work: Coroutine[Any, Any, Result], wait_s: float | None = None) -> Result:
        """Run a coroutine on the loop, wait for its end, return or raise what it does.

        Raises:
            PeerLate: it took longer than `wait_s`, and is cancelled.
            NotStarted, ClientClosed, UsedAfterFork: there is no loop.
            RuntimeError: called on the loop itself, where waiting would never end.
        """
        call = self.begin(work)
        try:
            return self.wait(call, wait_s)
        except BaseException:
            # Too late, or an interrupt: nobody waits any more.
            call.cancel()
            raise

    def wait(self, call: Call[Result], wait_s: float | None = None) -> Result:
        """Wait for what `begin` began, and leave it running if it does not end in time.

        Raises:
            PeerLate: it took longer than `wait_s`.
            ClientClosed: the loop was stopped meanwhile.
        """
        if not call.wait(wait_s):
            raise PeerLate(f"{self._name}: nothing within {wait_s} s")
        try:
            return call.result()
        except asyncio.CancelledError:
            raise ClientClosed(f"{self._name} was closed while a call waited") from None

    def begin(self, work: Coroutine[Any, Any, Result]) -> Call[Result]:
        """Run a coroutine on the loop and return what will have its result; raises as `call`."""
        try:
            self._check_process()
            # Under the lock, so that `stop` comes before the hand-over or finds the task to cancel.
            with self._lock:
                loop = self._usable()
                call = Call(work, loop)
                loop.call_soon_threadsafe(call.start)
                return call
        except BaseException:
            work.close()
            raise

    def do(self, function: Callable[[], Result]) -> Result:
        """Run a function on the loop and return what it does; raises as `call`."""

        async def work() -> Result:
            return function()

        return self.call(work())

    def stop(self) -> None:
        """End the loop and its thread; what still runs there is cancelled. Again: nothing."""
        self.leave()
        thread = self._thread
        if thread is None or thread is threading.current_thread() or self._pid != os.getpid():
            return
        thread.join(STOP_S)

    def leave(self) -> None:
        """End the loop and its thread soon, without waiting for it."""
        if self._pid not in {0, os.getpid()}:
            return  # the thread is in another process
        with self._lock:
            loop, was_closed, self._is_closed = self._loop, self._is_closed, True
        if loop is not None and not was_closed:
            loop.call_soon_threadsafe(loop.stop)

    def _check_process(self) -> None:
        """Before the lock is asked for: a fork may have copied it locked."""
        if self._pid not in {0, os.getpid()}:
            raise UsedAfterFork(self._pid, os.getpid())

    def _usable(self) -> asyncio.AbstractEventLoop:
        loop = self._loop
        if self._is_closed:
            raise ClientClosed(f"{self._name} was closed: make another one")
        if loop is None:
            raise NotStarted(f"{self._name} was not started: use `with`, or call start() first")
        if threading.current_thread() is self._thread:
            raise RuntimeError(
                f"{self._name} is called on its own event loop, where waiting would never end: "
                "call it from a plain function, which runs in a thread"
            )
        return loop

    def _run(self, loop: asyncio.AbstractEventLoop, ready: threading.Event) -> None:
        asyncio.set_event_loop(loop)
        loop.call_soon(ready.set)
        try:
            try:
                loop.run_forever()
            except BaseException:  # a handler that calls sys.exit() ends its loop, and says so
                logger.exception("the event loop of %s was ended from inside", self._name)
            with self._lock:
                self._is_closed = True  # nothing is handed over from here on
            loop.run_until_complete(asyncio.sleep(0))  # what was handed over begins, to be ended
            left = asyncio.all_tasks(loop)
            for task in left:
                task.cancel()
            if left:
                loop.run_until_complete(asyncio.gather(*left, return_exceptions=True))
            loop.run_until_complete(loop.shutdown_asyncgens())
            loop.run_until_complete(loop.shutdown_default_executor())
        finally:
            loop.close()
