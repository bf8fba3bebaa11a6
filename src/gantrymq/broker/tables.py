"""The tables of a broker: what it knows of topics, groups, offsets and clients.

Those that outlive the process are saved under `config/`, as an Apache broker's are.
"""

from __future__ import annotations

import logging
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from gantrymq.broker.clients import Clients
from gantrymq.broker.consumer_offsets import ConsumerOffsets
from gantrymq.broker.delay_progress import DelayProgress
from gantrymq.broker.filter.bloom import BloomFilter
from gantrymq.broker.filter.saving import SAVE_INTERVAL_MS, SavedFilters
from gantrymq.broker.filter.table import FilterTable
from gantrymq.broker.groups import Groups
from gantrymq.broker.offset_guard import OffsetGuard
from gantrymq.broker.queue_locks import QueueLocks
from gantrymq.broker.request_modes import RequestModes
from gantrymq.broker.topics import BrokerNames, Topics, TopicSettings
from gantrymq.errors import InvalidValue, shown
from gantrymq.model.names import group_of, is_light_queue
from gantrymq.model.topic import TopicConfig

if TYPE_CHECKING:
    from collections.abc import Callable

    from gantrymq.broker.config_saving import ConfigSaver
    from gantrymq.broker.settings import BrokerSettings, LiveSettings
    from gantrymq.broker.subscriptions import Mismatch
    from gantrymq.clock import Clock
    from gantrymq.store.message_store import MessageStore

log = logging.getLogger(__name__)

RESTORED_QUEUES: Final = 4
"""Queues of a topic that is restored, at least: as many as clients ask for."""


@dataclass(frozen=True, slots=True)
class Tables:
    """Everything that handlers ask and change."""

    topics: Topics
    groups: Groups
    offsets: ConsumerOffsets
    delays: DelayProgress
    modes: RequestModes
    filters: FilterTable
    saved_filters: SavedFilters
    clients: Clients
    locks: QueueLocks
    guard: OffsetGuard

    def load(self, saver: ConfigSaver, settings: BrokerSettings, delay_interval_ms: int) -> bool:
        """Read what was saved, and keep it saved from now on. Blocks; called at the start.

        Returns False if the topics may be older than the messages: a backup was read, or nothing.

        Raises:
            StoreDamaged: a file and its backup cannot be understood.
        """
        trouble = saver.add(self.topics)
        if self.topics.left_out:
            log.warning(
                "topics whose names or numbers of queues cannot be are left out of %s: %s",
                self.topics.file_name,
                ", ".join(shown(name) for name in self.topics.left_out[:8]),
            )
        saver.add(self.groups)
        saver.add(self.offsets, settings.offsets_interval_ms)
        saver.add(self.delays, delay_interval_ms)
        saver.add(self.modes)
        saver.add(self.guard)
        self.guard.sooner = lambda: saver.soon(self.guard)
        saver.add(self.saved_filters, SAVE_INTERVAL_MS)
        return self.topics.is_loaded and trouble is None


def make_tables(
    live: LiveSettings,
    clock: Clock,
    delay_levels: int,
    *,
    topic_changed: Callable[[TopicConfig], None],
    topic_removed: Callable[[str], None],
    group_changed: Callable[[str], None],
    mismatch_changed: Callable[[Mismatch], None],
) -> Tables:
    """Return the tables of a new broker."""
    settings = live.now
    names = BrokerNames(settings.cluster, settings.name, settings.region)
    topic_settings = TopicSettings(
        auto_create=settings.creates_topics,
        auto_queues=settings.topic_queues,
        trace_topic=settings.trace_topic if settings.makes_trace_topic else None,
        cluster_topic=settings.has_cluster_topic,
        broker_topic=settings.has_broker_topic,
        delay_queues=max(delay_levels, 18),
        revive_queues=settings.revive_queues,
        timers=settings.timers,
        journal=settings.has_journal,
    )
    groups = Groups(
        clock,
        auto_create=settings.creates_groups,
        changed=lambda group: group_changed(group.name),
        removed=group_changed,
    )

    def notifies(name: str) -> bool:
        group = groups.find(name)
        return group is None or group.notify_members

    bloom = BloomFilter.for_consumers(settings.filter_error_percent, settings.filter_consumers)
    filters = FilterTable(bloom, settings.filter_kept_ms)
    offsets = ConsumerOffsets(clock)
    return Tables(
        Topics(names, topic_settings, clock, topic_changed, topic_removed),
        groups,
        offsets,
        DelayProgress(clock),
        RequestModes(),
        filters,
        SavedFilters(filters, clock),
        Clients(clock, notifies=notifies, mismatch_changed=mismatch_changed),
        QueueLocks(clock, settings.lock_life_ms),
        OffsetGuard(groups, offsets, live),
    )


def restore_topics(topics: Topics, store: MessageStore) -> list[str]:
    """Make the topics again that have messages and no settings; return their names.

    A kill may come between the first message of a new topic and the save of its settings. Such a
    topic's messages are younger than the table that was saved. Older ones are of a topic that was
    deleted, and stay out of sight. Where there was no file, every topic is restored.
    """
    since_ms = topics.data_version.timestamp_ms if topics.is_loaded else 0
    restored: list[str] = []
    for name in store.queues.topics():
        if topics.find(name) is not None or topics.is_system(name) or is_light_queue(name):
            continue
        ids = [queue.queue_id for queue in store.queues.queues(name) if queue.max_offset > 0]
        times = [store.reads.earliest_stored(name, queue_id) for queue_id in ids]
        first_ms = min((time for time in times if time is not None), default=None)
        if first_ms is None or first_ms < since_ms:
            continue
        count = max(max(ids) + 1, RESTORED_QUEUES if group_of(name) is None else 1)
        try:
            topics.put(TopicConfig(name, count, count))
        except InvalidValue as error:
            log.error("topic %s has messages and cannot be restored: %s", name, error)  # noqa: TRY400
            continue
        log.warning(
            "topic %s has messages and no settings: restored with %d queues; change them with "
            "updateTopic if there were more",
            name,
            count,
        )
        restored.append(name)
    return restored
