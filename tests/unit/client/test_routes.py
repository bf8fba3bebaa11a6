"""Routes, name servers and heartbeats, with servers that do what a test says."""

from __future__ import annotations

import asyncio
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING

import pytest

from gantrymq.client.core import ClientCore
from gantrymq.client.errors import ClientClosed, ClientError, NoRoute, NoRouteCause
from gantrymq.client.producer import Producer
from gantrymq.client.route import Route
from gantrymq.client.settings import ClientSettings
from gantrymq.model.route import BrokerData, QueueData, TopicRoute
from gantrymq.model.topic import Perm
from gantrymq.wire.bodies.heartbeat import ConsumerData
from gantrymq.wire.codes import RequestCode
from gantrymq.wire.command import Command
from gantrymq.wire.headers.targets import TopicRequest
from gantrymq.wire.response_errors import QueryNotFound, SystemBusy
from support.scripted import ScriptedCluster
from support.transport import until

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from support.transport import Run

RW = Perm.READ | Perm.WRITE


@asynccontextmanager
async def client(*name_servers: str, **settings: float) -> AsyncIterator[ClientCore]:
    """Run a client's core."""
    core = ClientCore(ClientSettings(name_servers=name_servers, **settings))  # type: ignore[arg-type]
    await core.start()
    try:
        yield core
    finally:
        await core.close()


def test_queues_of_a_route() -> None:
    data = TopicRoute(
        queues=(
            QueueData("b", 3, 2, RW),
            QueueData("a", 1, 2, RW),
            QueueData("c", 1, 1, Perm.READ),
            QueueData("d", 1, 1, Perm.WRITE),
        ),
        brokers=(
            BrokerData("x", "a", {0: "h:1", 1: "h:2"}),
            BrokerData("x", "b", {1: "h:3", 2: "h:4"}),
            BrokerData("x", "d", {0: "h:5"}),
        ),
    )
    route = Route("T", data)
    written = [(queue.broker_name, queue.queue_id) for queue in route.write_queues]
    assert written == [("a", 0), ("a", 1), ("d", 0)]  # b has no master, c no permission
    read = [(queue.broker_name, queue.queue_id) for queue in route.read_queues]
    assert read == [("a", 0), ("b", 0), ("b", 1), ("b", 2), ("c", 0)]
    assert (route.address("a"), route.address("a", 1), route.address("b")) == ("h:1", "h:2", None)
    assert (route.any_address("b"), route.any_address("z")) == ("h:3", None)


def test_an_ordered_topic_has_the_queues_of_its_configuration() -> None:
    brokers = (BrokerData("x", "a", {0: "h:1"}), BrokerData("x", "b", {0: "h:2"}))
    data = TopicRoute(
        queues=(QueueData("a", 8, 8, RW),), brokers=brokers, order_conf="a:1;b:2;gone:9;x"
    )
    written = [(queue.broker_name, queue.queue_id) for queue in Route("T", data).write_queues]
    assert written == [("a", 0), ("b", 0), ("b", 1)]


def test_a_template_gives_four_queues_at_most() -> None:
    brokers = (BrokerData("x", "a", {0: "h:1"}), BrokerData("x", "b", {0: "h:2"}))
    queues = (QueueData("a", 8, 8, Perm(7)), QueueData("b", 3, 8, Perm(7)))
    route = Route("T", TopicRoute(queues=queues, brokers=brokers), is_template=True)
    counts = [queue.broker_name for queue in route.write_queues]
    assert (counts.count("a"), counts.count("b")) == (4, 3)
    assert {queue.topic for queue in route.write_queues} == {"T"}


def test_causes_of_no_route(run: Run) -> None:
    async def main() -> None:
        async with ScriptedCluster() as cluster, Producer(cluster.namesrv) as producer:
            cluster.unknown |= {"Unknown", "TBW102"}
            with pytest.raises(NoRoute, match="set autoCreateTopicEnable=true") as caught:
                await producer.send("Unknown", b"x")
            assert caught.value.cause is NoRouteCause.UNKNOWN_TOPIC
            assert cluster.namesrv in str(caught.value)
            cluster.routes["ReadOnly"] = cluster.route(Perm.READ)
            with pytest.raises(NoRoute, match="give the topic write permission") as caught:
                await producer.send("ReadOnly", b"x")
            assert caught.value.cause is NoRouteCause.NOT_WRITABLE
            cluster.routes["Headless"] = TopicRoute(
                queues=(QueueData("s", 1, 1, RW),), brokers=(BrokerData("x", "s", {1: "h:1"}),)
            )
            with pytest.raises(NoRoute, match=r"no master at the moment .*h:1") as caught:
                await producer.send("Headless", b"x")
            assert caught.value.cause is NoRouteCause.NO_MASTER
            cluster.routes["Headless"] = cluster.route()
            assert (await producer.send("Headless", b"x")).is_ok  # it was asked for again

    run(main())


