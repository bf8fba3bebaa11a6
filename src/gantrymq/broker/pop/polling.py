"""Pops and notifications that found nothing, waiting for a message.

They wait by topic, group and queue, where queue -1 is any. A message wakes one of those that wait
for its queue and one of those that wait for any; who finds more than it takes wakes another. A
message in a group's retry topic wakes those who wait for the topic itself.

Owned by the event loop's task.
"""

from __future__ import annotations

import heapq
import struct
from collections import OrderedDict
from itertools import count
from typing import TYPE_CHECKING, Final

from gantrymq.model.names import pop_retry_topic

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from gantrymq.broker.pop.offsets import QueueKey
    from gantrymq.broker.settings import LiveSettings
    from gantrymq.clock import Clock
    from gantrymq.kernel import QueueRun

ANY_QUEUE: Final = -1
WAITING_MAX: Final = 100_000
"""`maxPopPollingSize`."""
STALE_MAX: Final = 4096
_TAGS_CODE: Final = struct.Struct(">12xq")


class Waiter:
    """One request that waits; `wanted` tells from a tags code whether a message may be for it."""

    __slots__ = ("deadline", "key", "run", "wanted")

    def __init__(
        self,
        key: QueueKey,
        deadline: float,
        run: Callable[[bool], None],
        wanted: Callable[[int], bool] | None,
    ) -> None:
        self.key = key
        self.deadline = deadline
        self.run: Callable[[bool], None] | None = run
        self.wanted = wanted


class PopPolling:
    """All that wait."""

    def __init__(
        self,
        settings: LiveSettings,
        clock: Clock,
        soon: Callable[[Callable[[], None]], object],
    ) -> None:
        """Run those that are woken through `soon`, as `loop.call_soon` does."""
        self._settings = settings
        self._clock = clock
        self._soon = soon
        self._waiting: dict[QueueKey, OrderedDict[Waiter, None]] = {}
        self._keys: dict[bytes, dict[QueueKey, bool]] = {}  # by topic; True is the retry topic
        self._deadlines: list[tuple[float, int, Waiter]] = []
        self._numbers = count()
        self._held = 0
        self._woken: list[Waiter] = []
        self.sooner: Callable[[float], None] = lambda _due: None
        """Told when `expire` has something to do earlier than it last said."""

    def __len__(self) -> int:
        """Return how many wait."""
        return self._held

    def waiting(self, key: QueueKey) -> int:
        """Return how many wait on a queue."""
        return len(self._waiting.get(key, ()))

    def hold(
        self,
        key: QueueKey,
        seconds: float,
        run: Callable[[bool], None],
        wanted: Callable[[int], bool] | None = None,
    ) -> Waiter | None:
        """Let a request wait; None if there are too many. `run` is told if its time is over."""
        if self._held >= WAITING_MAX or self.waiting(key) >= self._settings.now.pop_polling_max:
            return None
        waiter = Waiter(key, self._clock.monotonic() + seconds, run, wanted)
        if key not in self._waiting:
            for topic in self._topics(key):
                self._keys.setdefault(topic.encode(), {})[key] = topic != key.topic
        self._waiting.setdefault(key, OrderedDict())[waiter] = None
        self._held += 1
        if len(self._deadlines) > 2 * self._held + STALE_MAX:
            self._deadlines = [entry for entry in self._deadlines if entry[2].run is not None]
            heapq.heapify(self._deadlines)
        heapq.heappush(self._deadlines, (waiter.deadline, next(self._numbers), waiter))
        if self._deadlines[0][2] is waiter:
            self.sooner(waiter.deadline)
        return waiter

    @staticmethod
    def _topics(key: QueueKey) -> tuple[str, ...]:
        return key.topic, *(pop_retry_topic(key.group, key.topic, one) for one in (1, 2))

    # -- waking ---------------------------------------------------------------------------------

    def arrived(self, runs: Sequence[QueueRun]) -> None:
        """Wake who may want what has arrived in queues; called by dispatch."""
        if not self._keys:
            return
        for run in runs:
            keys = self._keys.get(run[0])
            if keys is not None:
                self._wake_keys(run, keys)

    def _wake_keys(self, run: QueueRun, keys: dict[QueueKey, bool]) -> None:
        codes: list[int] | None = None
        for key, is_retry in list(keys.items()):
            if is_retry or key.queue_id in {ANY_QUEUE, run.queue_id}:
                if codes is None:
                    codes = [code for (code,) in _TAGS_CODE.iter_unpack(run.units)]
                self._wake_one(key, codes)

    def wake(self, key: QueueKey) -> None:
        """Wake one of those on a queue, and one of those on any: there is something for them."""
        self._wake_one(key, None)
        if key.queue_id != ANY_QUEUE:
            self._wake_one(key._replace(queue_id=ANY_QUEUE), None)

    def _wake_one(self, key: QueueKey, codes: list[int] | None) -> None:
        for waiter in self._waiting.get(key, ()):
            if codes is None or waiter.wanted is None or any(map(waiter.wanted, codes)):
                self._forget(waiter)
                if not self._woken:
                    self._soon(self._run_woken)
                self._woken.append(waiter)
                return

    def _run_woken(self) -> None:
        woken, self._woken = self._woken, []
        for waiter in woken:
            _run(waiter, last=False)

    def expire(self, now: float) -> float | None:
        """Answer those whose time is over; return when the next one's is, or None."""
        while self._deadlines and (
            self._deadlines[0][0] <= now or self._deadlines[0][2].run is None
        ):
            waiter = heapq.heappop(self._deadlines)[2]
            if waiter.run is not None and waiter not in self._woken:
                self._forget(waiter)
                _run(waiter, last=True)
        return self._deadlines[0][0] if self._deadlines else None

    def drop(self, waiter: Waiter) -> None:
        """Forget a request whose sender is gone."""
        if waiter.run is not None:
            waiter.run = None
            self._forget(waiter)

    def release(self, is_gone: Callable[[QueueKey], bool]) -> None:
        """Answer those who wait on queues whose topic or group was deleted."""
        keys = [key for key in self._waiting if is_gone(key)]
        for waiter in [waiter for key in keys for waiter in self._waiting[key]]:
            self._forget(waiter)
            _run(waiter, last=True)

    def release_all(self) -> None:
        """Answer everybody: the broker stops."""
        everybody = [waiter for waiters in self._waiting.values() for waiter in waiters]
        for waiter in everybody:
            self._forget(waiter)
        woken, self._woken = self._woken, []
        for waiter in (*everybody, *woken):
            _run(waiter, last=True)

    def _forget(self, waiter: Waiter) -> None:
        waiters = self._waiting.get(waiter.key)
        if waiters is None or waiter not in waiters:
            return
        del waiters[waiter]
        self._held -= 1
        if not waiters:
            del self._waiting[waiter.key]
            for topic in self._topics(waiter.key):
                keys = self._keys[topic.encode()]
                del keys[waiter.key]
                if not keys:
                    del self._keys[topic.encode()]


def _run(waiter: Waiter, *, last: bool) -> None:
    run, waiter.run = waiter.run, None
    if run is not None:
        run(last)
