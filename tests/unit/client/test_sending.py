"""Which broker a send goes to, how often it is tried, and what it raises."""

from __future__ import annotations

import asyncio
import os
import ssl
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from gantrymq.client.errors import (
    ClientClosed,
    NoRoute,
    NoRouteCause,
    NotStarted,
    TooManyInFlight,
)
from gantrymq.client.producer import Producer
from gantrymq.client.results import SendStatus
from gantrymq.client.settings import ClientSettings
from gantrymq.errors import InvalidValue
from gantrymq.model.message import Message
from gantrymq.model.route import BrokerData, TopicRoute
from gantrymq.testing.clock import VirtualClock
from gantrymq.transport.tls import ServerTls, TlsMode
from gantrymq.wire.codes import ResponseCode
from gantrymq.wire.command import BINARY_HEADER, JSON_HEADER
from gantrymq.wire.frame import encode_frame
from gantrymq.wire.peer import PeerGone, PeerLate
from gantrymq.wire.response_errors import MessageIllegal, SystemBusy, TopicNotExist
from support.scripted import ScriptedCluster
from support.transport import until

if TYPE_CHECKING:
    from gantrymq.wire.command import Command
    from gantrymq.wire.peer import Answer, Peer
    from support.transport import Run


def test_a_refused_message_goes_to_another_broker(run: Run) -> None:
    async def main() -> None:
        async with ScriptedCluster(brokers=2) as cluster:
            first, second = cluster.brokers
            first.answering(ResponseCode.SYSTEM_BUSY)
            async with Producer(cluster.namesrv) as producer:
                results = [await producer.send("T", b"x") for _ in range(8)]
            assert {result.queue.broker_name for result in results} == {second.name}
            assert len(second.sends) == 8
            assert 0 < len(first.sends) <= 8
            ids = [request.fields["i"] for request in second.sends]
            assert {request.fields["i"] for request in first.sends} <= set(ids)

    run(main())


def test_all_brokers_refuse(run: Run) -> None:
    async def main() -> None:
        async with ScriptedCluster(brokers=2) as cluster:
            for broker in cluster.brokers:
                broker.answering(ResponseCode.TOPIC_NOT_EXIST, "no such topic")
            async with Producer(cluster.namesrv, retries=3) as producer:
                with pytest.raises(TopicNotExist, match="no such topic") as caught:
                    await producer.send("T", b"x")
                (note,) = (text for text in caught.value.__notes__ if "tried" in text)
                assert "tried 4 of 4 times" in note
                assert all(broker.address in note for broker in cluster.brokers)
            # never the one that failed last
            assert [len(broker.sends) for broker in cluster.brokers] == [2, 2]

    run(main())


def test_what_no_broker_would_take_is_not_tried_again(run: Run) -> None:
    async def main() -> None:
        async with ScriptedCluster(brokers=2) as cluster:
            for broker in cluster.brokers:
                broker.answering(ResponseCode.MESSAGE_ILLEGAL)
            async with Producer(cluster.namesrv) as producer:
                with pytest.raises(MessageIllegal) as caught:
                    await producer.send("T", b"x")
                assert not caught.value.retriable
            assert sum(len(broker.sends) for broker in cluster.brokers) == 1

    run(main())


def test_a_broker_that_hangs_up(run: Run) -> None:
    async def main() -> None:
        async with ScriptedCluster(brokers=2) as cluster:
            first, second = cluster.brokers
            first.hanging_up()
            async with Producer(cluster.namesrv) as producer:
                for _ in range(6):
                    assert (await producer.send("T", b"x")).queue.broker_name == second.name
                second.hanging_up()
                with pytest.raises(PeerGone) as caught:
                    await producer.send("T", b"x")
                assert caught.value.retriable
                first.on_send, second.on_send = first.stored, second.stored
                assert (await producer.send("T", b"again")).is_ok

    run(main())


def test_a_route_that_is_lost_meanwhile_does_not_hide_what_was_tried(run: Run) -> None:
    """After the first try the message may be stored: nobody must read that nothing was sent."""

    async def main() -> None:
        async with ScriptedCluster() as cluster:
            (broker,) = cluster.brokers
            broker.hanging_up()
            async with Producer(cluster.namesrv) as producer:
                await producer.queues("T")
                route = cluster.route()
                without_master = BrokerData("scripted", broker.name, {1: broker.address})
                cluster.routes["T"] = TopicRoute(queues=route.queues, brokers=(without_master,))
                with pytest.raises(PeerGone) as caught:
                    await producer.send("T", b"x")
                (note,) = caught.value.__notes__
                assert f"tried {len(broker.sends)} of 3 times" in note
                assert "no master" in note

    run(main())


