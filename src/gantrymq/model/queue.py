"""Which queue, and where in it. Three kinds of number that are never mixed, and one name."""

from typing import NewType

import msgspec

QueueId = NewType("QueueId", int)
"""Number of a queue within its topic on one broker group; 32 bits."""
QueueOffset = NewType("QueueOffset", int)
"""Position of a message in its consume queue, counted in messages."""
LogOffset = NewType("LogOffset", int)
"""Position of a record in the endless commit log, counted in bytes."""


class MessageQueue(msgspec.Struct, frozen=True, order=True):
    """One queue in a cluster; ordered as in Java, where clients share out by that order."""

    topic: str
    broker_name: str
    queue_id: QueueId

    def __str__(self) -> str:
        """Return a short form for logs and error texts."""
        return f"{self.topic}@{self.broker_name}:{self.queue_id}"
