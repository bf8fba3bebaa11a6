"""Reading `topics.json`, another broker's too: no single topic is a reason to refuse the others.

An Apache broker takes any number of queues. A topic with more than there can be here is left out
and named; its messages stay where they are.
"""

from __future__ import annotations

import msgspec

from gantrymq.broker.saved_state import read_file, with_quoted_keys
from gantrymq.errors import GantryError
from gantrymq.limits import QUEUES_MAX
from gantrymq.wire.bodies.topic import TopicTable


def read_topics(content: bytes, name: str) -> tuple[TopicTable, tuple[str, ...]]:
    """Return the table of a file, and the topics that are not in it for their number of queues.

    Raises:
        ContentError: it is no table of topics.
    """
    try:
        return read_file(TopicTable, content, name), ()
    except GantryError:
        rest, left_out = _without_huge(content)
        if not left_out:
            raise
    return read_file(TopicTable, rest, name), left_out


def _without_huge(content: bytes) -> tuple[bytes, tuple[str, ...]]:
    try:
        tree = msgspec.json.decode(with_quoted_keys(content))
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
        return content, ()
    table = tree.get("topicConfigTable") if isinstance(tree, dict) else None
    if not isinstance(table, dict):
        return content, ()
    huge = tuple(sorted(name for name, topic in table.items() if _is_huge(topic)))
    for name in huge:
        del table[name]
    return msgspec.json.encode(tree), huge


def _is_huge(topic: object) -> bool:
    counts = (
        [topic.get(name) for name in ("readQueueNums", "writeQueueNums")]
        if isinstance(topic, dict)
        else []
    )
    return any(isinstance(count, int) and not 0 <= count <= QUEUES_MAX for count in counts)
