"""Asking producers about half messages that they have not decided.

Every `transactionCheckInterval` there is a round over the half queue, from the oldest open message
to the end that it had when the round began. One that is older than `transactionTimeOut` (or than it
asks for itself) is stored again with a count of checks that is one higher, and any producer of its
group is asked about the copy. After `transactionCheckMax` checks, or when it is older than the log
keeps messages, it goes to TRANS_CHECK_MAX_TIME_TOPIC, where an operator finds it.

Differences from Apache's `TransactionalMessageServiceImpl`, which reads the same records:

* What is too young, or has no producer online, stays where it is and is passed over. Nobody was
  asked, so that it is not counted as a check, nor stored again with every round; but after an hour,
  or when the window gets full, a copy carries it on.
* One that cannot be read, stored or asked about is dealt with and never stops the others.
* An op record is written for what was stored again, too, so that a crash does not double it.

A round is cut into slices of bounded work; a read that must wait for the disk holds nobody up.

Owned by the event loop's task.
"""

from __future__ import annotations

import logging
from enum import Enum
from typing import TYPE_CHECKING, Final, NamedTuple

from gantrymq.broker.half import HALF_QUEUE
from gantrymq.broker.transactions_asking import StoreRefuses
from gantrymq.errors import GantryError
from gantrymq.model.names import HALF_TOPIC

if TYPE_CHECKING:
    from collections.abc import Callable

    from gantrymq.broker.settings import LiveSettings
    from gantrymq.broker.transactions_asking import Asking
    from gantrymq.broker.transactions_ledger import Ledger
    from gantrymq.broker.transactions_ops import OpQueue
    from gantrymq.clock import Clock
    from gantrymq.store.get import Found
    from gantrymq.store.message_store import MessageStore

log = logging.getLogger(__name__)

SLICE: Final = 64
"""Messages that are looked at before others have their turn: some milliseconds if all of them are
stored again and asked about."""
READ_COUNT: Final = 32
SURVEY_MAX: Final = 200_000
"""Messages at the end of the queue that are looked through for copies after a start."""
PAUSE_S: Final = 1.0
"""Behind a read that failed."""
LOOK_S: Final = 5.0
"""How often the settings are looked at between two rounds."""


class _Phase(Enum):
    START = "start"
    LOAD = "load"
    REST = "rest"
    SURVEY = "survey"
    ROUND = "round"


class CheckParts(NamedTuple):
    """What a round works with."""

    store: MessageStore
    ledger: Ledger
    ops: OpQueue
    asking: Asking
    settings: LiveSettings
    clock: Clock
    is_slave: Callable[[], bool]
    wake: Callable[[], None]
    """Brings the next `tick` forward."""
    loaded: Callable[[], None]
    """Called when it is known which half messages are open."""


