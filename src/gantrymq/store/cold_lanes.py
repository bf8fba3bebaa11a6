"""Reads from the disk in turns: one reader with many of them does not keep the others waiting.

Every reader has a line of its own, by its name (a consumer group's), and the worker takes from the
lines in turn. Each line has a bound, and a budget of bytes a second if the settings want one; so
have all of them together. Whoever is over is told how long to wait, and nothing is read for it.

Readers without a name are the broker's own (timers, pops that come back, the journal): they have a
line together, and no budget.

Owned by the task that owns the log.
"""

from __future__ import annotations

from collections import OrderedDict, deque
from typing import TYPE_CHECKING, Final, NamedTuple, TypeVar

from gantrymq.store.token_bucket import TokenBucket

if TYPE_CHECKING:
    from collections.abc import Callable

    from gantrymq.clock import Clock
    from gantrymq.store.worker import Worker

Result = TypeVar("Result")

RUNNING_MAX: Final = 2
"""Jobs that the worker has at a time: one that it runs, one that it finds when that is done."""
NOBODY: Final = ""
RETRY_S: Final = 0.02
"""When to come again if as many reads wait as may: some of them are done by then."""


class ColdBudget(NamedTuple):
    """What reads from the disk may cost; 0 bytes is no limit."""

    reads_max: int = 256
    """Of one reader at once."""
    reader_bytes: int = 0
    """Of one reader in a second."""
    all_bytes: int = 0


class ColdLanes:
    """The lines in front of the worker that reads."""

    def __init__(self, worker: Worker, clock: Clock) -> None:
        self._worker = worker
        self._monotonic = clock.monotonic
        self.budget = ColdBudget()
        """May be replaced at any time."""
        self._lines: OrderedDict[str, deque[Callable[[], None]]] = OrderedDict()
        self._reads: dict[str, int] = {}
        self._buckets: dict[str, TokenBucket] = {}
        self._all: TokenBucket | None = None
        self._running = 0
        self.read_bytes = 0
        """That the worker has read for readers, in all."""
        self.refusals = {"reads": 0, "bytes": 0}
        """Reads that were told to wait, by what they had used up."""

    # -- may it ---------------------------------------------------------------------------------

    def over(self, reader: str) -> tuple[str, float]:
        """Return why a reader has to wait, and for how long; nothing if it has not."""
        if reader == NOBODY:
            return "", 0.0
        if self._reads.get(reader, 0) >= self.budget.reads_max:
            self.refusals["reads"] += 1
            most = self.budget.reads_max
            why = f"{most} reads of {reader} wait for the disk already (coldReadsPerGroup)"
            return why, RETRY_S
        now = self._monotonic()
        for bucket, who, name in (
            (self._bucket(reader, now), reader, "cgColdReadThreshold"),
            (self._bucket_of_all(now), "all groups", "globalColdReadThreshold"),
        ):
            wait_s = 0.0 if bucket is None else bucket.wait_s(now)
            if bucket is not None and wait_s:
                self.refusals["bytes"] += 1
                used = f"{bucket.rate} bytes a second ({name})"
                return f"reads of {who} from the disk have used up {used}", wait_s
        return "", 0.0

    def _bucket(self, reader: str, now: float) -> TokenBucket | None:
        rate = self.budget.reader_bytes
        if not rate:
            self._buckets.clear()
            return None
        bucket = self._buckets.get(reader)
        if bucket is None or bucket.rate != rate:
            bucket = TokenBucket(rate, now) if bucket is None else bucket.at_rate(rate, now)
            self._buckets[reader] = bucket
        return bucket

    def _bucket_of_all(self, now: float) -> TokenBucket | None:
        rate = self.budget.all_bytes
        if not rate:
            self._all = None
        elif self._all is None or self._all.rate != rate:
            self._all = TokenBucket(rate, now)
        return self._all

    # -- its turn -------------------------------------------------------------------------------

    def submit(
        self,
        reader: str,
        job: Callable[[], Result],
        done: Callable[[Result], None],
        failed: Callable[[Exception], None],
    ) -> None:
        """Run `job` when it is the reader's turn; report as a worker does."""
        self._reads[reader] = self._reads.get(reader, 0) + 1

        def is_done(result: Result) -> None:
            self._leave(reader)
            done(result)

        def has_failed(error: Exception) -> None:
            self._leave(reader)
            failed(error)

        line = self._lines.get(reader)
        if line is None:
            line = self._lines[reader] = deque()
        line.append(lambda: self._worker.submit(job, is_done, has_failed))
        self._run_some()

    def _run_some(self) -> None:
        while self._lines and self._running < RUNNING_MAX:
            reader, line = self._lines.popitem(last=False)
            begin = line.popleft()
            if line:
                self._lines[reader] = line  # behind the others
            self._running += 1
            begin()

    def _leave(self, reader: str) -> None:
        self._running -= 1
        left = self._reads.get(reader, 0) - 1
        if left > 0:
            self._reads[reader] = left
        else:
            self._reads.pop(reader, None)
        self._run_some()

    def was_read(self, reader: str, size: int) -> None:
        """Take what was read out of the budgets."""
        if reader == NOBODY:
            return
        self.read_bytes += size
        bucket = self._buckets.get(reader)
        if bucket is not None:
            bucket.take(size)
        if self._all is not None:
            self._all.take(size)

    def close(self) -> None:
        """Drop what has not begun; whoever waits for it is told by others."""
        self._lines.clear()

    def expire(self) -> None:
        """Forget the budgets of readers that have not read for a while."""
        now = self._monotonic()
        for reader in [name for name, one in self._buckets.items() if one.is_full(now)]:
            del self._buckets[reader]