def test_no_name_server_answers(run: Run) -> None:
    async def main() -> None:
        async with client("127.0.0.1:1", "127.0.0.1:2") as core:
            with pytest.raises(NoRoute) as caught:
                await core.routes.get("T")
            assert caught.value.cause is NoRouteCause.NO_NAME_SERVER
            assert caught.value.retriable
            assert "127.0.0.1:1: " in str(caught.value)
            assert "127.0.0.1:2: " in str(caught.value)

    run(main())


def test_the_next_name_server_is_asked(run: Run) -> None:
    async def main() -> None:
        async with (
            ScriptedCluster() as cluster,
            ScriptedCluster() as other,
            client(cluster.namesrv, other.namesrv) as core,
        ):
            await core.routes.get("A")
            first, second = (cluster, other) if cluster.asked else (other, cluster)
            await core.routes.get("B")
            assert (first.asked, second.asked) == (["A", "B"], [])
            await first.stop_name_server()
            await core.routes.get("C")
            await core.routes.get("D")
            assert second.asked == ["C", "D"]
            await first.start_name_server()
            await core.routes.get("E")
            assert second.asked == ["C", "D", "E"]  # kept while it answers

    run(main())


def test_one_question_for_all_who_ask(run: Run) -> None:
    async def main() -> None:
        async with ScriptedCluster() as cluster, client(cluster.namesrv) as core:
            gone = asyncio.ensure_future(core.routes.get("T"))
            others = [asyncio.ensure_future(core.routes.get("T")) for _ in range(5)]
            await asyncio.sleep(0)
            gone.cancel()
            routes = await asyncio.gather(*others)
            assert cluster.asked == ["T"]
            assert len({id(route) for route in routes}) == 1
            assert await core.routes.get("T") is routes[0]
            assert await core.routes.get("T", refresh=True) is routes[0]  # nothing has changed
            assert cluster.asked == ["T", "T"]

    run(main())


def test_changes_are_told(run: Run) -> None:
    async def main() -> None:
        async with ScriptedCluster() as cluster:
            cluster.unknown.add("Later")
            told: list[Route] = []
            async with client(cluster.namesrv, route_s=0.02) as core:
                core.routes.watch("Later", told.append)
                with pytest.raises(NoRoute, match="send a message to it first"):
                    await core.routes.get("Later")
                cluster.unknown.clear()
                await until(lambda: told)
                cluster.queues = 5
                await until(lambda: len(told) == 2)
                assert [len(route.read_queues) for route in told] == [2, 5]
                cluster.unknown.add("Later")  # forgotten there, and remembered here
                seen = len(cluster.asked)
                await until(lambda: len(cluster.asked) > seen + 2)
                route = await core.routes.get("Later", refresh=True)
                assert len(route.read_queues) == 5
                core.routes.unwatch("Later", told.append)
                assert len(told) == 2

    run(main())


def test_a_template_is_replaced_when_the_topic_is_there(run: Run) -> None:
    async def main() -> None:
        async with ScriptedCluster(queues=8) as cluster:
            cluster.unknown.add("New")
            async with client(cluster.namesrv, route_s=0.02) as core:
                route = await core.routes.get("New", template=True)
                assert (route.is_template, len(route.write_queues)) == (True, 4)
                with pytest.raises(NoRoute):
                    await core.routes.get("New")
                cluster.unknown.clear()
                await until(lambda: not core.routes.known("New").is_template)  # type: ignore[union-attr]
                assert len((await core.routes.get("New")).write_queues) == 8

    run(main())


def test_heartbeats_say_who_is_there(run: Run) -> None:
    async def main() -> None:
        async with ScriptedCluster(brokers=2) as cluster:
            async with client(cluster.namesrv, heartbeat_s=60) as core:
                core.heartbeats.producer("producers")
                await core.routes.get("T")
                for broker in cluster.brokers:
                    await until(lambda b=broker: b.heartbeats)  # type: ignore[misc]
                core.heartbeats.consumer("consumers", lambda: ConsumerData(group_name="consumers"))
                await core.heartbeats.now()
                for broker in cluster.brokers:
                    last = broker.heartbeats[-1]
                    assert last.client_id == core.client_id
                    assert [each.group_name for each in last.producer_data_set] == ["producers"]
                    assert [each.group_name for each in last.consumer_data_set] == ["consumers"]
                    assert core.heartbeats.version_of(broker.address) == 407
                seen = [len(broker.heartbeats) for broker in cluster.brokers]
                await core.heartbeats.ensure(broker.address for broker in cluster.brokers)
                assert [len(broker.heartbeats) for broker in cluster.brokers] == seen
                await core.heartbeats.forget("consumers")
                assert [request.code for request in cluster.brokers[0].others] == [35]
            for broker in cluster.brokers:
                gone = [
                    (each.fields.get("producerGroup"), each.fields.get("consumerGroup"))
                    for each in broker.others
                    if each.code == RequestCode.UNREGISTER_CLIENT
                ]
                assert gone == [(None, "consumers"), ("producers", None)]

    run(main())


