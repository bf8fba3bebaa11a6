"""Connections that are cut at any byte, fall silent, or are slow: clients go on, nothing is lost.

The bytes at which they are cut are drawn from a seed, in both directions, over the whole stream of
a client that produces, of one that consumes, and of what both ask the name server.
Short here; GANTRYMQ_LONG_FAULTS=1 makes it minutes.
"""

from __future__ import annotations

import random
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING

import pytest

from support.consuming import until
from support.fault_world import ELSEWHERE, IS_LONG, Program, Traffic, broker, name_server, run
from support.faulty_proxy import Proxy

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Iterator

CUTS = 500 if IS_LONG else 60
SEEDS = range(6 if IS_LONG else 2)
REACHES = (40, 400, 4_000, 40_000)
"""Ends lie below one of these: within a frame's head, its first fields, some frames, many."""


class Servers:
    """A name server and a broker, each behind a proxy once `open` was entered."""

    def __init__(self, names: Program, served: Program) -> None:
        self._names, self._served = names, served
        self.to_names = Proxy(names.address)
        self.to_broker = Proxy(served.address, f"{ELSEWHERE}:{served.port}")

    @asynccontextmanager
    async def open(self) -> AsyncIterator[None]:
        """Run the proxies; the test's own event loop does."""
        self.to_names = Proxy(self._names.address)
        self.to_broker = Proxy(self._served.address, f"{ELSEWHERE}:{self._served.port}")
        await self.to_names.start()
        await self.to_broker.start()
        try:
            yield
        finally:
            await self.to_names.close()
            await self.to_broker.close()


@pytest.fixture(scope="module")
def servers(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Servers]:
    """Return servers that all tests here share."""
    work = tmp_path_factory.mktemp("faults")
    names = name_server(work)
    served = broker(work, names, address=ELSEWHERE)
    try:
        names.start()
        served.start()
        yield Servers(names, served)
    finally:
        served.kill()
        names.kill()


@pytest.mark.parametrize("seed", SEEDS)
def test_connections_cut_at_any_byte(servers: Servers, seed: int) -> None:
    chance = random.Random(seed)
    topic = f"Cut{seed}"

    async def main() -> Traffic:
        async with servers.open():
            proxies = (servers.to_broker, servers.to_names)
            traffic = Traffic(servers.to_names.address, topic, f"cut_group_{seed}")

            def end() -> tuple[str, int]:
                return chance.choice(("up", "down")), chance.randrange(chance.choice(REACHES))

            def cuts() -> int:
                return sum(proxy.cuts.total() for proxy in proxies)

            async with traffic.flowing():
                for proxy in proxies:
                    proxy.cut_after = end
                    proxy.cut_all()
                await until(lambda: cuts() >= CUTS, 60 + CUTS)
                for proxy in proxies:
                    proxy.cut_after = lambda: None
                    proxy.cut_all()
                await traffic.resumes()
            assert min(servers.to_broker.cuts["up"], servers.to_broker.cuts["down"]) > CUTS / 10
            return traffic

    run(main()).check()


def test_connections_that_fall_silent(servers: Servers) -> None:
    async def main() -> Traffic:
        async with servers.open():
            traffic = Traffic(servers.to_names.address, "Silent", "silent_group")
            async with traffic.flowing():
                before = servers.to_broker.accepted
                servers.to_names.go_silent()
                servers.to_broker.go_silent()
                await traffic.resumes(45)
                assert servers.to_broker.accepted > before
            return traffic

    run(main()).check()


@pytest.mark.parametrize("delay_s", [0.4, 2.5])
def test_a_broker_that_answers_late(servers: Servers, delay_s: float) -> None:
    """Within the time limit of a send, two seconds, and beyond it."""
    late_for_sends = delay_s > 2

    async def main() -> Traffic:
        async with servers.open():
            topic = f"Late{int(delay_s * 10)}"
            traffic = Traffic(servers.to_names.address, topic, f"{topic}_group")
            async with traffic.flowing():
                servers.to_broker.delay_s = delay_s
                if late_for_sends:
                    await until(lambda: traffic.failed.total() > 8)
                else:
                    await traffic.resumes()
                    assert not traffic.failed
                servers.to_broker.delay_s = 0.0
                await traffic.resumes()
            return traffic

    run(main()).check()
