"""What all parts of pop share: the store and the tables, and who may ask for what."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from gantrymq.broker.pop.handles import ORDERLY
from gantrymq.broker.storing import not_stored
from gantrymq.model.topic import Perm
from gantrymq.store.status import PutStatus
from gantrymq.wire.response_errors import (
    InvalidParameter,
    MessageIllegal,
    NoPermission,
    SubscriptionGroupNotExist,
    SystemFailure,
    TopicNotExist,
)

if TYPE_CHECKING:
    from asyncio import Future
    from collections.abc import Callable

    from gantrymq.broker.groups import Groups
    from gantrymq.broker.pop.offsets import PopOffsets
    from gantrymq.broker.pop.order import OrderInfo
    from gantrymq.broker.pop.polling import PopPolling
    from gantrymq.broker.pop.records import RecordMaker
    from gantrymq.broker.pull import PullCounts
    from gantrymq.broker.quotas.quotas import Quotas
    from gantrymq.broker.quotas.throttled import Throttled
    from gantrymq.broker.selections import Selections
    from gantrymq.broker.settings import LiveSettings
    from gantrymq.broker.storing import Storing
    from gantrymq.broker.timer.rules import Timing
    from gantrymq.broker.topics import Topics
    from gantrymq.clock import Clock
    from gantrymq.model.topic import TopicConfig
    from gantrymq.store.message_store import MessageStore
    from gantrymq.store.put import NewMessage
    from gantrymq.wire.peer import Answer


@dataclass(frozen=True, slots=True)
class PopParts:
    """What pops stand on."""

    store: MessageStore
    storing: Storing
    topics: Topics
    groups: Groups
    selections: Selections
    counts: PullCounts
    settings: LiveSettings
    clock: Clock
    timing: Timing
    maker: RecordMaker
    offsets: PopOffsets
    order: OrderInfo
    polling: PopPolling
    notices: PopPolling
    """For those who only want to know."""
    quotas: Quotas
    throttled: Throttled
    new_future: Callable[[], Future[Answer]]
    pick: Callable[[int], int]
    """Returns a number below its argument."""

    # -- may it ---------------------------------------------------------------------------------

    def check_reader(self, group: str, topic: str, queue_id: int) -> TopicConfig:
        """Return a topic that a group may pop from; the checks are RocketMQ's, in its order.

        Raises:
            ResponseError: it may not.
        """
        settings = self.settings.now
        if not settings.permission & Perm.READ:
            raise NoPermission(
                f"the broker[{settings.shown}] pop message is forbidden (brokerPermission)"
            )
        if not settings.timers:
            raise SystemFailure("pop message is forbidden because timerWheelEnable is false")
        config = self.find_topic(topic)
        if not config.readable:
            raise NoPermission(f"the topic[{topic}] peeking message is forbidden")
        if queue_id >= config.read_queues or queue_id < -1:
            raise InvalidParameter(
                f"queueId[{queue_id}] is illegal, topic:[{topic}] has {config.read_queues} queues "
                "to read; -1 is any"
            )
        found = self.groups.find_or_create(group)
        if found is None:
            raise SubscriptionGroupNotExist(
                f"subscription group [{group}] does not exist; create it with updateSubGroup, or "
                "set autoCreateSubscriptionGroup=true"
            )
        if not found.consume_enabled:
            raise NoPermission(f"subscription group no permission, {group}")
        return config

    def find_topic(self, topic: str) -> TopicConfig:
        """Return a topic.

        Raises:
            TopicNotExist: there is none.
        """
        config = self.topics.find(topic)
        if config is None:
            raise TopicNotExist(f"topic[{topic}] not exist, apply first please!")
        return config

    def check_queue(self, topic: str, queue_id: int) -> None:
        """Refuse an acknowledgement for a queue that is not there.

        Raises:
            ResponseError: there is no such topic or queue.
        """
        config = self.find_topic(topic)
        if not 0 <= queue_id < config.read_queues:
            raise MessageIllegal(
                f"queueId[{queue_id}] is illegal, topic:[{topic}] has {config.read_queues} queues"
            )

    def check_handle(self, revive_queue: int, revive_ms: int) -> None:
        """Refuse a handle that we cannot have given out.

        Raises:
            MessageIllegal: its revive queue is not there, or its time too far off.
        """
        settings = self.settings.now
        if not 0 <= revive_queue < settings.revive_queues and revive_queue != ORDERLY:
            raise MessageIllegal(
                f"there is no revive queue {revive_queue}: give back the handle as it was answered"
            )
        if revive_ms > self.clock.now_ms() + settings.timer_delay_max_s * 1000:
            raise MessageIllegal(f"the handle's time is {revive_ms}, which is too far off")

    # -- stores ---------------------------------------------------------------------------------

    def put_timed(self, message: NewMessage) -> int:
        """Store a check point or an acknowledgement; return the log offset behind it.

        Raises:
            ResponseError: it was not stored.
        """
        timed, _ = self.timing.as_timer(message)
        stored = self.store.put([timed])
        if stored.status is not PutStatus.PUT_OK:
            raise not_stored(stored.status, self.store)
        return stored.end