class CheckBack:
    """Goes over the half queue, again and again."""

    def __init__(self, parts: CheckParts) -> None:
        self._parts = parts
        self._ledger = parts.ledger
        self._phase = _Phase.START
        self._is_reading = False
        self._generation = 0
        """Of the phase START; a read begun before it is not believed."""
        self._budget = 0
        self._rested_since = 0.0
        self._not_before = 0.0
        self._cursor = 0
        self._end = 0
        self._queue_end = 0
        self._is_in_round = False
        self._is_first_round = True
        self._surveyed = 0
        self._one_by_one = False
        self._is_tight = False

    # -- the clock ------------------------------------------------------------------------------

    def tick(self, now: float) -> float:
        """Do a slice of what is due; return when to be called again."""
        if self._parts.is_slave():
            # It copies what its master does; when it becomes the master, it begins anew.
            self._restart(now, is_loading=False)
            return now + LOOK_S
        if now < self._not_before:
            return self._not_before
        self._budget = SLICE
        while self._budget > 0 and not self._is_reading and now >= self._not_before:
            self._budget -= 1
            if not self._step(now):
                break
        if self._ledger.is_loaded:
            self._parts.ops.save()
        return self._next(now)

    def _next(self, now: float) -> float:
        if self._is_reading:
            return now + LOOK_S  # the read wakes us
        if self._phase is _Phase.REST:
            return min(self._round_due(), now + LOOK_S)
        return max(now, self._not_before)

    def _round_due(self) -> float:
        return self._rested_since + self._parts.settings.now.transaction_interval_ms / 1000

    def _step(self, now: float) -> bool:
        """Do one thing; False if there is nothing to do now."""
        if self._phase is _Phase.START:
            self._restart(now, is_loading=True)
        elif self._phase is _Phase.LOAD:
            self._load()
        elif self._phase is _Phase.SURVEY:
            self._survey()
        elif self._phase is _Phase.ROUND:
            self._go_on(now)
        elif now >= self._round_due():
            self._begin_round(self._parts.store.reads.max_offset(HALF_TOPIC, HALF_QUEUE))
        else:
            return False
        return True

    def _restart(self, now: float, *, is_loading: bool) -> None:
        self._generation += 1
        self._is_reading = False
        self._rested_since = now
        self._ledger.is_loaded = False
        self._phase = _Phase.START
        if is_loading:
            self._parts.ops.restart()
            self._is_in_round = False
            self._is_first_round = True
            self._phase = _Phase.LOAD

    def _pause(self, why: str) -> None:
        log.warning("transactions wait %g s: %s", PAUSE_S, why)
        self._not_before = self._parts.clock.monotonic() + PAUSE_S

    # -- the op queue ---------------------------------------------------------------------------

    def _load(self) -> None:
        """Read op records; go on with the round, or wait for one, when there are no more."""
        if not self._parts.ops.is_read:
            self._read(self._parts.ops.begin_read, self._ops_found)
            return
        self._phase = _Phase.REST
        if self._is_in_round:
            self._phase = _Phase.SURVEY if self._is_first_round else _Phase.ROUND
        if not self._ledger.is_loaded:
            self._ledger.is_loaded = True
            self._parts.loaded()

    def _ops_found(self, found: Found) -> None:
        self._budget -= len(found.records)
        if not self._parts.ops.take(found):
            self._pause(f"reading the op queue gave {found.trouble or found.status.value}")

    def _read(
        self, begin: Callable[[Callable[[Found], None]], None], take: Callable[[Found], None]
    ) -> None:
        """Begin a read, whose outcome may come at once or later."""
        generation = self._generation
        self._is_reading = True
        is_later = False

        def done(found: Found) -> None:
            if generation != self._generation:
                return
            self._is_reading = False
            take(found)
            if is_later:
                self._parts.wake()

        begin(done)
        is_later = True

    # -- a round --------------------------------------------------------------------------------

    def _begin_round(self, end: int) -> None:
        """Go over the half queue up to an offset; op records first that have not been read.

        A queue that is longer than the window is gone over in parts.
        """
        ledger = self._ledger
        self._parts.ops.save()
        self._queue_end = end
        self._is_tight = end - ledger.base > ledger.window // 2
        self._cursor, self._end = ledger.base, min(end, ledger.base + ledger.window)
        self._surveyed = max(self._cursor, self._end - SURVEY_MAX)
        ledger.read_ops_again()
        self._is_in_round = True
        self._phase = _Phase.LOAD

    def _survey(self) -> None:
        """See which messages are copies, in the first round after a start."""
        offset = self._surveyed
        count = min(READ_COUNT, self._end - offset)
        if count <= 0:
            self._phase = _Phase.ROUND
            return
        begin = self._parts.store.reads.begin_get
        self._read(
            lambda done: begin(HALF_TOPIC, HALF_QUEUE, offset, count, None, done),
            self._copies_found,
        )

    def _copies_found(self, found: Found) -> None:
        self._budget -= len(found.records)
        for raw in found.records:
            self._parts.asking.survey(raw)
        if found.next_offset > self._surveyed:
            self._surveyed = found.next_offset
        elif found.trouble:
            self._pause(f"reading the half queue gave {found.trouble}")
        else:
            self._surveyed = self._end

    def _go_on(self, now: float) -> None:
        first, count = self._ledger.open_run(self._cursor, self._end, READ_COUNT)
        if count == 0:
            self._finish_round(now)
            return
        self._cursor = first
        if self._one_by_one:
            count = 1
        begin = self._parts.store.reads.begin_get
        self._read(
            lambda done: begin(HALF_TOPIC, HALF_QUEUE, first, count, None, done),
            self._halves_found,
        )

    def _finish_round(self, now: float) -> None:
        self._is_in_round = False
        self._phase = _Phase.REST
        before = self._ledger.base
        self._parts.ops.save()
        if self._end < self._queue_end and self._ledger.base > before:
            self._begin_round(self._queue_end)
        else:
            self._rested_since = now
            self._is_first_round = False
            self._parts.asking.forget_copies()

    def _halves_found(self, found: Found) -> None:
        start, behind = self._cursor, found.next_offset
        self._budget -= len(found.records)
        if found.min_offset > self._ledger.base:
            self._ledger.pass_over(self._ledger.base, found.min_offset)
        if not found.records:
            self._nothing_found(found)
            return
        if len(found.records) != behind - start and not self._one_by_one:
            self._one_by_one = True  # some are gone: find out which
            return
        if self._one_by_one:
            self._ledger.pass_over(start, behind - 1)
            start, self._one_by_one = behind - 1, False
        for offset, raw in enumerate(found.records, start):
            try:
                self._parts.asking.look_at(offset, raw, is_tight=self._is_tight)
            except StoreRefuses as refusal:
                self._pause(f"storing gave {refusal}")
                return
            except GantryError as error:
                # Whatever is wrong with it must not keep the others from their turn.
                log.warning("half message %d is passed over: %s", offset, error)
            self._cursor = offset + 1

    def _nothing_found(self, found: Found) -> None:
        if found.trouble:
            self._pause(f"reading the half queue gave {found.trouble}")
        elif found.next_offset > self._cursor:
            self._ledger.pass_over(self._cursor, found.next_offset)
            self._cursor = found.next_offset
        else:
            self._cursor = self._end
