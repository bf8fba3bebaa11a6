"""Groups with automatic failover, on a real etcd and real sockets."""

from __future__ import annotations

import asyncio
import socket
from typing import TYPE_CHECKING

import pytest

from gantrymq.metrics.health import broker_checks
from gantrymq.metrics.of_cluster import fill_cluster
from gantrymq.metrics.sheet import Sheet
from gantrymq.model.group import SubscriptionGroup
from gantrymq.model.topic import TopicConfig
from gantrymq.node.observed import broker_parts
from support.failover_nodes import Group, drop, run
from support.transport import until

if TYPE_CHECKING:
    from pathlib import Path


pytestmark = pytest.mark.tool("etcd")

SUCCESS, SLAVE_NOT_AVAILABLE, NOT_AVAILABLE = 0, 11, 14


def test_a_slave_takes_over_and_the_old_master_follows(tmp_path: Path, etcd_at: str) -> None:
    async def main() -> None:
        group = await Group(tmp_path, etcd_at).start(1, 2)
        first = group.nodes[1]
        assert group.masters() == [first]
        for number in range(20):
            assert await group.send(first, b"%d" % number) == SUCCESS
        assert await group.send(group.nodes[2], b"refused") == NOT_AVAILABLE
        end = first.inner.broker.store.log.wrote_offset
        await drop(group.nodes.pop(1))
        await until(group.masters)
        second = group.nodes[2]
        assert second.inner.broker.store.log.wrote_offset == end
        assert await group.send(second, b"alone") == SLAVE_NOT_AVAILABLE
        assert second.inner.broker.store.reads.max_offset("T", 0) == 21
        await group.join(1)
        await group.settled(1, 2)
        assert group.masters() == [second]
        assert await group.send(second, b"both") == SUCCESS
        await group.stop()

    run(main())


def test_metrics_and_health_know_of_etcd(tmp_path: Path, etcd_at: str) -> None:
    async def main() -> None:
        group = await Group(tmp_path, etcd_at).start(1, 2)
        master, slave = group.nodes[1], group.nodes[2]
        for node in (master, slave):
            await node.inner.wait_registered()
            parts = broker_parts(node)
            assert parts is not None
            assert [check.name for check in broker_checks(parts) if not check.ok] == []
            sheet = Sheet()
            fill_cluster(sheet.page("c", "broker", "b"), parts)
            told = {name: row.value for name, _, (row, *_) in sheet.families() if row[1:]}  # type: ignore[union-attr]
            assert told["gantrymq_etcd_reachable"] == told["gantrymq_etcd_lease_held"] == 1
            assert told["gantrymq_failover_epoch"] == 1
            assert told["gantrymq_is_master"] == (node is master)
            assert told.get("gantrymq_in_sync_members") == (2 if node is master else None)
        master.failover.trouble = "it does not answer"
        master.failover._valid_until = float("-inf")
        (wrong,) = [check for check in broker_checks(broker_parts(master)) if check.name == "etcd"]
        assert (wrong.ok, wrong.detail) == (False, "it does not answer")
        await group.stop()
        assert broker_parts(master) is None

    run(main())


def test_a_promoted_slave_knows_what_the_log_says(tmp_path: Path, etcd_at: str) -> None:
    async def main() -> None:
        group = await Group(tmp_path, etcd_at).start(1, 2)
        first, second = group.nodes[1], group.nodes[2]
        assert second.inner.replication.metadata is not None
        await second.inner.replication.metadata.stop()  # the log is all that it gets
        before = first.inner.broker.tables
        for number in range(20):
            assert await group.send(first, b"%d" % number) == SUCCESS
        before.topics.put(TopicConfig("Wide", 12, 12))
        before.groups.put(SubscriptionGroup("readers", retry_times_max=3))
        before.offsets.commit("readers", "T", 0, 17)
        before.topics.put(TopicConfig("Short-lived", 1, 1))
        before.topics.remove("Short-lived")
        await until(lambda: second.inner.broker.tables.offsets.find("readers", "T", 0) == 17)
        await drop(group.nodes.pop(1))
        await until(group.masters)
        after = second.inner.broker.tables
        assert after.topics.find("Wide") == TopicConfig("Wide", 12, 12)
        assert after.topics.find("Short-lived") is None
        assert after.groups.find("readers") == before.groups.find("readers")
        # The new master keeps the journal now; who comes back learns from it.
        after.offsets.commit("readers", "T", 0, 19)
        again = await group.join(1)
        await group.settled(1, 2)
        await until(lambda: again.inner.broker.tables.offsets.find("readers", "T", 0) == 19)
        await group.stop()

    run(main())


def test_what_was_never_acknowledged_is_dropped(tmp_path: Path, etcd_at: str) -> None:
    async def main() -> None:
        group = await Group(tmp_path, etcd_at, slaveTimeout="200").start(1, 2)
        first, second = group.nodes[1], group.nodes[2]
        assert await group.send(first, b"kept") == SUCCESS
        await until(lambda: second.inner.broker.store.dispatched_offset > 0)
        # The slave hears no more: what the master takes now is on its disk alone.
        second.inner.replication.stop_following()
        second.failover._host.follow = _nothing  # type: ignore[method-assign,assignment]
        assert await group.send(first, b"lost") != SUCCESS
        await drop(group.nodes.pop(1))
        await until(group.masters)
        assert await group.send(second, b"new") == SLAVE_NOT_AVAILABLE
        again = await group.join(1)
        await group.settled(1, 2)
        store = again.inner.broker.store
        await until(lambda: store.log.wrote_offset == second.inner.broker.store.log.wrote_offset)
        bodies = [bytes(one) for one in store.get("T", 0, 0, 10).records]
        assert [b"kept" in bodies[0], b"new" in bodies[1], len(bodies)] == [True, True, 2]
        await group.stop()

    run(main())


async def _nothing(*_: object) -> None:
    """Do not follow."""


def test_a_stop_hands_over_at_once(tmp_path: Path, etcd_at: str) -> None:
    async def main() -> None:
        group = await Group(tmp_path, etcd_at, failoverLeaseSeconds="10").start(1, 2)
        assert await group.send(group.nodes[1], b"x") == SUCCESS
        loop = asyncio.get_running_loop()
        begun = loop.time()
        await group.nodes.pop(1).stop()
        await until(group.masters)
        assert loop.time() - begun < 5, "nobody waits for a lease of 10 s"
        await group.stop()

    run(main())


def test_a_master_without_its_lease_takes_nothing(tmp_path: Path, etcd_at: str) -> None:
    async def main() -> None:
        group = await Group(tmp_path, etcd_at).start(1)
        first = group.nodes[1]
        assert await group.send(first, b"x") == SLAVE_NOT_AVAILABLE
        first.failover._tasks[0].cancel()  # it renews no more
        await until(lambda: not first.failover.may_reign())
        assert await group.send(first, b"x") == NOT_AVAILABLE
        await group.stop()

    run(main())


def test_a_member_whose_port_is_taken_says_so_and_can_be_stopped(
    tmp_path: Path, etcd_at: str
) -> None:
    async def main() -> None:
        group = Group(tmp_path, etcd_at)
        await group.names.start()
        with socket.create_server(("127.0.0.1", 0)) as taken:
            port = str(taken.getsockname()[1])
            with pytest.raises(OSError, match="cannot listen on"):
                await group.join(1, listenPort=port)
            assert await group.nodes[1].stop()
        await group.stop()

    run(main())
