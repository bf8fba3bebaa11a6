"""Work that may block, done on a thread and reported back to the task that asked for it.

The store's state has one owner. Whatever waits for a disk (forcing, making files, writing queues
out, cold reads) is a plain function with plain arguments, given to a `Worker`; the answer comes
back as a call on the owner's own thread. So nothing here needs a lock, and a test can put a worker
in its place that runs at once, or step by step in an order that a seed decides.
"""

from __future__ import annotations

from concurrent.futures import Future, ThreadPoolExecutor
from typing import TYPE_CHECKING, NamedTuple, Protocol, Self, TypeVar

if TYPE_CHECKING:
    from collections.abc import Callable

Result = TypeVar("Result")


class JobInterrupted(OSError):
    """A thread was told to end while a job ran: nobody knows how far the job came."""


class Worker(Protocol):
    """Runs jobs one after the other, away from the owner."""

    def submit(
        self,
        job: Callable[[], Result],
        done: Callable[[Result], None],
        failed: Callable[[Exception], None],
    ) -> None:
        """Run `job`; then call `done` or `failed` on the owner's thread."""
        ...

    def begin(self, job: Callable[[], Result]) -> Future[Result]:
        """Run `job`; the owner asks for its result when it is needed."""
        ...

    def close(self) -> None:
        """Finish what was submitted and take no more."""
        ...


class Workers(NamedTuple):
    """Where the waiting of a store is done."""

    log_flush: Worker
    queue_flush: Worker
    allocation: Worker
    index_allocation: Worker
    cold_read: Worker
    tail_pages: Worker

    @classmethod
    def made(cls, make: Callable[[str], Worker]) -> Self:
        """Return what `make` makes for each of the names above."""
        return cls(*map(make, cls._fields))


class ThreadWorker:
    """A named thread; `post` brings a call to the owner, as `loop.call_soon_threadsafe` does."""

    def __init__(self, name: str, post: Callable[[Callable[[], None]], object]) -> None:
        self._executor = ThreadPoolExecutor(max_workers=1, thread_name_prefix=name)
        self._post = post

    def submit(
        self,
        job: Callable[[], Result],
        done: Callable[[Result], None],
        failed: Callable[[Exception], None],
    ) -> None:
        """Run `job` on the thread; report on the owner's."""

        def report(future: Future[Result]) -> None:
            error = future.exception()
            if error is None:
                result = future.result()
                self._post(lambda: done(result))
            elif isinstance(error, Exception):
                self._post(lambda: failed(error))

        self.begin(job).add_done_callback(report)

    def begin(self, job: Callable[[], Result]) -> Future[Result]:
        """Run `job` on the thread."""
        return self._executor.submit(_whole, job)

    def close(self) -> None:
        """Wait for the jobs that were submitted."""
        self._executor.shutdown(wait=True)


def _whole(job: Callable[[], Result]) -> Result:
    """Run a job to its end, whatever that is: somebody waits to hear of it.

    KeyboardInterrupt and SystemExit are the main thread's. Here they would be raised again where
    the result is asked for, or nobody would be told.
    """
    try:
        return job()
    except Exception:
        raise
    except BaseException as error:
        raise JobInterrupted(f"{type(error).__name__} ended a job: {error}") from error


class InlineWorker:
    """Runs a job where it is submitted: for tools and tests, where nobody else waits."""

    __slots__ = ()

    def submit(
        self,
        job: Callable[[], Result],
        done: Callable[[Result], None],
        failed: Callable[[Exception], None],
    ) -> None:
        """Run `job` now."""
        try:
            result = job()
        except Exception as error:  # noqa: BLE001 - a worker reports whatever its job raised
            failed(error)
        else:
            done(result)

    def begin(self, job: Callable[[], Result]) -> Future[Result]:
        """Run `job` now; its result is there."""
        future: Future[Result] = Future()
        self.submit(job, future.set_result, future.set_exception)
        return future

    def close(self) -> None:
        """Have nothing to wait for."""
