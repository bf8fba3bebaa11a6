"""How much was read and handled: counters by topic, and their rates over the last minute."""

from __future__ import annotations

from collections import deque
from typing import Final, NamedTuple

from gantrymq.wire.bodies.running import ConsumeStatus as TopicStatus

WINDOW_S: Final = 60.0
_SAMPLES_MAX: Final = 13


class _Sample(NamedTuple):
    at: float
    pulls: int
    pull_s: float
    pulled: int
    taken: int
    failed: int
    spent_s: float


class TopicCounters:
    """What happened in one topic since the start."""

    __slots__ = ("_samples", "failed", "pull_s", "pulled", "pulls", "spent_s", "taken")

    def __init__(self) -> None:
        self.pulls = 0
        self.pull_s = 0.0
        self.pulled = 0
        """Messages that came."""
        self.taken = 0
        """Messages that handlers took."""
        self.failed = 0
        self.spent_s = 0.0
        """Time in handlers."""
        self._samples: deque[_Sample] = deque(maxlen=_SAMPLES_MAX)

    def sample(self, now: float) -> None:
        """Remember where the counters are; called every few seconds."""
        self._samples.append(self._now(now))
        while self._samples and now - self._samples[0].at > WINDOW_S:
            self._samples.popleft()

    def status(self, now: float) -> TopicStatus:
        """Return the rates of the last minute, in the form of a consumer's running info."""
        then = self._samples[0] if self._samples else _Sample(now, 0, 0.0, 0, 0, 0, 0.0)
        here = self._now(now)
        seconds = max(now - then.at, 1.0)
        pulls, taken = here.pulls - then.pulls, here.taken - then.taken
        failed = here.failed - then.failed
        handled = taken + failed
        return TopicStatus(
            pull_rt=(here.pull_s - then.pull_s) * 1000 / pulls if pulls else 0.0,
            pull_tps=(here.pulled - then.pulled) / seconds,
            consume_rt=(here.spent_s - then.spent_s) * 1000 / handled if handled else 0.0,
            consume_ok_tps=taken / seconds,
            consume_failed_tps=failed / seconds,
            consume_failed_msgs=self.failed,
        )

    def _now(self, now: float) -> _Sample:
        return _Sample(
            now, self.pulls, self.pull_s, self.pulled, self.taken, self.failed, self.spent_s
        )


class Statistics:
    """The counters of one consumer."""

    def __init__(self) -> None:
        self.topics: dict[str, TopicCounters] = {}

    def of(self, topic: str) -> TopicCounters:
        """Return the counters of a topic, by the user's name for it."""
        found = self.topics.get(topic)
        if found is None:
            found = self.topics[topic] = TopicCounters()
        return found

    def sample(self, now: float) -> None:
        """Remember where all counters are."""
        for counters in self.topics.values():
            counters.sample(now)