def test_a_batch_goes_to_the_queue_of_its_key(run: Run) -> None:
    async def main() -> None:
        async with ScriptedCluster(queues=8) as cluster, Producer(cluster.namesrv) as producer:
            (broker,) = cluster.brokers
            for key in ("a", "b", "c"):
                messages = [Message(topic="T", body=b"x", sharding_key=key) for _ in range(3)]
                single = await producer.send(messages[0])
                (together,) = await producer.send_batch(messages)
                assert together.queue == single.queue
            mixed = [Message(topic="T", body=b"x", sharding_key=key) for key in ("a", "b", None)]
            sent = len(broker.sends)
            with pytest.raises(InvalidValue, match="one for each key"):
                await producer.send_batch(mixed)
            assert len(broker.sends) == sent
            (queue, *_others) = await producer.queues("T")
            assert (await producer.send_batch(mixed, queue=queue))[0].queue == queue

    run(main())


def test_a_single_broker_gets_a_second_chance_after_a_moment(run: Run) -> None:
    async def main() -> None:
        async with ScriptedCluster() as cluster:
            (broker,) = cluster.brokers
            times: list[float] = []

            def busy_twice(request: Command, peer: Peer) -> Command:
                times.append(asyncio.get_running_loop().time())
                if len(times) < 3:
                    return request.response(ResponseCode.SYSTEM_BUSY)
                return broker.stored(request, peer)

            broker.on_send = busy_twice
            async with Producer(cluster.namesrv) as producer:
                assert (await producer.send("T", b"x")).is_ok
            assert times[1] - times[0] >= 0.09
            assert times[2] - times[1] >= 0.18

    run(main())


def test_a_chosen_queue_is_tried_once(run: Run) -> None:
    async def main() -> None:
        async with ScriptedCluster(brokers=2) as cluster:
            async with Producer(cluster.namesrv) as producer:
                (queue, *_others) = await producer.queues("T")
                for broker in cluster.brokers:
                    broker.answering(ResponseCode.SYSTEM_BUSY)
                with pytest.raises(SystemBusy):
                    await producer.send("T", b"x", queue=queue)
                with pytest.raises(SystemBusy):
                    await producer.send("T", b"x", key="k")
            assert sum(len(broker.sends) for broker in cluster.brokers) == 2

    run(main())


def test_a_broker_that_never_answers(run: Run) -> None:
    async def main() -> None:
        async with ScriptedCluster() as cluster:
            cluster.brokers[0].silent()
            async with Producer(cluster.namesrv, timeout_s=0.2) as producer:
                begun = asyncio.get_running_loop().time()
                with pytest.raises(PeerLate, match=r"no answer within 0\.\d+ s") as caught:
                    await producer.send("T", b"x")
                took = asyncio.get_running_loop().time() - begun
                assert 0.19 <= took < 2
                assert caught.value.retriable
                assert len(cluster.brokers[0].sends) == 1  # there was no time for another

    run(main())


@pytest.mark.parametrize("code", [10, 11, 12])
def test_stored_but_not_as_safe_as_it_should(run: Run, code: int) -> None:
    async def main() -> None:
        async with ScriptedCluster(brokers=2) as cluster:
            for broker in cluster.brokers:
                broker.answering(code)
            async with Producer(cluster.namesrv) as producer:
                result = await producer.send("T", b"x")
                assert result.status is SendStatus(code)
                assert not result.is_ok
                assert result.offset_id
            assert sum(len(broker.sends) for broker in cluster.brokers) == 1
            eager = Producer(cluster.namesrv, retry_other_broker_when_not_stored=True)
            async with eager as producer:
                assert (await producer.send("T", b"x")).status is SendStatus(code)
                assert sum(len(broker.sends) for broker in cluster.brokers) == 4
                cluster.brokers[1].on_send = cluster.brokers[1].stored
                result = await producer.send("T", b"x")
                assert result.is_ok
                assert result.queue.broker_name == cluster.brokers[1].name

    run(main())


