"""A broker without its sockets: joins store, tables and handlers, and owns their start and stop.

    service     what a listener hands received bytes to
    tick        does what is due by the clock; the owner calls it
    tables      topics, groups, offsets, clients

One task, the event loop's, calls everything here.
"""

from __future__ import annotations

import logging
from operator import itemgetter
from random import Random
from typing import TYPE_CHECKING, Final

from gantrymq.broker.admin.admin import admin_handlers
from gantrymq.broker.admin.configuration import LiveChanges
from gantrymq.broker.admin.parts import AdminParts
from gantrymq.broker.admin.refused import REFUSED
from gantrymq.broker.aging import Ages
from gantrymq.broker.client_requests import ClientRequests
from gantrymq.broker.config_saving import ConfigSaver
from gantrymq.broker.counting import Counting
from gantrymq.broker.delay import DelayDelivery
from gantrymq.broker.general_requests import GeneralRequests
from gantrymq.broker.hold import HeldPulls
from gantrymq.broker.journal.journal import Journal
from gantrymq.broker.kept_topics import keep_topics
from gantrymq.broker.known_pulls import KnownPulls
from gantrymq.broker.lanes import Lanes
from gantrymq.broker.notices import Notices
from gantrymq.broker.pop.joined import TimedParts, TimersAndPops
from gantrymq.broker.pull import Pulling
from gantrymq.broker.queries import Queries
from gantrymq.broker.quotas.limiting import Limiting
from gantrymq.broker.replies import Replies
from gantrymq.broker.retry import SendBack
from gantrymq.broker.rewriting import Rewriting
from gantrymq.broker.router import Router
from gantrymq.broker.schedule import Schedule
from gantrymq.broker.selections import Selections
from gantrymq.broker.send import Sending
from gantrymq.broker.service import BrokerService
from gantrymq.broker.settings import LiveSettings
from gantrymq.broker.storing import Storing
from gantrymq.broker.tables import make_tables, restore_topics
from gantrymq.broker.timer.rules import Timing
from gantrymq.broker.transactions import TransactionParts, Transactions
from gantrymq.store.broker_statistics import BrokerStatistics
from gantrymq.store.message_store import Identity, MessageStore
from gantrymq.store.settings import BrokerRole
from gantrymq.store.timers import StoreTimers
from gantrymq.wire.codes import RequestCode
from gantrymq.wire.hosts import decode_host

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from gantrymq.broker.admin.configuration import Changed
    from gantrymq.broker.admin.parts import RouteOf
    from gantrymq.broker.hooks import SendHook
    from gantrymq.broker.settings import BrokerSettings
    from gantrymq.broker.subscriptions import Mismatch
    from gantrymq.broker.surroundings import Surroundings
    from gantrymq.kernel import QueueRun
    from gantrymq.model.topic import TopicConfig
    from gantrymq.store.put import Stored
    from gantrymq.store.recovery import RecoveryReport
    from gantrymq.store.settings import StoreSettings
    from gantrymq.wire.peer import Handler

log = logging.getLogger(__name__)

_TOPIC: Final = itemgetter(0)
CLIENT_SCAN_S: Final = 10.0
SAMPLE_S: Final = 1.0
KNOWN_PULLS_S: Final = 5.0
FILTER_CLEAN_S: Final = 60.0
WALL_CLOCK_S: Final = 1.0


