"""What a broker stands on: files, a clock, threads and an event loop; a test has its own."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from asyncio import Future
    from collections.abc import Callable

    from gantrymq.clock import Clock
    from gantrymq.store.files import Files
    from gantrymq.store.worker import Worker, Workers
    from gantrymq.wire.peer import Answer


class Loop(NamedTuple):
    """What a broker needs of an event loop."""

    soon: Callable[[Callable[[], None]], object]
    new_future: Callable[[], Future[Answer]]


class Surroundings(NamedTuple):
    """What a broker stands on; a test has its own."""

    files: Files
    clock: Clock
    workers: Workers
    config_worker: Worker
    loop: Loop
    memory_bytes: int
    pid: int
