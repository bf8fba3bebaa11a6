"""Dispatch while a store runs: when it is done, and what a failure means.

Without an event loop it is done at once. With one, what was appended in a turn of the loop is
dispatched together at the end of the turn, before anybody's next request: many connections with a
message each would pay for a dispatch each.

With failover it goes no further than what everybody has who may become master: a consumer that had
read more would skip what another master writes in its place. What was held back may be much when it
may be shown: of that a slice is dispatched in each turn, on top of what has come since the last
one, so that others have their turns in between and nothing falls further behind.

A full disk stops writes until dispatch can go on; anything else that fails is the end of writing.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Final

from gantrymq.errors import InvalidValue
from gantrymq.store.errors import QueueBeingSaved, StoreDamaged
from gantrymq.store.queue_saving import NO_SPACE

if TYPE_CHECKING:
    from collections.abc import Callable

    from gantrymq.store.commit_log import CommitLog
    from gantrymq.store.dispatch import Dispatcher
    from gantrymq.store.put import Writability
    from gantrymq.store.queue_backlog import QueueBacklog

SLICE_BYTES: Final = 2 << 20
"""Of what was held back, so much in each turn: five milliseconds of small messages with keys."""


class LiveDispatch:
    """Keeps queues and index level with the log; owned by the task that appends."""

    def __init__(
        self,
        dispatcher: Dispatcher,
        log: CommitLog,
        writability: Writability,
        backlog: QueueBacklog,
        failed: Callable[[str], None],
        soon: Callable[[Callable[[], None]], object] | None,
        shown_until: Callable[[], int | None],
    ) -> None:
        """Put off what can be with `soon` (`loop.call_soon`); tell `failed` of the worst."""
        self._dispatcher = dispatcher
        self._log = log
        self._writability = writability
        self._backlog = backlog
        self._failed = failed
        self._soon = soon
        self._is_due = self._is_slicing = False
        self._asked = 0
        """How far the last run was asked to go, whatever it was allowed."""
        self._shown_until = shown_until
        self.is_closed = False

    def appended(self) -> None:
        """See to it that what is committed is dispatched, now or at the end of this turn."""
        if self._soon is None:
            self.run(self._log.committed_offset)
        elif not self._is_due:
            self._is_due = True
            self._soon(self._run_due)

    def _run_due(self) -> None:
        self._is_due = False
        if not self.is_closed:
            self.run(self._log.committed_offset)

    def run(self, end: int) -> None:
        """Dispatch the log up to `end`, as far as it may be shown."""
        if self._dispatcher.offset >= end:
            return  # as most often at the end of a turn
        fresh = max(end - (self._asked or end), 0)
        self._asked = max(self._asked, end)
        limit = None if self.is_closed else self._shown_until()
        if limit is not None and limit < end:
            end = limit
            if self._dispatcher.offset >= end:
                return
        try:
            self._dispatch(end, fresh)
        except QueueBeingSaved:
            pass  # it goes on when the queue has been saved
        except (OSError, StoreDamaged, InvalidValue) as error:
            reason = f"dispatching the log at offset {self._dispatcher.offset} failed: {error}"
            if isinstance(error, OSError) and error.errno in NO_SPACE:
                self._writability.forbid("dispatch", reason)
            else:
                self._failed(reason)
        else:
            self._log.stamp_from(self._dispatcher.last_store_timestamp)
            self._writability.allow("dispatch")
        if self._dispatcher.offset >= self._backlog.look_at:
            self._backlog.look(self._dispatcher.offset)

    def _dispatch(self, end: int, fresh: int) -> None:
        """Dispatch up to `end`, or a part if there is more than `fresh` bytes and a slice."""
        begin = self._dispatcher.offset
        stop = begin + SLICE_BYTES
        if end > stop:
            stop += fresh
        if end <= stop or self._soon is None or self.is_closed:
            self._dispatcher.run(end)
            return
        self._dispatcher.run(stop)
        while self._dispatcher.offset == begin and stop < end:
            stop += SLICE_BYTES  # a record that is larger than a slice
            self._dispatcher.run(min(stop, end))
        if not self._is_slicing:
            self._is_slicing = True
            self._soon(partial(self._go_on, end))

    def _go_on(self, end: int) -> None:
        self._is_slicing = False
        if not self.is_closed:
            self.run(end)

    def saved(self) -> None:
        """Note that queues were saved: there may be room in memory again."""
        self._backlog.look(self._dispatcher.offset)
