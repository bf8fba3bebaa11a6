"""What is measured, once for each broker: each case starts it, works with it and ends it.

Scale 1 is what the requirements are about. A smaller one shrinks times and amounts alike, so that
everything runs and no figure means anything.
"""

from __future__ import annotations

import os
import shutil
import statistics
import time
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from bench.compare.brokers import OURS, NotMeasured, memory, started
from bench.compare.load import BATCH, QUEUES, Generator
from bench.compare.page_cache import fill_page_cache
from bench.compare.probe import delivery_ms
from bench.compare.rows import SINGLE, TOPICS_RATE, Figures

from gantrymq.model.topic import TopicConfig
from gantrymq.wire.bodies.topic import TOPIC_TABLE, TopicTable
from support.remoting import RemotingClient

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping
    from pathlib import Path

    from bench.compare.load import Load

WARM_UP_S: Final = {OURS: 5.0, "apache": 30.0}
"""A JVM is slow until it has compiled what it runs; a Python process is what it is at once."""
RUN_S: Final = 8.0
RUN_S_MIN: Final = 0.2
IDLE_S: Final = 3.0
PULLED: Final = 2_000_000
DELIVERIES: Final = 1000
MEMORY_MESSAGES: Final = 5_000_000
TOPICS: Final = 10_000
TOPIC_QUEUES: Final = 4
MANY: Final = "Many"
SERVED_SECONDS_MAX: Final = 120
ROUNDS_MAX: Final = 2000
"""Loads in a row until an amount is reached."""


@dataclass(frozen=True)
class Settings:
    """How much, how often, and where."""

    directory: Path
    program: Path
    scale: float
    repetitions: int

    def seconds(self, full: float) -> float:
        """Return how long something takes at this scale."""
        return max(RUN_S_MIN, full * self.scale)

    def amount(self, full: int, least: int) -> int:
        """Return how much of something there is at this scale."""
        return max(least, int(full * self.scale))

    def store(self, root: Path, extra: Mapping[str, str] | None = None) -> dict[str, str]:
        """Return what both brokers are told."""
        properties = {"storePathRootDir": str(root), "timerWheelEnable": "false"}
        if self.scale < 1:
            properties["mappedFileSizeCommitLog"] = str(64 << 20)
            properties["maxHashSlotNum"] = "100000"
            properties["maxIndexNum"] = "400000"
        return properties | dict(extra or {})

    def fill_memory(self) -> None:
        """Leave little memory free, as it is where a broker has run for long."""
        if self.scale == 1:
            fill_page_cache(self.directory)

    @contextmanager
    def folder(self, name: str) -> Iterator[Path]:
        """Give a new directory that is gone afterwards, on a machine that has settled.

        The disk has nothing else to do, and memory is in use, as where a broker has run for long.
        """
        path = self.directory / name
        shutil.rmtree(path, ignore_errors=True)
        path.mkdir(parents=True)
        os.sync()
        self.fill_memory()
        try:
            yield path
        finally:
            shutil.rmtree(path, ignore_errors=True)


def loads(settings: Settings, maker: str) -> Figures:
    """Single sends, latency, batches, pulls and delivery, on one warm broker."""
    with (
        settings.folder("loads") as work,
        started(maker, work, settings.store(work / "store")) as broker,
    ):
        port = broker.process.port
        generator = Generator(settings.program, port)
        run_s = settings.seconds(RUN_S)
        generator.send("Warm", 8, 64, 128, settings.seconds(WARM_UP_S[maker]))
        found = Figures()
        for figure, connections, window, body in (
            (SINGLE, 8, 64, 128), ("sends_8x64_1024", 8, 64, 1024), ("sends_64x1_128", 64, 1, 128),
        ):  # fmt: skip

            def single(
                connections: int = connections, window: int = window, body: int = body
            ) -> Load:
                return generator.send("Single", connections, window, body, run_s)

            found[figure] = _rate(_repeat(settings, found, single))
        runs = _repeat(settings, found, lambda: generator.send("Single", 1, 1, 128, run_s))
        for part in ("p50", "p99", "p999"):
            found[f"latency_{part}"] = statistics.median(getattr(one, f"{part}_us") for one in runs)
        runs = _repeat(
            settings, found, lambda: generator.send("Batch", 8, 8, 128, run_s, batch=BATCH)
        )
        found["batches_32"] = _rate(runs)
        sent = fill(generator, "Pull", settings.amount(PULLED, 20_000), 128, settings)
        _wait_until_served(port, "Pull", sent)
        generator.pull("Pull", BATCH, settings.seconds(60))  # warms it up
        runs = _repeat(settings, found, lambda: generator.pull("Pull", BATCH, settings.seconds(60)))
        found["pull_32"] = _rate(runs)
        return found | _delivery(settings, port)


def _wait_until_served(port: int, topic: str, messages: int) -> None:
    """Wait for consume queues that are built behind the log, as Apache's are.

    Raises:
        NotMeasured: they do not get there.
    """
    deadline = time.monotonic() + SERVED_SECONDS_MAX
    with RemotingClient("127.0.0.1", port) as client:
        while True:
            found = sum(client.max_offset(topic, number) for number in range(QUEUES))
            if found >= messages:
                return
            if time.monotonic() > deadline:
                raise NotMeasured(f"{found} of {messages} messages can be read")
            time.sleep(0.1)


