"""The sources of a scrape: one for each broker and name server of the process, one for itself."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

from gantrymq.metrics.of_cluster import fill_cluster, fill_name_server
from gantrymq.metrics.of_consumers import ConsumerSource
from gantrymq.metrics.of_process import LoopDelay, ProcessSource
from gantrymq.metrics.of_store import StoreSource
from gantrymq.metrics.of_topics import TopicSource
from gantrymq.metrics.request_times import RequestTimes

if TYPE_CHECKING:
    from collections.abc import Callable

    from gantrymq.broker.broker import Broker
    from gantrymq.clock import Clock
    from gantrymq.metrics.of_store import UsedBytes
    from gantrymq.metrics.parts import BrokerParts, NamesrvParts
    from gantrymq.metrics.sheet import Sheet
    from gantrymq.metrics.turns import Turns


class Source(Protocol):
    """Something that a scrape asks."""

    async def fill(self, sheet: Sheet, turns: Turns) -> None:
        """Write what it has now."""
        ...


class _BrokerSources:
    """What is kept of one broker from scrape to scrape."""

    def __init__(self, broker: Broker, clock: Clock, used_bytes: UsedBytes, shown_max: int) -> None:
        self.broker = broker
        self.store = StoreSource(broker, clock, used_bytes)
        self.topics = TopicSource(broker, shown_max)
        self.consumers = ConsumerSource(broker, clock, shown_max)
        self.requests = RequestTimes(clock)
        broker.router.watch = self.requests


class BrokerSource:
    """A broker; while there is none, nothing is written."""

    def __init__(
        self,
        parts: Callable[[], BrokerParts | None],
        clock: Clock,
        used_bytes: UsedBytes,
        shown_max: int,
    ) -> None:
        self._parts = parts
        self._clock = clock
        self._used_bytes = used_bytes
        self._shown_max = shown_max
        self._kept: _BrokerSources | None = None

    def watch(self) -> None:
        """Begin with a broker that has been started, so that nothing of it is missed."""
        parts = self._parts()
        if parts is not None and (self._kept is None or self._kept.broker is not parts.broker):
            self._kept = _BrokerSources(
                parts.broker, self._clock, self._used_bytes, self._shown_max
            )

    async def fill(self, sheet: Sheet, turns: Turns) -> None:
        """Write what the broker has now."""
        self.watch()
        parts, kept = self._parts(), self._kept
        if parts is None or kept is None:
            return
        try:
            await self._write(sheet, turns, parts, kept)
        except Exception:
            if parts.broker.store.writability.is_open:
                raise
            # It was closed meanwhile: what is written holds, and the rest is not there any more.

    @staticmethod
    async def _write(sheet: Sheet, turns: Turns, parts: BrokerParts, kept: _BrokerSources) -> None:
        settings = parts.broker.settings.now
        page = sheet.page(settings.cluster, "broker", settings.name)
        await kept.topics.fill(page, turns)
        await kept.consumers.fill(page, turns)
        await kept.store.fill(page, turns)
        kept.requests.fill(page, parts.broker.store.statistics.put_times)
        fill_cluster(page, parts)


class NamesrvSource:
    """A name server; `name` is what tells it from others."""

    def __init__(self, parts: Callable[[], NamesrvParts], name: Callable[[], str]) -> None:
        self._parts = parts
        self._name = name

    async def fill(self, sheet: Sheet, turns: Turns) -> None:
        """Write what the name server has now."""
        fill_name_server(sheet.page("", "nameserver", self._name()), self._parts())
        await turns.next()


class OwnSource:
    """The process itself."""

    def __init__(self, delay: LoopDelay, scrape_s: Callable[[], float]) -> None:
        self._process = ProcessSource(delay)
        self._scrape_s = scrape_s

    async def fill(self, sheet: Sheet, turns: Turns) -> None:
        """Write what the process has now."""
        self._process.fill(sheet.page(), self._scrape_s())
        await turns.next()
