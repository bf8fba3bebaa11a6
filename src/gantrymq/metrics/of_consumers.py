"""Groups: how far they are behind, in messages and in time, and who is connected."""

from __future__ import annotations

from collections import Counter
from heapq import nlargest
from typing import TYPE_CHECKING, Final

from gantrymq.metrics.catalogue import OTHER
from gantrymq.metrics.lag import Ages, measure
from gantrymq.model.group import ConsumeType
from gantrymq.model.names import RETRY_PREFIX, SYSTEM_GROUP_PREFIX, SYSTEM_GROUPS
from gantrymq.wire.codes import LanguageCode, Version

if TYPE_CHECKING:
    from gantrymq.broker.broker import Broker
    from gantrymq.clock import Clock
    from gantrymq.metrics.lag import GroupLag, Lags
    from gantrymq.metrics.sheet import Page
    from gantrymq.metrics.turns import Turns

REMOTING: Final = "remoting"
_MODES: Final = {
    ConsumeType.CONSUME_ACTIVELY: "pull",
    ConsumeType.CONSUME_PASSIVELY: "push",
    ConsumeType.CONSUME_POP: "pop",
}
AGES_FOR_EACH: Final = 8
"""Ages that are remembered for each series that may be shown."""


def yes_no(value: object) -> str:
    """Return a label's word, as Apache writes it."""
    return "true" if value else "false"


def is_system_group(group: str) -> bool:
    """Tell whether a group is a broker's or a tool's own."""
    return group in SYSTEM_GROUPS or group.upper().startswith(SYSTEM_GROUP_PREFIX)


class ConsumerSource:
    """Writes what is known of groups."""

    def __init__(self, broker: Broker, clock: Clock, shown_max: int) -> None:
        self._broker = broker
        self._shown_max = shown_max
        self._ages = Ages(broker, clock, shown_max * AGES_FOR_EACH)

    async def fill(self, page: Page, turns: Turns) -> None:
        """Write everything about groups."""
        self._ages.begin()
        lags = await measure(self._broker, self._shown_max, turns)
        await self._queues(page, lags, turns)
        await self._groups(page, lags, turns)
        page.put("gantrymq_metrics_left_out", lags.groups_left_out, "groups")
        page.put("gantrymq_metrics_left_out", lags.queues_left_out, "queues")
        page.put("gantrymq_metrics_left_out", self._ages.left_out, "ages")
        await self._connections(page, turns)

    async def _queues(self, page: Page, lags: Lags, turns: Turns) -> None:
        for queue in lags.queues:
            labels = queue.group, queue.topic, str(queue.queue_id)
            page.put("gantrymq_queue_lag_messages", queue.messages, *labels)
            age = await self._ages.age_ms(queue.topic, queue.queue_id, queue.committed, queue.end)
            if age is not None:
                page.put("gantrymq_queue_lag_seconds", age / 1000, *labels)
            await turns.next()

    async def _groups(self, page: Page, lags: Lags, turns: Turns) -> None:
        oldest: dict[str, int] = {}
        for one in lags.groups:
            labels = self._labels(one)
            page.put("rocketmq_consumer_lag_messages", one.messages, *labels)
            page.put("rocketmq_consumer_inflight_messages", one.in_flight, *labels)
            page.put("rocketmq_consumer_ready_messages", one.ready, *labels)
            age = await self._ages.oldest_ms(one.queues)
            if age is not None:
                page.put("rocketmq_consumer_lag_latency", age, *labels)
                oldest[one.group] = max(age, oldest.get(one.group, 0))
            waiting = await self._ages.oldest_ms(one.queues, pulled=True)
            if waiting is not None:
                page.put("rocketmq_consumer_queueing_latency", waiting, *labels)
            await turns.next()
        for group, age in oldest.items():
            page.put("gantrymq_group_oldest_unconsumed_seconds", age / 1000, group)
        if lags.groups_left_out:
            labels = OTHER, OTHER, "false", "false"
            messages, in_flight, ready = lags.other
            page.put("rocketmq_consumer_lag_messages", messages, *labels)
            page.put("rocketmq_consumer_inflight_messages", in_flight, *labels)
            page.put("rocketmq_consumer_ready_messages", ready, *labels)

    def _labels(self, one: GroupLag) -> tuple[str, str, str, str]:
        is_system = self._broker.tables.topics.is_system(one.topic) or is_system_group(one.group)
        return (
            one.group,
            one.topic,
            yes_no(one.topic.startswith(RETRY_PREFIX)),
            yes_no(is_system),
        )

    # -- connections ------------------------------------------------------------------------------

    async def _connections(self, page: Page, turns: Turns) -> None:
        clients = self._broker.tables.clients
        producers: Counter[tuple[str, str]] = Counter()
        for group in clients.all_producer_groups():
            for one in clients.producers(group):
                producers[_language(one.language), _version(one.version)] += 1
            await turns.next()
        for (language, version), count in producers.items():
            page.put("rocketmq_producer_connections", count, language, version, REMOTING)
        consumers: Counter[tuple[str, str, str, str]] = Counter()
        for group in clients.consumer_groups():
            state = clients.consumer(group)
            for member in () if state is None else state.members.values():
                mode = _MODES.get(state.consume_type, "unknown") if state is not None else ""
                consumers[group, _language(member.language), _version(member.version), mode] += 1
            await turns.next()
        self._put_consumers(page, consumers)

    def _put_consumers(self, page: Page, consumers: Counter[tuple[str, str, str, str]]) -> None:
        shown = nlargest(self._shown_max, consumers.items(), key=lambda item: (item[1], item[0]))
        for (group, language, version, mode), count in shown:
            system = yes_no(is_system_group(group))
            labels = group, language, version, mode, REMOTING, system
            page.put("rocketmq_consumer_connections", count, *labels)
        rest = consumers.total() - sum(count for _, count in shown)
        if rest:
            labels = OTHER, OTHER, OTHER, OTHER, REMOTING, "false"
            page.put("rocketmq_consumer_connections", rest, *labels)


def _language(code: int | str) -> str:
    """Return the name of a client's language as Apache's label has it."""
    if isinstance(code, str):
        return code.lower()[:16]
    return LanguageCode(code).name.lower() if code in set(LanguageCode) else str(code)


def _version(number: int) -> str:
    """Return the name of a release, or the number of one that has none here."""
    return Version(number).name.lower() if number in set(Version) else str(number)
