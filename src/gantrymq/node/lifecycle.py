"""The life of a process: start, say so, wait for a signal, drain, stop, and tell how it went."""

from __future__ import annotations

import asyncio
import gc
import signal
from typing import TYPE_CHECKING, Protocol

from gantrymq.node.machine import take_all_files
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


def stop_signals() -> tuple[int, ...]:
    """Return the signals that say stop; the end of its terminal too, unless `nohup` hides it."""
    hidden = signal.getsignal(signal.SIGHUP) == signal.SIG_IGN
    usual = (signal.SIGTERM, signal.SIGINT)
    return usual if hidden else (*usual, signal.SIGHUP)


def run_node(node: Node, started: Callable[[], None]) -> int:
    """Run a node until it is told to stop (`stop_signals`); return the exit status.

    A second signal while it stops ends the process at once, as without a handler.
    """
    take_all_files()
    return run(_life(node, started))


async def _life(node: Node, started: Callable[[], None]) -> int:
    loop = asyncio.get_running_loop()
    told = asyncio.Event()
    signals = stop_signals()
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
