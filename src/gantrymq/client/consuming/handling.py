"""What an application does with a message, and how it says that it did not work out.

A handler that returns has done its work, and the message is acknowledged. One that raises gets the
message again later; `Later` says so without a traceback in the log, and can say when.

    async def handler(message):            # awaited on the event loop: it must not block
    def handler(message):                  # called in a thread: it may block

A handler that is `async` and blocks all the same, by computing for seconds or by reading a file the
old way, stops the whole event loop, heartbeats included. Nothing can be done about that from
inside the loop: make it a plain function.
"""

from __future__ import annotations

import asyncio
import functools
import inspect
import logging
from collections.abc import Awaitable, Callable
from enum import Enum
from typing import TYPE_CHECKING, Any, TypeAlias

from gantrymq.client.arguments import at_least
from gantrymq.errors import InvalidValue, shown

if TYPE_CHECKING:
    from gantrymq.client.consuming.process_queue import Held
    from gantrymq.client.consuming.threads import HandlerThreads

logger = logging.getLogger(__name__)


class ConsumeStatus(Enum):
    """What a handler may return; anything else but LATER means SUCCESS."""

    SUCCESS = "success"
    LATER = "later"


class Later(Exception):
    """Raised by a handler that wants the message again: `raise Later()`.

    `delay_level` is one of the broker's levels (1 is 1 s, 2 is 5 s, 3 is 10 s…); 0 lets the broker
    choose, longer with every attempt; -1 gives up: the message goes to the dead letters. A reason
    is named: `raise Later(reason="not paid yet")`.
    """

    def __init__(self, delay_level: int = 0, reason: str = "") -> None:
        super().__init__(reason or "the handler wants the message later")
        self.delay_level = at_least("delay_level", delay_level, -1)


class NotHere(Later):
    """There is no handler for a message here: the broker keeps it for another member."""


Handler: TypeAlias = Callable[[Any], Any]
"""Takes a message, or a list of them where `batch` is more than 1."""
Run: TypeAlias = Callable[[Any], Awaitable[Any]]


def check_handler(handler: object) -> None:
    """Refuse what cannot be called, and what does nothing when it is.

    Raises:
        InvalidValue: it is no function, or one with a `yield`.
    """
    if not callable(handler):
        raise InvalidValue(
            f"handler is {shown(repr(handler))}: give a function that takes a message"
        )
    if any(map(inspect.isgeneratorfunction, _inside(handler))) or any(
        map(inspect.isasyncgenfunction, _inside(handler))
    ):
        raise InvalidValue(
            f"handler is {shown(repr(handler))}, which has a yield: a call of it would do nothing,"
            " and every message would count as handled; give a function without one"
        )


def _inside(handler: Handler) -> tuple[Any, Any]:
    """Return the function of a handler, looked through functools.partial, and its `__call__`."""
    inner: Any = handler
    while isinstance(inner, functools.partial):
        inner = inner.func
    return inner, getattr(inner, "__call__", None)  # noqa: B004 - an object with a method


def is_async(handler: Handler) -> bool:
    """Tell whether a handler is to be awaited; functools.partial and objects are looked through."""
    return any(map(inspect.iscoroutinefunction, _inside(handler)))


def as_async(handler: Handler, threads: Callable[[], HandlerThreads]) -> Run:
    """Return a handler that can be awaited; a plain function runs in a thread."""
    if is_async(handler):
        return handler

    async def run(argument: Any) -> Any:  # noqa: ANN401 - whatever the handler takes
        result = await threads().call(handler, argument)
        if inspect.isawaitable(result):
            # A plain function that returns a coroutine, as a lambda may: it is not done yet.
            return await result
        return result

    return run


def failed_level(error: BaseException, held: Held) -> int:
    """Return the delay level that a handler's exception asks for; log it unless it is `Later`."""
    if isinstance(error, Later):
        return error.delay_level
    logger.error("the handler failed with %r", held.message, exc_info=error)
    return 0


def cancelled_level(held: Held) -> int:
    """Return the delay level after a CancelledError that came out of a handler.

    Raises:
        CancelledError: it was the worker that was cancelled.
    """
    task = asyncio.current_task()
    if task is not None and task.cancelling():
        raise asyncio.CancelledError
    logger.warning("the handler was cancelled at %r", held.message)
    return 0
