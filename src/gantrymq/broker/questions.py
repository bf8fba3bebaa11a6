"""Asking the store what may lie on the disk, as request handlers do it: now, or with a promise.

Most questions are answered at once, from memory, and cost what they cost. The others wait for the
store's thread, and their requests with them; producers do not. A store that cannot answer is said
to be busy, or broken, with its own words.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Generic, TypeVar

from gantrymq.store.errors import StoreDamaged, StoreOverloaded
from gantrymq.wire.response_errors import SystemBusy, SystemFailure

if TYPE_CHECKING:
    from collections.abc import Callable

    from gantrymq.store.message_store import MessageStore
    from gantrymq.store.questions import Questions
    from gantrymq.wire.peer import Answer, Pending

T = TypeVar("T")


class _Promise(Generic[T]):
    """An answer of the store that may come later."""

    __slots__ = ("_answer", "_error", "_future", "_otherwise", "_store", "is_there")

    def __init__(
        self,
        store: MessageStore,
        question: Callable[[Questions], T],
        otherwise: Callable[[Exception], T] | None = None,
    ) -> None:
        self.is_there = False
        self._store = store
        self._otherwise = otherwise
        self._answer: T | None = None
        self._error: Exception | None = None
        self._future: asyncio.Future[None] | None = None
        store.reads.questions.begin(question, self._done, self._failed)

    def _done(self, answer: T) -> None:
        self._answer = answer
        self._settle()

    def _failed(self, error: Exception) -> None:
        if self._otherwise is not None:
            self._answer = self._otherwise(error)
        else:
            if isinstance(error, StoreOverloaded):
                self._store.statistics.refused("COLD_QUESTIONS")
            self._error = _told(error)
        self._settle()

    def _settle(self) -> None:
        self.is_there = True
        if self._future is not None and not self._future.done():
            self._future.set_result(None)

    @property
    def answer(self) -> T:
        """Return the answer, which must be there, or raise what went wrong."""
        if self._error is not None:
            raise self._error
        return self._answer  # type: ignore[return-value]  # None is an answer too

    async def wait(self) -> T:
        """Return the answer when it is there."""
        if not self.is_there:
            self._future = asyncio.get_running_loop().create_future()
            await self._future
        return self.answer


def _told(error: Exception) -> Exception:
    """Return what whoever asked is told."""
    if isinstance(error, StoreOverloaded):
        return SystemBusy(str(error))
    if isinstance(error, OSError | StoreDamaged):
        return SystemFailure(f"reading the store failed: {error}")
    return error


def then(
    store: MessageStore,
    question: Callable[[Questions], T],
    reply: Callable[[T], Pending],
    otherwise: Callable[[Exception], T] | None = None,
) -> Pending:
    """Return what `reply` makes of the answer to a question, or the promise of it.

    The question may be asked several times. Records in its answer must be copies: they may have to
    wait. With `otherwise` a store that cannot answer is no error: it says what to go on with.
    """
    promise = _Promise(store, question, otherwise)
    if promise.is_there:
        return reply(promise.answer)
    return _later(promise, reply)


async def _later(promise: _Promise[T], reply: Callable[[T], Pending]) -> Answer:
    pending = reply(await promise.wait())
    if asyncio.isfuture(pending) or asyncio.iscoroutine(pending):
        return await pending
    return pending


async def ask(store: MessageStore, question: Callable[[Questions], T]) -> T:
    """Return the answer to a question."""
    return await _Promise(store, question).wait()


def copied(record: memoryview | None) -> bytes | None:
    """Return a record that outlives its question."""
    return None if record is None else bytes(record)