def test_slow_brokers_are_left_alone(run: Run) -> None:
    clock = VirtualClock()

    async def main() -> None:
        async with ScriptedCluster(brokers=2) as cluster:
            slow, quick = cluster.brokers

            def slowly(request: Command, peer: Peer) -> Command:
                clock.jump(0.6)
                return slow.stored(request, peer)

            slow.on_send = slowly
            async with Producer(cluster.namesrv, avoid_slow_brokers=True, clock=clock) as producer:

                async def brokers(count: int) -> set[str]:
                    sent = [await producer.send("T", b"x") for _ in range(count)]
                    return {result.queue.broker_name for result in sent}

                assert await brokers(4) == {slow.name, quick.name}
                assert await brokers(8) == {quick.name}
                clock.jump(29)
                assert await brokers(4) == {quick.name}
                clock.jump(1.1)
                slow.on_send = slow.stored
                assert await brokers(4) == {slow.name, quick.name}
                slow.hanging_up()
                assert await brokers(4) == {quick.name}
                slow.on_send = slow.stored
                clock.jump(179)
                assert await brokers(4) == {quick.name}
                clock.jump(2)
                assert await brokers(4) == {slow.name, quick.name}

    run(main())


def test_too_many_sends_wait_for_a_place(run: Run) -> None:
    async def main() -> None:
        async with ScriptedCluster() as cluster:
            (broker,) = cluster.brokers
            held: list[tuple[Command, asyncio.Future[Answer]]] = []

            def hold(request: Command, _peer: Peer) -> asyncio.Future[Answer]:
                future: asyncio.Future[Answer] = asyncio.get_running_loop().create_future()
                held.append((request, future))
                return future

            broker.on_send = hold
            async with Producer(cluster.namesrv, in_flight_max=2) as producer:
                sends = [asyncio.ensure_future(producer.send("T", b"x")) for _ in range(3)]
                await until(lambda: len(held) == 2)
                await asyncio.sleep(0.05)
                assert len(held) == 2
                assert producer.in_flight == 2
                with pytest.raises(TooManyInFlight, match="2 sends are under way"):
                    await producer.send("T", b"x", timeout_s=0.05)
                for request, future in held:
                    future.set_result(broker.stored(request, broker.peers[0]))
                broker.on_send = broker.stored
                assert all(result.is_ok for result in await asyncio.gather(*sends))
                assert producer.in_flight == 0

    run(main())


def test_close_does_not_wait_for_ever(run: Run) -> None:
    async def main() -> None:
        async with ScriptedCluster() as cluster:
            cluster.brokers[0].silent()
            producer = Producer(cluster.namesrv, timeout_s=30, in_flight_max=1)
            with pytest.raises(NotStarted, match="async with"):
                await producer.send("T", b"x")
            await producer.start()
            producer._timeout_s = 0.1  # what close waits for
            under_way = asyncio.ensure_future(producer.send("T", b"x", timeout_s=30))
            await until(lambda: bool(cluster.brokers[0].sends))
            waiting = asyncio.ensure_future(producer.send("T", b"x", timeout_s=30))
            await asyncio.sleep(0.01)
            await asyncio.wait_for(producer.close(), 5)
            with pytest.raises(PeerGone, match="the client is closed"):
                await under_way
            with pytest.raises(ClientClosed):
                await waiting

    run(main())


@pytest.mark.parametrize("binary", [True, False], ids=["binary", "json"])
@pytest.mark.parametrize("answers", [BINARY_HEADER, JSON_HEADER], ids=["binary", "json"])
def test_headers_of_both_kinds(run: Run, answers: int, *, binary: bool) -> None:
    """5.x brokers answer in JSON whatever they are asked in."""

    async def main() -> None:
        async with ScriptedCluster() as cluster:
            (broker,) = cluster.brokers

            def answer(request: Command, _peer: Peer) -> Command:
                other = type(request).request(0, request.opaque, serialize_type=answers)
                extra = {"recallHandle": "handle"} if request.body == b"odd" else {}
                return other.response(0, {**broker.fields(request), **extra})

            broker.on_send = answer
            settings = ClientSettings(name_servers=(cluster.namesrv,), binary_headers=binary)
            async with Producer(cluster.namesrv, "group", settings=settings) as producer:
                bodies = [b"odd" if number % 5 == 0 else b"even" for number in range(40)]
                results = await asyncio.gather(
                    *(producer.send("T", body, tags="tag", keys="k") for body in bodies)
                )
            for body, result in zip(bodies, results, strict=True):
                assert result.is_ok
                assert result.region == "DefaultRegion"
                assert result.recall_handle == ("handle" if body == b"odd" else None)
            for request, header in zip(broker.sends, broker.headers, strict=True):
                assert request.serialize_type == (BINARY_HEADER if binary else JSON_HEADER)
                assert (header.producer_group, header.topic) == ("group", "T")
                assert header.properties is not None
                assert "TAGS\x01tag" in header.properties

    run(main())


