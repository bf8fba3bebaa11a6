"""Which topics' ordinary sends take the kernel's lane: those about which nothing needs policy.

A topic without the lane loses nothing but speed: its sends go through `send.py`. So no topic can
stop a broker's start, and none can fail a change of its settings, whatever they are.

Owned by the event loop's task.
"""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING

from gantrymq.errors import InvalidValue
from gantrymq.model.names import is_retry_topic, may_send_to
from gantrymq.model.topic import FilterType, Perm

if TYPE_CHECKING:
    from collections.abc import Iterable

    from gantrymq.broker.quotas.quotas import Quotas
    from gantrymq.broker.settings import LiveSettings
    from gantrymq.model.topic import TopicConfig
    from gantrymq.store.message_store import MessageStore

log = logging.getLogger(__name__)


class Lanes:
    """Opens and closes the lane of topics."""

    def __init__(self, store: MessageStore, settings: LiveSettings, quotas: Quotas) -> None:
        self._store = store
        self._settings = settings
        self._quotas = quotas
        quotas.lane_changed = self.set

    def set_all(self, topics: Iterable[TopicConfig]) -> None:
        """Open or close the lane of each."""
        for topic in topics:
            self.set(topic)

    def set(self, topic: TopicConfig) -> None:
        """Let ordinary sends to a topic take the lane, or take it no longer."""
        if not self._may_take(topic):
            self._store.close_topic(topic.name)
            return
        try:
            self._store.open_topic(topic.name, topic.write_queues)
        except InvalidValue as error:
            self._store.close_topic(topic.name)
            log.warning("sends to topic %s are checked one by one: %s", topic.name, error)

    def _may_take(self, topic: TopicConfig) -> bool:
        return bool(
            topic.writable
            and not self._store.writability.is_slave  # its offsets come with the master's log
            and topic.write_queues > 0  # no queue to write to: a topic that is being drained
            and (self._settings.now.permission & Perm.WRITE or not topic.order)
            and may_send_to(topic.name)
            and not is_retry_topic(topic.name)
            and topic.filter_type is not FilterType.MULTI_TAG  # its messages get a flag
            and self._quotas.may_take_lane(topic)
        )
