"""Masters and slaves on real sockets: copies, statuses, tables, and what is not believed."""

from __future__ import annotations

import asyncio
import os
from typing import TYPE_CHECKING, Any

import pytest

from gantrymq.client.producer import Producer
from gantrymq.client.push_consumer import PushConsumer
from gantrymq.model.group import SubscriptionGroup
from gantrymq.model.topic import TopicConfig
from gantrymq.wire.bodies.replication import HA_STATUS
from support.broker_rig import pull
from support.nodes import ask, broker_node, name_server
from support.samples import json_request, send_fields
from support.transport import RawClient, until

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from gantrymq.client.received import ReceivedMessage
    from gantrymq.node.broker_node import BrokerNode
    from gantrymq.node.namesrv_node import NamesrvNode
    from support.transport import Run

SUCCESS, SLAVE_NOT_AVAILABLE, FLUSH_SLAVE_TIMEOUT = 0, 11, 12
HA_STATUS_CODE, ROUTE_CODE = 907, 105


class Group:
    """A name server, a master and slaves."""

    def __init__(self, folder: Path, **settings: str) -> None:
        self.folder = folder
        self.settings = settings
        self.names: NamesrvNode = name_server(folder / "names")
        self.slaves: list[BrokerNode] = []
        self.master: BrokerNode

    @property
    def names_at(self) -> str:
        return f"127.0.0.1:{self.names.port}"

    async def start(self, slaves: int = 1) -> Group:
        await self.names.start()
        self.master = broker_node(self.folder / "master", self.names_at, **self.settings)
        await self.master.start()
        await self.master.wait_registered()
        for number in range(1, slaves + 1):
            await self.add_slave(number)
        return self

    async def add_slave(self, number: int, **settings: str) -> BrokerNode:
        slave = broker_node(
            self.folder / f"slave{number}",
            self.names_at,
            **self.settings | {"brokerRole": "SLAVE", "brokerId": str(number)} | settings,
        )
        await slave.start()
        self.slaves.append(slave)
        await until(lambda: len(list(self.master.replication.group.links)) >= len(self.slaves))
        return slave

    async def send(self, body: bytes = b"x", topic: str = "T") -> int:
        request = json_request(310, send_fields(b=topic, e="0", i=""), body)
        client = await RawClient.connect(f"127.0.0.1:{self.master.port}")
        try:
            await client.send(request)
            (answer,) = await client.receive(1)
            return answer.code
        finally:
            client.close()

    def end(self, node: BrokerNode) -> int:
        return node.broker.store.log.wrote_offset

    async def level(self) -> None:
        await until(lambda: {self.end(one) for one in self.slaves} == {self.end(self.master)})

    async def stop(self) -> None:
        for node in (*self.slaves, self.master):
            await node.stop()
        await self.names.stop()


def log_bytes(node: BrokerNode, start: int) -> bytes:
    log = node.broker.store.log
    return b"".join(
        bytes(file.read(begin, stop - begin) or b"")
        for file, begin, stop in log.spans(start, log.wrote_offset)
    )


@pytest.mark.parametrize("flush", ["ASYNC_FLUSH", "SYNC_FLUSH"])
def test_slaves_have_the_log_and_serve_it(run: Run, tmp_path: Path, flush: str) -> None:
    async def main() -> None:
        group = await Group(tmp_path, brokerRole="SYNC_MASTER", flushDiskType=flush).start(2)
        for number in range(20):
            assert await group.send(b"%d" % number * 40_000) == SUCCESS  # over the end of a file
        await group.level()
        for slave in group.slaves:
            assert log_bytes(slave, 0) == log_bytes(group.master, 0)
        client = await RawClient.connect(f"127.0.0.1:{group.slaves[0].port}")
        metadata = group.slaves[0].replication.metadata
        assert metadata is not None
        assert await metadata.copy(group.master.address)
        await client.send(pull(0, topic="T", maxMsgNums="32"))
        (found,) = await client.receive(1)
        assert found.code in {SUCCESS, 20}
        refused = json_request(310, send_fields(b="T", e="0", i=""), b"x")
        await client.send(refused)
        (answer,) = await client.receive(1)
        assert answer.code == 14, answer.remark
        client.close()
        await group.stop()

    run(main())


def test_a_sync_master_says_what_is_missing(run: Run, tmp_path: Path) -> None:
    async def main() -> None:
        group = await Group(tmp_path, brokerRole="SYNC_MASTER", slaveTimeout="200").start(0)
        assert await group.send() == SLAVE_NOT_AVAILABLE
        slave = await group.add_slave(1)
        assert await group.send() == SUCCESS
        # A slave that does not read any more, as a stopped process does.
        connection = slave.replication.client._connection  # type: ignore[union-attr]
        assert connection is not None
        assert connection._transport is not None
        connection._transport.pause_reading()
        assert await group.send() == FLUSH_SLAVE_TIMEOUT
        connection._transport.resume_reading()
        await group.level()
        assert await group.send() == SUCCESS
        await slave.stop()
        await until(lambda: not list(group.master.replication.group.links))
        assert await group.send() == SLAVE_NOT_AVAILABLE
        group.slaves.clear()
        await group.stop()

    run(main())


