"""What happened in a run, as its clients saw it: the only thing that the checker believes.

A client notes every send before it begins and when it ends, every delivery when the handler is
called, every offset that the broker says a group has committed. When the run is over, every queue
is read once more from its beginning. Times are seconds on one clock that never goes back.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import Enum
from itertools import pairwise
from math import inf
from typing import NamedTuple


class Outcome(Enum):
    """What a send came to, as far as its sender knows."""

    PENDING = "pending"
    ACKNOWLEDGED = "acknowledged"
    """SEND_OK: as safe as the settings promise."""
    STORED = "stored"
    """Stored, and said to be less safe than that."""
    FAILED = "failed"
    """Refused, or nobody knows: a try may have been stored."""


class Decision(Enum):
    """How the application's part of a transaction ended."""

    COMMIT = "commit"
    ROLLBACK = "rollback"


class Place(NamedTuple):
    """A queue."""

    topic: str
    broker: str
    queue: int


@dataclass(slots=True)
class Attempt:
    """A message that somebody tried to send."""

    ident: str
    topic: str
    begun: float
    delay_s: float = 0.0
    by_date: bool = False
    """Whether it was to come at a time by the sender's clock, and not after a while."""
    in_transaction: bool = False
    decision: Decision | None = None
    """None as long as the application's part has not run."""
    ended: float = inf
    outcome: Outcome = Outcome.PENDING
    place: Place | None = None
    offset: int = -1
    """Where it was stored, of an ordinary message."""


class Delivery(NamedTuple):
    """A message that a group's handler was given."""

    ident: str
    group: str
    place: Place
    offset: int
    at: float


class Commit(NamedTuple):
    """How far a group has read a queue, by the broker's word."""

    group: str
    place: Place
    offset: int
    at: float


class Found(NamedTuple):
    """A message that is in a queue when all is over."""

    ident: str
    place: Place
    offset: int


class ClockShift(NamedTuple):
    """From when on a broker's clock was ahead of ours by so many seconds, or behind."""

    at: float
    broker: str
    ahead_s: float


@dataclass(slots=True)
class History:
    """All of it."""

    orderly: frozenset[str] = frozenset()
    """Groups that read each queue in order."""
    readers: dict[str, str] = field(default_factory=dict)
    """Which group reads a topic."""
    attempts: dict[str, Attempt] = field(default_factory=dict)
    deliveries: list[Delivery] = field(default_factory=list)
    commits: list[Commit] = field(default_factory=list)
    found: list[Found] = field(default_factory=list)
    shifts: list[ClockShift] = field(default_factory=list)
    acknowledged_at: list[float] = field(default_factory=list)

    def begin(self, attempt: Attempt) -> Attempt:
        """Note a send that is about to begin."""
        if attempt.ident in self.attempts:
            raise ValueError(f"{attempt.ident} is sent twice")
        self.attempts[attempt.ident] = attempt
        return attempt

    def end(self, attempt: Attempt, outcome: Outcome, at: float) -> None:
        """Note what a send came to."""
        attempt.outcome, attempt.ended = outcome, at
        if outcome is Outcome.ACKNOWLEDGED:
            self.acknowledged_at.append(at)

    def longest_outage_s(self, begun: float, ended: float) -> float:
        """Return the longest time in which no send was acknowledged."""
        inside = sorted(at for at in self.acknowledged_at if begun <= at <= ended)
        marks = [begun, *inside, ended]
        return max(later - earlier for earlier, later in pairwise(marks))


def is_promised(attempt: Attempt) -> bool:
    """Say whether a message must be delivered."""
    if attempt.outcome is not Outcome.ACKNOWLEDGED:
        return False
    return not attempt.in_transaction or attempt.decision is Decision.COMMIT
