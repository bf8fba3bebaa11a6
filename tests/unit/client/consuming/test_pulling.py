"""One queue is read: what answers do, and what happens when there is none. Without a broker."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any, cast

import pytest

from gantrymq.client.consuming.pull_requests import PullRequests, read_answer
from gantrymq.client.consuming.pulling import PullLoop
from gantrymq.client.errors import ContentError, PeerGone
from gantrymq.kernel import kernel
from gantrymq.limits import FRAME_BYTES_MAX
from gantrymq.model.queue import MessageQueue, QueueId
from gantrymq.wire.codes import ResponseCode
from gantrymq.wire.command import Command
from gantrymq.wire.frame import FrameParser
from gantrymq.wire.headers.pull import PullMessageResponse
from gantrymq.wire.response_errors import NoPermission, error_for
from support.held_messages import (
    QUEUE,
    FakeCore,
    process_queue,
    raw_record,
    subscribed_to,
    turns,
)

if TYPE_CHECKING:
    from collections.abc import Sequence

    from gantrymq.client.consuming.calls import ConsumerCalls
    from gantrymq.client.consuming.process_queue import Held, ProcessQueue
    from gantrymq.kernel.values import Record


def answer(code: int, next_offset: int, *records: Record, suggest: int = 0) -> Command:
    """Return what a broker says to a pull."""
    body = bytearray()
    for record in records:
        size = kernel.record_bytes(record)
        target = bytearray(size + 8)
        kernel.encode_record(target, 0, len(target), record)
        body += target[:size]
    header = PullMessageResponse(
        suggest_which_broker_id=suggest, next_begin_offset=next_offset, min_offset=0, max_offset=99
    )
    return Command(code=code, opaque=1, flag=1, fields=header.encode(), body=bytes(body))


class Broker:
    """Answers pulls with what a test has prepared, then never again."""

    def __init__(self, *answers: Command | Exception) -> None:
        self.answers = list(answers)
        self.asked: list[tuple[int, int | None]] = []
        """Offset, and broker id, of every pull."""
        self.heartbeats = 0
        self.refreshed: list[str] = []

    async def ask(self, address: str, request: Command, _timeout_s: float) -> Command:
        """Answer."""
        self.asked.append((int(request.fields["queueOffset"]), int(address)))
        if not self.answers:
            await asyncio.Event().wait()
        given = self.answers.pop(0)
        if isinstance(given, Exception):
            raise given
        return given

    async def now(self) -> None:
        """Take a heartbeat."""
        self.heartbeats += 1

    def refresh_soon(self, topic: str) -> None:
        """Remember that a route is looked up."""
        self.refreshed.append(topic)


class Calls:
    """The little of `ConsumerCalls` that pulling needs; an address is the broker's id."""

    group = "G"

    def __init__(self, broker: Broker) -> None:
        core: Any = FakeCore()
        core.remote = core.heartbeats = core.routes = broker
        core.connections = core
        core.open_connection = lambda _address: None
        self.core = core

    async def address(self, _queue: MessageQueue, broker_id: int) -> str:
        """Return where a broker is."""
        return str(broker_id)


class Reading:
    """A queue that is read from a prepared broker."""

    def __init__(self, broker: Broker, expression: str = "*", queue: MessageQueue = QUEUE) -> None:
        self.subscribed = subscribed_to(None, expression)
        self.queue = process_queue(self.subscribed, queue)
        self.delivered: list[Held] = []
        self.moved_to: list[int] = []
        self.loop = PullLoop(
            cast("ConsumerCalls", Calls(broker)),
            self.queue,
            self.subscribed,
            self.deliver,
            lambda _queue, offset: self.moved_to.append(offset),
            count=32,
        )

    def deliver(self, _queue: ProcessQueue, arrived: Sequence[Held]) -> None:
        """Remember what came."""
        self.delivered.extend(arrived)

    async def run(self, seconds: float = 0.0) -> None:
        """Read until the broker has no more answers."""
        task = asyncio.create_task(self.loop.run())
        if seconds:
            await asyncio.sleep(seconds)
        await turns()
        self.queue.drop()
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)

    @property
    def bodies(self) -> list[bytes]:
        """Return what came."""
        return [held.message.body for held in self.delivered]


def test_messages_are_delivered_and_reading_goes_on_behind_them() -> None:
    broker = Broker(
        answer(0, 2, raw_record(b"a", 0), raw_record(b"b", 1)),
        answer(0, 3, raw_record(b"c", 2)),
    )
    reading = Reading(broker)
    asyncio.run(reading.run())
    assert reading.bodies == [b"a", b"b", b"c"]
    assert [offset for offset, _id in broker.asked] == [0, 2, 3]
    assert reading.queue.commit_offset == 0