def test_one_of_two_slaves_is_enough(run: Run, tmp_path: Path) -> None:
    async def main() -> None:
        group = await Group(tmp_path, brokerRole="SYNC_MASTER").start(2)
        await group.slaves.pop().stop()
        for _ in range(5):
            assert await group.send() == SUCCESS
        await group.stop()

    run(main())


def test_random_bytes_at_the_replication_port_release_nothing(run: Run, tmp_path: Path) -> None:
    async def main() -> None:
        group = await Group(tmp_path, brokerRole="SYNC_MASTER", slaveTimeout="300").start(0)
        await group.send()
        end = group.end(group.master)
        # It knows the right offset, and even reports what it never got.
        reader, writer = await asyncio.open_connection("127.0.0.1", group.master.port + 1)
        writer.write(end.to_bytes(8))
        await reader.readexactly(12)
        sending = asyncio.create_task(group.send())
        await until(lambda: group.end(group.master) > end)
        for _ in range(50):
            writer.write(os.urandom(8))
        assert await sending == FLUSH_SLAVE_TIMEOUT
        writer.close()
        for _ in range(20):
            reader, writer = await asyncio.open_connection("127.0.0.1", group.master.port + 1)
            writer.write(os.urandom(64))
            await writer.drain()
            writer.close()
        assert await group.send() in {SLAVE_NOT_AVAILABLE, FLUSH_SLAVE_TIMEOUT}
        await group.stop()

    run(main())


def test_a_slave_goes_on_where_it_stopped(run: Run, tmp_path: Path) -> None:
    async def main() -> None:
        group = await Group(tmp_path).start(1)
        await group.send(b"before")
        await group.level()
        await group.slaves.pop().stop()
        for _ in range(10):
            await group.send(bytes(150_000))
        await group.add_slave(1)
        await group.level()
        assert log_bytes(group.slaves[0], 0) == log_bytes(group.master, 0)
        await group.stop()

    run(main())


def test_an_empty_slave_begins_with_the_last_file(run: Run, tmp_path: Path) -> None:
    async def main() -> None:
        group = await Group(tmp_path).start(0)
        for _ in range(10):
            await group.send(bytes(150_000))
        slave = await group.add_slave(1)
        await group.level()
        begin = slave.broker.store.log.min_offset
        assert begin == 1 << 20
        assert log_bytes(slave, begin) == log_bytes(group.master, begin)
        await group.stop()

    run(main())


def test_a_slave_that_is_ahead_of_its_master_stops(run: Run, tmp_path: Path) -> None:
    async def main() -> None:
        group = await Group(tmp_path, haSendHeartbeatInterval="100").start(1)
        for number in range(5):
            await group.send(b"%d" % number)
        await group.level()
        slave = group.slaves.pop()
        await slave.stop()
        await group.master.stop()
        # The master has lost its disk and begins anew, with other messages.
        group.master = broker_node(
            tmp_path / "other", group.names_at, haSendHeartbeatInterval="100"
        )
        await group.master.start()
        await group.master.wait_registered()
        await group.send(b"other")
        before = group.end(slave)
        again = broker_node(
            tmp_path / "slave1", group.names_at, brokerRole="SLAVE", brokerId="1",
            haSendHeartbeatInterval="100",
        )  # fmt: skip
        await again.start()
        await until(lambda: "histor" in (again.replication.client.trouble or ""))  # type: ignore[union-attr]
        assert group.end(again) == before, "nothing is thrown away, nothing is taken"
        group.slaves.append(again)
        await group.stop()

    run(main())


def test_tables_come_from_the_master(run: Run, tmp_path: Path) -> None:
    async def main() -> None:
        group = await Group(tmp_path).start(0)
        tables = group.master.broker.tables
        tables.topics.put(TopicConfig("Made", 3, 5))
        tables.groups.put(SubscriptionGroup("readers", retry_times_max=3))
        tables.offsets.commit("readers", "Made", 2, 77)
        tables.delays.set(4, 12)
        slave = await group.add_slave(1)
        copied: Any = slave.broker.tables
        await until(lambda: slave.replication.metadata.rounds > 0)  # type: ignore[union-attr]
        assert copied.topics.find("Made") == tables.topics.find("Made")
        assert copied.groups.find("readers") == tables.groups.find("readers")
        assert copied.offsets.find("readers", "Made", 2) == 77
        assert copied.delays.find(4) == 12
        await group.stop()

    run(main())


