"""What a redrive is to do, how far it is, and what becomes of each dead letter."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

from gantrymq.admin.protected import check_may_change_group, check_may_change_topic
from gantrymq.errors import InvalidValue
from gantrymq.model.names import DLQ_PREFIX, check_topic, retry_topic
from gantrymq.wire.properties import DLQ_ORIGIN_TOPIC, RETRY_TOPIC

if TYPE_CHECKING:
    from gantrymq.admin.journal import Line
    from gantrymq.admin.search import Condition
    from gantrymq.model.queue import MessageQueue
    from gantrymq.wire.record import MessageRecord

JOB: Final = "REDRIVE_JOB"
FROM: Final = "REDRIVE_FROM"
TIMES: Final = "REDRIVE_TIMES"
TIMES_DIGITS_MAX: Final = 9
WINDOW: Final = 2_000
WINDOW_BYTES: Final = 32 << 20
"""Of what is read at once; two windows are in memory at a time."""
TO_GROUP: Final = "group"
TO_TOPIC: Final = "topic"


@dataclass(frozen=True, slots=True)
class Order:
    """What a job is to do."""

    group: str
    to: str = TO_GROUP
    """`group`: to the group alone, by its retry topic. `topic`: to the topic that each came from,
    for all its groups. Anything else is the name of a topic."""
    condition: Condition | None = None
    rate: int = 0
    """Messages in a second; 0 is no limit."""
    loops_max: int = 3
    count_max: int = 0
    """How many one run sends at most; 0 is no limit."""
    dry_run: bool = False

    def check(self) -> None:
        """Refuse a target that cannot be, and groups of the system.

        Raises:
            InvalidValue: it is no name, or leads to the dead letters again; or is untouchable.
        """
        check_may_change_group(self.group)
        if self.to in {TO_GROUP, TO_TOPIC}:
            return
        check_may_change_topic(check_topic(self.to))
        if self.to.startswith(DLQ_PREFIX):
            raise InvalidValue(
                f"{self.to} holds dead letters itself, which nobody takes from there: give group,"
                " topic, or the name of another topic"
            )

    def job(self) -> Line:
        """Return what makes it another job: how fast it goes does not."""
        told = None if self.condition is None else self.condition.text
        return {"job": "redrive", "group": self.group, "to": self.to, "filter": told,
                "loops": self.loops_max}  # fmt: skip

    def verdict(self, record: MessageRecord) -> str | None:
        """Return why a message is not to be sent, or None."""
        if self.condition is not None and not self.condition.holds(record):
            return "filtered"
        return "refused" if times(record) >= self.loops_max else None

    def target(self, record: MessageRecord) -> str:
        """Return the topic that a message goes to; empty where it does not say."""
        if self.to == TO_GROUP:
            return retry_topic(self.group)
        if self.to == TO_TOPIC:
            told = record.properties
            return told.get(RETRY_TOPIC) or told.get(DLQ_ORIGIN_TOPIC) or ""
        return self.to


@dataclass(slots=True)
class Progress:
    """How far a job is."""

    total: int = 0
    """Messages in the dead-letter queues, those done before included."""
    outcomes: Counter[str] = field(default_factory=Counter)
    recovered: int = 0
    """Sent by a run before, which did not come to note it."""
    examples: list[str] = field(default_factory=list)
    """Why some were not sent."""

    @property
    def done(self) -> int:
        """Return how many have an outcome."""
        return sum(self.outcomes.values())


def queue_name(queue: MessageQueue) -> str:
    """Return a queue as journals and marks have it."""
    return f"{queue.broker_name}:{queue.queue_id}"


def place_of(queue: MessageQueue, record: MessageRecord) -> str:
    """Return where a dead letter is, as its mark has it: broker, queue and offset."""
    return f"{queue.broker_name}:{queue.queue_id}:{record.raw.queue_offset}"


def times(record: MessageRecord) -> int:
    """Return how often a message was sent again already.

    Anybody can set the property: what has more digits than any count is more than any limit.
    """
    text = record.properties.get(TIMES)
    if text is None:
        return 0
    if len(text) > TIMES_DIGITS_MAX:
        return int(10**TIMES_DIGITS_MAX)
    return int(text) if text.isdecimal() else 0
