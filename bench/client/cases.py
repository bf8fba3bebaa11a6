"""What is measured: producers, consumers, and the memory of a consumer.

A case starts a server, has the clients at it one after the other, and ends it. Scale 1 is what the
requirements are about; a smaller one shrinks times and amounts alike and says only that it runs.
"""

from __future__ import annotations

import shutil
import sys
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final, NamedTuple

from bench.client import peers, servers
from bench.client.plans import NotMeasured, Plan, Sample, consume_rate, send_rate
from bench.client.table import JAVA, OURS, PYTHON, Figure
from bench.compare import brokers
from bench.compare.load import BATCH, Generator

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from contextlib import AbstractContextManager
    from pathlib import Path

    from bench.client.servers import Served

WARM_S: Final = {OURS: 2.0, PYTHON: 2.0, JAVA: 20.0}
"""A JVM is slow until it has compiled what it runs."""
START_S: Final = {OURS: 0.0, PYTHON: 1.0, JAVA: 3.0}
"""The shortest warm-up at any scale: before that there may be no message at all."""
RUN_S: Final = 3.0
"""For each repetition."""
CONSUME_S_MAX: Final = 20.0
BACKLOG: Final = 2_000_000
BACKLOG_GRPC: Final = 200_000
MEMORY_MESSAGES: Final = 10_000_000
MEMORY_S_MAX: Final = 420.0
MEMORY_WARM: Final = 0.1
"""The part of the messages after which memory is looked at."""
FILL_ROUNDS_MAX: Final = 2000
CPP: Final = "C++ (rocketmq 0.4.4)"
GRPC: Final = "gRPC (rocketmq-python-client 5.1.2)"
JAVA_CLIENT: Final = "Java 5.5.0"


class Way(NamedTuple):
    """A client and the way in which it is used."""

    client: str
    family: str
    how: str
    label: str
    run: Callable[[Plan, Path], list[Sample]]
    extra: bool = False


SENDS: Final = (
    Way("gantrymq", OURS, "", "asyncio, 256 in flight", peers.run_ours),
    Way(CPP, PYTHON, "sync:1", "send_sync, 1 thread", peers.run_cpp),
    Way(CPP, PYTHON, "sync:16", "send_sync, 16 threads", peers.run_cpp),
    Way(CPP, PYTHON, "sync:64", "send_sync, 64 threads", peers.run_cpp),
    Way(CPP, PYTHON, "async", "send_async, 256 in flight", peers.run_cpp),
    Way(CPP, PYTHON, "c_async", "its C function, 256 in flight", peers.run_cpp),
    Way(JAVA_CLIENT, JAVA, "1", "sync, 1 thread", peers.run_java),
    Way(JAVA_CLIENT, JAVA, "256", "sync, 256 threads", peers.run_java),
)
GRPC_SENDS: Final = (
    Way(GRPC, PYTHON, "sync:16", "send, 16 threads", peers.run_grpc),
    Way(GRPC, PYTHON, "async", "send_async, 256 in flight", peers.run_grpc),
)
CONSUMES: Final = (
    Way("gantrymq", OURS, "1", "PushConsumer, a handler", peers.run_ours),
    Way("gantrymq", OURS, "32", "PushConsumer, batch=32", peers.run_ours, extra=True),
    Way(CPP, PYTHON, "", "push, its own number of threads", peers.run_cpp),
    Way(CPP, PYTHON, "1", "push, 1 thread", peers.run_cpp),
    Way(JAVA_CLIENT, JAVA, "", "push", peers.run_java),
)
GRPC_CONSUMES: Final = (Way(GRPC, PYTHON, "", "push", peers.run_grpc),)


@dataclass
class Settings:
    """How much, how often, where; and what was found."""

    directory: Path
    program: Path
    """mqload, compiled."""
    scale: float
    repetitions: int
    figures: list[Figure] = field(default_factory=list)

    def seconds(self, full: float) -> float:
        """Return how long something takes at this scale."""
        return max(0.5, full * self.scale)

    def amount(self, full: int, least: int) -> int:
        """Return how much of something there is at this scale."""
        return max(least, int(full * self.scale))

    @contextmanager
    def folder(self, name: str) -> Iterator[Path]:
        """Give a new directory that is gone afterwards."""
        path = self.directory / name
        shutil.rmtree(path, ignore_errors=True)
        path.mkdir(parents=True)
        try:
            yield path
        finally:
            shutil.rmtree(path, ignore_errors=True)

    def note(self, case: str, way: Way, measure: Callable[[], float]) -> None:
        """Measure and keep the figure; a peer that cannot be measured is left out.

        Raises:
            NotMeasured: ours cannot be measured.
        """
        name = f"{way.client}: {way.label}"
        print(f"bench.client: {case}, {name}", file=sys.stderr, flush=True)
        try:
            rate, why = measure(), ""
        except NotMeasured as error:
            if way.family == OURS:
                raise NotMeasured(f"{case}, {name}: {error}") from None
            rate, why = None, str(error)
            print(f"bench.client: {name}: left out: {error}", file=sys.stderr)
        self.figures.append(Figure(case, name, way.family, rate, why, way.extra))