def test_replication_can_be_looked_at(run: Run, tmp_path: Path) -> None:
    async def main() -> None:
        group = await Group(tmp_path).start(1)
        await group.send()
        await group.level()
        end = group.end(group.master)

        def seen(status: Any) -> bool:  # noqa: ANN401
            return bool(status.ha_connection_info) and (
                status.ha_connection_info[0].slave_ack_offset == end
            )

        master = HA_STATUS.decode((await ask(group.master.port, HA_STATUS_CODE, {})).body)
        assert (master.master, master.master_commit_log_max_offset) == (True, end)
        assert seen(master)
        slave = HA_STATUS.decode((await ask(group.slaves[0].port, HA_STATUS_CODE, {})).body)
        assert not slave.master
        assert slave.ha_client_runtime_info is not None
        assert slave.ha_client_runtime_info.max_offset == end
        await group.stop()

    run(main())


def test_an_asynchronous_master_waits_for_nobody_and_shows_how_far_slaves_are(
    run: Run, tmp_path: Path
) -> None:
    async def main() -> None:
        group = await Group(tmp_path, brokerRole="ASYNC_MASTER").start(0)
        reader, writer = await asyncio.open_connection("127.0.0.1", group.master.port + 1)
        writer.write((0).to_bytes(8))  # a slave that takes everything and reports nothing
        await until(lambda: any(one.has_begun for one in group.master.replication.group.links))
        for _ in range(5):
            assert await group.send(b"x" * 1000) == SUCCESS
        answer = await ask(group.master.port, HA_STATUS_CODE, {})
        (slave,) = HA_STATUS.decode(answer.body).ha_connection_info
        assert slave.diff == group.end(group.master) > 5000
        assert (await reader.read(12))[:8] == (0).to_bytes(8)
        writer.close()
        await group.add_slave(1)
        await group.level()
        await group.stop()

    run(main())


def test_a_busy_master_sends_readers_to_its_slave(run: Run, tmp_path: Path) -> None:
    async def main() -> None:
        group = await Group(
            tmp_path, brokerRole="SYNC_MASTER", slaveReadEnable="true",
            # Nothing counts as being in memory: whatever is read is a backlog.
            accessMessageInMemoryMaxRatio="0",
        ).start(1)  # fmt: skip
        (slave,) = group.slaves
        served: dict[str, int] = {"master": 0, "slave": 0}
        for name, node in (("master", group.master), ("slave", slave)):
            node.broker.counting.pulled = _counting(served, name)  # type: ignore[method-assign]
        for number in range(500):
            assert await group.send(b"%d" % number) == SUCCESS
        await group.level()
        await until(lambda: slave.broker.tables.topics.find("T") is not None)
        client = await RawClient.connect(f"127.0.0.1:{group.master.port}")
        await client.send(pull(0, maxMsgNums="8"))
        (found,) = await client.receive(1)
        assert found.fields["suggestWhichBrokerId"] == "1"
        client.close()
        got: set[bytes] = set()

        async def take(message: ReceivedMessage) -> None:
            got.add(message.body)

        served["master"] = 0
        consumer = PushConsumer(group.names_at, group="readers", start="first", pull_batch=8)
        consumer.subscribe("T", handler=take)
        async with consumer:
            await until(lambda: len(got) == 500)
        assert served["slave"] > served["master"] > 0, served
        await group.stop()

    run(main())


def _counting(served: dict[str, int], name: str) -> Callable[..., None]:
    def pulled(_g: str, _t: str, _queue: int, messages: int, *_more: float) -> None:
        served[name] += messages

    return pulled


def test_sends_are_spread_over_all_queues_of_all_masters(run: Run, tmp_path: Path) -> None:
    async def main() -> None:
        names = name_server(tmp_path / "names")
        await names.start()
        at = f"127.0.0.1:{names.port}"
        masters = [broker_node(tmp_path / name, at, brokerName=name) for name in ("a", "b")]
        for master in masters:
            await master.start()
            master.broker.tables.topics.put(TopicConfig("Spread", 8, 8))
            await master.wait_registered()
        route = b""
        while not (b'"a"' in route and b'"b"' in route):
            route = (await ask(names.port, ROUTE_CODE, {"topic": "Spread"})).body
        async with Producer(at, group="p") as producer:
            for _ in range(100):
                await asyncio.gather(*(producer.send("Spread", b"x") for _ in range(100)))
        counts = [
            master.broker.store.reads.max_offset("Spread", queue)
            for master in masters
            for queue in range(8)
        ]
        assert sum(counts) == 10_000
        assert {count - 625 for count in counts} <= {-1, 0, 1}, counts
        for master in masters:
            await master.stop()
        await names.stop()

    run(main())
