"""What a redrive sends together, and what it makes of a broker that takes no batches."""

from __future__ import annotations

import asyncio
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

from gantrymq.admin.messages import topic_queue
from gantrymq.admin.redrive_plan import Order, Progress
from gantrymq.admin.redrive_sending import BATCH, BATCH_BYTES, Sends, in_batches
from gantrymq.admin.session import Session
from gantrymq.wire.peer import PeerGone
from gantrymq.wire.response_errors import MessageIllegal, ServiceNotAvailable
from gantrymq.wire.sysflag import Compression, with_compression

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from gantrymq.wire.record import MessageRecord

QUEUE = topic_queue("%DLQ%g", "broker-a", 0)


def letter(offset: int, size: int = 100, sys_flag: int = 0) -> MessageRecord:
    raw = SimpleNamespace(queue_offset=offset, sys_flag=sys_flag)
    made: Any = SimpleNamespace(
        raw=raw, queue_offset=offset, stored_bytes=size, properties={"RETRY_TOPIC": "T"}
    )
    found: MessageRecord = made
    return found


def test_parts_are_bounded_in_number_and_in_bytes() -> None:
    small = [letter(number) for number in range(2 * BATCH + 1)]
    assert [len(part) for part in in_batches(small)] == [BATCH, BATCH, 1]
    large = [letter(number, BATCH_BYTES // 2) for number in range(5)]
    assert [len(part) for part in in_batches(large)] == [2, 2, 1]
    assert [len(part) for part in in_batches([letter(0, 4 * BATCH_BYTES)] * 2)] == [1, 1]


def test_what_is_compressed_goes_alone() -> None:
    packed = letter(1, sys_flag=with_compression(0, Compression.ZLIB))
    parts = list(in_batches([letter(0), packed, letter(2)]))
    assert sorted([each.queue_offset for each in part] for part in parts) == [[0, 2], [1]]


class Broker:
    """Answers copies: a batch, and a message by its place."""

    def __init__(self, batch: Exception | None, singles: Mapping[str, Exception]) -> None:
        self.batch = batch
        self.singles = singles
        self.asked: list[int] = []

    async def copy_batch(self, pairs: Sequence[Any], _topic: str) -> list[str]:
        self.asked.append(len(pairs))
        if self.batch is not None:
            raise self.batch
        return [f"new {mark['REDRIVE_FROM']}" for _record, mark in pairs]

    async def copy(self, _record: object, _topic: str, mark: dict[str, str]) -> Any:  # noqa: ANN401
        self.asked.append(1)
        place = mark["REDRIVE_FROM"]
        if place in self.singles:
            raise self.singles[place]
        return SimpleNamespace(message_id=f"new {place}")


def send(broker: Broker, count: int) -> tuple[list[dict[str, Any]], list[int]]:
    """Send letters; return the outcomes in the journal, and those of which nobody knows."""
    lines: list[dict[str, Any]] = []
    journal: Any = SimpleNamespace(id="job", add=lines.extend)
    copier: Any = broker
    told: list[Any] = []
    session = Session("127.0.0.1:9876")
    sends = Sends(session, Order("g"), Progress(), told.append, journal, copier)
    letters = [letter(number) for number in range(count)]
    doubtful = asyncio.run(sends._send_once(QUEUE, letters))
    return lines, [each.queue_offset for each in doubtful]


def test_a_broker_that_takes_no_batches_gets_them_one_by_one() -> None:
    broker = Broker(MessageIllegal("batch request does not support retry group"), {})
    lines, doubtful = send(broker, 3 * BATCH)
    assert doubtful == []
    assert [line["o"] for line in lines] == list(range(3 * BATCH))
    assert {line["r"] for line in lines} == {"sent"}
    assert broker.asked.count(1) == 3 * BATCH


def test_each_gets_its_own_outcome() -> None:
    singles = {
        "broker-a:0:1": MessageIllegal("too large"),
        "broker-a:0:2": PeerGone("the connection broke"),
        "broker-a:0:3": ServiceNotAvailable("not now"),
    }
    lines, doubtful = send(Broker(MessageIllegal("no batches"), singles), 5)
    assert [(line["o"], line["r"]) for line in lines] == [(0, "sent"), (1, "failed"), (4, "sent")]
    assert "too large" in lines[1]["t"]
    assert doubtful == [2, 3]


def test_of_a_batch_without_an_answer_nobody_knows() -> None:
    lines, doubtful = send(Broker(PeerGone("the connection broke"), {}), 4)
    assert (lines, doubtful) == ([], [0, 1, 2, 3])
