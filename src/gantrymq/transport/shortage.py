"""What gives way when all connections together hold as much as they may.

First those go that read nothing of what waits for them, the largest first. Then, if somebody waits
for memory in the middle of a frame, the largest frames go whose senders have stopped in the middle:
they would hold it for ever, and everybody whose message is large would wait for them. A quarter of
the bound is made free at once, so that this is not needed for each frame anew.

Whoever waits goes on in the order of what is missing: a small frame is done, and gone, before a
large one has begun to grow.

Called on the event loop's thread, when a sweep has looked at all connections.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Iterable

    from gantrymq.transport.connection import Connection
    from gantrymq.transport.table import ConnectionTable

STALLED_S: Final = 3.0
"""Of a frame that has not grown for so long nothing more is expected, when memory is short."""
FREED_PART: Final = 4


def relieve(
    table: ConnectionTable,
    unsent: Iterable[tuple[int, Connection]],
    starved: list[Connection],
    now: float,
) -> None:
    """Close what holds too much, and let those go on that wait for memory.

    `unsent` are those that have bytes waiting, with how many; `starved` those that wait.
    """
    _close_unread(table, unsent)
    if starved:
        _close_stalled(table, now)
        _feed(table, starved)


def _close_unread(table: ConnectionTable, unsent: Iterable[tuple[int, Connection]]) -> None:
    excess = table.buffered_bytes - table.settings.buffered_bytes_max
    if excess <= 0:
        return
    for size, connection in sorted(unsent, key=lambda pair: pair[0], reverse=True):
        if connection.is_open and connection.takes_nothing:
            table.rare_log.warning(
                "memory",
                f"all connections hold {table.buffered_bytes} bytes, more than"
                f" buffered_bytes_max: closing {connection.address}, which does not read and"
                f" has {size} bytes waiting",
            )
            table.closed["memory"] += 1
            connection.abort("does not read, and memory is short")
            excess -= size
            if excess <= 0:
                return


def _close_stalled(table: ConnectionTable, now: float) -> None:
    most = table.settings.buffered_bytes_max
    wanted = most - most // FREED_PART
    if table.buffered_bytes <= wanted:
        return
    stalled = [each for each in table.connections.values() if each.stalled_s(now) >= STALLED_S]
    stalled.sort(key=lambda each: each.kept_bytes, reverse=True)
    for connection in stalled:
        table.rare_log.warning(
            "stalled",
            f"memory for unfinished frames is used up: closing {connection.address}, which has"
            f" sent {connection.kept_bytes} bytes of one and nothing more for {STALLED_S:g} s",
        )
        table.closed["memory"] += 1
        connection.abort("sent a part of a frame only, and memory is short")
        if table.buffered_bytes <= wanted:
            return


def _feed(table: ConnectionTable, starved: list[Connection]) -> None:
    room = table.settings.buffered_bytes_max - table.buffered_bytes
    for connection in sorted(starved, key=lambda each: each.missing_bytes):
        if room <= 0:
            return
        if connection.is_open:
            room -= connection.missing_bytes
            connection.go_on()
