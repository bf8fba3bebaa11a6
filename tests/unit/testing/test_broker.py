"""The broker for tests, as an application's test uses it: with the client, over sockets."""

from __future__ import annotations

import asyncio
import time
from typing import TYPE_CHECKING

import pytest

from gantrymq.client.errors import InvalidValue, NoRoute, NoRouteCause, PeerGone, PeerLate
from gantrymq.client.producer import Producer
from gantrymq.testing import READS, SENDS, TestBroker, VirtualClock
from gantrymq.wire.codes import ResponseCode
from gantrymq.wire.response_errors import NoPermission, SystemBusy

if TYPE_CHECKING:
    from collections.abc import Coroutine
    from pathlib import Path
    from typing import Any

START_MS_MAX = 100
"""What the project promises; on a quiet machine it is 10 to 20."""


def run(main: Coroutine[Any, Any, None]) -> None:
    async def bounded() -> None:
        await asyncio.wait_for(main, 30)

    asyncio.run(bounded())


def bodies(broker: TestBroker, topic: str) -> list[bytes]:
    return sorted(message.body for message in broker.messages(topic))


async def eventually(broker: TestBroker, topic: str, count: int) -> None:
    while len(broker.messages(topic)) < count:  # noqa: ASYNC110
        await asyncio.sleep(0.005)


def test_start_is_quick() -> None:
    async def main() -> None:
        took = []
        for _ in range(5):
            began = time.perf_counter()
            async with TestBroker():
                took.append((time.perf_counter() - began) * 1000)
        assert min(took) < START_MS_MAX  # the others may have met with a busy machine

    run(main())


def test_what_was_sent_is_seen() -> None:
    async def main() -> None:
        async with TestBroker() as broker, Producer(broker.namesrv) as producer:
            sent = [await producer.send("Orders", b"%d" % number) for number in range(40)]
            assert bodies(broker, "Orders") == sorted(b"%d" % number for number in range(40))
            ids = {message.message_id for message in broker.messages("Orders")}
            assert ids == {result.message_id for result in sent}
            assert broker.messages("Nobody") == []

    run(main())


def test_brokers_do_not_know_each_other() -> None:
    async def main() -> None:
        async with TestBroker() as one, TestBroker() as other:
            async with Producer(one.namesrv) as producer:
                await producer.send("Orders", b"one")
            assert bodies(one, "Orders") == [b"one"]
            assert bodies(other, "Orders") == []

    run(main())


def test_a_created_topic_has_its_queues() -> None:
    async def main() -> None:
        settings = {"autoCreateTopicEnable": "false"}
        async with TestBroker(settings=settings) as broker, Producer(broker.namesrv) as producer:
            with pytest.raises(NoRoute):
                await producer.send("Made", b"too early")
            await broker.create_topic("Made", queues=3)
            await producer.send("Made", b"now")
            assert len(await producer.queues("Made")) == 3

    run(main())


@pytest.mark.parametrize("clock", [None, VirtualClock()], ids=["running", "still"])
def test_delays_are_jumped_over(clock: VirtualClock | None) -> None:
    async def main() -> None:
        async with TestBroker(clock=clock) as broker, Producer(broker.namesrv) as producer:
            await broker.create_topic("Later")
            await producer.send("Later", b"two hours", delay_level=18)
            await broker.jump(7190)
            assert bodies(broker, "Later") == []
            await broker.jump(11)
            await eventually(broker, "Later", 1)

    run(main())


def test_a_long_jump_leaves_connections_alone() -> None:
    async def main() -> None:
        async with TestBroker() as broker, Producer(broker.namesrv) as producer:
            await producer.send("Orders", b"before")
            open_before = broker.faults.connections
            await broker.jump(86_400)
            await asyncio.sleep(1.1)  # the sweeps of connections go by the machine's clock
            assert broker.faults.connections == open_before
            await producer.send("Orders", b"after")

    run(main())


def test_a_still_clock_stamps_messages() -> None:
    async def main() -> None:
        clock = VirtualClock()
        async with TestBroker(clock=clock) as broker, Producer(broker.namesrv) as producer:
            await producer.send("Orders", b"one")
            (message,) = broker.messages("Orders")
            assert message.stored_ms == clock.now_ms()

    run(main())


def test_sends_are_refused_as_often_as_told() -> None:
    async def main() -> None:
        async with TestBroker() as broker, Producer(broker.namesrv, retries=0) as producer:
            broker.refuse(ResponseCode.NO_PERMISSION, "not today", times=2)
            for _ in range(2):
                with pytest.raises(NoPermission, match="not today"):
                    await producer.send("Orders", b"refused")
            await producer.send("Orders", b"taken")
            assert bodies(broker, "Orders") == [b"taken"]
            assert broker.faults.happened == 2

    run(main())


