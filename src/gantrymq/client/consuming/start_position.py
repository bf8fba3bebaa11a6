"""Where a consumer begins to read a queue of which nothing was committed yet.

    first   at the oldest message
    last    at the end: messages from before the group are not read
    a time  at the first message that was stored then, or later

As with every RocketMQ client, "last" is for topics with a past: a broker that still has the very
first message of a queue in memory says that the group is at 0. A queue that was just made loses
nothing that way between its first message and the moment in which its readers learn of it.
"""

from __future__ import annotations

from datetime import datetime
from typing import TYPE_CHECKING, Literal, TypeAlias

from gantrymq.errors import InvalidValue, shown
from gantrymq.model.group import ConsumeFromWhere
from gantrymq.model.names import is_retry_topic

if TYPE_CHECKING:
    from gantrymq.client.consuming.calls import ConsumerCalls
    from gantrymq.client.consuming.offsets import OffsetStore
    from gantrymq.model.queue import MessageQueue

Start: TypeAlias = "Literal['first', 'last'] | datetime"


def milliseconds(time: datetime | int) -> int:
    """Return a time as brokers count it; one without a zone is this machine's.

    Raises:
        InvalidValue: it is no time.
    """
    if isinstance(time, datetime):
        return int(time.timestamp() * 1000)
    if isinstance(time, bool) or not isinstance(time, int):
        raise InvalidValue(
            f"the time is {shown(repr(time))}: give a datetime, or milliseconds since 1970"
        )
    return time


class StartPosition:
    """Where to begin."""

    __slots__ = ("time_ms", "where")

    def __init__(self, start: Start) -> None:
        """Read the argument.

        Raises:
            InvalidValue: it is neither `first`, `last` nor a time.
        """
        self.time_ms = 0
        if start == "first":
            self.where = ConsumeFromWhere.CONSUME_FROM_FIRST_OFFSET
        elif start == "last":
            self.where = ConsumeFromWhere.CONSUME_FROM_LAST_OFFSET
        elif isinstance(start, datetime):
            self.where = ConsumeFromWhere.CONSUME_FROM_TIMESTAMP
            self.time_ms = milliseconds(start)
        else:
            raise InvalidValue(f'start is {shown(repr(start))}: give "first", "last" or a datetime')

    async def offset(self, queue: MessageQueue, store: OffsetStore, calls: ConsumerCalls) -> int:
        """Return where to begin with a queue: what was committed, else what was asked for.

        Raises:
            GantryError: the broker does not say; nothing is guessed, since a guess skips messages.
        """
        committed = await store.load(queue)
        if committed is not None and committed >= 0:
            return committed
        if is_retry_topic(queue.topic):
            # What is there waits for this group and was never read by it.
            return await calls.min_offset(queue)
        if self.where is ConsumeFromWhere.CONSUME_FROM_FIRST_OFFSET:
            return await calls.min_offset(queue)
        if self.where is ConsumeFromWhere.CONSUME_FROM_TIMESTAMP:
            return await calls.offset_at(queue, self.time_ms)
        return await calls.max_offset(queue)
