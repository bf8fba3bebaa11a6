"""Nodes with the port of metrics beside them: a server, a master with a slave, a name server."""

from __future__ import annotations

import asyncio
import errno
import json
import socket
from typing import TYPE_CHECKING, Any

import pytest

from gantrymq.client.producer import Producer
from gantrymq.metrics.health import broker_checks
from gantrymq.model.topic import TopicConfig
from gantrymq.node.observed import (
    Listening,
    broker_parts,
    observed_broker,
    observed_namesrv,
    observed_server,
)
from gantrymq.store.disk import DiskUse
from support.nodes import all_in_one, broker_node, made, name_server
from support.scraping import Samples
from support.transport import until

if TYPE_CHECKING:
    from pathlib import Path

    from gantrymq.node.observed import Observed
    from support.transport import Run

ANYWHERE = Listening("127.0.0.1", 0)


async def begin(observed: Observed) -> None:
    """Start it, so that it is stopped whatever the test finds: a loop that listens never closes."""
    made.append(observed)
    await observed.start()


async def get(observed: Observed, path: str) -> tuple[int, bytes]:
    """Ask as anybody would."""
    host, _, port = observed.endpoint.address.rpartition(":")
    reader, writer = await asyncio.open_connection(host, int(port))
    try:
        writer.write(f"GET {path} HTTP/1.1\r\nHost: {host}\r\n\r\n".encode())
        head, _, body = (await reader.read()).partition(b"\r\n\r\n")
    finally:
        writer.close()
        await writer.wait_closed()
    return int(head.split()[1]), body


async def ready(observed: Observed) -> tuple[int, dict[str, str]]:
    """Return the status, and by name what does not hold."""
    status, body = await get(observed, "/readyz")
    told: dict[str, Any] = json.loads(body)
    assert told["status"] == ("ready" if status == 200 else "not ready")
    return status, {check["name"]: check["detail"] for check in told["checks"] if not check["ok"]}


async def scraped(observed: Observed) -> Samples:
    status, body = await get(observed, "/metrics")
    assert status == 200
    return Samples.parse(body)


async def scraped_with(observed: Observed, name: str, **labels: str) -> Samples:
    """Return the first scrape that has such a line: what is counted may still be under way."""
    while not (found := await scraped(observed)).rows(name, **labels):  # noqa: ASYNC110
        await asyncio.sleep(0.01)
    return found


def test_a_server_is_scraped_and_is_well(run: Run, tmp_path: Path) -> None:
    async def main() -> None:
        node = all_in_one(tmp_path)
        observed = observed_server(node, ANYWHERE, 200)
        await begin(observed)
        assert observed.url.endswith("/metrics")
        async with Producer(f"127.0.0.1:{node.namesrv.port}") as producer:
            for _ in range(3):
                await producer.send("Orders", b"one")
            # A client does not wait for the answer to its heartbeat.
            answered = {"request_code": "heart_beat"}
            found = await scraped_with(observed, "rocketmq_rpc_latency_count", **answered)
        assert found.value("rocketmq_messages_in_total", topic="Orders") == 3
        assert found.value("rocketmq_rpc_latency_count", request_code="send_message") == 3
        assert found.value("rocketmq_rpc_latency_count", **answered) >= 1
        assert found.value("rocketmq_message_size_count", topic="Orders") == 3
        assert found.value("gantrymq_open_connections", node_type="broker") >= 1
        assert found.value("gantrymq_namesrv_brokers", node_type="nameserver") == 1
        assert found.value("gantrymq_name_servers", state="known") == 1
        assert found.value("rocketmq_storage_size") > 0
        assert await get(observed, "/healthz") == (200, b'{"status":"alive"}\n')
        assert await ready(observed) == (200, {})
        assert await observed.stop()

    run(main())


