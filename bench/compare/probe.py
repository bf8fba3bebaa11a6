"""How long a message takes from a producer to a consumer that waits for it.

One thread with two sockets, so that nothing but the broker lies between the two moments that are
looked at: when a send goes out, and when the pull that was parked has its answer.
"""

from __future__ import annotations

import select
import socket
import time
from typing import TYPE_CHECKING, Final, Self

from bench.compare.brokers import NotMeasured, send_header

from gantrymq.wire.codes import RequestCode, ResponseCode
from gantrymq.wire.command import Command
from gantrymq.wire.frame import FrameParser, encode_frame
from gantrymq.wire.headers.offset import GetMaxOffsetRequest, OffsetResponse
from gantrymq.wire.headers.pull import PullMessageRequest, PullMessageResponse
from gantrymq.wire.sysflag import PullFlag

if TYPE_CHECKING:
    from types import TracebackType

    from gantrymq.wire.fields import Header

BODY: Final = b"x" * 128
HOLD_MS: Final = 20_000
SETTLE_S: Final = 0.005
"""Given to a pull to be parked before the next send."""
ANSWER_SECONDS_MAX: Final = 30
TRIES_MAX: Final = 1000


class _Line:
    """A connection on which requests and answers can be told apart in time."""

    def __init__(self, port: int) -> None:
        self._socket = socket.create_connection(("127.0.0.1", port), ANSWER_SECONDS_MAX)
        self._socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self._parser = FrameParser()
        self._answers: list[Command] = []
        self._opaque = 0

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._socket.close()

    def say(self, code: int, header: Header, body: bytes = b"") -> None:
        """Send a request."""
        self._opaque += 1
        self._socket.sendall(
            encode_frame(Command.request(code, self._opaque, header.encode(), body))
        )

    def hear(self, seconds: float = ANSWER_SECONDS_MAX) -> Command | None:
        """Return the next answer, or None if there is none in this time."""
        deadline = time.perf_counter() + seconds
        while not self._answers:
            left = deadline - time.perf_counter()
            if left <= 0 or not select.select([self._socket], [], [], left)[0]:
                return None
            chunk = self._socket.recv(1 << 16)
            if not chunk:
                raise NotMeasured("the broker closed the connection of the probe")
            commands = self._parser.feed(chunk)
            if self._parser.error is not None:
                raise NotMeasured(f"the probe cannot read an answer: {self._parser.error}")
            self._answers += [one for one in commands if one.is_response]
        return self._answers.pop(0)

    def want(self, *codes: int) -> Command:
        """Return the next answer, which must have one of these codes."""
        answer = self.hear()
        if answer is None:
            raise NotMeasured(f"no answer in {ANSWER_SECONDS_MAX} s")
        if answer.code not in codes:
            raise NotMeasured(f"the probe was answered {answer.code}: {answer.remark}")
        return answer


def delivery_ms(port: int, topic: str, count: int) -> list[float]:
    """Return how long each of so many messages took to reach a consumer that waited, in ms.

    Raises:
        NotMeasured: the broker refuses, or does not deliver.
    """
    found: list[float] = []
    with _Line(port) as producer, _Line(port) as consumer:
        offset = _end_of_queue(producer, topic)
        for _ in range(count):
            consumer.say(RequestCode.PULL_MESSAGE, _pull(topic, offset))
            if consumer.hear(SETTLE_S) is not None:
                raise NotMeasured("a pull at the end of a queue was not held")
            begun = time.perf_counter()
            producer.say(RequestCode.SEND_MESSAGE_V2, send_header(topic, 0), BODY)
            offset = _delivered(consumer, topic, offset)
            found.append((time.perf_counter() - begun) * 1000)
            producer.want(ResponseCode.SUCCESS)
    return found


def _end_of_queue(producer: _Line, topic: str) -> int:
    """Make the topic if need be, and return the offset behind a message that can be read."""
    before = _max_offset(producer, topic)
    producer.say(RequestCode.SEND_MESSAGE_V2, send_header(topic, 0), BODY)
    producer.want(ResponseCode.SUCCESS)
    for _ in range(TRIES_MAX):
        offset = _max_offset(producer, topic)
        if offset > before:
            return offset
        time.sleep(SETTLE_S)  # Apache answers a send before its queue is built
    raise NotMeasured(f"{topic} has no new message although a send was accepted")


def _max_offset(producer: _Line, topic: str) -> int:
    """Return where a queue ends; 0 for a topic that is not there yet."""
    producer.say(RequestCode.GET_MAX_OFFSET, GetMaxOffsetRequest(topic=topic, queue_id=0))
    answer = producer.hear()
    if answer is None or answer.code != ResponseCode.SUCCESS:
        return 0
    return OffsetResponse.decode(answer.fields).offset


def _delivered(consumer: _Line, topic: str, offset: int) -> int:
    """Wait until the held pull has brought the message; return the offset behind it."""
    for _ in range(TRIES_MAX):
        answer = consumer.want(
            ResponseCode.SUCCESS, ResponseCode.PULL_RETRY_IMMEDIATELY, ResponseCode.PULL_NOT_FOUND
        )
        if answer.code == ResponseCode.SUCCESS:
            return PullMessageResponse.decode(answer.fields).next_begin_offset
        consumer.say(RequestCode.PULL_MESSAGE, _pull(topic, offset))  # as a client does
    raise NotMeasured(f"no delivery after {TRIES_MAX} pulls")


def _pull(topic: str, offset: int) -> PullMessageRequest:
    return PullMessageRequest(
        consumer_group="compare_c",
        topic=topic,
        queue_id=0,
        queue_offset=offset,
        max_msg_nums=32,
        sys_flag=PullFlag.SUBSCRIPTION | PullFlag.SUSPEND,
        commit_offset=0,
        suspend_timeout_millis=HOLD_MS,
        sub_version=0,
        subscription="*",
        expression_type="TAG",
    )
