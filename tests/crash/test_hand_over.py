"""Brokers that are drained or told to stop while producers send: no send fails."""

from __future__ import annotations

import asyncio
import subprocess
import sys
from contextlib import ExitStack, suppress
from typing import TYPE_CHECKING

import pytest

from gantrymq.client.producer import Producer
from gantrymq.client.settings import ClientSettings
from gantrymq.errors import GantryError
from support.failover_group import SEND, Broker, Group, header, start_name_server
from support.master_death import make_topic
from support.transport import until

if TYPE_CHECKING:
    from pathlib import Path

TEST_S_MAX = 80
OK = frozenset({0})
NOT_AVAILABLE = 14


def a_producer(names: str) -> Producer:
    """Return one that looks for new routes more often than every 30 s, so that tests are quick."""
    settings = ClientSettings(name_servers=(names,), route_s=1.0)
    return Producer(names, group="p", timeout_s=5, retries=5, settings=settings)


class Load:
    """A producer that sends without a pause, and a client that knows one address and no other."""

    def __init__(self, producer: Producer) -> None:
        self.producer = producer
        self.sent = 0
        self.failed: list[str] = []
        self._task = asyncio.create_task(self._send())

    async def _send(self) -> None:
        while True:
            try:
                await self.producer.send("Kept", b"%d" % self.sent)
                self.sent += 1
            except GantryError as error:
                self.failed.append(str(error))
            await asyncio.sleep(0.002)

    async def more(self, count: int = 50) -> None:
        """Wait until so many more were sent."""
        begun = self.sent
        await until(lambda: self.sent >= begun + count)

    async def stop(self) -> None:
        self._task.cancel()
        with suppress(asyncio.CancelledError):
            await self._task


async def command(*arguments: str) -> subprocess.CompletedProcess[str]:
    return await asyncio.to_thread(
        subprocess.run,
        [sys.executable, "-m", "gantrymq", "broker", *arguments],
        capture_output=True, text=True, timeout=60, check=False,
    )  # fmt: skip


async def until_sends_are_safe(producer: Producer) -> None:
    is_safe = False
    while not is_safe:
        await asyncio.sleep(0.1)
        with suppress(GantryError):
            is_safe = (await producer.send("Kept", b"ready?")).is_ok


@pytest.mark.tool("etcd")
def test_a_group_hands_over_without_a_failed_send(tmp_path: Path) -> None:
    async def main(group: Group) -> None:
        first = await asyncio.to_thread(group.master, OK)
        (second,) = (one for one in group.brokers if one is not first)
        async with a_producer(group.names) as producer:
            await until_sends_are_safe(producer)
            load = Load(producer)
            await load.more()
            with first.client() as stale:
                drained = await command("drain", first.address)
                assert drained.returncode == 0, drained.stderr
                assert "may be stopped" in drained.stdout
                await load.more()
                # Whoever knows the old address alone is served all the same.
                assert (await asyncio.to_thread(stale.ask, SEND, header(0), b"stale")).code == 0
            assert (await command("undrain", first.address)).returncode == 0
            for _ in range(100):
                if await asyncio.to_thread(first.takes) == NOT_AVAILABLE:
                    break
                await asyncio.sleep(0.05)
            assert await asyncio.to_thread(second.takes) == 0
            second.terminate()
            assert await asyncio.to_thread(second.wait) == 0
            await load.more()
            assert await asyncio.to_thread(first.takes) in {0, 11}
            await load.stop()
            assert load.failed == []

    with Group(tmp_path) as group:
        asyncio.run(asyncio.wait_for(main(group), TEST_S_MAX))


def test_one_of_two_masters_is_drained_and_stopped_without_a_failed_send(tmp_path: Path) -> None:
    async def main(names: str, brokers: list[Broker]) -> None:
        async with a_producer(names) as producer:
            await asyncio.to_thread(make_topic, brokers)
            await until_sends_are_safe(producer)
            load = Load(producer)
            await load.more()
            drained = await command("drain", brokers[0].address)
            assert drained.returncode == 0, drained.stderr
            sent = await producer.send("Kept", b"where?")
            assert sent.queue.broker_name == "b"
            brokers[0].terminate()
            await load.more()
            alone = await command("drain", brokers[1].address)
            assert (alone.returncode, "no other broker" in alone.stderr) == (1, True)
            await load.stop()
            assert load.failed == []
            assert await asyncio.to_thread(brokers[0].wait) == 0

    with ExitStack() as stack:
        names = start_name_server(stack, tmp_path)
        brokers = []
        for name in ("a", "b"):
            brokers.append(Broker(tmp_path, name, {"namesrvAddr": names, "brokerName": name}))
            stack.callback(brokers[-1].stop)
        asyncio.run(asyncio.wait_for(main(names, brokers), TEST_S_MAX))
