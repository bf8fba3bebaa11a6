"""Lines of docs/promises.md about the disk of one broker, each by itself, with a real broker."""

from __future__ import annotations

import asyncio
import errno
import shutil
from contextlib import ExitStack
from typing import TYPE_CHECKING

import pytest

from chaos import disk, shim
from chaos.cluster import SETTINGS, Cluster, Places, Server
from chaos.network import Network
from chaos.workload import patiently
from gantrymq.client.producer import Producer
from gantrymq.client.pull_consumer import PullConsumer
from gantrymq.errors import GantryError

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine, Iterator
    from pathlib import Path

TEST_S_MAX = 60
DISK_MEBIBYTES = 24
FORCED_S_MAX = 1.5
"""The timers of ASYNC_FLUSH have forced the log by then, or tried to."""
BODY_BYTES = 50_000
"""A few of them fill a log file: the next one has to be made."""


@pytest.fixture(params=["async-flush", "sync-flush"])
def cluster(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Cluster]:
    with ExitStack() as stack:
        library = shim.compiled(tmp_path) if shim.compiler() else None
        mebibytes = 0 if disk.problem(tmp_path) else DISK_MEBIBYTES
        places = Places(stack, tmp_path, Network(stack, namespaces=False), library, mebibytes)
        made = Cluster(places, SETTINGS[request.param])
        made.start()
        yield made


def run(cluster: Cluster, story: Callable[[Producer, Server], Coroutine[None, None, None]]) -> None:
    async def main() -> None:
        producer = Producer(
            cluster.name_addresses, group="p", timeout_s=2, retries=0, compression=None
        )
        await patiently(producer.start)
        async with asyncio.timeout(TEST_S_MAX):
            try:
                await patiently(lambda: producer.send("Kept", b"0"))
                await story(producer, cluster.brokers[0])
            finally:
                await producer.close()

    asyncio.run(main())


async def sent(producer: Producer, first: int, count: int) -> list[int]:
    """Send messages with these numbers; return those that were acknowledged."""
    taken = []
    for number in range(first, first + count):
        try:
            result = await producer.send("Kept", f"{number}:".encode().ljust(BODY_BYTES, b"."))
        except GantryError:
            continue
        if result.is_ok:
            taken.append(number)
    return taken


async def kept(cluster: Cluster) -> set[int]:
    """Return the numbers that the broker has."""
    found: set[int] = set()
    async with PullConsumer(cluster.name_addresses, group="g") as reader:
        for queue in await patiently(lambda: reader.queues("Kept")):
            offset, end = await reader.min_offset(queue), await reader.max_offset(queue)
            while offset < end:
                result = await reader.pull(queue, offset)
                found |= {int(one.body.partition(b":")[0]) for one in result.messages}
                offset = result.next_offset
    return found


def test_a_full_disk_refuses_and_goes_on_by_itself(cluster: Cluster) -> None:
    async def story(producer: Producer, broker: Server) -> None:
        taken = await sent(producer, 1, 10)
        assert len(taken) == 10
        if broker.disk is not None:
            broker.disk.fill()
        elif broker.page is not None:
            broker.page.set(write_error=errno.ENOSPC)
        else:
            pytest.skip("a disk cannot be filled here: no root, and no C compiler")
        taken += await sent(producer, 100, 25)
        assert len(taken) < 35, "there is no room for another file"
        if broker.disk is not None:
            broker.disk.make_room()
        elif broker.page is not None:
            broker.page.heal_disk()
        result = await patiently(lambda: producer.send("Kept", b"1000"))
        assert result.is_ok
        assert broker.ends == []
        assert broker.is_alive
        assert await kept(cluster) >= {*taken, 1000}

    run(cluster, story)


def test_a_failing_disk_refuses_until_a_restart(cluster: Cluster) -> None:
    async def story(producer: Producer, broker: Server) -> None:
        if broker.page is None:
            pytest.skip("no C compiler for a disk that fails")
        taken = await sent(producer, 1, 10)
        broker.page.set(sync_error=errno.EIO)
        during = await sent(producer, 100, 20)
        for number in range(200, 300):  # ASYNC_FLUSH finds out by its timers
            await asyncio.sleep(0.1)
            if not (more := await sent(producer, number, 1)):
                break
            during += more
        await asyncio.sleep(FORCED_S_MAX)  # it may have been a new file that was refused first
        broker.page.heal_disk()
        assert await sent(producer, 300, 3) == [], "a failed force is final"
        broker.kill()
        broker.start()
        assert (await patiently(lambda: producer.send("Kept", b"1000"))).is_ok
        assert await kept(cluster) >= {*taken, *during, 1000}
        if cluster.setting.name == "sync-flush":
            assert during == []

    run(cluster, story)


def test_with_its_disk_a_lone_broker_loses_everything(cluster: Cluster) -> None:
    async def story(producer: Producer, broker: Server) -> None:
        assert len(await sent(producer, 1, 10)) == 10
        broker.kill()
        shutil.rmtree(broker.store)
        broker.start()
        assert (await patiently(lambda: producer.send("Kept", b"1000"))).is_ok
        assert await kept(cluster) == {1000}

    run(cluster, story)