def producer(settings: Settings, *, with_peers: bool) -> None:
    """Sends of 128 bytes that are acknowledged."""
    _producers(settings, servers.ours, SENDS if with_peers else SENDS[:1])
    if with_peers:
        _with_proxy(settings, "producer", GRPC_SENDS, _producers)


def consumer(settings: Settings, *, with_peers: bool) -> None:
    """A backlog of messages of 128 bytes, each handed to a handler that does nothing."""
    ways = CONSUMES if with_peers else CONSUMES[:2]
    _consumers(settings, servers.ours, ways)
    if with_peers:
        _with_proxy(settings, "consumer", GRPC_CONSUMES, _consumers)


def _with_proxy(
    settings: Settings,
    case: str,
    ways: tuple[Way, ...],
    measure: Callable[
        [Settings, Callable[[Path], AbstractContextManager[Served]], tuple[Way, ...]], None
    ],
) -> None:
    """Measure clients that need the proxy; without one all of them are left out."""
    before = len(settings.figures)
    try:
        measure(settings, servers.proxy, ways)
    except NotMeasured as error:
        del settings.figures[before:]
        for way in ways:
            name = f"{way.client}: {way.label}"
            settings.figures.append(Figure(case, name, way.family, None, str(error)))
        print(f"bench.client: {case}: the proxy is left out: {error}", file=sys.stderr)


def _producers(
    settings: Settings,
    server: Callable[[Path], AbstractContextManager[Served]],
    ways: tuple[Way, ...],
) -> None:
    with settings.folder("producer") as work, server(work / "server") as served:
        for number, way in enumerate(ways):
            topic = f"Send{number}"
            served.create_topic(topic)
            warm_s = max(START_S[way.family], settings.seconds(WARM_S[way.family]))
            run_s = settings.seconds(RUN_S * settings.repetitions)
            plan = Plan(
                mode="send",
                address=served.address,
                topic=topic,
                how=way.how,
                seconds=warm_s + run_s,
            )

            def measure(way: Way = way, plan: Plan = plan, warm_s: float = warm_s) -> float:
                samples = way.run(plan, work / "client")
                return send_rate(samples, warm_s, settings.repetitions)

            settings.note("producer", way, measure)


def _consumers(
    settings: Settings,
    server: Callable[[Path], AbstractContextManager[Served]],
    ways: tuple[Way, ...],
) -> None:
    wanted = BACKLOG_GRPC if ways is GRPC_CONSUMES else BACKLOG
    with settings.folder("consumer") as work, server(work / "server") as served:
        messages = _fill(settings, served, "Backlog", settings.amount(wanted, 20_000))
        for number, way in enumerate(ways):
            group = f"bench_group_{number}"
            served.begin_at_first(group, "Backlog")
            plan = Plan(
                mode="consume",
                address=served.address,
                topic="Backlog",
                how=way.how,
                group=group,
                messages=messages,
                seconds=max(10.0, settings.seconds(CONSUME_S_MAX)),
            )

            def measure(way: Way = way, plan: Plan = plan) -> float:
                return consume_rate(way.run(plan, work / "client"))

            settings.note("consumer", way, measure)


def _fill(settings: Settings, served: Served, topic: str, messages: int) -> int:
    """Send batches until there are so many messages; return how many there are."""
    served.create_topic(topic)
    generator = Generator(settings.program, served.port)
    sent = 0
    try:
        for _ in range(FILL_ROUNDS_MAX):
            sent += generator.send(topic, 8, 8, 128, 0.25, batch=BATCH).messages
            if sent >= messages:
                served.wait_until_served(topic, sent)
                return sent
    except brokers.NotMeasured as error:
        raise NotMeasured(str(error)) from None
    raise NotMeasured(f"{sent} of {messages} messages after {FILL_ROUNDS_MAX} rounds")


def memory(settings: Settings) -> float:
    """Return by how many MiB a consumer's private memory grew after its first tenth."""
    print("bench.client: memory", file=sys.stderr, flush=True)
    with settings.folder("memory") as work, servers.ours(work / "server") as served:
        messages = _fill(settings, served, "Memory", settings.amount(MEMORY_MESSAGES, 100_000))
        plan = Plan(
            mode="consume",
            address=served.address,
            topic="Memory",
            how="1",
            group="bench_memory",
            messages=messages,
            seconds=max(20.0, settings.seconds(MEMORY_S_MAX)),
        )
        samples = peers.run_ours(plan, work / "client")
    done = samples[-1].messages
    if done < messages:
        raise NotMeasured(f"{done} of {messages} messages were consumed in {plan.seconds:g} s")
    warm = [one.private_kib for one in samples if one.messages >= done * MEMORY_WARM]
    part = max(1, len(warm) // 10)
    # The highest of the first and of the last tenth of the time: what is held comes and goes.
    first, last = max(warm[:part]) / 1024, max(warm[-part:]) / 1024
    if not first:
        raise NotMeasured("this system does not say what is private memory: RssAnon is Linux's")
    print(
        f"bench.client: memory: {first:.1f} MiB after the warm-up, {last:.1f} MiB after {done:,}",
        file=sys.stderr,
    )
    return last - first
