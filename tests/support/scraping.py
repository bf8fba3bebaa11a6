"""Scrapes as Prometheus reads them: what a source writes, parsed by Prometheus's own library."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, NamedTuple, Self

from prometheus_client.parser import text_string_to_metric_families

from gantrymq.clock import SystemClock
from gantrymq.metrics.exposition import rendered
from gantrymq.metrics.of_consumers import ConsumerSource
from gantrymq.metrics.of_store import StoreSource
from gantrymq.metrics.of_topics import TopicSource
from gantrymq.metrics.sheet import Sheet
from gantrymq.metrics.turns import Turns

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from support.broker_rig import BrokerRig

COMMON = {"cluster": "DefaultCluster", "node_type": "broker", "node_id": "broker-a"}
USED_BYTES = 12_345


class Sample(NamedTuple):
    """One line."""

    labels: Mapping[str, str]
    value: float


class Samples(dict[str, list[Sample]]):
    """The lines of a scrape by name."""

    @classmethod
    def parse(cls, text: bytes) -> Self:
        """Read a scrape."""
        found = cls()
        for family in text_string_to_metric_families(text.decode()):
            for sample in family.samples:
                found.setdefault(sample.name, []).append(Sample(sample.labels, sample.value))
        return found

    def rows(self, name: str, **labels: str) -> list[Sample]:
        """Return the lines that have these labels among theirs."""
        return [sample for sample in self.get(name, ()) if labels.items() <= sample.labels.items()]

    def value(self, name: str, **labels: str) -> float:
        """Return the value of the one line that has these labels among its own."""
        found = self.rows(name, **labels)
        assert len(found) == 1, f"{name} {labels}: {found or sorted(self)}"
        return found[0].value


async def used_bytes(_root: Path) -> int:
    """Say how full a disk is that there is not."""
    return USED_BYTES


class RigScrapes:
    """Scrapes a broker that a test has in its hands."""

    def __init__(self, rig: BrokerRig, shown_max: int = 200) -> None:
        self.rig = rig
        self.store = StoreSource(rig.broker, rig.clock, used_bytes)
        self.topics = TopicSource(rig.broker, shown_max)
        self.consumers = ConsumerSource(rig.broker, rig.clock, shown_max)

    def sheet(self) -> Sheet:
        """Return what a scrape finds; workers do what they are asked to meanwhile."""
        sheet = Sheet()
        page = sheet.page(*COMMON.values())

        async def fill() -> None:
            for source in (self.topics, self.consumers, self.store):
                await source.fill(page, Turns(self.rig.clock))

        done = self.rig.loop.create_task(fill())
        for _ in range(10_000):
            if done.done():
                break
            self.rig.work("cold_read")
            self.rig.turn()
        done.result()
        return sheet

    def __call__(self) -> Samples:
        """Return a scrape."""
        return Samples.parse(asyncio.run(rendered(self.sheet(), Turns(SystemClock()))))