def test_a_fault_lasts_until_it_is_healed() -> None:
    async def main() -> None:
        async with TestBroker() as broker, Producer(broker.namesrv, retries=0) as producer:
            broker.refuse()
            for _ in range(3):
                with pytest.raises(SystemBusy):
                    await producer.send("Orders", b"refused")
            broker.heal()
            await producer.send("Orders", b"taken")
            assert bodies(broker, "Orders") == [b"taken"]

    run(main())


def test_faults_concern_only_what_they_are_for() -> None:
    async def main() -> None:
        async with TestBroker() as broker, Producer(broker.namesrv, retries=0) as producer:
            broker.refuse(requests=READS)
            await producer.send("Orders", b"taken")
            assert broker.faults.happened == 0
            assert bodies(broker, "Orders") == [b"taken"]

    run(main())


def test_a_late_answer_is_late_and_the_message_is_there() -> None:
    async def main() -> None:
        async with (
            TestBroker() as broker,
            Producer(broker.namesrv, retries=0, timeout_s=0.3) as producer,
        ):
            await producer.send("Orders", b"first")
            broker.delay_answers(5.0, requests=SENDS, times=1)
            with pytest.raises(PeerLate):
                await producer.send("Orders", b"second")
            assert bodies(broker, "Orders") == [b"first", b"second"]

    run(main())


def test_a_lost_answer_makes_a_second_copy() -> None:
    async def main() -> None:
        async with TestBroker() as broker:
            async with Producer(broker.namesrv, retries=0) as producer:
                broker.lose_answers()
                with pytest.raises(PeerGone):
                    await producer.send("Orders", b"stored, and nobody knows")
            async with Producer(broker.namesrv, retries=2) as producer:
                broker.lose_answers()
                await producer.send("Orders", b"stored, and nobody knows")
            stored = broker.messages("Orders")
            assert len(stored) == 3
            assert len({message.message_id for message in stored}) == 2  # a retry keeps the id

    run(main())


def test_dropped_connections_are_made_again() -> None:
    async def main() -> None:
        async with TestBroker() as broker, Producer(broker.namesrv) as producer:
            await producer.send("Orders", b"one")
            assert broker.drop_connections() >= 1
            await producer.send("Orders", b"two")
            assert bodies(broker, "Orders") == [b"one", b"two"]

    run(main())


def test_a_stopped_broker_comes_back_with_its_data() -> None:
    async def main() -> None:
        async with TestBroker() as broker:
            async with Producer(broker.namesrv, retries=0, timeout_s=1) as producer:
                await producer.send("Orders", b"one")
                address = broker.address
                await broker.stop()
                with pytest.raises((PeerGone, PeerLate, NoRoute)):
                    await producer.send("Orders", b"nobody there")
            with pytest.raises(RuntimeError, match="does not run"):
                broker.messages("Orders")
            await broker.start()
            assert broker.address == address
            async with Producer(broker.namesrv) as producer:
                await producer.send("Orders", b"two")
            assert bodies(broker, "Orders") == [b"one", b"two"]

    run(main())


def test_a_lost_name_server_comes_back() -> None:
    async def main() -> None:
        async with TestBroker() as broker:
            await broker.stop_namesrv()
            async with Producer(broker.namesrv, timeout_s=0.5) as producer:
                with pytest.raises(NoRoute) as caught:
                    await producer.send("Orders", b"where to?")
                assert caught.value.cause is NoRouteCause.NO_NAME_SERVER
            await broker.start_namesrv()
            await broker.create_topic("Orders")  # waits until the broker has registered again
            async with Producer(broker.namesrv) as producer:
                await producer.send("Orders", b"there")
            assert bodies(broker, "Orders") == [b"there"]

    run(main())


def test_data_stays_in_a_directory_of_the_caller(tmp_path: Path) -> None:
    async def main() -> None:
        async with TestBroker(directory=tmp_path) as broker, Producer(broker.namesrv) as producer:
            await producer.send("Orders", b"kept")
        async with TestBroker(directory=tmp_path) as broker:
            assert bodies(broker, "Orders") == [b"kept"]

    run(main())


def test_faults_that_cannot_be_are_refused() -> None:
    async def main() -> None:
        async with TestBroker() as broker:
            with pytest.raises(InvalidValue, match="times is 0"):
                broker.refuse(times=0)
            with pytest.raises(InvalidValue, match="give 0 to 600"):
                broker.delay_answers(-1)
            assert not broker.faults

    run(main())
