"""Which handler a call comes from that is made in the handler's thread.

A consumer that closes waits for its handlers, except for the one that asked for the end: that one
waits for the consumer. On the event loop a handler is known by its task. From its thread it calls
through another task (`gantrymq.blocking`, `asyncio.run_coroutine_threadsafe`), which has a copy of
the thread's context: so the context says whose thread it is.
"""

from __future__ import annotations

from contextvars import ContextVar
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    import asyncio


class Caller:
    """A function at work in a thread, and the task that waits for it."""

    __slots__ = ("task",)

    def __init__(self, task: asyncio.Task[Any] | None) -> None:
        self.task = task
        """None once the function has returned: a copy of the context may live longer."""


_current: Final[ContextVar[Caller | None]] = ContextVar("gantrymq handler", default=None)


def note_caller(caller: Caller) -> None:
    """Say in this context who is at work in it."""
    _current.set(caller)


def calling_task() -> asyncio.Task[Any] | None:
    """Return the task that waits for the function whose thread this call comes from."""
    caller = _current.get()
    return None if caller is None else caller.task
