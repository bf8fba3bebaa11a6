"""Holds a run's history against what is promised, and says what was broken.

    lost         acknowledged, and never delivered to the group that reads the topic
    order        a queue has two messages the wrong way round: one was acknowledged before the other
                 was sent. Or an orderly group was given them so
    nowhere      delivered, or in a queue, and nobody ever sent it there
    skipped      a group's offset is past a message that was never delivered to it
    transaction  taken back, and delivered all the same; committed, and never delivered
    early        delivered before its time, by the clock of its broker
    moved        acknowledged at one place, and in the end something else is there

Messages may come twice: that is counted and no fault. What was not acknowledged may come or not.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from dataclasses import dataclass, field
from math import inf
from typing import TYPE_CHECKING, Final, NamedTuple

from chaos.history import Decision, Outcome, is_promised

if TYPE_CHECKING:
    from collections.abc import Iterator

    from chaos.history import Attempt, Delivery, Found, History, Place

KINDS: Final = ("lost", "order", "nowhere", "skipped", "transaction", "early", "moved")
EARLY_S_MAX: Final = 0.05
"""Brokers count in milliseconds, and delays from a moment that a client does not see."""


class Violation(NamedTuple):
    """A promise that was broken."""

    kind: str
    what: str


@dataclass(slots=True)
class Verdict:
    """What a history comes to."""

    sent: int = 0
    acknowledged: int = 0
    """Without those that were taken back: so many must be delivered, and others may be."""
    delivered: int = 0
    duplicated: int = 0
    violations: list[Violation] = field(default_factory=list)

    def count(self, kind: str) -> int:
        """Return how often one promise was broken."""
        return sum(one.kind == kind for one in self.violations)


class Checker:
    """One look at one history."""

    def __init__(self, history: History) -> None:
        self._history = history
        self._first: dict[tuple[str, str], Delivery] = {}
        """The first delivery of a message to a group."""
        for one in sorted(history.deliveries, key=lambda delivery: delivery.at):
            self._first.setdefault((one.group, one.ident), one)
        self._seen: list[Delivery | Found] = [*history.deliveries, *history.found]
        self._queues: dict[Place, list[Found]] = defaultdict(list)
        for found in sorted(history.found, key=lambda one: one.offset):
            self._queues[found.place].append(found)
        self._places = self._first_places()

    def check(self) -> Verdict:
        """Return the verdict."""
        history = self._history
        times = Counter((one.group, one.ident) for one in history.deliveries)
        verdict = Verdict(
            sent=len(history.attempts),
            acknowledged=sum(map(is_promised, history.attempts.values())),
            delivered=len(times),
            duplicated=sum(count - 1 for count in times.values()),
        )
        looks = (
            self._lost, self._stored_order, self._delivered_order, self._nowhere, self._skipped,
            self._taken_back, self._early, self._moved,
        )  # fmt: skip
        for look in looks:
            verdict.violations.extend(look())
        return verdict

    # -- what must have come ----------------------------------------------------------------------

    def missing(self) -> list[Attempt]:
        """Return what is promised and was not delivered."""
        readers = self._history.readers
        return [
            one
            for one in self._history.attempts.values()
            if is_promised(one) and (readers[one.topic], one.ident) not in self._first
        ]

    def _lost(self) -> Iterator[Violation]:
        in_queues = {one.ident: one for one in self._history.found}
        for one in self.missing():
            kind = "transaction" if one.in_transaction else "lost"
            found = in_queues.get(one.ident)
            where = f"it is at {found.place} {found.offset}" if found else "it is in no queue"
            yield Violation(kind, f"{one} was never delivered; {where}")

    def _nowhere(self) -> Iterator[Violation]:
        attempts = self._history.attempts
        for one in self._seen:
            sent = attempts.get(one.ident)
            if sent is None or sent.topic != one.place.topic:
                yield Violation("nowhere", f"{one} was sent by nobody")

    def _taken_back(self) -> Iterator[Violation]:
        for one in self._seen:
            sent = self._history.attempts.get(one.ident)
            if sent and sent.in_transaction and sent.decision is not Decision.COMMIT:
                yield Violation("transaction", f"{one} was taken back: {sent}")

    # -- order ------------------------------------------------------------------------------------

    def _stored_order(self) -> Iterator[Violation]:
        """Of two messages, the one acknowledged before the other began must come first."""
        for messages in self._places.values():
            earliest_end = inf  # among all messages behind
            for offset, one in reversed(messages):
                if earliest_end < one.begun:
                    yield Violation(
                        "order",
                        f"{one} is at {offset}, before one that was acknowledged before it began",
                    )
                earliest_end = min(earliest_end, one.ended)

    def _first_places(self) -> dict[Place, list[tuple[int, Attempt]]]:
        """Return each queue's acknowledged messages, where each stands first, without delays.

        A message that waits for its time or its transaction is put into its queue when that comes.
        """
        seen: set[str] = set()
        places: dict[Place, list[tuple[int, Attempt]]] = {}
        for place, queue in self._queues.items():
            places[place] = []
            for found in queue:
                sent = self._history.attempts.get(found.ident)
                if sent is None or found.ident in seen:
                    continue
                seen.add(found.ident)
                is_at_once = not sent.delay_s and not sent.in_transaction
                if is_at_once and sent.outcome is Outcome.ACKNOWLEDGED:
                    places[place].append((found.offset, sent))
        return places

    def _delivered_order(self) -> Iterator[Violation]:
        """An orderly group's first deliveries of a queue go up, among what was acknowledged.

        A message that died with its master may have been seen at an offset that others have now.
        """
        reached: dict[tuple[str, Place], int] = {}
        for (group, ident), one in self._first.items():  # by time
            sent = self._history.attempts.get(ident)
            if group not in self._history.orderly or sent is None or not is_promised(sent):
                continue
            before = reached.get((group, one.place), -1)
            if one.offset < before:
                yield Violation("order", f"{one} was given to {group} after {before}")
            reached[group, one.place] = max(before, one.offset)

    # -- offsets ----------------------------------------------------------------------------------

    def _skipped(self) -> Iterator[Violation]:
        """What was acknowledged before a committed offset, and before that was seen, had come.

        A message that was acknowledged later, and before that offset all the same, has the place of
        one that died with its master, where the offset was seen: whether it comes is asked above.
        """
        known: dict[tuple[str, Place], list[tuple[int, float, float]]] = {}
        for commit in self._history.commits:
            key = (commit.group, commit.place)
            if key not in known:
                known[key] = self._times(*key)
            for offset, acknowledged_at, delivered_at in known[key]:
                if offset >= commit.offset:
                    break
                if acknowledged_at < commit.at < delivered_at:
                    yield Violation("skipped", f"{commit}: {offset} was not delivered")
                    break

    def _times(self, group: str, place: Place) -> list[tuple[int, float, float]]:
        """Return a queue's messages: offset, when acknowledged, and when delivered to a group."""
        times = []
        for offset, sent in self._places.get(place, ()):
            first = self._first.get((group, sent.ident))
            times.append((offset, sent.ended, first.at if first else inf))
        return times

    def _moved(self) -> Iterator[Violation]:
        """What was acknowledged with a place is at that place."""
        there = {(one.place, one.offset): one.ident for one in self._history.found}
        for one in self._history.attempts.values():
            if one.outcome is Outcome.ACKNOWLEDGED and one.place is not None:
                instead = there.get((one.place, one.offset))
                if instead != one.ident:
                    yield Violation("moved", f"{one}: {instead} is there")

    # -- time -------------------------------------------------------------------------------------

    def _early(self) -> Iterator[Violation]:
        """Nothing comes before its time; a broker whose clock was put forward may be that early."""
        for one in self._first.values():
            sent = self._history.attempts.get(one.ident)
            if sent is None or not sent.delay_s:
                continue
            forward_s = self._put_forward(sent.begun, one.at, by_date=sent.by_date)
            due = sent.begun + sent.delay_s - forward_s
            if one.at < due - EARLY_S_MAX:
                yield Violation("early", f"{one} came {due - one.at:.3f} s early: {sent}")

    def _put_forward(self, begun: float, ended: float, *, by_date: bool) -> float:
        """Return by how much brokers' clocks may have gone forward between two moments.

        One broker may have stored a message and another may deliver it: all of them count. With
        `by_date` the sender's clock counts as well, which is always right.
        """
        at_first: dict[str, float] = {}
        later = []
        for one in sorted(self._history.shifts):
            if one.at <= begun:
                at_first[one.broker] = one.ahead_s
            elif one.at <= ended:
                later.append(one.ahead_s)
        ahead = [*at_first.values(), *later]
        if by_date or not at_first:
            ahead.append(0.0)
        return max(ahead) - min(ahead)


def check(history: History) -> Verdict:
    """Return what a history comes to."""
    return Checker(history).check()
