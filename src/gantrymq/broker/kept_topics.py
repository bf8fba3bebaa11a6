"""Topics that are kept shorter than the log: `reserve.time` of a topic, in hours.

Apache RocketMQ 5.x has the attribute for its tiered storage. Here it is what people expect of the
name: messages of the topic that are older are no longer served, though their files may be there for
longer. A value below 1 is none: such a topic is kept as long as its files.

Owned by the event loop's task.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Mapping

    from gantrymq.broker.topics import Topics
    from gantrymq.store.message_store import MessageStore

RESERVE_TIME: Final = "reserve.time"
_HOURS: Final = re.compile(r"\+?[0-9]{1,19}")


class KeptHours:
    """Says how many hours each topic is kept that has the attribute; looks at changes only."""

    def __init__(self, topics: Topics) -> None:
        self._topics = topics
        self._seen = -1
        self._hours: dict[str, int] = {}

    def __call__(self) -> Mapping[str, int]:
        """Return the hours by topic."""
        if self._topics.changes != self._seen:
            self._seen = self._topics.changes
            self._hours = {
                name: hours
                for name, topic in self._topics.all().items()
                if topic.attributes and (hours := _hours(topic.attributes.get(RESERVE_TIME, "")))
            }
        return self._hours


def _hours(text: str) -> int:
    """Return a number of hours; 0 for what is none, as a file may say anything."""
    return int(text) if _HOURS.fullmatch(text) else 0


def keep_topics(topics: Topics, store: MessageStore) -> None:
    """Have a store serve topics for no longer than they are kept; waits for the disk."""
    store.cleaner.topics.keep(KeptHours(topics))
