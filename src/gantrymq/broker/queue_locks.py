"""Which member of a group holds which queue, for orderly consumption (41, 42).

The rules are those of Apache's `RebalanceLockManager`: a lock is by client id, its holder renews it
by asking again, and after 60 s without that it is anyone's. It is not released when its holder's
connection breaks: a client that comes back still believes in its locks, and two members must never
hold one queue.

Owned by one task (the event loop).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple

from gantrymq.limits import QUEUE_LOCKS_MAX

if TYPE_CHECKING:
    from collections.abc import Iterable

    from gantrymq.clock import Clock
    from gantrymq.model.queue import MessageQueue

LIFETIME_MS: Final = 60_000
"""The default; Apache's is a system property, `rocketmq.broker.rebalance.lockMaxLiveTime`."""
_SWEEP_PAUSE_S: Final = 1.0


class _Lock(NamedTuple):
    client_id: str
    renewed: float


class QueueLocks:
    """The locks of all groups of one broker."""

    def __init__(
        self, clock: Clock, lifetime_ms: int = LIFETIME_MS, locks_max: int = QUEUE_LOCKS_MAX
    ) -> None:
        self._clock = clock
        self._lifetime = lifetime_ms / 1000
        self._locks_max = locks_max
        self._groups: dict[str, dict[MessageQueue, _Lock]] = {}
        self._count = 0
        self._swept = -_SWEEP_PAUSE_S

    def __len__(self) -> int:
        """Return how many locks are kept, those among them that have expired."""
        return self._count

    def lock(self, group: str, client_id: str, queues: Iterable[MessageQueue]) -> set[MessageQueue]:
        """Lock queues for a member, or renew its locks; return those that it has now.

        A queue that another member holds is not among them, nor is one for which there is no room.
        """
        now = self._clock.monotonic()
        locks = self._groups.setdefault(group, {})
        granted: set[MessageQueue] = set()
        for queue in queues:
            lock = locks.get(queue)
            if lock is None:
                if self._count >= self._locks_max and not self._make_room(now):
                    continue
                self._count += 1
            elif lock.client_id != client_id and self._is_live(lock, now):
                continue
            locks[queue] = _Lock(client_id, now)
            granted.add(queue)
        if locks:
            self._groups[group] = locks
        else:
            self._groups.pop(group, None)
        return granted

    def unlock(self, group: str, client_id: str, queues: Iterable[MessageQueue]) -> None:
        """Give back the queues among these that the member holds."""
        locks = self._groups.get(group)
        if locks is None:
            return
        for queue in queues:
            lock = locks.get(queue)
            if lock is not None and lock.client_id == client_id:
                del locks[queue]
                self._count -= 1
        if not locks:
            del self._groups[group]

    def holder(self, group: str, queue: MessageQueue) -> str | None:
        """Return the client id of who holds a queue."""
        lock = self._groups.get(group, {}).get(queue)
        return lock.client_id if lock and self._is_live(lock, self._clock.monotonic()) else None

    def is_locked(self, group: str, topic: str, queue_id: int) -> bool:
        """Say whether any member holds a queue of this broker, under whichever broker's name."""
        now = self._clock.monotonic()
        return any(
            queue.queue_id == queue_id and queue.topic == topic and self._is_live(lock, now)
            for queue, lock in self._groups.get(group, {}).items()
        )

    def is_any_locked(self, group: str) -> bool:
        """Say whether a member of a group holds any queue."""
        now = self._clock.monotonic()
        return any(self._is_live(lock, now) for lock in self._groups.get(group, {}).values())

    def remove_group(self, group: str) -> None:
        """Forget the locks of a group that was deleted."""
        self._count -= len(self._groups.pop(group, {}))

    def expire(self) -> int:
        """Forget locks that have expired; return how many."""
        now = self._swept = self._clock.monotonic()
        before = self._count
        for group, locks in list(self._groups.items()):
            for queue in [q for q, lock in locks.items() if not self._is_live(lock, now)]:
                del locks[queue]
                self._count -= 1
            if not locks:
                del self._groups[group]
        return before - self._count

    def _make_room(self, now: float) -> bool:
        """Look for expired locks; not often, since all of them have to be looked at."""
        if now - self._swept < _SWEEP_PAUSE_S:
            return False
        return self.expire() > 0

    def _is_live(self, lock: _Lock, now: float) -> bool:
        return now - lock.renewed <= self._lifetime
