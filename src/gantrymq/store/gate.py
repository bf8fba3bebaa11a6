"""The durability gate: the one place that decides when a reply may leave.

A reply waits for an offset of the log to be on this machine's disk, or on a replica, or both, as
the broker's role asks. `flushed` and `replicated` are told how far each has come and let out
everyone behind it, in order: that is all there is to group commit. What is not let out in time
leaves with the status of the side that was late; after a failed flush everyone leaves with
UNKNOWN_ERROR and the gate stays shut: a disk that has once lost a write is not asked again.

A reply that fails on its way out is that reply's misfortune: it is said in the log, and those
behind it go.

Owned by one task. It has no clock of its own: `expire` is called with the time.
"""

from __future__ import annotations

import logging
from collections import deque
from typing import TYPE_CHECKING, Final

from gantrymq.store.status import PutStatus

if TYPE_CHECKING:
    from collections.abc import Callable

    from gantrymq.store.settings import FlushSettings, ReplicationSettings

log = logging.getLogger(__name__)

NOT_NEEDED: Final = -1
"""An offset that is always behind."""


class _Waiter:
    __slots__ = ("let_out", "missing", "status")

    def __init__(self, let_out: Callable[[PutStatus], None]) -> None:
        self.let_out = let_out
        self.missing = 0
        self.status = PutStatus.PUT_OK


class _Side:
    """Those who wait for one of the two: (offset, deadline, waiter), both ascending."""

    __slots__ = ("_late", "_waiting", "reached")

    def __init__(self, late: PutStatus) -> None:
        self.reached = 0
        self._late = late
        self._waiting: deque[tuple[int, float, _Waiter]] = deque()

    def add(self, offset: int, deadline: float, waiter: _Waiter) -> None:
        if offset > self.reached:
            waiter.missing += 1
            self._waiting.append((offset, deadline, waiter))

    def reach(self, offset: int) -> None:
        self.reached = max(self.reached, offset)
        while self._waiting and self._waiting[0][0] <= self.reached:
            _let_go(self._waiting.popleft()[2], PutStatus.PUT_OK)

    def expire(self, now: float) -> None:
        while self._waiting and self._waiting[0][1] <= now:
            _let_go(self._waiting.popleft()[2], self._late)

    def __len__(self) -> int:
        return len(self._waiting)

    def next_deadline(self) -> float | None:
        return self._waiting[0][1] if self._waiting else None

    def shut(self) -> None:
        while self._waiting:
            _let_go(self._waiting.popleft()[2], PutStatus.UNKNOWN_ERROR)


_WEIGHT: Final = {
    PutStatus.PUT_OK: 0,
    PutStatus.FLUSH_DISK_TIMEOUT: 1,
    PutStatus.SLAVE_NOT_AVAILABLE: 2,
    PutStatus.FLUSH_SLAVE_TIMEOUT: 3,
    PutStatus.UNKNOWN_ERROR: 4,
}
"""Which status a waiter leaves with when the two sides differ: the replica's wins."""


def _settle(waiter: _Waiter, status: PutStatus) -> None:
    if _WEIGHT[status] > _WEIGHT[waiter.status]:
        waiter.status = status
    waiter.missing -= 1
    if waiter.missing == 0:
        waiter.let_out(waiter.status)


def _let_go(waiter: _Waiter, status: PutStatus) -> None:
    """Settle one of many: whatever becomes of it, the others are not to wait for it."""
    try:
        _settle(waiter, status)
    except Exception:
        log.exception("an answer to a send could not be made")


class DurabilityGate:
    """Holds replies until the log is where their role asks it to be."""

    def __init__(self, flush_timeout: float, replica_timeout: float) -> None:
        self._flush_timeout = flush_timeout
        self._replica_timeout = replica_timeout
        self._disk = _Side(PutStatus.FLUSH_DISK_TIMEOUT)
        self._replica = _Side(PutStatus.FLUSH_SLAVE_TIMEOUT)
        self._failure: str | None = None

    def change_timeouts(self, flush: FlushSettings, replication: ReplicationSettings) -> None:
        """Let replies wait as long as these say from now on; those that wait keep their time."""
        self._flush_timeout = flush.sync_timeout_ms / 1000
        self._replica_timeout = replication.slave_timeout_ms / 1000

    @property
    def flushed_offset(self) -> int:
        """Return how much of the log is on the disk."""
        return self._disk.reached

    @property
    def replicated_offset(self) -> int:
        """Return how much of the log a replica has confirmed."""
        return self._replica.reached

    @property
    def waiting(self) -> tuple[int, int]:
        """Return how many answers wait for the disk, and how many for a replica."""
        return len(self._disk), len(self._replica)

    @property
    def failure(self) -> str | None:
        """Return why the gate is shut for good, or None."""
        return self._failure

    def hold(
        self,
        let_out: Callable[[PutStatus], None],
        now: float,
        *,
        flush_offset: int = NOT_NEEDED,
        replica_offset: int = NOT_NEEDED,
        outcome: PutStatus = PutStatus.PUT_OK,
    ) -> None:
        """Call `let_out` once, at once if nothing is missing, with how it went.

        `outcome` is what is known already: SLAVE_NOT_AVAILABLE where there is none to wait for. The
        disk is waited for all the same, as Apache does.
        """
        if self._failure is not None:
            let_out(PutStatus.UNKNOWN_ERROR)
            return
        waiter = _Waiter(let_out)
        waiter.missing = 1
        self._disk.add(flush_offset, now + self._flush_timeout, waiter)
        self._replica.add(replica_offset, now + self._replica_timeout, waiter)
        _settle(waiter, outcome)

    def flushed(self, offset: int) -> None:
        """Note that the log is on the disk up to `offset`; a shut gate stays shut."""
        if self._failure is None:
            self._disk.reach(offset)

    def replicated(self, offset: int) -> None:
        """Note that a replica has the log up to `offset`."""
        if self._failure is None:
            self._replica.reach(offset)

    def expire(self, now: float) -> None:
        """Let those out whose time is over."""
        self._disk.expire(now)
        self._replica.expire(now)

    def next_deadline(self) -> float | None:
        """Return when `expire` has something to do, or None."""
        deadlines = [self._disk.next_deadline(), self._replica.next_deadline()]
        return min((d for d in deadlines if d is not None), default=None)

    def shut(self, reason: str) -> None:
        """Let everyone out with UNKNOWN_ERROR, now and from now on."""
        if self._failure is None:
            self._failure = reason
        self._disk.shut()
        self._replica.shut()
