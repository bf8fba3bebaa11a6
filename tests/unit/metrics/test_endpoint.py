"""The port of a process: what Prometheus reads, and that nobody waits for it meanwhile."""

from __future__ import annotations

import asyncio
import gc
import time
from typing import TYPE_CHECKING

import pytest

from gantrymq.clock import SystemClock
from gantrymq.metrics.catalogue import FAMILIES
from gantrymq.metrics.endpoint import KEPT_S, Endpoint
from gantrymq.metrics.of_process import LoopDelay
from gantrymq.metrics.of_store import put_durations
from gantrymq.metrics.sheet import Sheet
from gantrymq.metrics.turns import SLICE_S, Turns
from gantrymq.model.topic import TopicConfig
from gantrymq.testing.clock import VirtualClock
from support.broker_rig import BrokerRig
from support.scraping import RigScrapes, Samples

if TYPE_CHECKING:
    from gantrymq.metrics.sheet import Page


class Counting:
    """A source that counts how often it is asked."""

    def __init__(self) -> None:
        self.asked = 0

    async def fill(self, sheet: Sheet, turns: Turns) -> None:
        self.asked += 1
        sheet.page("c", "broker", "b").put("rocketmq_topic_number", self.asked)
        await asyncio.sleep(0)


def test_those_who_ask_together_share_a_scrape_and_the_next_get_the_same() -> None:
    async def main() -> None:
        source, clock = Counting(), VirtualClock()
        endpoint = Endpoint([source], list, clock)
        first, second = await asyncio.gather(endpoint.text(), endpoint.text())
        assert first == second == await endpoint.text()
        assert source.asked == 1
        clock.jump(KEPT_S)
        assert Samples.parse(await endpoint.text()).value("rocketmq_topic_number") == 2

    asyncio.run(main())


def test_one_that_goes_away_does_not_take_the_scrape_from_others() -> None:
    async def main() -> None:
        source = Counting()
        endpoint = Endpoint([source], list)
        first = asyncio.create_task(endpoint.text())
        second = asyncio.create_task(endpoint.text())
        await asyncio.sleep(0)
        first.cancel()
        assert b"rocketmq_topic_number" in await second
        assert source.asked == 1

    asyncio.run(main())


def test_the_process_tells_of_itself() -> None:
    async def main() -> Samples:
        return Samples.parse(await Endpoint([], list).text())

    found = asyncio.run(main())
    (build,) = found.rows("gantrymq_build_info")
    assert build.labels["kernel"] in {"compiled", "readable"}
    assert found.value("process_resident_memory_bytes") > 1 << 20
    assert found.value("process_cpu_seconds_total") > 0


def test_a_loop_that_stands_still_is_seen() -> None:
    async def main() -> Samples:
        delay = LoopDelay(SystemClock())
        delay.start()
        time.sleep(0.25)  # noqa: ASYNC251 - the loop is to stand still
        await asyncio.sleep(0.01)
        delay.stop()
        sheet = Sheet()
        page: Page = sheet.page()
        put_durations(page, "gantrymq_loop_delay_seconds", delay.times)
        worst = delay.take_worst()
        assert worst >= 0.1
        assert delay.take_worst() == 0
        return Samples({"worst": []})

    asyncio.run(main())


def test_a_row_that_no_page_explains_is_refused() -> None:
    page = Sheet().page("c", "broker", "b")
    with pytest.raises(KeyError):
        page.put("gantrymq_surprise", 1)
    with pytest.raises(ValueError, match="has the labels"):
        page.put("gantrymq_log_offset", 1)
    with pytest.raises(ValueError, match="has the labels"):
        Sheet().page().put("rocketmq_topic_number", 1)


def test_labels_are_written_so_that_they_are_read_back() -> None:
    sheet = Sheet()
    name = 'a"b\\c\nd'
    sheet.page("c", "broker", "b").put("rocketmq_commit_messages_total", 1, name)

    class Given:
        async def fill(self, given: Sheet, turns: Turns) -> None:
            given._rows.update(sheet._rows)

    found = Samples.parse(asyncio.run(Endpoint([Given()], list).text()))
    assert found.value("rocketmq_commit_messages_total", topic=name) == 1


def test_every_name_is_one_that_prometheus_takes() -> None:
    for family in FAMILIES.values():
        assert (family.kind.value == "counter") == family.name.endswith("_total"), family.name
        assert family.name.startswith(("rocketmq_", "gantrymq_", "process_"))


def test_a_scrape_of_ten_thousand_topics_lets_others_run() -> None:
    """Nobody waits for more than 20 ms while a broker with 10,000 topics is scraped.

    The time is the processor's, so that other programs do not count.
    """
    rig = BrokerRig()
    topics, offsets = rig.broker.tables.topics, rig.broker.tables.offsets
    counts = rig.broker.counting
    for number in range(10_000):
        name = f"topic-{number}"
        topics._table[name] = TopicConfig(name, 1, 1)
        counts.store.put(name, number + 1, 100)
        counts.broker.got(f"group-{number % 2000}", name, 0, 1, 100)
        offsets.commit(f"group-{number % 2000}", name, 0, 0)
    scrapes = RigScrapes(rig)
    longest = 0.0

    class Source:
        async def fill(self, sheet: Sheet, turns: Turns) -> None:
            page = sheet.page("c", "broker", "b")
            for source in (scrapes.topics, scrapes.consumers, scrapes.store):
                await source.fill(page, turns)

    async def main() -> bytes:
        nonlocal longest
        endpoint = Endpoint([Source()], list)
        scrape = asyncio.create_task(endpoint.text())
        while not scrape.done():
            begun = time.thread_time()
            await asyncio.sleep(0)
            longest = max(longest, time.thread_time() - begun)
        return scrape.result()

    gc.collect()
    gc.freeze()  # as a server does when it has started
    try:
        asyncio.run(main())
        second = asyncio.run(main())
    finally:
        gc.unfreeze()
    found = Samples.parse(second)
    assert len(found.rows("rocketmq_messages_in_total")) == 201
    assert found.value("rocketmq_messages_in_total", topic="topic-9999") == 10_000
    assert found.value("gantrymq_metrics_left_out", kind="topics") == 9_800
    lines = sum(map(len, found.values()))
    assert lines < 10_000, "ten thousand topics make no ten thousand series"
    assert longest < 0.02, f"{longest:.3f} s; a slice is {SLICE_S} s"
