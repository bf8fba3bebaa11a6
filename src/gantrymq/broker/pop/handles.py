"""The texts by which a popped message is known: what the broker answers, what a client sends back.

    startOffsetInfo    r queueId startOffset;...
    msgOffsetInfo      r queueId offset,offset,...;...
    orderCountInfo     r queueId count;r qo<queueId>%<offset> count;...
    extraInfo          startOffset popTime invisibleTime reviveQueue r broker queueId [offset]

`r` is 0 for the topic itself, 1 and 2 for its retry topic of that version.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple

from gantrymq.errors import ContentError, shown
from gantrymq.model.names import is_retry_topic, pop_retry_topic
from gantrymq.wire.integers import parse_integer

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

ORDERLY: Final = 999
"""The revive queue of an orderly pop, which has none."""
_PARTS_MIN: Final = 6
_LONG: Final = 64
_INT: Final = 32


def retry_mark(topic: str) -> str:
    """Return `r` of a topic."""
    if not is_retry_topic(topic):
        return "0"
    return "2" if "+" in topic else "1"


def real_topic(topic: str, group: str, mark: str) -> str:
    """Return the topic that `r` means.

    Raises:
        ContentError: there is no such `r`.
    """
    if mark == "0":
        return topic
    if mark not in {"1", "2"}:
        raise ContentError("body.acks.r", f"{shown(mark)!r} is not 0, 1 or 2")
    return pop_retry_topic(group, topic, int(mark))


class PopHandle(NamedTuple):
    """What a client says about a message that it has popped."""

    start_offset: int
    pop_time: int
    invisible_time: int
    revive_queue: int
    broker_name: str

    @property
    def revive_time(self) -> int:
        """Return when the message may be handed out again."""
        return self.pop_time + self.invisible_time


def parse_handle(text: str) -> PopHandle:
    """Read an extraInfo.

    Raises:
        ContentError: it is none; says which part.
    """
    parts = text.split(" ")
    if len(parts) < _PARTS_MIN:
        raise ContentError(
            "header.extFields.extraInfo", f"{shown(text)!r} has {len(parts)} parts, not 7 or 8"
        )
    numbers = [
        parse_integer(part, bits)
        for part, bits in zip(parts[:4], (_LONG, _LONG, _LONG, _INT), strict=True)
    ]
    for name, number in zip(
        ("start offset", "pop time", "invisible time", "revive queue"), numbers, strict=True
    ):
        if number is None or number < 0:
            raise ContentError(
                "header.extFields.extraInfo", f"{shown(text)!r}: its {name} is no number"
            )
    start, popped, invisible, revive = (number or 0 for number in numbers)
    return PopHandle(start, popped, invisible, revive, parts[5])


def extra_info(handle: PopHandle, topic: str, queue_id: int, offset: int) -> str:
    """Return an extraInfo."""
    return (
        f"{handle.start_offset} {handle.pop_time} {handle.invisible_time} {handle.revive_queue} "
        f"{retry_mark(topic)} {handle.broker_name} {queue_id} {offset}"
    )


def start_info(topic: str, queue_id: int, start: int) -> str:
    """Return one part of startOffsetInfo."""
    return f"{retry_mark(topic)} {queue_id} {start}"


def offsets_info(topic: str, queue_id: int, offsets: Sequence[int]) -> str:
    """Return one part of msgOffsetInfo."""
    return f"{retry_mark(topic)} {queue_id} {','.join(map(str, offsets))}"


def order_info(topic: str, queue_id: int, counts: Mapping[int, int], *, fresh: bool) -> str:
    """Return one queue's part of orderCountInfo: how often each message was handed out before.

    With `fresh` there are others that never were; the queue's own count, for old clients, is the
    smallest.
    """
    mark = retry_mark(topic)
    parts = [f"{mark} qo{queue_id}%{offset} {count}" for offset, count in counts.items()]
    least = 0 if fresh else min(counts.values(), default=0)
    return ";".join([*parts, f"{mark} {queue_id} {least}"])
