"""Topics and groups for kombu's queues, whose names may hold what a topic may not."""

from __future__ import annotations

import hashlib
import re
from typing import Final

NAME_MAX: Final = 100
"""Leaves room for the prefixes that groups and retry topics put in front."""


def topic_of(queue: str) -> str:
    """Return the topic of a queue: its name, with `_2e_` for a dot and the like.

    Names that are too long are cut and end in a hash of the whole.
    """
    topic = re.sub(r"[^a-zA-Z0-9_-]", lambda found: f"_{ord(found[0]):x}_", queue)
    if len(topic) <= NAME_MAX:
        return topic
    digest = hashlib.sha256(queue.encode()).hexdigest()[:16]
    return f"{topic[: NAME_MAX - 17]}-{digest}"


def group_of(prefix: str, queue: str) -> str:
    """Return the group of a queue's consumers.

    Each queue has one of its own: members of a group must all read the same topics.
    """
    return f"{prefix}-{topic_of(queue)}"
