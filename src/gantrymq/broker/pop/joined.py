"""Joins timers and pops for a broker: pops keep their check points as timers.

Owned by the event loop's task.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from gantrymq.broker.pop.offsets import PopOffsets
from gantrymq.broker.pop.order import OrderInfo
from gantrymq.broker.pop.parts import PopParts
from gantrymq.broker.pop.polling import PopPolling
from gantrymq.broker.pop.pops import Pops
from gantrymq.broker.pop.records import RecordMaker
from gantrymq.broker.timer.recall import TimerRequests
from gantrymq.broker.timer.slots import TimerSlots
from gantrymq.broker.timer.timers import Timers
from gantrymq.model.names import revive_topic

if TYPE_CHECKING:
    from asyncio import Future
    from collections.abc import Callable, Mapping, Sequence, Set

    from gantrymq.broker.config_saving import ConfigSaver
    from gantrymq.broker.pull import PullCounts
    from gantrymq.broker.quotas.quotas import Quotas
    from gantrymq.broker.quotas.throttled import Throttled
    from gantrymq.broker.schedule import Entry, Schedule
    from gantrymq.broker.selections import Selections
    from gantrymq.broker.settings import LiveSettings
    from gantrymq.broker.storing import Storing
    from gantrymq.broker.tables import Tables
    from gantrymq.broker.timer.rules import Timing
    from gantrymq.clock import Clock
    from gantrymq.kernel import QueueRun
    from gantrymq.store.files import Files
    from gantrymq.store.message_store import MessageStore
    from gantrymq.store.settings import StoreSettings
    from gantrymq.store.worker import Worker
    from gantrymq.wire.peer import Answer, Handler, Peer

_HOUR_S = 3600


@dataclass(frozen=True, slots=True)
class TimedParts:
    """What timers and pops stand on."""

    store: MessageStore
    store_settings: StoreSettings
    storing: Storing
    tables: Tables
    selections: Selections
    counts: PullCounts
    quotas: Quotas
    throttled: Throttled
    settings: LiveSettings
    timing: Timing
    schedule: Schedule
    files: Files
    worker: Worker
    clock: Clock
    store_host: bytes
    soon: Callable[[Callable[[], None]], object]
    new_future: Callable[[], Future[Answer]]
    pick: Callable[[int], int]
    is_slave: Callable[[], bool]


class TimersAndPops:
    """Timer messages and pop consumption of one broker."""

    def __init__(self, parts: TimedParts) -> None:
        self._parts = parts
        paths, retention = parts.store_settings.paths, parts.store_settings.retention
        slots = TimerSlots(parts.files, paths.root, paths.config, parts.worker, parts.clock)
        # A record is stored anew long before its log file may be deleted.
        roll_s = retention.reserved_hours * _HOUR_S // 2
        self.timers = Timers(parts.store, slots, parts.clock, roll_s, self._wake_timers)
        self.pops = Pops(_pop_parts(parts), lambda: self.timers.next_second)
        self._requests = TimerRequests(
            parts.store,
            parts.storing,
            parts.tables.topics,
            parts.timing,
            self.timers,
            parts.settings,
            parts.clock,
            is_slave=parts.is_slave,
        )
        self._timers_entry: Entry | None = None
        self._is_on = False

    @property
    def handlers(self) -> Mapping[int, Handler]:
        """Return what is handled here."""
        return {**self.pops.handlers, **self._requests.handlers}

    def open(self, saver: ConfigSaver, now: float) -> None:
        """Go on where the last process stopped. Blocks; called when store and tables are there.

        Raises:
            StoreDamaged: a file and its backup cannot be understood.
            OSError: the disk refuses.
        """
        plan, pops = self._parts.schedule, self.pops
        saver.add(pops.parts.order)
        pops_entry = plan.add("held pops", pops.expire, None)
        for polling in (pops.parts.polling, pops.parts.notices):
            polling.sooner = lambda due: plan.poke(pops_entry, due)
        if not self._parts.is_slave():
            self.become_master(now)

    def become_master(self, now: float) -> None:
        """Deliver timers and bring back popped messages from now on, which a slave does not do.

        Blocks: what waits is read from the disk.

        Raises:
            StoreDamaged: a file and its backup cannot be understood.
            OSError: the disk refuses.
        """
        if self._is_on or not self._parts.settings.now.timers:
            return
        self._is_on = True
        plan, pops = self._parts.schedule, self.pops
        self.timers.open()
        pops.revival.open()
        self._timers_entry = plan.add("timer messages", self._tick_timers, now)
        revive_entry = plan.add("popped messages", self._tick_revival, now)
        clock = self._parts.clock
        pops.revival.wake = lambda: plan.poke(revive_entry, clock.monotonic())

    def close(self) -> None:
        """Answer whoever waits, and save how far everything is. Blocks."""
        self.pops.close()
        if self._is_on:
            self.timers.close()

    def forget_topic(self, topic: str) -> None:
        """Forget a topic that was deleted. Timers for it are delivered like any, as with Apache."""
        self.pops.forget(topic=topic)
        self.timers.counts.pop(topic, None)

    def forget_group(self, group: str) -> None:
        """Forget a group that was deleted."""
        self.pops.forget(group=group)

    def arrived(self, runs: Sequence[QueueRun], topics: Set[bytes]) -> None:
        """Notice messages in queues; called by dispatch."""
        self.timers.arrived(topics)
        self.pops.arrived(runs, topics)

    def peer_closed(self, peer: Peer) -> None:
        """Forget the requests of a connection that is no more."""
        self.pops.peer_closed(peer)

    def _wake_timers(self) -> None:
        if self._timers_entry is not None:
            self._parts.schedule.poke(self._timers_entry, self._parts.clock.monotonic())

    def _tick_timers(self, now: float) -> float | None:
        before = self.timers.next_second
        seconds = self.timers.tick()
        if self.timers.next_second > before:
            self.pops.revival.wake()
        return None if seconds is None else now + seconds

    def _tick_revival(self, now: float) -> float | None:
        seconds = self.pops.revival.tick()
        return None if seconds is None else now + seconds


def _pop_parts(parts: TimedParts) -> PopParts:
    tables, settings, store = parts.tables, parts.settings, parts.store
    return PopParts(
        store=store,
        storing=parts.storing,
        topics=tables.topics,
        groups=tables.groups,
        selections=parts.selections,
        counts=parts.counts,
        settings=settings,
        clock=parts.clock,
        timing=parts.timing,
        maker=RecordMaker(revive_topic(settings.now.cluster), parts.store_host),
        offsets=PopOffsets(tables.offsets, lambda: store.flush.flushed_offset),
        order=OrderInfo(parts.clock),
        polling=PopPolling(settings, parts.clock, parts.soon),
        notices=PopPolling(settings, parts.clock, parts.soon),
        quotas=parts.quotas,
        throttled=parts.throttled,
        new_future=parts.new_future,
        pick=parts.pick,
    )