def test_a_connection_that_breaks_at_any_byte(run: Run) -> None:
    """The answer is cut off after each of its bytes; the send is then tried again."""

    async def main() -> None:
        async with ScriptedCluster() as cluster:
            (broker,) = cluster.brokers
            cut = 0
            whole = False

            def answer(request: Command, peer: Peer) -> None:
                nonlocal whole
                frame = encode_frame(broker.stored(request, peer))
                writer = peer._transport  # type: ignore[attr-defined]
                writer.write(frame[:cut])
                if cut < len(frame) and not whole:
                    writer.close()
                    whole = True
                else:
                    writer.write(frame[cut:])

            broker.on_send = answer
            async with Producer(cluster.namesrv, timeout_s=5) as producer:
                for position in (*range(0, 60, 7), 100, 150, 151):
                    cut, whole = position, False
                    seen = len(broker.sends)
                    assert (await producer.send("T", b"x")).is_ok
                    assert len(broker.sends) - seen in {1, 2}

    run(main())


def test_a_broker_that_does_not_read(run: Run) -> None:
    """Sends wait and do not pile up; when it reads again, they go through."""

    async def main() -> None:
        async with ScriptedCluster() as cluster:
            (broker,) = cluster.brokers
            async with Producer(cluster.namesrv, timeout_s=20, compression=None) as producer:
                await producer.send("T", b"x")
                (peer, *_others) = broker.peers
                peer._transport.pause_reading()  # type: ignore[attr-defined]
                body = bytes(1 << 20)
                sends = [asyncio.ensure_future(producer.send("T", body)) for _ in range(32)]
                await asyncio.sleep(0.1)
                connection = producer._core.connections.open_connection(broker.address)
                assert connection is not None
                assert connection.is_congested
                assert connection.unsent_bytes < 8 << 20
                assert not any(send.done() for send in sends)
                peer._transport.resume_reading()  # type: ignore[attr-defined]
                assert all(result.is_ok for result in await asyncio.gather(*sends))

    run(main())


def test_a_broker_that_comes_back(run: Run) -> None:
    async def main() -> None:
        async with ScriptedCluster() as cluster:
            (broker,) = cluster.brokers
            async with Producer(cluster.namesrv) as producer:
                assert (await producer.send("T", b"x")).is_ok
                await broker.stop()
                with pytest.raises(PeerGone):
                    await producer.send("T", b"x")
                await broker.start()
                for _ in range(100):
                    with suppress(PeerGone):
                        assert (await producer.send("T", b"x")).is_ok
                        break
                    await asyncio.sleep(0.02)
                else:
                    pytest.fail("it never found the broker again")

    run(main())


def test_a_child_process_may_not_use_it(run: Run) -> None:
    async def main() -> None:
        async with ScriptedCluster() as cluster, Producer(cluster.namesrv) as producer:
            reader, writer = os.pipe()
            child = os.fork()
            if child == 0:  # no test code may run on here
                said = b"nothing was raised"
                try:
                    producer.send("T", b"x").send(None)
                except BaseException as error:  # noqa: BLE001
                    said = f"{type(error).__name__} {error}".encode()
                os.write(writer, said)
                os._exit(0)
            os.close(writer)
            os.waitpid(child, 0)  # noqa: ASYNC222  (it ends at once)
            told = os.read(reader, 4096).decode()
            os.close(reader)
            assert told.startswith("UsedAfterFork")
            assert f"process {os.getpid()}" in told
            assert str(child) in told
            assert (await producer.send("T", b"x")).is_ok

    run(main())


def test_tls_with_the_callers_own_context(run: Run) -> None:
    folder = Path(__file__).parents[1] / "transport"
    cert, key = str(folder / "localhost.pem"), str(folder / "localhost.key.pem")
    tls = ServerTls(TlsMode.ENFORCING, cert, key)

    async def main() -> None:
        async with ScriptedCluster(tls=tls) as cluster:
            trusting = ssl.create_default_context(cafile=cert)
            trusting.check_hostname = False
            async with Producer(cluster.namesrv, ssl=trusting) as producer:
                assert (await producer.send("T", b"x")).is_ok
            assert len(cluster.brokers[0].sends) == 1
            wary = Producer(cluster.namesrv, ssl=ssl.create_default_context())
            async with wary as producer:
                with pytest.raises(NoRoute, match="certificate verify failed"):
                    await producer.send("T", b"x")
            async with Producer(cluster.namesrv) as producer:
                with pytest.raises(NoRoute) as caught:
                    await producer.send("T", b"x")
                assert caught.value.cause is NoRouteCause.NO_NAME_SERVER

    run(main())
