"""What a check of a store found: counts of what was looked at, and what is wrong with it."""

from __future__ import annotations

from collections import Counter
from enum import Enum
from typing import Final, NamedTuple

import msgspec

PROBLEMS_MAX: Final = 100
"""Problems of one kind that are described; the rest is counted."""


class Kind(Enum):
    """What may be wrong."""

    RECORD = "log.record"
    """No record, or a damaged one, where the one before it ends."""
    BLANK = "log.blank"
    """A file does not end as it should."""
    TIME = "log.time"
    """A record was stored before the one in front of it."""
    TAIL = "log.tail"
    """Recovery cuts off what follows the end of the log."""
    QUEUE_MISSING = "queue.missing"
    """A record without its queue entry: it is not served."""
    QUEUE_ENTRY = "queue.entry"
    """An entry that does not point to its record."""
    QUEUE_TAGS = "queue.tags"
    """An entry with another tags code than its record: filters go wrong."""
    QUEUE_EXT = "queue.ext"
    """An entry whose unit in the extension is not there, or of another message."""
    INDEX_MISSING = "index.missing"
    """A key of a record that the index does not have."""
    INDEX_ENTRY = "index.entry"
    """An entry that belongs to no key of the record it points to, or has another time."""
    INDEX_CHAIN = "index.chain"
    """An entry that its slot does not lead to."""


class Problem(NamedTuple):
    """One thing that is wrong."""

    kind: Kind
    place: str
    """A file, or a queue."""
    what: str


class VerifyReport(msgspec.Struct, rename="camel"):
    """What a check looked at and found."""

    records: int = 0
    log_bytes: int = 0
    queues: int = 0
    queue_entries: int = 0
    index_files: int = 0
    index_entries: int = 0
    records_of_deleted_topics: int = 0
    """Records whose topic has no queues and is not in config/topics.json."""
    stale_bytes: int = 0
    """What Apache left behind the end when it cut the log; it is overwritten in time."""
    counts: Counter[Kind] = msgspec.field(default_factory=Counter)
    problems: list[Problem] = msgspec.field(default_factory=list)

    @property
    def is_sound(self) -> bool:
        """Tell whether nothing is wrong."""
        return not self.counts

    def add(self, kind: Kind, place: str, what: str, count: int = 1) -> None:
        """Note a problem, or `count` of them at one place."""
        if self.counts[kind] < PROBLEMS_MAX:
            self.problems.append(Problem(kind, place, what))
        self.counts[kind] += count