def test_readiness_says_what_is_wrong(run: Run, tmp_path: Path) -> None:
    async def main() -> None:
        names = name_server(tmp_path / "names")
        await names.start()
        node = broker_node(tmp_path / "store", f"127.0.0.1:{names.port}")
        observed = observed_broker(node, ANYWHERE, 200)
        assert broker_checks(broker_parts(node))[0].detail.startswith("it is starting")
        await begin(observed)
        await node.wait_registered()
        assert await ready(observed) == (200, {})
        store = node.broker.store
        store.writability.forbid("test", "somebody says so")
        store.cleaner.disk_use = DiskUse({tmp_path: 0.995}, 0.5)
        status, wrong = await ready(observed)
        assert status == 503
        assert wrong["store"] == "somebody says so"
        assert "0 % used" in wrong["disk"].replace("100%", "100 %")
        store.writability.allow("test")
        store.cleaner.disk_use = None
        await names.stop()
        node.broker.tables.topics.put(TopicConfig("New"))  # which a name server is told at once
        await until(lambda: not node.known_to)
        status, wrong = await ready(observed)
        assert (status, wrong) == (503, {"name_servers": "0 of 1 know this broker"})
        assert (await get(observed, "/healthz"))[0] == 200, "it lives all the same"
        assert await observed.stop()

    run(main())


def test_a_draining_broker_is_not_ready(run: Run, tmp_path: Path) -> None:
    async def main() -> None:
        node = broker_node(tmp_path, brokerDraining="true")
        observed = observed_broker(node, ANYWHERE, 200)
        await begin(observed)
        status, wrong = await ready(observed)
        assert (status, list(wrong)) == (503, ["draining"])
        assert await observed.stop()

    run(main())


def test_a_slave_is_seen_from_both_sides(run: Run, tmp_path: Path) -> None:
    async def main() -> None:
        names = name_server(tmp_path / "names")
        await names.start()
        at = f"127.0.0.1:{names.port}"
        master = broker_node(tmp_path / "master", at)
        over_master = observed_broker(master, ANYWHERE, 200)
        await over_master.start()
        await master.wait_registered()
        slave = broker_node(tmp_path / "slave", at, brokerRole="SLAVE", brokerId="1")
        over_slave = observed_broker(slave, ANYWHERE, 200)
        await over_slave.start()
        await until(lambda: bool(list(master.replication.group.links)))
        found = await scraped(over_master)
        assert found.value("gantrymq_is_master") == 1
        assert found.value("gantrymq_replication_slaves") == 1
        assert len(found.rows("gantrymq_replication_lag_bytes")) == 1
        assert found.rows("gantrymq_replication_in_sync")[0].value in {0, 1}
        await slave.wait_registered()
        found = await scraped(over_slave)
        assert found.value("gantrymq_is_master") == 0
        assert found.value("gantrymq_replication_connected") == 1
        assert (await ready(over_slave))[0] == 200
        assert await over_master.stop()
        client = slave.replication.client
        assert client is not None
        await until(lambda: not client.is_connected)
        status, wrong = await ready(over_slave)
        assert (status, wrong["store"]) == (503, "this slave has no connection to its master")
        assert await over_slave.stop()
        assert await names.stop()

    run(main())


def test_a_name_server_tells_of_itself(run: Run, tmp_path: Path) -> None:
    async def main() -> None:
        node = name_server(tmp_path)
        observed = observed_namesrv(node, ANYWHERE)
        await begin(observed)
        found = await scraped(observed)
        assert found.value("gantrymq_namesrv_brokers") == 0
        assert await ready(observed) == (200, {})
        assert await observed.stop()

    run(main())


def test_a_port_that_is_taken(run: Run, tmp_path: Path) -> None:
    """One that somebody chose is an error; another one does for the default."""

    async def main() -> None:
        with socket.socket() as taken:
            taken.bind(("127.0.0.1", 0))
            taken.listen()
            port = taken.getsockname()[1]
            chosen = observed_namesrv(name_server(tmp_path), Listening("127.0.0.1", port))
            with pytest.raises(OSError) as raised:  # noqa: PT011 - the number is what counts
                await chosen.start()
            assert raised.value.errno == errno.EADDRINUSE
            await chosen.stop()
            other = Listening("127.0.0.1", port, may_move=True)
            moved = observed_namesrv(name_server(tmp_path), other)
            await moved.start()
            assert not moved.endpoint.address.endswith(f":{port}")
            assert await moved.stop()

    run(main())


def test_a_store_that_is_closed_meanwhile_is_no_error(run: Run, tmp_path: Path) -> None:
    async def main() -> None:
        node = broker_node(tmp_path)
        observed = observed_broker(node, ANYWHERE, 200)
        await begin(observed)
        await node.stop()
        found = await scraped(observed)
        assert "rocketmq_topic_number" not in found
        assert found.value("process_resident_memory_bytes") > 0
        assert (await ready(observed))[0] == 503
        await observed.endpoint.stop()

    run(main())