def test_a_broker_that_forgot_us_is_told_at_once(run: Run) -> None:
    async def main() -> None:
        async with ScriptedCluster() as cluster:
            (broker,) = cluster.brokers
            async with Producer(cluster.namesrv, "group") as producer:
                await producer.send("T", b"x")
                await until(lambda: broker.heartbeats)
                broker.peers[-1].close("scripted")
                seen = len(broker.heartbeats)
                await producer.send("T", b"x")
                await until(lambda: len(broker.heartbeats) > seen)
                assert broker.heartbeats[-1].producer_data_set[0].group_name == "group"

    run(main())


def test_heartbeats_outlive_a_broker_that_is_gone(run: Run) -> None:
    async def main() -> None:
        async with ScriptedCluster(brokers=2) as cluster:
            first, second = cluster.brokers
            async with client(cluster.namesrv, heartbeat_s=0.02) as core:
                core.heartbeats.producer("group")
                await core.routes.get("T")
                await until(lambda: len(first.heartbeats) > 2)
                await first.stop()
                seen = len(second.heartbeats)
                await until(lambda: len(second.heartbeats) > seen + 3)
                assert core.is_running

    run(main())


def test_calls_and_their_errors(run: Run) -> None:
    async def main() -> None:
        async with ScriptedCluster() as cluster, client(cluster.namesrv) as core:
            (broker,) = cluster.brokers
            header = TopicRequest(topic="T")
            code = RequestCode.GET_TOPIC_STATS_INFO
            answered = await core.remote.call(broker.address, code, header)
            assert (answered.code, answered.header, answered.body) == (0, None, b"")
            assert broker.others[-1].fields == {"topic": "T"}
            broker._handle = lambda request, _peer: request.response(22, {"topic": "U"})  # type: ignore[method-assign, assignment]
            await broker.stop()
            await broker.start()
            with pytest.raises(QueryNotFound) as caught:
                await core.remote.call(broker.address, code, header)
            assert broker.address in caught.value.__notes__[0]
            accepted = await core.remote.call(
                broker.address, code, header, accept={22}, answer=TopicRequest
            )
            assert (accepted.code, accepted.header.topic) == (22, "U")
            assert await core.remote.tell(broker.address, code, header)

    run(main())


def test_brokers_ask_too(run: Run) -> None:
    async def main() -> None:
        async with ScriptedCluster() as cluster, client(cluster.namesrv) as core:
            (broker,) = cluster.brokers

            async def handler(command: Command, _peer: object) -> Command:
                await asyncio.sleep(0)
                if command.body == b"busy":
                    raise SystemBusy("on purpose")
                return command.response(body=command.body * 2)

            core.incoming.on(RequestCode.GET_CONSUMER_RUNNING_INFO, handler)
            await core.remote.tell(broker.address, RequestCode.GET_BROKER_CONFIG)
            await until(lambda: broker.peers)
            (peer,) = broker.peers
            ask = Command.request(RequestCode.GET_CONSUMER_RUNNING_INFO, 0, body=b"x")
            assert (await peer.ask(ask, 5)).body == b"xx"
            busy = Command.request(RequestCode.GET_CONSUMER_RUNNING_INFO, 0, body=b"busy")
            assert (await peer.ask(busy, 5)).code == 2
            unknown = Command.request(RequestCode.CONSUME_MESSAGE_DIRECTLY, 0)
            assert (await peer.ask(unknown, 5)).code == 3

    run(main())


def test_the_life_of_a_client(run: Run, caplog: pytest.LogCaptureFixture) -> None:
    async def fail() -> None:
        raise ZeroDivisionError("on purpose")

    async def main() -> None:
        async with ScriptedCluster() as cluster:
            core = ClientCore(ClientSettings(name_servers=(cluster.namesrv,)))
            await core.start()
            with pytest.raises(ClientError, match="runs already"):
                await core.start()
            for_ever = core.spawn(asyncio.sleep(3600), "for ever")
            failing = core.spawn(fail(), "failing")
            await asyncio.wait([failing])
            await core.close()
            await core.close()
            assert for_ever.cancelled()
            with pytest.raises(ClientClosed):
                core.check_usable()
            with pytest.raises(ClientClosed):
                await core.start()

    run(main())
    assert "the task 'gantrymq failing' of a client failed" in caplog.text
