"""Where a read begins and ends: words, offsets, times and groups, made into offsets.

A time means the first message stored then or later. It is found by halves over store times, here
and not by the broker: 4.9 answers a time behind the last message with that message. Both modes ask
the same questions and so find the same offset.
"""

from __future__ import annotations

from datetime import UTC, datetime
from typing import TYPE_CHECKING, Final

from gantrymq.errors import InvalidValue, shown
from gantrymq.spark.offsets import Offsets, parse

if TYPE_CHECKING:
    from collections.abc import Mapping

    from gantrymq.spark.backend import Backend, Bounds
    from gantrymq.spark.options import Positions
    from gantrymq.spark.slices import Queue

EARLIEST: Final = -2
LATEST: Final = -1
"""As in rocketmq-spark and Kafka's source."""


def resolve(
    positions: Positions, bounds: Mapping[Queue, Bounds], backend: Backend, name: str
) -> Offsets:
    """Return the offset of every queue that a position means.

    Offsets that are given are not looked at: whether they exist is for who reads.

    Raises:
        InvalidValue: an offset is for a queue that is not read, or the text is none.
    """
    if positions.kind == "earliest":
        return {queue: one.least for queue, one in bounds.items()}
    if positions.kind == "latest":
        return {queue: one.most for queue, one in bounds.items()}
    if positions.kind == "time":
        time_ms = milliseconds(positions.text, name)
        return {queue: offset_at(backend, queue, one, time_ms) for queue, one in bounds.items()}
    if positions.kind == "group":
        known = backend.committed(positions.text, list(bounds))
        return {queue: known.get(queue, one.least) for queue, one in bounds.items()}
    given = parse(positions.text, name)
    unknown = sorted(set(given).difference(bounds))
    if unknown:
        listed = ", ".join(map(str, unknown[:8]))
        raise InvalidValue(
            f"{name} names queues that are not read, or do not exist: {listed}. "
            f"There are {', '.join(map(str, sorted(bounds)))}"
        )
    if positions.kind == "times":
        return {
            queue: offset_at(backend, queue, one, given[queue])
            if queue in given
            else _unnamed(one, name)
            for queue, one in bounds.items()
        }
    return {
        queue: _given(given[queue], one) if queue in given else _unnamed(one, name)
        for queue, one in bounds.items()
    }


def _given(offset: int, bounds: Bounds) -> int:
    if offset == EARLIEST:
        return bounds.least
    if offset == LATEST:
        return bounds.most
    if offset < 0:
        raise InvalidValue(f"offset {offset}: give one from 0 on, -2 for earliest, -1 for latest")
    return offset


def _unnamed(bounds: Bounds, name: str) -> int:
    """Return where a queue begins or ends that the JSON does not name: it is read as a whole."""
    return bounds.most if name.startswith("ending") else bounds.least


def milliseconds(text: str, name: str) -> int:
    """Read a time: milliseconds since 1970, or ISO 8601, in UTC unless it says otherwise.

    Raises:
        InvalidValue: it is neither.
    """
    if text.isascii() and text.isdecimal():
        return int(text)
    try:
        time = datetime.fromisoformat(text)
    except ValueError:
        raise InvalidValue(
            f"{name} is {shown(text)}: give milliseconds, or a time such as 2026-11-16T12:00:00Z"
        ) from None
    if time.tzinfo is None:
        time = time.replace(tzinfo=UTC)
    return int(time.timestamp() * 1000)


def offset_at(backend: Backend, queue: Queue, bounds: Bounds, time_ms: int) -> int:
    """Return the offset of the first message stored at a time or later; the end without one."""
    least, most = bounds
    while least < most:
        middle = (least + most) // 2
        stored_ms = backend.stored_at(queue, middle)
        if stored_ms is None or stored_ms >= time_ms:
            most = middle
        else:
            least = middle + 1
    return least
