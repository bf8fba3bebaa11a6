"""The life of a process: start, say so, wait for a signal, drain, stop, and tell how it went."""

from __future__ import annotations

import asyncio
import gc
import signal
from typing import TYPE_CHECKING, Protocol

from gantrymq.transport.loop import run

if TYPE_CHECKING:
    from collections.abc import Callable

STOPPED_CLEANLY = 0
STOPPED_WITH_LOSSES = 1
"""Something could not be brought to the disk; the next start recovers."""


class Node(Protocol):
    """What a process is made of."""

    async def start(self) -> object:
        """Start; raise if it cannot."""
        ...

    async def stop(self) -> bool:
        """Stop; tell whether everything is safe."""
        ...


def run_node(node: Node, started: Callable[[], None]) -> int:
    """Run a node until SIGTERM or SIGINT; return the exit status.

    A second signal while it stops ends the process at once, as without a handler.
    """
    return run(_life(node, started))


async def _life(node: Node, started: Callable[[], None]) -> int:
    loop = asyncio.get_running_loop()
    told = asyncio.Event()
    signals = (signal.SIGTERM, signal.SIGINT)
    for number in signals:
        loop.add_signal_handler(number, told.set)
    try:
        await node.start()
        started()
        _forget_about_what_is_there()
        await told.wait()
    finally:
        for number in signals:
            loop.remove_signal_handler(number)
        clean = await node.stop()
        gc.unfreeze()
    return STOPPED_CLEANLY if clean else STOPPED_WITH_LOSSES


def _forget_about_what_is_there() -> None:
    """Take modules and tables out of the collector's sight: they stay as long as the process.

    With ten thousand topics a look at all of them takes a tenth of a second, in which nobody is
    answered.
    """
    gc.collect()
    gc.freeze()