class Broker:
    """One broker."""

    def __init__(
        self,
        settings: BrokerSettings,
        store_settings: StoreSettings,
        store_host: bytes,
        around: Surroundings,
        *,
        routes_changed: Callable[[], None] = lambda: None,
        wake: Callable[[], None] = lambda: None,
        route: RouteOf | None = None,
    ) -> None:
        """Tell `routes_changed` when name servers have to know; `wake` when to `tick` earlier.

        `route` finds the queues of a topic on all brokers.
        """
        self.settings = LiveSettings(settings)
        self.store_settings = store_settings
        self._around = around
        self._routes_changed = routes_changed
        self._is_open = False
        clock, loop = around.clock, around.loop
        self.schedule = Schedule(wake)
        self.held = HeldPulls(clock, loop.soon)
        self.tables = make_tables(
            self.settings,
            clock,
            len(store_settings.schedule.delays_ms),
            topic_changed=self._topic_changed,
            topic_removed=self._topic_removed,
            group_changed=self._group_changed,
            mismatch_changed=self._mismatch_changed,
        )
        identity = Identity(
            store_host, settings.cluster.encode(), settings.region.encode(), settings.trace_on
        )
        self.store = MessageStore(
            store_settings,
            identity,
            files=around.files,
            clock=clock,
            workers=around.workers,
            arrived=self._arrived,
            memory_bytes=around.memory_bytes,
            soon=loop.soon,
        )
        self.saver = ConfigSaver(
            around.files, store_settings.paths.config, around.config_worker, clock
        )
        self.counting = Counting(
            BrokerStatistics(clock, settings.cluster),
            self.store.statistics,
            self.store.offsets.take_counts,
        )
        self.limiting = Limiting(
            self.tables, self.store, self.counting, self.settings, clock, loop.new_future
        )
        self._lanes = Lanes(self.store, self.settings, self.limiting.quotas)
        self.delay = DelayDelivery(
            self.store, self.tables.delays, store_settings.schedule.delays_ms, clock,
            self._delay_moved, self._delay_delivered,
        )  # fmt: skip
        self.journal = Journal(
            self.store, self.tables, self.schedule, clock, store_host, is_on=settings.has_journal
        )
        self.timing = Timing(self.settings, clock)
        self._timers: StoreTimers | None = None
        self.live_changes = LiveChanges(clock)
        self._route = route
        self.service = self._make_service(store_host)

    def _make_service(self, store_host: bytes) -> BrokerService:
        """Join the handlers."""
        tables, settings, clock = self.tables, self.settings, self._around.clock
        new_future = self._around.loop.new_future
        pick = Random().randrange  # noqa: S311 - a queue is no secret
        storing = Storing(self.store, settings, store_host, new_future, self.counting.stored)
        selections = Selections(tables.filters, settings, clock, self.store.queues.read_extension)
        self.store.queues.extending.bitmap = self._filter_bitmap
        self.clients = ClientRequests(
            tables.clients,
            tables.groups,
            tables.topics,
            tables.locks,
            selections,
            settings,
            Notices(tables.clients.told_of_changes, clock),
        )
        pulling = self._make_pulling(selections)
        sending = self._sending = Sending(
            storing, tables.topics, tables.groups, Rewriting(self.timing), self.limiting.quotas,
            self.limiting.throttled, settings, clock, pick,
        )  # fmt: skip
        send_back = SendBack(
            self.store, storing, tables.topics, tables.groups, settings, pick,
            self.counting.broker.sent_back,
        )  # fmt: skip
        self.transactions = self._make_transactions(storing, store_host)
        replies = Replies(
            self.store, sending, tables.clients, settings, clock, store_host, self.counting.stored
        )
        self.timed = self._make_timed(storing, selections, store_host, pick)
        self.router = Router(
            {
                **self.timed.handlers,
                **GeneralRequests(sending, pulling, settings).handlers,
                **Queries(self.store, tables).handlers,
                **self.clients.handlers,
                **self.transactions.handlers,
                **replies.handlers,
                RequestCode.CONSUMER_SEND_MSG_BACK: send_back.handle,
                **self._admin_handlers(storing, selections, store_host),
            },
            REFUSED,
        )
        return BrokerService(
            self.store,
            storing,
            sending,
            pulling,
            self._make_known(pulling),
            self.router,
            settings,
            Ages(settings, self.store.page_cache, self.counting, clock),
            self.counting,
            self.limiting.quotas,
            (self.clients, pulling, self.timed, self.limiting),
        )

    def _make_pulling(self, selections: Selections) -> Pulling:
        tables = self.tables
        return Pulling(
            self.store,
            tables.topics,
            tables.groups,
            tables.clients,
            tables.offsets,
            selections,
            self.held,
            self.tables.guard,
            self.counting,
            self.limiting.quotas,
            self.limiting.throttled,
            self.settings,
            is_slave=lambda: self.is_slave,
            new_future=self._around.loop.new_future,
            monotonic=self._around.clock.monotonic,
        )

    def _make_known(self, pulling: Pulling) -> KnownPulls:
        return KnownPulls(
            self.store,
            pulling,
            self.tables,
            self.counting,
            self.settings,
            self._around.clock,
            is_slave=lambda: self.is_slave,
        )

    def _admin_handlers(
        self, storing: Storing, selections: Selections, store_host: bytes
    ) -> dict[int, Handler]:
        parts = AdminParts(
            store=self.store,
            tables=self.tables,
            settings=self.settings,
            counting=self.counting,
            held=self.held,
            selections=selections,
            saver=self.saver,
            timed=self.timed,
            clock=self._around.clock,
            address=decode_host(store_host, "store host").text,
            is_slave=lambda: self.is_slave,
            new_future=self._around.loop.new_future,
            route=self._route,
            journal=self.journal,
        )
        return admin_handlers(
            parts,
            self._around.files,
            self.live_changes,
            store_settings=lambda: self.store_settings,
            waiting_sends=lambda: storing.waiting,
            apply=self._change_settings,
        )

    def _make_timed(
        self,
        storing: Storing,
        selections: Selections,
        store_host: bytes,
        pick: Callable[[int], int],
    ) -> TimersAndPops:
        around = self._around
        return TimersAndPops(
            TimedParts(
                self.store, self.store_settings, storing, self.tables, selections, self.counting,
                self.limiting.quotas, self.limiting.throttled, self.settings, self.timing,
                self.schedule, around.files, around.config_worker, around.clock, store_host,
                around.loop.soon, around.loop.new_future, pick, is_slave=lambda: self.is_slave,
            )
        )  # fmt: skip

    def _make_transactions(self, storing: Storing, store_host: bytes) -> Transactions:
        retention = self.store_settings.retention
        return Transactions(
            TransactionParts(
                self.store,
                storing,
                self.tables,
                self.settings,
                self.timing,
                self._around.clock,
                store_host,
                self._around.loop.new_future,
                reserved_ms=lambda: retention.reserved_hours * 3_600_000,
                is_slave=lambda: self.is_slave,
                wake=self._transactions_moved,
                stored=self.counting.stored,
                ended=self.counting.transaction_ended,
            )
        )

    def add_send_hook(self, hook: SendHook) -> None:
        """Let a hook see every send from now on; see `hooks.py`.

        Raises:
            InvalidValue: there are too many.
        """
        self._sending.hooks.add(hook)
        self.service.uses_lane = False

    @property
    def is_slave(self) -> bool:
        """Tell whether this broker copies a master."""
        return self.store_settings.replication.role is BrokerRole.SLAVE

    def became_master(self, store_settings: StoreSettings) -> None:
        """Begin what a master does and a slave does not: delays, transactions, timers, pops.

        Whoever changes the role has seen to it that the store takes writes; `store_settings` are
        those that hold from now on. Blocks: what waits is read from the disk.

        Raises:
            StoreDamaged: a file of timers or pops and its backup cannot be understood.
            OSError: the disk refuses.
        """
        self.store_settings = store_settings
        now = self._around.clock.monotonic()
        self.journal.become_master()
        self.tables.guard.promoted(self.store.queues.ends())
        restore_topics(self.tables.topics, self.store)
        self._lanes.set_all(self.tables.topics.all().values())
        self.timed.become_master(now)
        for entry in (self._delay_entry, self._transactions_entry):
            self.schedule.poke(entry, now)

    # -- start and stop -------------------------------------------------------------------------

    def open(self, progress: Callable[[int], None] | None = None) -> RecoveryReport:
        """Open the store, load the tables and take requests from now on. Blocks.

        Raises:
            StoreLocked: another process has the store open.
            StoreDamaged: its files are not what the settings say.
            OSError: the disk refuses.
        """
        report = self.store.open(self._around.pid, progress)
        now = self._around.clock.monotonic()
        try:
            is_whole = self._load()
            self.journal.open(self.saver, now)
            if not report.clean or not is_whole:
                restore_topics(self.tables.topics, self.store)
            keep_topics(self.tables.topics, self.store)
            self.timed.open(self.saver, now)
        except BaseException:
            self.store.close()
            raise
        self._lanes.set_all(self.tables.topics.all().values())
        self._timers = StoreTimers(self.store, self.store_settings, now)
        self._is_open = True
        self._plan(now, self._timers)
        return report

    def _load(self) -> bool:
        """Read the tables; tell whether the topics are not older than the messages."""
        self.saver.add(self.live_changes)
        interval_ms = self.store_settings.schedule.flush_interval_ms
        return self.tables.load(self.saver, self.settings.now, interval_ms)

    def _plan(self, now: float, timers: StoreTimers) -> None:
        plan = self.schedule
        plan.add("store timers", timers.tick, now)
        self._saving_entry = plan.add("saving tables", self.saver.tick, now)
        self._delay_entry = plan.add("delayed messages", self._tick_delay, now)
        self._transactions_entry = plan.add("transactions", self.transactions.tick, now)
        self._held_entry = plan.add("held pulls", self.held.expire, None)
        self.held.sooner = lambda due: plan.poke(self._held_entry, due)
        notices = plan.add("notices to members", self.clients.notices.tick, None)
        self.clients.notices.sooner = lambda due: plan.poke(notices, due)
        plan.every("silent clients", CLIENT_SCAN_S, self.clients.expire, now)
        plan.every("queue locks", CLIENT_SCAN_S, self.tables.locks.expire, now)
        plan.every("old filters", FILTER_CLEAN_S, self._clean_filters, now)
        plan.every("statistics", SAMPLE_S, self.counting.sample, now)
        self.limiting.plan(plan, now)
        plan.every("known pulls", KNOWN_PULLS_S, self.service.known.tick, now)

    def tick(self, now: float) -> float | None:
        """Do what is due; return when to be called again."""
        return self.schedule.tick(now)

    def close(self) -> bool:
        """Answer whoever waits, save everything, close the store; True if all went well. Blocks."""
        self._is_open = False
        self.held.release_all()
        self.limiting.close()
        self.transactions.close()
        self.timed.close()
        failures = self.saver.finish()
        return self.store.close() and not failures

    # -- what the parts tell each other ---------------------------------------------------------

    def _filter_bitmap(self, topic: str, properties: Mapping[str, str]) -> bytes | None:
        """Say in the extension of a queue which SQL92 consumers want a message."""
        if not self.settings.now.filter_bitmap:
            return None
        return self.tables.filters.bits_for(topic, properties)

    def _delay_delivered(self, stored: Stored) -> None:
        if self.store_settings.schedule.counts_deliveries:
            self.counting.stored(stored)

    def _arrived(self, runs: Sequence[QueueRun]) -> None:
        self.held.arrived(runs)
        topics = set(map(_TOPIC, runs))  # looked at once, for all who wait for one of their own
        self.delay.arrived(runs, topics)
        self.timed.arrived(runs, topics)
        self.journal.arrived(topics)

    def _tick_delay(self, now: float) -> float | None:
        due_ms = None if self.is_slave else self.delay.tick()  # a slave's master delivers
        if due_ms is None:
            return None
        # The wall clock may be set, so it is looked at now and then.
        wait_s = max(0, due_ms - self._around.clock.now_ms()) / 1000
        return now + min(wait_s, WALL_CLOCK_S)

    def _clean_filters(self) -> None:
        self.tables.filters.clean(self._around.clock.now_ms())

    def _delay_moved(self) -> None:
        self.schedule.poke(self._delay_entry, self._around.clock.monotonic())

    def _transactions_moved(self) -> None:
        self.schedule.poke(self._transactions_entry, self._around.clock.monotonic())

    def _change_settings(self, changed: Changed) -> None:
        """Go on with settings that an operator has changed."""
        before, self.settings.now = self.settings.now, changed.broker
        if changed.store != self.store_settings:
            self.store_settings = changed.store
            self.store.change_settings(changed.store)
            if self._timers is not None:
                self._timers.change_settings(changed.store, self._around.clock.monotonic())
        self.tables.groups.auto_create = changed.broker.creates_groups
        if changed.broker.offsets_interval_ms != before.offsets_interval_ms:
            self.saver.change_interval(self.tables.offsets, changed.broker.offsets_interval_ms)
        self.limiting.use(changed.broker)
        moves = self.limiting.move_lanes(before, changed.broker)
        if moves or changed.broker.permission != before.permission:
            self._lanes.set_all(self.tables.topics.all().values())
        if changed.broker.shown_permission != before.shown_permission:
            self.tables.topics.touch()
            self._routes_changed()

    def _topic_changed(self, topic: TopicConfig) -> None:
        if self._is_open:
            self.journal.topic_changed(topic.name)
            self._lanes.set(topic)
            # Who must be sure waits for `saver.save`; of those that sends make many come together.
            self.schedule.poke(self._saving_entry, self.saver.soon(self.tables.topics))
            self._routes_changed()

    def _topic_removed(self, name: str) -> None:
        if self._is_open:
            self.journal.topic_changed(name)
            self.store.close_topic(name)
            self.saver.save(self.tables.topics, lambda _error: None)
            self._routes_changed()

    def _group_changed(self, name: str) -> None:
        if self._is_open:
            self.journal.group_changed(name)

    def _mismatch_changed(self, mismatch: Mismatch) -> None:
        if len(mismatch.variants) > 1:
            self.counting.mismatches += 1
            log.warning(
                "the members of group %s subscribe to different things: %s",
                mismatch.group,
                mismatch.in_words(),
            )
