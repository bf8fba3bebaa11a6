"""Quotas of topics and groups: asked before anything is stored or read.

A topic may have a quota for sends and one for reads, whoever sends and reads; a group one for its
reads. They are attributes (`quota.send.bytes` and so on), and what has none of its own has the
broker's default (`quotaTopicSendBytes` and so on). All of it may change while the broker runs.

**The lane.** Ordinary sends to a topic whose quota is in bytes alone still take the kernel's lane.
The lane counts by topic what it stores; those counts are asked for after every buffer while there
is such a topic, and taken out of its quota. A topic that has used it up is closed to the lane, so
its sends come to policy, which refuses them, until one is let in: then it is open again. A topic
with a quota of requests stays out of the lane: what it counts are messages. Without quotas nothing
is asked anywhere.

Pulls of a group, or of a topic, with a quota are never remembered by the kernel (`known_pulls`).

Owned by the event loop's task.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from gantrymq.broker.quotas.meter import GROUP, READ, SEND, TOPIC, USER, Meter, Rates, own_rates

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

    from gantrymq.broker.groups import Groups
    from gantrymq.broker.quotas.meter import QuotaExceeded
    from gantrymq.broker.settings import BrokerSettings, LiveSettings
    from gantrymq.broker.topics import Topics
    from gantrymq.clock import Clock
    from gantrymq.kernel.values import SendRequest
    from gantrymq.model.group import SubscriptionGroup
    from gantrymq.model.topic import TopicConfig

RECORD_BYTES: Final = 91
"""Of a record without topic, body and properties."""


def default_rates(settings: BrokerSettings) -> dict[tuple[str, str], Rates]:
    """Return what holds for those that say nothing themselves, by kind and direction."""
    return {
        (TOPIC, SEND): Rates(settings.topic_send_bytes, settings.topic_send_requests),
        (TOPIC, READ): Rates(settings.topic_read_bytes, settings.topic_read_requests),
        (GROUP, READ): Rates(settings.group_read_bytes, settings.group_read_requests),
        (USER, SEND): Rates(settings.user_send_bytes, settings.user_send_requests),
        (USER, READ): Rates(settings.user_read_bytes, settings.user_read_requests),
    }


class Quotas:
    """Who may send and read how much; users are judged elsewhere, by meters from here."""

    def __init__(
        self,
        topics: Topics,
        groups: Groups,
        settings: LiveSettings,
        clock: Clock,
        refused: Callable[[str], None],
    ) -> None:
        """Tell `refused` the cause whenever a quota is exceeded."""
        self._topics = topics
        self._groups = groups
        self._settings = settings
        self._monotonic = clock.monotonic
        self.refused = refused
        self._meters: dict[tuple[str, str, str], Meter] = {}
        self._basis: BrokerSettings | None = None
        self._defaults: dict[tuple[str, str], Rates] = {}
        self._reads_by_default = False
        self._in_lane: set[bytes] = set()
        self.lane_changed: Callable[[TopicConfig], None] = lambda _topic: None
        """Told of a topic that may take the lane again, or may not any more."""

    def __len__(self) -> int:
        """Return how many meters there are."""
        return len(self._meters)

    # -- what holds -----------------------------------------------------------------------------

    def default(self, kind: str, way: str) -> Rates:
        """Return what holds for those of a kind that say nothing themselves."""
        settings = self._settings.now
        if settings is not self._basis:
            self._basis, self._defaults = settings, default_rates(settings)
            self._reads_by_default = (
                self._defaults[GROUP, READ].are_set or self._defaults[TOPIC, READ].are_set
            )
        return self._defaults[kind, way]

    def meter(self, kind: str, name: str, way: str, rates: Rates) -> Meter | None:
        """Return the meter of somebody with these rates now; None without a limit."""
        key = kind, name, way
        meter = self._meters.get(key)
        if not rates.are_set:
            if meter is not None:
                del self._meters[key]
            return None
        if meter is None:
            meter = self._meters[key] = Meter(kind, name, way, rates, self._monotonic())
        elif meter.rates != rates:
            meter = self._meters[key] = meter.at_rates(rates, self._monotonic())
        return meter

    def _meter_of(
        self, kind: str, owner: TopicConfig | SubscriptionGroup, way: str
    ) -> Meter | None:
        rates = own_rates(owner.attributes, way, self.default(kind, way))
        if not rates.are_set and not self._meters:
            return None
        return self.meter(kind, owner.name, way, rates)

    def expire(self) -> None:
        """Forget meters of those who have not used anything for a while; called now and then."""
        now = self._monotonic()
        for key in [key for key, meter in self._meters.items() if meter.is_unused(now)]:
            del self._meters[key]
        for name in [name for name in self._in_lane if self._topics.find(name.decode()) is None]:
            self._in_lane.discard(name)

    # -- sends ----------------------------------------------------------------------------------

    def may_take_lane(self, topic: TopicConfig) -> bool:
        """Tell whether ordinary sends to a topic may be stored without asking here first."""
        meter = self._meter_of(TOPIC, topic, SEND)
        name = topic.name.encode()
        self._in_lane.discard(name)
        if meter is None:
            return True
        if meter.rates.requests or meter.exceeded(self._monotonic()) is not None:
            return False
        self._in_lane.add(name)
        return True

    @property
    def watches_lane(self) -> bool:
        """Tell whether what the lane stores has to be told to `stored`."""
        return bool(self._in_lane)

    def stored(self, counts: Iterable[tuple[bytes, int, int]]) -> None:
        """Take in what the lane has stored: topic, messages and bytes."""
        in_lane = self._in_lane
        if not in_lane:
            return
        for name, _messages, size in counts:
            if name in in_lane:
                self._charge_lane(name, size)

    def _charge_lane(self, name: bytes, size: int) -> None:
        topic = self._topics.find(name.decode())
        meter = None if topic is None else self._meter_of(TOPIC, topic, SEND)
        if topic is None or meter is None:
            self._in_lane.discard(name)
            return
        meter.take(size, 0)
        if meter.exceeded(self._monotonic()) is not None:
            self.lane_changed(topic)

    def check_send(self, topic: TopicConfig, request: SendRequest) -> None:
        """Let a send that policy has in hand pass, and note it.

        Raises:
            QuotaExceeded: the topic has used up its quota.
        """
        meter = self._meter_of(TOPIC, topic, SEND)
        if meter is None:
            return
        exceeded = meter.exceeded(self._monotonic())
        if exceeded is not None:
            self.refused(exceeded.cause)
            raise exceeded
        body_bytes = request.body_end - request.body_start
        size = RECORD_BYTES + len(topic.name) + len(request.properties) + body_bytes
        meter.take(size, 1)
        if not meter.rates.requests and topic.name.encode() not in self._in_lane:
            self.lane_changed(topic)

    # -- reads ----------------------------------------------------------------------------------

    def limits_reads(self, group: SubscriptionGroup, topic: TopicConfig | None) -> bool:
        """Tell whether pulls of a group from a topic have to come by here."""
        return any(True for _ in self._readers(group, topic))

    def _readers(self, group: SubscriptionGroup, topic: TopicConfig | None) -> Iterable[Meter]:
        meter = self._meter_of(GROUP, group, READ)
        if meter is not None:
            yield meter
        meter = None if topic is None else self._meter_of(TOPIC, topic, READ)
        if meter is not None:
            yield meter

    def exceeded_read(
        self, group: SubscriptionGroup, topic: TopicConfig | None, requests: int
    ) -> QuotaExceeded | None:
        """Note that a group wants to read; return why it has to wait, if it has to.

        `requests` is 0 for one that was counted before, and reads again.
        """
        if not (group.attributes or (topic is not None and topic.attributes)):
            self.default(GROUP, READ)
            if not self._reads_by_default:
                return None
        now = self._monotonic()
        meters = tuple(self._readers(group, topic))
        for meter in meters:
            exceeded = meter.exceeded(now, requests)
            if exceeded is not None:
                return exceeded
        for meter in meters:
            meter.take(0, requests)
        return None

    def was_read(self, group: str, topic: str, size: int) -> None:
        """Take in what was read."""
        if not self._meters:
            return
        for key in ((GROUP, group, READ), (TOPIC, topic, READ)):
            meter = self._meters.get(key)
            if meter is not None:
                meter.take(size, 0)

    # -- users ----------------------------------------------------------------------------------

    def of_user(self, name: str, own: Mapping[str, int], way: str) -> Meter | None:
        """Return the meter of a user, who may have rates of its own."""
        default = self.default(USER, way)
        rates = Rates(
            own.get(f"{way}_bytes", default.bytes), own.get(f"{way}_requests", default.requests)
        )
        if not rates.are_set and not self._meters:
            return None
        return self.meter(USER, name, way, rates)
