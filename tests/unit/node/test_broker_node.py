"""A broker on real sockets: clients in both codecs, its name servers, its end."""

from __future__ import annotations

import asyncio
import socket
import time
from typing import TYPE_CHECKING

import pytest

from gantrymq.broker import aging
from gantrymq.errors import InvalidValue
from gantrymq.model.topic import TopicConfig
from gantrymq.node.machine import bound_address, resolved
from gantrymq.store.errors import StoreLocked
from gantrymq.wire.bodies.route import TOPIC_ROUTE
from support.broker_rig import pull
from support.nodes import all_in_one, ask, ask_at, broker_node, name_server
from support.ports import free_broker_port, free_port
from support.remoting import split_records
from support.samples import binary_request, json_request, send_fields
from support.transport import RawClient, until

if TYPE_CHECKING:
    from pathlib import Path
    from typing import Any

    from gantrymq.node.namesrv_node import NamesrvNode
    from support.transport import Run

SUCCESS, TOPIC_NOT_EXIST = 0, 17


async def route(node: NamesrvNode, topic: str) -> Any:  # noqa: ANN401
    answer = await ask(node.port, 105, {"topic": topic})
    return TOPIC_ROUTE.decode(answer.body) if answer.code == SUCCESS else None


async def until_known(node: NamesrvNode, topic: str, seconds: float) -> None:
    """Wait for a change to arrive; it is sent within 100 ms, and machines may be busy."""
    begun = time.monotonic()
    while await route(node, topic) is None:
        assert time.monotonic() - begun < seconds, "a change is told at once"
        await asyncio.sleep(0.005)


@pytest.mark.parametrize("make", [json_request, binary_request])
def test_a_client_sends_pulls_and_waits(run: Run, tmp_path: Path, make: Any) -> None:  # noqa: ANN401
    async def main() -> None:
        node = all_in_one(tmp_path)
        await node.start()
        port = node.broker.port
        client = await RawClient.connect(f"127.0.0.1:{port}")
        waiter = await RawClient.connect(f"127.0.0.1:{port}")
        codec = int(make is binary_request)
        await client.send(make(310, send_fields(b="New", e="0", i="TAGS\x01A"), b"first"))
        (stored,) = await client.receive(1)
        assert (stored.code, stored.serialize_type) == (SUCCESS, codec)
        assert int(stored.fields["msgId"][8:16], 16) == port, "ids lead back to the broker"
        held = pull(1, codec=codec, topic="New", sysFlag="6", suspendTimeoutMillis="20000")
        await waiter.send(pull(0, codec=codec, topic="New") + held)
        (found,) = await waiter.receive(1)
        assert found.code == SUCCESS
        assert len(split_records(found.body)) == 1
        begun = time.monotonic()
        await client.send(make(310, send_fields(b="New", e="0", i=""), b"second"))
        (woken,) = await waiter.receive(1)
        assert time.monotonic() - begun < 1
        assert b"second" in woken.body
        await until_known(node.namesrv, "New", 1)
        client.close()
        waiter.close()
        assert await node.stop()

    run(main())


def test_both_name_servers_know_it_and_one_may_die(run: Run, tmp_path: Path) -> None:
    async def main() -> None:
        servers = [name_server(tmp_path / str(number)) for number in range(2)]
        for one in servers:
            await one.start()
        addresses = [f"127.0.0.1:{one.port}" for one in servers]
        node = broker_node(tmp_path / "store", *addresses)
        await node.start()
        assert await node.wait_registered()
        assert node.known_to == set(addresses)
        for number, topic in enumerate(("A", "B")):
            node.broker.tables.topics.put(TopicConfig(topic))
            for one in servers[number:]:
                await until_known(one, topic, 1)
            if number == 0:
                assert await servers[0].stop()
        await until(lambda: node.known_to == {addresses[1]})
        again = name_server(tmp_path / "0", servers[0].port)
        await again.start()
        node.broker.tables.topics.put(TopicConfig("C"))
        await until(lambda: len(node.known_to) == 2)
        assert await route(again, "C") is not None
        assert await node.stop()
        for one in (again, servers[1]):
            assert await route(one, "A") is None, "it has said good-bye"
            assert await one.stop()

    run(main())


