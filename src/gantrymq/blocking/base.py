"""What all blocking clients share: an asyncio client, and the thread on which it lives.

The twins in this package are made from the asyncio classes by `tools/make_blocking.py`: each method
hands its arguments over and waits. What is said here is the same for all of them.
"""

from __future__ import annotations

import warnings
from threading import Lock
from typing import TYPE_CHECKING, Any, Generic, Protocol, Self, TypeVar

from gantrymq.blocking.loop_thread import LoopThread
from gantrymq.client.errors import ClientError, PeerLate

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable, Coroutine
    from types import TracebackType

    from gantrymq.blocking.call import Call


class AsyncClient(Protocol):
    """What an asyncio client has in common with others."""

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """Close."""
        ...


Client = TypeVar("Client", bound=AsyncClient)
Item = TypeVar("Item")
Result = TypeVar("Result")


class Blocking(Generic[Client]):
    """An asyncio client on a thread of its own. Used from any thread, from several at once."""

    def __init__(self, client: Client) -> None:
        self._client = client
        self._thread = LoopThread(type(self).__name__)

    def __enter__(self) -> Self:
        """Start, and return itself."""
        self.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """Close."""
        self._end(self._client.__aexit__(kind, error, trace))

    def __del__(self) -> None:
        """Complain of a client that nobody closed, and end its thread."""
        thread: LoopThread | None = getattr(self, "_thread", None)
        if thread is not None and thread.is_running:
            warnings.warn(f"{self!r} was not closed", ResourceWarning, stacklevel=2, source=self)
            thread.leave()

    def start(self) -> None:
        """Begin."""
        raise NotImplementedError

    # -- for the twins --------------------------------------------------------------------------

    def _begin(self, work: Coroutine[Any, Any, None]) -> None:
        """Start the thread, then the client; if that fails, nothing runs."""
        was_running = self._thread.is_running
        try:
            self._thread.start()
        except BaseException:
            work.close()
            raise
        try:
            self._thread.call(work)
        except BaseException:
            if not was_running:
                self._thread.stop()
            raise

    def _call(self, work: Coroutine[Any, Any, Result]) -> Result:
        """Run a method of the client and wait for it."""
        return self._thread.call(work)

    def _do(self, function: Callable[[], Result]) -> Result:
        """Run a method that does not wait: on the loop, if there is one."""
        return self._thread.do(function) if self._thread.is_running else function()

    def _iterate(self, source: Callable[[], AsyncIterator[Item]]) -> Messages[Item]:
        """Return a loop over what an asyncio loop gives."""
        return Messages(self._thread, self._thread.do(source))

    def _end(self, work: Coroutine[Any, Any, None]) -> None:
        """Close the client and end its thread. Again, or before a start: nothing."""
        if not self._thread.is_running:
            work.close()
            self._thread.stop()
            return
        try:
            self._thread.call(work)
        finally:
            self._thread.stop()


class Messages(Generic[Item]):
    """A loop over messages: `for message in consumer`. For one thread at a time.

    An interrupt (Ctrl-C) while it waits loses nothing: what would have been returned is returned by
    the next step.
    """

    def __init__(self, thread: LoopThread, source: AsyncIterator[Item]) -> None:
        self._thread = thread
        self._source = source
        self._waiting: Call[Item] | None = None
        self._lock = Lock()

    def __iter__(self) -> Self:
        """Return itself."""
        return self

    def __next__(self) -> Item:
        """Wait for the next one."""
        return self._next(None)

    def next(self, timeout_s: float) -> Item | None:
        """Wait for the next one, and no longer than so many seconds; None if there was none.

        Raises:
            StopIteration: there will be no more: the consumer was closed.
        """
        try:
            return self._next(timeout_s)
        except PeerLate:
            return None

    def _next(self, timeout_s: float | None) -> Item:
        if not self._lock.acquire(blocking=False):
            raise ClientError("two threads wait in one loop over a consumer: give each a consumer")
        try:
            if self._waiting is None:
                self._waiting = self._thread.begin(_step(self._source))
            found = self._thread.wait(self._waiting, timeout_s)
        except Exception as error:
            if (
                isinstance(error, PeerLate)
                and self._waiting is not None
                and not self._waiting.is_done
            ):
                raise  # what comes later is for the next step
            self._waiting = None
            raise
        else:
            self._waiting = None
        finally:
            self._lock.release()
        if isinstance(found, _End):
            raise StopIteration
        return found


class _End:
    """Stands for StopAsyncIteration, which cannot cross the border of a coroutine."""


async def _step(source: AsyncIterator[Item]) -> Item:
    try:
        return await anext(source)
    except StopAsyncIteration:
        return _End()  # type: ignore[return-value]  # `Messages._next` looks for it
