"""The texts by which a popped message is known to its broker.

    startOffsetInfo    r queueId startOffset;...                what the broker answers
    extraInfo          startOffset popTime invisibleTime reviveQueue r broker queueId offset

`r` is 0 for the topic itself, 1 and 2 for its pop retry topic of that version. A message that comes
from there may bring its extraInfo along, as property POP_CK.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from gantrymq.errors import ContentError, shown
from gantrymq.model.names import is_retry_topic, pop_retry_topic
from gantrymq.wire import properties as names
from gantrymq.wire.integers import parse_integer

if TYPE_CHECKING:
    from collections.abc import Mapping

    from gantrymq.wire.headers.pop import PopMessageResponse
    from gantrymq.wire.record import MessageRecord

_LONG = 64


class PopHandle(NamedTuple):
    """What acknowledges one message."""

    start_offset: int
    pop_time: int
    invisible_time: int
    revive_queue: int
    mark: str
    """`r`."""
    broker_name: str
    queue_id: int
    offset: int

    @property
    def text(self) -> str:
        """Return the extraInfo."""
        return " ".join(map(str, self))

    def real_topic(self, topic: str, group: str) -> str:
        """Return the topic that the message is in."""
        return topic if self.mark == "0" else pop_retry_topic(group, topic, int(self.mark))


def start_offsets(text: str | None) -> dict[tuple[str, int], int]:
    """Read a startOffsetInfo: (r, queue id) to the first offset that was looked at.

    Raises:
        ContentError: it is none.
    """
    found: dict[tuple[str, int], int] = {}
    for part in (text or "").split(";"):
        if not part:
            continue
        words = part.split(" ")
        numbers = [parse_integer(word, _LONG) for word in words[1:]]
        if len(words) != 3 or None in numbers:
            raise ContentError("header.extFields.startOffsetInfo", f"{shown(part)!r} is no part")
        queue_id, start = (number or 0 for number in numbers)
        found[words[0], queue_id] = start
    return found


def parse_handle(text: str) -> PopHandle:
    """Read an extraInfo of eight parts.

    Raises:
        ContentError: it is none.
    """
    words = text.split(" ")
    if len(words) != 8 or words[4] not in {"0", "1", "2"}:
        raise ContentError("record.POP_CK", f"{shown(text)!r} has not the eight parts it must have")
    numbers = [parse_integer(words[place], _LONG) for place in (0, 1, 2, 3, 6, 7)]
    if None in numbers:
        raise ContentError("record.POP_CK", f"{shown(text)!r}: one of its numbers is none")
    start, popped, invisible, revive, queue_id, offset = (number or 0 for number in numbers)
    return PopHandle(start, popped, invisible, revive, words[4], words[5], queue_id, offset)


def handle_of(
    record: MessageRecord,
    answer: PopMessageResponse,
    starts: Mapping[tuple[str, int], int],
    broker_name: str,
) -> PopHandle:
    """Return the handle of one message of an answer.

    Raises:
        ContentError: the answer does not say where its queue was begun.
    """
    brought = record.properties.get(names.POP_CK)
    if brought:
        return parse_handle(brought)
    topic = record.topic
    mark = "0" if not is_retry_topic(topic) else "2" if "+" in topic else "1"
    start = starts.get((mark, record.queue_id))
    if start is None:
        raise ContentError(
            "header.extFields.startOffsetInfo", f"does not name queue {mark} {record.queue_id}"
        )
    return PopHandle(
        start,
        answer.pop_time,
        answer.invisible_time,
        answer.revive_qid,
        mark,
        broker_name,
        record.queue_id,
        record.queue_offset,
    )