@pytest.mark.parametrize(
    ("bind", "hosts"),
    [
        ("127.0.0.2", ["127.0.0.2"]),
        ("::1", ["[::1]"]),
        ("0.0.0.0", ["127.0.0.1", "127.0.0.2"]),  # noqa: S104
        ("::", ["[::1]"]),
    ],
)
def test_wherever_a_server_listens_its_parts_find_each_other(
    run: Run, tmp_path: Path, bind: str, hosts: list[str]
) -> None:
    """And whoever asks gets an address of the broker that is where the name server was found."""

    async def main() -> None:
        node = all_in_one(tmp_path, bindAddress=bind, brokerIP1="", insecure="true")
        await node.start()
        assert node.namesrv.address == f"{hosts[0]}:{node.namesrv.port}"
        for host in hosts:
            asked = f"{host}:{node.namesrv.port}"
            answer = await ask_at(asked, 105, {"topic": "broker-a"})
            assert answer.code == SUCCESS, answer.remark
            (group,) = TOPIC_ROUTE.decode(answer.body).brokers
            assert group.addresses == {0: f"{host}:{node.broker.port}"}
            told = await ask_at(group.addresses[0], 30, {"topic": "broker-a", "queueId": "0"})
            assert told.code == SUCCESS
        assert await node.stop()

    run(main())


def test_a_name_server_that_is_not_there_keeps_nobody_waiting(run: Run, tmp_path: Path) -> None:
    async def main() -> None:
        ports = free_port(), free_port()
        node = broker_node(tmp_path, *(f"127.0.0.1:{port}" for port in ports))
        begun = time.monotonic()
        await node.start()
        assert time.monotonic() - begun < 5
        assert (await ask(node.port, 30, {"topic": "T", "queueId": "0"})).code == SUCCESS
        assert not await node.wait_registered(0.1)
        assert await node.stop()

    run(main())


def test_a_port_in_use_is_said_and_the_store_is_let_go(run: Run, tmp_path: Path) -> None:
    async def main() -> None:
        with socket.create_server(("127.0.0.1", 0)) as holder:
            port = holder.getsockname()[1]
            node = broker_node(tmp_path, listenPort=str(port))
            with pytest.raises(OSError, match=f"cannot listen on 127.0.0.1:{port}"):
                await node.start()
            assert await node.stop()
        free = broker_node(tmp_path)
        report = await free.start()
        assert report.clean
        assert await free.stop()

    run(main())


def test_a_store_that_is_open_is_not_opened_twice(run: Run, tmp_path: Path) -> None:
    async def main() -> None:
        first, second = broker_node(tmp_path), broker_node(tmp_path)
        await first.start()
        with pytest.raises(StoreLocked, match="this very process"):
            await second.start()
        assert await second.stop()
        assert (await ask(first.port, 30, {"topic": "T", "queueId": "0"})).code == SUCCESS
        assert await first.stop()

    run(main())


def test_a_stop_answers_what_it_has_taken(run: Run, tmp_path: Path) -> None:
    async def main() -> None:
        node = broker_node(tmp_path)
        await node.start()
        client = await RawClient.connect(f"127.0.0.1:{node.port}")
        await client.send(json_request(310, send_fields(b="T", i=""), b"x", opaque=1))
        await client.receive(1)
        await client.send(pull(1, sysFlag="6", suspendTimeoutMillis="60000", opaque=2))
        await until(lambda: len(node.broker.held) == 1)
        begun = time.monotonic()
        assert await node.stop()
        assert time.monotonic() - begun < 3
        (answer,) = await client.receive(1)
        assert (answer.opaque, answer.code) == (2, 19)
        assert await client.is_closed()
        client.close()
        again = broker_node(tmp_path)
        assert (await again.start()).clean
        assert again.broker.store.reads.max_offset("T", 0) == 1
        assert await again.stop()

    run(main())


def test_garbage_closes_one_connection_and_no_other(run: Run, tmp_path: Path) -> None:
    async def main() -> None:
        node = broker_node(tmp_path)
        await node.start()
        good = await RawClient.connect(f"127.0.0.1:{node.port}")
        bad = await RawClient.connect(f"127.0.0.1:{node.port}")
        await good.send(json_request(30, {"topic": "T", "queueId": "0"})[:30])
        await bad.send(b"\x00\xff\xff\xff\xff\xff\xff\xff garbage")
        assert await bad.is_closed()
        await good.send(json_request(30, {"topic": "T", "queueId": "0"})[30:])
        assert (await good.receive(1))[0].code == SUCCESS
        good.close()
        bad.close()
        assert await node.stop()

    run(main())


