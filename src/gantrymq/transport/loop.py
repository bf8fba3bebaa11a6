"""The event loop of a process: uvloop where it can be had, asyncio's own otherwise."""

from __future__ import annotations

import asyncio
from importlib import import_module
from typing import TYPE_CHECKING, Any, TypeVar, cast

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine

    LoopFactory = Callable[[], asyncio.AbstractEventLoop]

Result = TypeVar("Result")


def uvloop_factory() -> LoopFactory | None:
    """Return what makes a uvloop, or None where it is not installed.

    It is imported by name: whether it is there is known at run time only.
    """
    try:
        module = import_module("uvloop")
    except ImportError:
        return None
    return cast("LoopFactory", module.new_event_loop)


def run(main: Coroutine[Any, Any, Result]) -> Result:
    """Run a coroutine on a loop of its own, as `asyncio.run` does, and return its result."""
    with asyncio.Runner(loop_factory=uvloop_factory()) as runner:
        return runner.run(main)
