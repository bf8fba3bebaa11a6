"""What a consumer asks of brokers, and of which."""

from __future__ import annotations

import asyncio
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any, cast

import pytest

from gantrymq.client.consuming.calls import ConsumerCalls
from gantrymq.client.consuming.locks import VALID_S, QueueLocks
from gantrymq.client.errors import NoRoute, PeerGone
from gantrymq.client.route import Route
from gantrymq.model.queue import MessageQueue, QueueId
from gantrymq.model.route import BrokerData, QueueData, TopicRoute
from gantrymq.model.topic import Perm
from gantrymq.testing.clock import VirtualClock
from gantrymq.wire.bodies.heartbeat import CONSUMER_IDS, ConsumerIds
from gantrymq.wire.bodies.lock import LOCK_ANSWER, LockAnswer
from gantrymq.wire.codes import RequestCode
from gantrymq.wire.headers.offset import OffsetResponse
from gantrymq.wire.response_errors import QueryNotFound
from support.held_messages import process_queue, subscribed_to

if TYPE_CHECKING:
    from gantrymq.client.consuming.process_queue import ProcessQueue
    from gantrymq.client.core import ClientCore
    from gantrymq.wire.fields import Header

QUEUE = MessageQueue("T", "a", QueueId(0))
OTHER = MessageQueue("T", "b", QueueId(0))


class Remote:
    """Brokers that answer what a test has prepared."""

    def __init__(self) -> None:
        self.asked: list[tuple[str, RequestCode]] = []
        self.answers: dict[RequestCode, Any] = {}
        self.gone: set[str] = set()

    async def call(
        self, address: str, code: RequestCode, _header: Header | None = None, *_more: object,
        **_options: object,
    ) -> Any:  # noqa: ANN401 # fmt: skip
        """Answer."""
        self.asked.append((address, code))
        if address in self.gone:
            raise PeerGone(address)
        given = self.answers[code]
        if isinstance(given, Exception):
            raise given
        return given


def calls_with(**addresses: dict[int, str]) -> tuple[ConsumerCalls, Remote]:
    """Return the calls of a consumer whose topic is on these brokers."""
    brokers = tuple(BrokerData("C", name, found) for name, found in addresses.items())
    queues = tuple(QueueData(name, 2, 2, Perm(6)) for name in addresses)
    route = Route("T", TopicRoute(queues, brokers))

    async def get(_topic: str) -> Route:
        return route

    remote = Remote()
    core = SimpleNamespace(
        settings=SimpleNamespace(request_timeout_s=1.0, credentials=None),
        routes=SimpleNamespace(get=get),
        remote=remote,
        client_id="me",
    )
    return ConsumerCalls(cast("ClientCore", core), "G"), remote


def test_another_broker_of_the_group_stands_in() -> None:
    calls, _remote = calls_with(a={0: "m:1", 1: "s:1"}, b={1: "s:2"})

    async def main() -> list[str]:
        return [
            await calls.master(QUEUE),
            await calls.address(QUEUE, 1),
            await calls.address(QUEUE, 7),
            await calls.master(OTHER),
        ]

    assert asyncio.run(main()) == ["m:1", "s:1", "m:1", "s:2"]
    with pytest.raises(NoRoute, match="'z'"):
        asyncio.run(calls.master(MessageQueue("T", "z", QueueId(0))))


def test_members_are_asked_of_any_broker_and_named_once() -> None:
    calls, remote = calls_with(a={0: "m:1"}, b={0: "m:2"})
    body = CONSUMER_IDS.encode(ConsumerIds(consumer_id_list=("x", "me", "x")))
    remote.answers[RequestCode.GET_CONSUMER_LIST_BY_GROUP] = SimpleNamespace(body=body)
    for _ in range(40):
        assert asyncio.run(calls.members("T")) == ("x", "me")
    assert {address for address, _code in remote.asked} == {"m:1", "m:2"}


def test_offsets_that_were_never_committed() -> None:
    calls, remote = calls_with(a={0: "m:1"})
    asked = RequestCode.QUERY_CONSUMER_OFFSET
    remote.answers[asked] = QueryNotFound()
    assert asyncio.run(calls.committed(QUEUE)) is None
    remote.answers[asked] = SimpleNamespace(header=OffsetResponse(offset=-1))
    assert asyncio.run(calls.committed(QUEUE)) is None
    remote.answers[asked] = SimpleNamespace(header=OffsetResponse(offset=0))
    assert asyncio.run(calls.committed(QUEUE)) == 0


def test_locks_are_ours_for_as_long_as_they_are_renewed() -> None:
    calls, remote = calls_with(a={0: "m:1"}, b={0: "m:2"})
    clock = VirtualClock()
    woken: list[ProcessQueue] = []
    locks = QueueLocks(calls, clock, woken.append)
    mine = process_queue(subscribed_to(None), QUEUE)

    def answer(*queues: MessageQueue) -> None:
        body = LOCK_ANSWER.encode(LockAnswer(lock_ok_mq_set=queues))
        remote.answers[RequestCode.LOCK_BATCH_MQ] = SimpleNamespace(body=body)

    async def main() -> list[bool]:
        seen = [locks.holds(mine)]
        answer(QUEUE)
        mine.locked_at = (await locks.lock([QUEUE, OTHER]))[QUEUE]
        seen.append(locks.holds(mine))
        clock.jump(VALID_S - 1)
        await locks.renew([mine])
        clock.jump(VALID_S - 1)
        seen.append(locks.holds(mine))
        # A broker that does not answer: what was ours stays ours until its time is up.
        remote.gone.add("m:1")
        await locks.renew([mine])
        seen.append(locks.holds(mine))
        clock.jump(1)
        seen.append(locks.holds(mine))
        remote.gone.clear()
        await locks.renew([mine])
        seen.append(locks.holds(mine))
        answer()
        await locks.renew([mine])
        seen.append(locks.holds(mine))
        return seen

    assert asyncio.run(main()) == [False, True, True, True, False, True, False]
    assert woken == [mine, mine]
    assert [address for address, _code in remote.asked[:2]] == ["m:1", "m:2"]