def test_a_broker_has_a_second_port(run: Run, tmp_path: Path) -> None:
    async def main() -> None:
        port = free_broker_port()
        node = broker_node(tmp_path, listenPort=str(port))
        await node.start()
        for one in (port, port - 2):
            assert (await ask(one, 30, {"topic": "T", "queueId": "0"})).code == SUCCESS
        assert await node.stop()

    run(main())


def test_names_are_taken_for_addresses(run: Run) -> None:
    async def main() -> None:
        assert await resolved("10.1.2.3") == "10.1.2.3"
        assert await resolved("[::1]") == "::1"
        assert await resolved("localhost") in {"127.0.0.1", "::1"}
        with pytest.raises(InvalidValue, match="brokerIP1"):
            await resolved("no such host.invalid")

    run(main())


def test_topics_may_not_do_more_than_their_broker(run: Run, tmp_path: Path) -> None:
    async def main() -> None:
        node = all_in_one(tmp_path, brokerPermission="4")
        await node.start()
        found = await route(node.namesrv, "broker-a")
        assert [int(one.perm) & 6 for one in found.queues] == [4]
        assert await node.stop()

    run(main())


def test_a_topic_survives_a_broker_that_is_not_stopped(run: Run, tmp_path: Path) -> None:
    async def main() -> None:
        node = all_in_one(tmp_path)
        await node.start()
        answer = await ask(
            node.broker.port, 310, {k: str(v) for k, v in send_fields(b="New").items()}, b"x"
        )
        assert answer.code == SUCCESS
        file = tmp_path / "config" / "topics.json"
        await until(lambda: file.exists() and b'"New"' in file.read_bytes())
        assert await node.stop()

    run(main())


def test_message_ids_name_the_address_that_a_broker_is_bound_to(run: Run, tmp_path: Path) -> None:
    async def main() -> None:
        node = all_in_one(tmp_path, brokerIP1="", bindAddress="127.0.0.1")
        await node.start()
        fields = {name: str(value) for name, value in send_fields(b="T").items()}
        sent = await ask(node.broker.port, 310, fields, b"x")
        assert sent.code == SUCCESS
        assert sent.fields["msgId"].startswith("7F000001"), "whoever asks for it must get there"
        assert await node.stop()

    run(main())


@pytest.mark.parametrize(
    ("bind", "expected"),
    [
        ("0.0.0.0", ""),  # noqa: S104  (nothing is bound)
        ("::", ""),
        ("10.1.2.3", "10.1.2.3"),
        ("::1", "[::1]"),
        ("mq.example", "mq.example"),
    ],
)
def test_an_address_to_bind_to_is_one_to_be_reached_by(bind: str, expected: str) -> None:
    assert bound_address(bind) == expected


def test_a_send_that_lay_for_too_long_is_refused_with_the_cause(
    run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(aging, "GIVEN_UP_MS", 500)

    async def main() -> None:
        node = broker_node(tmp_path, waitTimeMillsInSendQueue="500")
        await node.start()
        clients = [await RawClient.connect(f"127.0.0.1:{node.port}") for _ in range(2)]
        for client in clients:
            await client.send(json_request(310, send_fields(b="New", i=""), b"first"))
            assert (await client.receive(1))[0].code == SUCCESS
        for client in clients:
            client.socket.send(json_request(310, send_fields(b="New", i=""), b"late"))
        time.sleep(0.8)  # noqa: ASYNC251  (whatever it is that holds the loop up)
        for client in clients:
            (answer,) = await client.receive(1)
            assert answer.code == 2
            assert str(answer.remark).startswith("[TIMEOUT_CLEAN_QUEUE]broker busy, start flow")
            await client.send(json_request(310, send_fields(b="New", i=""), b"again"))
            assert (await client.receive(1))[0].code == SUCCESS
            client.close()
        assert node.broker.store.reads.max_offset("New", 0) == 4
        assert await node.stop()

    run(main())
