"""Pulls that found nothing, waiting for a message: parked by queue, woken by dispatch.

A held pull costs its entry in the map of its queue and nothing else. When messages arrive in a
queue, those whose filter may let one of them through are run again; the rest go on waiting. Whoever
has waited as long as it asked for is run a last time, and then answered whatever is found.

Those that are woken run when the append that woke them is done with: a network buffer full of sends
wakes a pull once. Of many, some run at a time, and others have their turn in between.

The order of deadlines is kept in one heap for all queues, so that looking for those that are over
costs nothing while there are none. An entry that was woken before stays in the heap for a while;
its `run` is gone, which is how it is known.

Owned by the event loop's task.
"""

from __future__ import annotations

import heapq
import logging
import struct
from collections import deque
from itertools import count
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from gantrymq.clock import Clock
    from gantrymq.kernel import QueueRun

log = logging.getLogger(__name__)

_TAGS_CODE: Final = struct.Struct(">12xq")
HELD_MAX: Final = 100_000
"""Pulls held at once; the next one is answered at once, as if its time were over."""
RUNS_MAX: Final = 256
"""Pulls that are run again before other work of the loop has its turn."""
STALE_MAX: Final = 4096
"""Entries of the heap beyond those held; then it is made anew."""


class Held:
    """One pull that waits; `wanted` tells from a tags code whether a message may be for it."""

    __slots__ = ("deadline", "run", "wanted")

    def __init__(
        self,
        run: Callable[[bool], None],
        deadline: float,
        wanted: Callable[[int], bool] | None,
    ) -> None:
        self.run: Callable[[bool], None] | None = run
        self.deadline = deadline
        self.wanted = wanted

    def release(self, *, last: bool) -> None:
        """Run the pull again, once; `last` tells that it must be answered now."""
        run, self.run = self.run, None
        if run is None:
            return
        try:
            run(last)
        except Exception:
            # Others are released after this one, and must be.
            log.exception("a held pull failed")


class HeldPulls:
    """All pulls that wait."""

    def __init__(self, clock: Clock, soon: Callable[[Callable[[], None]], object]) -> None:
        """Run woken pulls through `soon`, as `loop.call_soon` does."""
        self._clock = clock
        self._soon = soon
        self._woken: deque[Held] = deque()
        self._by_queue: dict[tuple[bytes, int], dict[Held, None]] = {}
        self._by_deadline: list[tuple[float, int, tuple[bytes, int], Held]] = []
        self._numbers = count()
        self._held = 0
        self.sooner: Callable[[float], None] = lambda _due: None
        """Told when `expire` has something to do earlier than it last said."""

    def __len__(self) -> int:
        """Return how many are waiting."""
        return self._held

    def hold(
        self,
        topic: str,
        queue_id: int,
        timeout_ms: int,
        run: Callable[[bool], None],
        wanted: Callable[[int], bool] | None = None,
    ) -> Held | None:
        """Park a pull; None if there are too many, and it has to be answered now."""
        if self._held >= HELD_MAX:
            return None
        key = topic.encode(), queue_id
        held = Held(run, self._clock.monotonic() + timeout_ms / 1000, wanted)
        if len(self._by_deadline) > 2 * self._held + STALE_MAX:
            self._by_deadline = [entry for entry in self._by_deadline if entry[3].run is not None]
            heapq.heapify(self._by_deadline)
        self._by_queue.setdefault(key, {})[held] = None
        heapq.heappush(self._by_deadline, (held.deadline, next(self._numbers), key, held))
        if self._by_deadline[0][3] is held:
            self.sooner(held.deadline)
        self._held += 1
        return held

    def arrived(self, runs: Sequence[QueueRun]) -> None:
        """Wake those that may want what has arrived in queues; called by dispatch."""
        by_queue = self._by_queue
        if not by_queue:
            return
        for run in runs:
            waiting = by_queue.get(run[:2])
            if waiting is not None:
                self._wake(run, waiting)

    def _wake(self, run: QueueRun, waiting: dict[Held, None]) -> None:
        woken: list[Held] = []
        kept: dict[Held, None] = {}
        codes: list[int] | None = None
        for held in waiting:
            if held.wanted is not None:
                if codes is None:
                    codes = [code for (code,) in _TAGS_CODE.iter_unpack(run.units)]
                if not any(map(held.wanted, codes)):
                    kept[held] = None
                    continue
            woken.append(held)
        self._keep((run.topic, run.queue_id), kept)
        if woken and not self._woken:
            self._soon(self._release_woken)
        self._woken += woken

    def _release_woken(self) -> None:
        woken = self._woken
        for _ in range(min(len(woken), RUNS_MAX)):
            held = woken.popleft()
            self._held -= held.run is not None
            held.release(last=False)
        if woken:
            self._soon(self._release_woken)

    def _keep(self, key: tuple[bytes, int], kept: dict[Held, None]) -> None:
        if kept:
            self._by_queue[key] = kept
        else:
            del self._by_queue[key]

    def expire(self, now: float) -> float | None:
        """Answer those whose time is over; return when the next one's is, or None.

        Of many only some are answered: then it is to be called again at once.
        """
        runs = 0
        while self._by_deadline and (
            self._by_deadline[0][0] <= now or self._by_deadline[0][3].run is None
        ):
            if runs == RUNS_MAX:
                return now
            _, _, key, held = heapq.heappop(self._by_deadline)
            if held.run is not None:
                runs += 1
                self._forget(key, held)
                held.release(last=True)
        return self._by_deadline[0][0] if self._by_deadline else None

    def drop(self, topic: str, queue_id: int, held: Held) -> None:
        """Forget a pull whose sender is gone; it is not answered."""
        if held.run is not None:
            held.run = None
            self._forget((topic.encode(), queue_id), held)

    def _forget(self, key: tuple[bytes, int], held: Held) -> None:
        self._held -= 1
        waiting = self._by_queue.get(key)
        if waiting is not None:
            waiting.pop(held, None)
            if not waiting:
                del self._by_queue[key]

    def release_queue(self, topic: str, queue_id: int) -> None:
        """Run again, now, whoever waits on a queue: its group was sent elsewhere."""
        waiting = self._by_queue.pop((topic.encode(), queue_id), ())
        for held in waiting:
            self._held -= held.run is not None
            held.release(last=False)

    def release_topic(self, topic: str) -> None:
        """Answer whoever waits on a topic: it is going, and nothing will come."""
        name = topic.encode()
        keys = [key for key in self._by_queue if key[0] == name]
        for held in [held for key in keys for held in self._by_queue.pop(key)]:
            self._held -= held.run is not None
            held.release(last=True)

    def release_all(self) -> None:
        """Answer everybody: a broker that stops leaves nobody waiting."""
        everybody = [held for waiting in self._by_queue.values() for held in waiting]
        self._by_queue.clear()
        self._by_deadline.clear()
        for held in (*everybody, *self._woken):
            self._held -= held.run is not None
            held.release(last=True)
