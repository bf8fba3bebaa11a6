"""A server under load, as a process of its own: one order of all puts, nothing lost at its end."""

from __future__ import annotations

import socket
import threading
import time
from collections import defaultdict
from itertools import pairwise
from typing import TYPE_CHECKING

import pytest

from gantrymq.store.reader import StoreReader
from gantrymq.store.verify import verify
from gantrymq.wire.bodies.route import KV_TABLE
from gantrymq.wire.codes import RequestCode
from gantrymq.wire.frame import FrameParser
from gantrymq.wire.headers.send import SendMessageV2Request
from support.gantry import NotRunning, server
from support.samples import json_request, send_fields

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from gantrymq.wire.record import MessageRecord
    from support.gantry import Running
    from support.remoting import RemotingClient

CONNECTIONS = 32
QUEUES = 4
AT_ONCE = 100
WAIT_S = 60
MESSAGES = 102_400
LOG_FILE = {"mappedFileSizeCommitLog": str(4 << 20)}


class Sender:
    """One connection that sends as fast as it is answered, and remembers what was acknowledged."""

    def __init__(self, number: int, running: Running, messages: int | None) -> None:
        """Send so many messages; without a number, until the server has gone."""
        self.acknowledged: list[bytes] = []
        self._number = number
        self._messages = messages
        self._socket = socket.create_connection(("127.0.0.1", running.port), WAIT_S)
        self.thread = threading.Thread(target=self._run)
        self.thread.start()

    def _run(self) -> None:
        sent, parser = 0, FrameParser()
        with self._socket:
            while self._messages is None or sent < self._messages:
                bodies = {sent + n: b"%d-%d" % (self._number, sent + n) for n in range(AT_ONCE)}
                try:
                    self._socket.sendall(b"".join(self._frame(n, b) for n, b in bodies.items()))
                    while bodies:
                        if not (chunk := self._socket.recv(1 << 16)):
                            return
                        for answer in parser.feed(chunk):
                            body = bodies.pop(answer.opaque)
                            if answer.code == 0:
                                self.acknowledged.append(body)
                except OSError:
                    return
                sent += AT_ONCE

    @staticmethod
    def _frame(opaque: int, body: bytes) -> bytes:
        fields = send_fields(b="T", e=str(opaque % QUEUES), i="")
        return json_request(310, fields, body, opaque=opaque)


def make_topic(client: RemotingClient) -> None:
    header = SendMessageV2Request(
        producer_group="p", topic="T", default_topic="TBW102", default_topic_queue_nums=QUEUES,
        queue_id=0, sys_flag=0, born_timestamp=1, flag=0,
    )  # fmt: skip
    client.send(header, b"first")


def stored(work: Path) -> list[MessageRecord]:
    """Return every record of the log, of a store that was closed well and in which all agrees."""
    with StoreReader.open(work / "data" / "store", work / "broker.conf") as reader:
        assert reader.report is not None
        assert reader.report.clean
        assert not (work / "data" / "store" / "abort").exists()
        report = verify(reader)
        assert report.problems == [], "check sums, times, queues and index"
        return [record for record in reader.records() if record.topic == "T"]


def check_order(records: list[MessageRecord]) -> None:
    """See that all puts have one order: in the log, in time, and in each queue."""
    queues: dict[int, list[int]] = defaultdict(list)
    for before, record in pairwise(records):
        assert before.log_offset < record.log_offset
        assert before.raw.store_timestamp <= record.raw.store_timestamp
    for record in records:
        queues[record.queue_id].append(record.queue_offset)
    for offsets in queues.values():
        assert offsets == list(range(len(offsets))), "dense, and in the log's order"


def test_many_connections_have_one_order(tmp_path: Path) -> None:
    with server(tmp_path, LOG_FILE) as running, running.client() as client:
        make_topic(client)
        share = MESSAGES // CONNECTIONS
        all_of_them = [Sender(number, running, share) for number in range(CONNECTIONS)]
        for sender in all_of_them:
            sender.thread.join(WAIT_S)
        ended = time.monotonic()
        while int(_runtime(client)["dispatchBehindBytes"]) > 0:
            assert time.monotonic() - ended < 1, "dispatch is behind a second after the burst"
        assert int(_runtime(client)["putMessageTimesTotal"]) >= MESSAGES + 1
        visible = sum(client.max_offset("T", queue_id) for queue_id in range(QUEUES))
        assert visible == MESSAGES + 1
    records = stored(tmp_path)
    check_order(records)
    acknowledged = [body for sender in all_of_them for body in sender.acknowledged]
    assert len(acknowledged) == MESSAGES
    assert sorted(record.body for record in records) == sorted([*acknowledged, b"first"])


def _runtime(client: RemotingClient) -> Mapping[str, str]:
    return KV_TABLE.decode(client.want(RequestCode.GET_BROKER_RUNTIME_INFO).body).table


def test_a_stop_in_the_middle_of_a_load_loses_nothing(tmp_path: Path) -> None:
    for flush in ("ASYNC_FLUSH", "SYNC_FLUSH"):
        work = tmp_path / flush
        with server(work, {**LOG_FILE, "flushDiskType": flush}) as running:
            with running.client() as client:
                make_topic(client)
            assert (work / "data" / "store" / "abort").exists()
            all_of_them = [Sender(number, running, None) for number in range(CONNECTIONS)]
            deadline = time.monotonic() + WAIT_S
            while sum(len(sender.acknowledged) for sender in all_of_them) < 20_000:
                assert time.monotonic() < deadline
                time.sleep(0.01)
        # It was told to stop (SIGTERM) while all of them were sending, and has ended well.
        for sender in all_of_them:
            sender.thread.join(WAIT_S)
            assert not sender.thread.is_alive()
        records = stored(work)
        check_order(records)
        bodies = [record.body for record in records]
        assert len(set(bodies)) == len(bodies), "nothing twice"
        lost = {body for sender in all_of_them for body in sender.acknowledged} - set(bodies)
        assert lost == set()


def test_directories_and_files_that_say_who_has_them(tmp_path: Path) -> None:
    store = tmp_path / "data" / "store"
    with server(tmp_path, LOG_FILE):
        names = {"abort", "checkpoint", "commitlog", "config", "consumequeue", "index", "lock"}
        there = {path.name for path in store.iterdir()}
        assert names - {"checkpoint"} <= there
        with (
            pytest.raises(NotRunning, match=rf"{store} is open in process \d+"),
            server(tmp_path, LOG_FILE),
        ):
            pass
        assert (store / "abort").exists(), "it belongs to the first one"
    assert not (store / "abort").exists()
    assert (store / "checkpoint").stat().st_size == 4096


def test_what_was_acknowledged_can_be_pulled_at_once(tmp_path: Path) -> None:
    with server(tmp_path, LOG_FILE) as running, running.client() as producer:
        make_topic(producer)
        with running.client() as consumer:
            for number in range(1, 300):
                header = SendMessageV2Request(
                    producer_group="p", topic="T", default_topic="TBW102",
                    default_topic_queue_nums=QUEUES, queue_id=0, sys_flag=0, born_timestamp=1,
                    flag=0,
                )  # fmt: skip
                assert producer.send(header, b"%d" % number).queue_offset == number
                assert len(consumer.pull("T", 0, number).records) == 1
