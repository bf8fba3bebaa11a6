"""Which queue a message goes to when the sender has a wish.

Without one, queues take turns (`lanes`). With a key, the same key always gets the same queue, by
the hash that Java's `SelectMessageQueueByHash` uses, so that producers in both languages agree.
"""

from __future__ import annotations

import random
from typing import TYPE_CHECKING, Any, TypeAlias

from gantrymq.client.arguments import function
from gantrymq.errors import InvalidValue, shown
from gantrymq.wire.tags import tag_hash

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from gantrymq.model.message import Message
    from gantrymq.model.queue import MessageQueue

Selector: TypeAlias = "Callable[[Sequence[MessageQueue], Message, Any], MessageQueue]"
"""`selector(queues, message, argument)` returns one of the queues."""


def queue_number(key: str, queues: int) -> int:
    """Return which of so many queues a key has: Java's string hash, its remainder, its size."""
    code = tag_hash(key)
    return abs(code) % queues  # the remainder of Java's division has the sign of the hash


def by_key(queues: Sequence[MessageQueue], _message: Message, key: str) -> MessageQueue:
    """Choose the queue of a key."""
    return queues[queue_number(key, len(queues))]


def at_random(queues: Sequence[MessageQueue], _message: Message, _argument: object) -> MessageQueue:
    """Choose any queue."""
    return random.choice(queues)  # noqa: S311  (spreads load, hides nothing)


def chosen(
    selector: Selector, queues: Sequence[MessageQueue], message: Message, argument: object
) -> MessageQueue:
    """Return the queue that a selector chooses.

    Raises:
        InvalidValue: it is none of those that it was given.
    """
    function("selector", selector)
    found = selector(queues, message, argument)
    if found not in queues:
        raise InvalidValue(
            f"the selector returned {shown(str(found))}, which is no queue of {message.topic!r}:"
            " return one of those that it is given"
        )
    return found