def _delivery(settings: Settings, port: int) -> Figures:
    count = settings.amount(DELIVERIES, 20)
    delivery_ms(port, "Push", settings.amount(DELIVERIES, 20))  # warms it up
    runs = [sorted(delivery_ms(port, "Push", count)) for _ in range(settings.repetitions)]
    return {
        f"delivery_{name}": statistics.median(one[int(part * len(one))] for one in runs)
        for name, part in (("p50", 0.5), ("p99", 0.99))
    }


def sync_flush(settings: Settings, maker: str) -> Figures:
    """Sends that are answered when they are on the disk."""
    with (
        settings.folder("sync") as work,
        started(
            maker, work, settings.store(work / "store", {"flushDiskType": "SYNC_FLUSH"})
        ) as broker,
    ):
        generator = Generator(settings.program, broker.process.port)
        generator.send("Sync", 8, 64, 128, settings.seconds(WARM_UP_S[maker]))
        run_s = settings.seconds(RUN_S)
        runs = [generator.send("Sync", 8, 64, 128, run_s) for _ in range(settings.repetitions)]
        return {
            "sync_flush": statistics.median(one.per_second for one in runs),
            "sync_flush_errors": float(sum(one.errors for one in runs)),
        }


def boot(settings: Settings, maker: str) -> Figures:
    """Start on an empty directory; the first start of all finds its programs and is not counted."""
    times: list[float] = []
    idle: list[float] = []
    for number in range(settings.repetitions + 1):
        with (
            settings.folder("boot") as work,
            started(maker, work, settings.store(work / "store")) as broker,
        ):
            if number:
                times.append(broker.seconds)
                time.sleep(settings.seconds(IDLE_S))
                idle.append(memory(broker.process.pid).resident)
    return {"boot": statistics.median(times), "memory_idle": statistics.median(idle)}


def memory_after(settings: Settings, maker: str) -> Figures:
    """Memory after many messages."""
    with (
        settings.folder("memory") as work,
        started(maker, work, settings.store(work / "store")) as broker,
    ):
        generator = Generator(settings.program, broker.process.port)
        fill(generator, "Memory", settings.amount(MEMORY_MESSAGES, 50_000), 128, settings)
        held = memory(broker.process.pid)
        return {"memory_after": held.private, "memory_after_resident": held.resident}


def topics(settings: Settings, maker: str) -> Figures:
    """Many topics: the rate of single sends that go round them, and a start with all of them."""
    count = settings.amount(TOPICS, 20)
    found = Figures()
    with settings.folder("topics") as work:
        store = settings.store(work / "store")
        _write_topics(work / "store" / "config" / "topics.json", count)
        with started(maker, work, store) as broker:
            generator = Generator(settings.program, broker.process.port)

            def send(seconds: float) -> Load:
                return generator.send(MANY, 8, 64, 128, seconds, topics=count, queues=TOPIC_QUEUES)

            send(settings.seconds(WARM_UP_S[maker]))
            runs = _repeat(
                settings, found, lambda: send(settings.seconds(RUN_S)), refused="topics_refused"
            )
            broker.process.stop()
        boots = []
        for _ in range(settings.repetitions):
            with started(maker, work, store) as again:
                boots.append(again.seconds)
                again.process.stop()
    return found | {TOPICS_RATE: _rate(runs), "topics_boot": statistics.median(boots)}


def _write_topics(path: Path, count: int) -> None:
    """Write the file that a broker with so many topics finds when it starts."""
    names = [f"{MANY}-{number}" for number in range(count)]
    configs = {name: TopicConfig(name, TOPIC_QUEUES, TOPIC_QUEUES) for name in names}
    path.parent.mkdir(parents=True)
    path.write_bytes(TOPIC_TABLE.encode(TopicTable(topic_config_table=configs)))


def _repeat(
    settings: Settings, found: Figures, run: Callable[[], Load], refused: str = "refused"
) -> list[Load]:
    """Run a load several times; what is refused is counted, and does not count as done.

    A host that takes free memory back does so while a load runs, too, so it is filled again.
    """
    settings.fill_memory()
    runs = [run() for _ in range(settings.repetitions)]
    found[refused] = found.get(refused, 0.0) + sum(one.errors for one in runs)
    if not all(one.messages for one in runs):
        codes = sorted({one.first_error for one in runs if one.first_error is not None})
        raise NotMeasured(f"nothing went through: response codes {codes}")
    return runs


def _rate(runs: list[Load]) -> float:
    return statistics.median(one.per_second for one in runs)


def fill(
    generator: Generator, topic: str, messages: int, body_bytes: int, settings: Settings
) -> int:
    """Send batches until there are so many messages; return how many there are."""
    sent = 0
    for _ in range(ROUNDS_MAX):
        sent += generator.send(topic, 8, 8, body_bytes, settings.seconds(0.5), batch=BATCH).messages
        if sent >= messages:
            return sent
    raise NotMeasured(f"{sent} of {messages} messages after {ROUNDS_MAX} rounds")