def test_a_filtered_stretch_is_passed_over() -> None:
    broker = Broker(
        answer(ResponseCode.PULL_RETRY_IMMEDIATELY, 800),
        answer(0, 803, raw_record(b"a", 800, TAGS="AaAa"), raw_record(b"b", 801, TAGS="BBBB")),
    )
    reading = Reading(broker, "AaAa")
    asyncio.run(reading.run())
    # The other tag has the same hash.
    assert reading.bodies == [b"a"]
    assert [offset for offset, _id in broker.asked] == [0, 800, 803]
    assert reading.queue.commit_offset == 800


def test_an_offset_that_is_not_there_ends_this_reading() -> None:
    broker = Broker(answer(ResponseCode.PULL_OFFSET_MOVED, 42))
    reading = Reading(broker)
    asyncio.run(reading.run())
    assert reading.moved_to == [42]
    assert len(broker.asked) == 1


def test_the_broker_says_which_of_its_group_is_asked_next() -> None:
    broker = Broker(answer(0, 1, raw_record(b"a", 0), suggest=1), answer(0, 2, raw_record(b"b", 1)))
    asyncio.run(Reading(broker).run())
    assert [broker_id for _offset, broker_id in broker.asked] == [0, 1, 0]


def test_a_lost_connection_is_waited_for() -> None:
    broker = Broker(PeerGone("cut"), PeerGone("refused"), answer(0, 1, raw_record(b"a", 0)))
    reading = Reading(broker)
    asyncio.run(reading.run(seconds=0.6))
    assert reading.bodies == [b"a"]
    assert [offset for offset, _id in broker.asked] == [0, 0, 0, 1]
    assert broker.refreshed == ["T"]


@pytest.mark.parametrize("code", [24, 25, 27, 28])
def test_a_broker_that_forgot_us_is_told_again(code: int) -> None:
    broker = Broker(error_for(code), answer(0, 1, raw_record(b"a", 0)))
    reading = Reading(broker)
    asyncio.run(reading.run(seconds=0.2))
    assert (broker.heartbeats, reading.bodies) == (1, [b"a"])


def test_a_broker_that_answers_at_once_with_nothing_is_not_asked_without_end() -> None:
    broker = Broker(*[answer(ResponseCode.PULL_NOT_FOUND, 0)] * 1000)
    asyncio.run(Reading(broker).run(seconds=0.2))
    assert 2 <= len(broker.asked) <= 10


def test_what_is_no_record_is_not_passed_over() -> None:
    broken = answer(0, 1, raw_record(b"a", 0))
    broker = Broker(
        Command(code=0, opaque=1, flag=1, fields=broken.fields, body=broken.body[:-1]), broken
    )
    reading = Reading(broker)
    asyncio.run(reading.run(seconds=0.2))
    assert reading.bodies == [b"a"]


def test_a_message_of_the_retry_topic_has_the_name_of_its_own() -> None:
    retry = MessageQueue("%RETRY%G", "b", QueueId(0))
    broker = Broker(answer(0, 1, raw_record(b"a", 0, "%RETRY%G", RETRY_TOPIC="Orders")))
    reading = Reading(broker, queue=retry)
    asyncio.run(reading.run())
    assert [held.message.topic for held in reading.delivered] == ["Orders"]


def test_reading_stops_when_enough_is_in_hand() -> None:
    broker = Broker(*[answer(0, n + 1, raw_record(b"m", n)) for n in range(2000)])
    reading = Reading(broker)
    asyncio.run(reading.run(seconds=0.5))
    assert len(reading.delivered) == 1000


# -- requests -----------------------------------------------------------------------------------


@pytest.mark.parametrize("topic", ["T", "%RETRY%100%d", "8888888888888"])
def test_the_prepared_frame_says_the_same_as_the_command(topic: str) -> None:
    queue = MessageQueue(topic, "b", QueueId(3))
    requests = PullRequests("G", queue, subscribed_to(None), 32, names_subscription=True)
    (parsed,) = FrameParser().feed(requests.frame(12345, 2**40))
    expected = requests.at(2**40)
    assert parsed.fields == expected.fields
    assert (parsed.code, parsed.opaque, parsed.flag) == (expected.code, 12345, 0)
    frame = requests.frame(1, 2)
    frames, _end = kernel.split_frames(frame, 0, len(frame), FRAME_BYTES_MAX)
    assert kernel.decode_request(frame, frames[0]) is not None


def test_answers_that_are_no_ending_of_a_pull() -> None:
    with pytest.raises(NoPermission):
        read_answer(Command(code=16, opaque=1, flag=1))
    with pytest.raises(ContentError, match="nextBeginOffset"):
        read_answer(Command(code=0, opaque=1, flag=1, fields={"suggestWhichBrokerId": "0"}))
    fields = {**answer(0, 1).fields, "minOffset": "x"}
    with pytest.raises(ContentError, match="minOffset"):
        read_answer(Command(code=0, opaque=1, flag=1, fields=fields))
