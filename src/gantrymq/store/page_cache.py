"""Is the page cache too busy to take sends?

RocketMQ answers OS_PAGECACHE_BUSY to whoever comes while another sender has held the put lock for
longer than `osPageCacheBusyTimeOutMills`: the machine is writing pages out and an append waits for
one of them. Here one task appends and nobody can come meanwhile; those who would have are in the
receive buffers when the slow append is over. Hence the rule:

    After an append that took longer than `osPageCacheBusyTimeOutMills`, the store is busy for as
    long again as that append took, at most `BUSY_S_MAX`.

So the backlog is refused, the producers turn to another broker, and the store takes the next send
as soon as that time is over, to see whether it is any better.

Owned by the task that appends.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from gantrymq.clock import Clock

BUSY_S_MAX: Final = 1.0


class PageCacheWatch:
    """Times appends, and remembers a slow one for a while."""

    def __init__(self, clock: Clock, slow_ms: int) -> None:
        self.slow_ms = slow_ms
        self.began = 0.0
        """When the last append began."""
        self._clock = clock
        self._busy_until = 0.0

    @property
    def is_busy(self) -> bool:
        """Tell whether sends are refused now."""
        return self._busy_until > 0 and self._clock.monotonic() < self._busy_until

    def begin(self) -> None:
        """Note that an append begins."""
        self.began = self._clock.monotonic()

    def end(self) -> float:
        """Note that it is over; return how many seconds it took."""
        now = self._clock.monotonic()
        took = now - self.began
        self._busy_until = now + min(took, BUSY_S_MAX) if took * 1000 > self.slow_ms else 0.0
        return took
