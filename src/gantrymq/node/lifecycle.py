"""The life of a process: start, say so, wait for a signal, drain, stop, and tell how it went."""

from __future__ import annotations

import asyncio
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
        await told.wait()
    finally:
        for number in signals:
            loop.remove_signal_handler(number)
        clean = await node.stop()
    return STOPPED_CLEANLY if clean else STOPPED_WITH_LOSSES
