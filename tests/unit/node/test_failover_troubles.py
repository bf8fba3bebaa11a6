"""Members of a group that come late, fail, or are behind: nothing is lost, and somebody serves."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from gantrymq.model.message import OffsetId
from support.failover_nodes import Group, drop, run
from support.samples import json_request, send_fields
from support.transport import RawClient, until

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from gantrymq.node.failover_node import FailoverNode
    from gantrymq.wire.command import Command

pytestmark = pytest.mark.tool("etcd")

SUCCESS, PULL_OFFSET_MOVED = 0, 21
HALF, COMMIT = 4, 8


async def ask(
    node: FailoverNode, code: int, fields: Mapping[str, object], body: bytes = b""
) -> Command:
    client = await RawClient.connect(node.address)
    try:
        await client.send(json_request(code, fields, body))
        (answer,) = await client.receive(1)
        return answer
    finally:
        client.close()


def show_nothing_more(node: FailoverNode) -> None:
    """Have it wait for the report of a slave, which does not come."""
    assert node.in_sync is not None
    node.in_sync.shown_until = lambda reported: 0  # type: ignore[method-assign]


def test_a_new_member_in_sync_has_the_whole_log(tmp_path: Path, etcd_at: str) -> None:
    async def main() -> None:
        group = await Group(tmp_path, etcd_at).start(1)
        store = group.nodes[1].inner.broker.store
        while len(store.log.files) < 4:
            await group.send(group.nodes[1], bytes(20_000))
        sent = store.reads.max_offset("T", 0)
        await group.join(2)
        await group.settled(1, 2)
        await drop(group.nodes.pop(1))
        await until(group.masters)
        reads = group.nodes[2].inner.broker.store.reads
        has = reads.min_offset("T", 0), reads.max_offset("T", 0)
        await group.stop()
        assert has == (0, sent)

    run(main())


def test_a_master_whose_disk_fails_is_replaced(tmp_path: Path, etcd_at: str) -> None:
    async def main() -> None:
        group = await Group(tmp_path, etcd_at).start(1, 2)
        assert await group.send(group.nodes[1], b"a") == SUCCESS
        group.nodes[1].inner.broker.store._disk_failed("a force failed")
        await until(lambda: group.nodes[2].is_master)
        has = group.nodes[2].inner.broker.store.reads.max_offset("T", 0)
        await group.stop()
        assert has == 1

    run(main())


def test_a_member_whose_disk_has_failed_leaves_the_seat_to_another(
    tmp_path: Path, etcd_at: str
) -> None:
    async def main() -> None:
        group = await Group(tmp_path, etcd_at).start(1, 2, 3)
        assert await group.send(group.nodes[1], b"a") == SUCCESS
        group.nodes[2].inner.broker.store._disk_failed("a force failed")
        await drop(group.nodes.pop(1))
        await until(lambda: group.nodes[3].is_master)
        assert not group.nodes[2].is_master
        await group.stop()

    run(main())


def test_a_transaction_is_ended_before_slaves_have_its_half(tmp_path: Path, etcd_at: str) -> None:
    async def main() -> None:
        group = await Group(tmp_path, etcd_at, brokerRole="ASYNC_MASTER").start(1, 2)
        master = group.nodes[1]
        show_nothing_more(master)
        properties = "TRAN_MSG\x01true\x02PGROUP\x01P\x02UNIQ_KEY\x01K1\x02"
        half = send_fields(a="P", b="T", e="0", i=properties, f=str(HALF))
        sent = await ask(master, 310, half, b"half")
        assert sent.code == SUCCESS
        ended = await ask(master, 37, {
            "producerGroup": "P", "tranStateTableOffset": sent.fields["queueOffset"],
            "commitLogOffset": str(OffsetId.parse(sent.fields["msgId"]).log_offset),
            "commitOrRollback": str(COMMIT), "fromTransactionCheck": "false",
            "msgId": "K1", "transactionId": "K1",
        })  # fmt: skip
        await group.stop()
        assert (ended.code, ended.remark) == (SUCCESS, None)

    run(main())


def test_a_reader_that_comes_from_a_slave_is_not_sent_away(tmp_path: Path, etcd_at: str) -> None:
    async def main() -> None:
        group = await Group(tmp_path, etcd_at).start(1, 2)
        master, slave = group.nodes[1], group.nodes[2]
        for _ in range(3):
            assert await group.send(master, b"a") == SUCCESS
        show_nothing_more(master)
        client = await RawClient.connect(master.address)
        for _ in range(3):
            await client.send(json_request(310, send_fields(b="T", e="0", i=""), b"b"))
        await until(lambda: slave.inner.broker.store.reads.max_offset("T", 0) == 6)
        pulled = await ask(master, 11, {
            "consumerGroup": "G", "topic": "T", "queueId": "0", "queueOffset": "6",
            "maxMsgNums": "32", "sysFlag": "4", "commitOffset": "0", "suspendTimeoutMillis": "0",
            "subscription": "*", "subVersion": "0",
        })  # fmt: skip
        client.close()
        await group.stop()
        assert pulled.code != PULL_OFFSET_MOVED, "offsets beyond the end are another matter"
        assert int(pulled.fields["nextBeginOffset"]) == 6

    run(main())
