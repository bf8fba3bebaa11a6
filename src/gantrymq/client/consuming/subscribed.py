"""The topics that a consumer reads: expression, handler, and whether it is paused."""

from __future__ import annotations

import asyncio
import logging
from typing import TYPE_CHECKING

from gantrymq.client.consuming.handling import NotHere
from gantrymq.client.consuming.subscription import is_sql, subscription_of
from gantrymq.errors import InvalidValue
from gantrymq.limits import MEMBER_SUBSCRIPTIONS_MAX
from gantrymq.model.names import is_retry_topic, retry_topic

if TYPE_CHECKING:
    from collections.abc import Iterator

    from gantrymq.client.consuming.handling import Run
    from gantrymq.client.consuming.statistics import Statistics, TopicCounters
    from gantrymq.client.consuming.subscription import Expression
    from gantrymq.model.group import Subscription

logger = logging.getLogger(__name__)


async def refuse(message: object) -> None:
    """Take no message: there is no handler for its topic here, and another member may have one.

    Raises:
        NotHere: always.
    """
    logger.warning("%r is of a topic without a handler here", message)
    raise NotHere


class Subscribed:
    """One topic."""

    __slots__ = ("_resumed", "counters", "iterates", "name", "run", "subscription", "tags")

    def __init__(
        self, name: str, subscription: Subscription, run: Run | None, counters: TopicCounters
    ) -> None:
        self.name = name
        """As the user calls it."""
        self.subscription = subscription
        """With the topic's full name."""
        self.iterates = run is None
        """Whether messages wait for `async for`."""
        self.run: Run = run or refuse
        """What is done with a message."""
        self.tags = subscription.tags
        """What a message's tag must be among; empty for all, and for SQL92."""
        self.counters = counters
        self._resumed: asyncio.Event | None = None

    @property
    def topic(self) -> str:
        """Return the topic's full name."""
        return self.subscription.topic

    @property
    def is_paused(self) -> bool:
        """Tell whether nothing is read for now."""
        return self._resumed is not None

    def pause(self) -> None:
        """Read nothing until `resume`."""
        if self._resumed is None:
            self._resumed = asyncio.Event()

    def resume(self) -> None:
        """Read again."""
        if self._resumed is not None:
            self._resumed.set()
            self._resumed = None

    async def reading(self) -> None:
        """Return when it is not paused."""
        while self._resumed is not None:
            await self._resumed.wait()


class Subscriptions:
    """All topics of a consumer, by their full names."""

    def __init__(self, statistics: Statistics) -> None:
        self._topics: dict[str, Subscribed] = {}
        self._statistics = statistics
        self._version = 0

    def __iter__(self) -> Iterator[Subscribed]:
        """Return all of them, the retry topic among them."""
        return iter(tuple(self._topics.values()))

    def __len__(self) -> int:
        """Return how many there are."""
        return len(self._topics)

    def put(
        self, topic: str, name: str, expression: Expression, version: int, run: Run | None
    ) -> Subscribed:
        """Subscribe to a topic, in place of what was there.

        Raises:
            InvalidValue: the topic or the expression cannot be, or there are too many.
        """
        if topic not in self._topics and len(self._topics) >= MEMBER_SUBSCRIPTIONS_MAX:
            raise InvalidValue(
                f"{len(self._topics)} topics already: a consumer can have"
                f" {MEMBER_SUBSCRIPTIONS_MAX} at most"
            )
        told = subscription_of(topic, expression, self._newer(version))
        made = Subscribed(name, told, run, self._statistics.of(name))
        self._topics[topic] = made
        return made

    def _newer(self, version: int) -> int:
        """Return a version above all before it: brokers ignore others, and clocks are set back."""
        self._version = max(version, self._version + 1)
        return self._version

    def put_retry(self, group: str, version: int) -> None:
        """Subscribe to what the group was given back."""
        topic = retry_topic(group)
        told = subscription_of(topic, "*", self._newer(version))
        self._topics[topic] = Subscribed(topic, told, None, self._statistics.of(topic))

    def remove(self, topic: str) -> Subscribed | None:
        """Unsubscribe."""
        return self._topics.pop(topic, None)

    def find(self, topic: str) -> Subscribed | None:
        """Return a topic by its full name."""
        return self._topics.get(topic)

    def named(self, name: str) -> Subscribed | None:
        """Return a topic by the name that the user has for it."""
        found = self._topics.get(name)
        if found is not None:
            return found
        return next((one for one in self._topics.values() if one.name == name), None)

    @property
    def user_topics(self) -> list[Subscribed]:
        """Return the topics that the user asked for."""
        return [one for one in self._topics.values() if not is_retry_topic(one.topic)]

    @property
    def sql(self) -> list[Subscribed]:
        """Return those with an SQL92 expression."""
        return [one for one in self._topics.values() if is_sql(one.subscription)]

    def data(self) -> tuple[Subscription, ...]:
        """Return what a heartbeat says of them."""
        return tuple(self._topics[topic].subscription for topic in sorted(self._topics))
