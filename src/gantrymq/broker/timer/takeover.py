"""Timers that an Apache broker has left, and what one needs to go on with ours.

An Apache broker keeps its entries in `timerlog` and `timerwheel`, which are left alone here, and
how far it is in `config/timercheck`. After it everything in the timer's topic is read from its
beginning, and what it says that it has delivered is left out.

For an Apache broker that comes after us we write the same file: it reads the topic again from the
first record that still waits.
"""

from __future__ import annotations

import struct
from typing import Final, NamedTuple

from gantrymq.broker.timer.progress import Progress

_CHECK: Final = struct.Struct(">7q")
_OLD_CHECK: Final = struct.Struct(">4q")
PAGE_BYTES: Final = 4096
"""An Apache broker maps a page of it."""


class Check(NamedTuple):
    """The content of `timercheck`."""

    delivered_ms: int = 0
    """Everything due before it has been delivered."""
    timer_log_offset: int = 0
    queue_offset: int = 0
    """Records before it have been taken out of the topic."""
    master_queue_offset: int = 0
    state_version: int = 0
    timestamp_ms: int = 0
    counter: int = 0

    @property
    def short(self) -> bytes:
        """Return what a slave is told."""
        return _CHECK.pack(*self)

    def encode(self) -> bytes:
        """Return the file."""
        return self.short.ljust(PAGE_BYTES, b"\0")

    def covers(self, queue_offset: int, out_ms: int) -> bool:
        """Tell whether a record was delivered by who wrote this."""
        return queue_offset < self.queue_offset and out_ms < self.delivered_ms


class Position(NamedTuple):
    """Where to go on, and what to leave out on the way."""

    progress: Progress
    skip: Check


def parse_check(content: bytes) -> Check | None:
    """Read the file; None if there is nothing in it."""
    if len(content) >= _CHECK.size:
        check = Check(*_CHECK.unpack_from(content))
    elif len(content) >= _OLD_CHECK.size:
        check = Check(*_OLD_CHECK.unpack_from(content))
    else:
        return None
    return check if check.delivered_ms > 0 else None


def position_after(saved: Progress | None, written: bytes, least: int, now_ms: int) -> Position:
    """Return where to go on; `written` is what `timercheck` holds, `least` the topic's begin."""
    check = parse_check(written)
    if saved is not None and (check is None or written[: _CHECK.size].hex() == saved.apache):
        return Position(saved, Check())
    if check is not None:
        progress = Progress(read_offset=least, next_second=check.delivered_ms // 1000)
        return Position(progress, check)
    return Position(Progress(read_offset=least, next_second=now_ms // 1000), Check())
