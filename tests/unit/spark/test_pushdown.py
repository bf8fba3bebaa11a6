"""What a filter keeps off the wire: brokers leave out what is not wanted."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from gantrymq.blocking import Producer
from gantrymq.model.message import Message
from gantrymq.spark.backend import open_backend
from gantrymq.spark.link import link_to
from gantrymq.spark.options import read_source_options
from gantrymq.spark.planning import batch_slices
from gantrymq.spark.pull_line import PullLines
from gantrymq.spark.reading import read_slice
from gantrymq.spark.schema import WantedColumn
from gantrymq.testing import ThreadedBroker

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from gantrymq.client.consuming.pull_requests import Pulled, PullRequests

COUNT = 4000
COLUMNS = (WantedColumn("body", nullable=True),)


@pytest.fixture(scope="module")
def broker() -> Iterator[ThreadedBroker]:
    with ThreadedBroker() as started:
        started.create_topic("Mixed", 2)
        with Producer(started.namesrv) as producer:
            for start in range(0, COUNT, 500):
                producer.send_batch([
                    Message(
                        topic="Mixed", body=b"%0200d" % number, tags=f"t{number % 10}",
                        properties={"price": str(number % 100)},
                    )
                    for number in range(start, start + 500)
                ])  # fmt: skip
        yield started


class Sent:
    """What brokers sent: bytes of messages, in the answers to pulls."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.size = 0
        ask = PullLines.ask

        def counted(
            lines: PullLines, address: str, requests: PullRequests, offsets: Sequence[int]
        ) -> list[Pulled]:
            answers = ask(lines, address, requests, offsets)
            self.size += sum(len(one.body) for one in answers)
            return answers

        monkeypatch.setattr(PullLines, "ask", counted)


def read(broker: ThreadedBroker, **options: str) -> list[bytes]:
    told = read_source_options({"nameServer": broker.namesrv, "topic": "Mixed", **options})
    backend = open_backend(told)
    try:
        return [
            body
            for part in batch_slices(told, backend)
            for batch in read_slice(told, COLUMNS, part)
            for body in batch.column(0).to_pylist()
        ]
    finally:
        link_to(told.connection).lines.close()


@pytest.mark.parametrize(
    ("options", "rows"),
    [
        ({"tags": "t3"}, COUNT // 10),
        ({"tags": "t1 || t2 || t3"}, COUNT * 3 // 10),
        ({"sql92": "price BETWEEN 0 AND 4"}, COUNT // 20),
        ({"sql92": "TAGS = 't7' AND price > 50"}, COUNT // 20),
    ],
)
def test_bytes_on_the_wire_fall_with_the_rows(
    broker: ThreadedBroker, monkeypatch: pytest.MonkeyPatch, options: dict[str, str], rows: int
) -> None:
    sent = Sent(monkeypatch)
    assert len(read(broker)) == COUNT
    everything, sent.size = sent.size, 0
    assert len(read(broker, **options)) == rows
    # A sample of the first messages is read before, to cut the range into slices.
    assert sent.size / everything == pytest.approx(rows / COUNT, abs=0.01)


def test_keys_are_looked_at_here(broker: ThreadedBroker, monkeypatch: pytest.MonkeyPatch) -> None:
    """As the page says: there is no filter by key that brokers know."""
    sent = Sent(monkeypatch)
    assert read(broker, keys="nobody") == []
    assert sent.size > COUNT * 200
