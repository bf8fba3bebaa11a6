"""Apache RocketMQ serves a directory that we wrote, and we serve it again when it has written too.

Each test starts one Apache broker on a store with one of everything (`support/every_kind.py`), asks
for every message in every way there is, lets it append, ends it, and opens the directory again.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections import defaultdict
from typing import TYPE_CHECKING, NamedTuple

import msgspec
import pytest

from gantrymq.model.names import SCHEDULE_TOPIC
from gantrymq.store.put import NewMessage
from gantrymq.testing.clock import VirtualClock
from gantrymq.wire.batch import BatchMessage, encode_batch
from gantrymq.wire.codes import RequestCode
from gantrymq.wire.headers.offset import OffsetResponse, QueryConsumerOffsetRequest
from gantrymq.wire.properties import encode_properties
from gantrymq.wire.record import MessageRecord, decode_record
from support import apache, every_kind
from support.every_kind import (
    BORN_HOST,
    BORN_MS,
    LOG_FILE_BYTES,
    QUEUE_FILE_BYTES,
    Content,
    Placed,
    send_header,
    unique_key,
)
from support.stores import UNIT_BYTES

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from pathlib import Path

    from gantrymq.store.message_store import MessageStore
    from support.remoting import RemotingClient

pytestmark = [pytest.mark.tool("java"), pytest.mark.tool("mvn")]

WRITER_SECONDS_MAX = 60
FOREVER_MS = 2**62
QUIET = {
    "autoCreateTopicEnable": "false",
    "autoCreateSubscriptionGroup": "false",
    "transactionCheckInterval": "86400000",
    "transactionTimeOut": "864000000",
    "timerWheelEnable": "false",
    "cleanFileForciblyEnable": "false",
    "osPageCacheBusyTimeOutMills": "10000",
    "waitTimeMillsInSendQueue": "10000",
}
"""An Apache broker that appends nothing by itself, and knows topics and groups from files alone."""

Queues = dict[tuple[str, int], list[bytes]]
"""The records of each queue in their order."""


class Written(NamedTuple):
    """A store that we left behind: its directory, and what a broker must serve from it."""

    root: Path
    placed: list[Placed]
    """In the order of the log."""

    def record(self, place: Placed) -> bytes:
        """Return the bytes of a message, from the file they lie in."""
        start = place.log_offset - place.log_offset % LOG_FILE_BYTES
        with (self.root / "commitlog" / f"{start:020d}").open("rb") as file:
            file.seek(place.log_offset - start)
            size = file.read(4)
            return size + file.read(int.from_bytes(size) - 4)

    def queues(self) -> Queues:
        """Return what every queue holds."""
        found: Queues = defaultdict(list)
        for place in self.placed:
            if place.is_counted:
                queue = found[place.topic, place.queue_id]
                assert place.queue_offset == len(queue)
                queue.append(self.record(place))
        return found


# -- stores --------------------------------------------------------------------------------------


def closed_store(root: Path) -> Written:
    """Write a store and close it."""
    clock = VirtualClock(every_kind.STORED_MS)
    store = every_kind.make_store(root, clock)
    store.open(1)
    placed = every_kind.write(store, clock)
    every_kind.write_config(root)
    assert store.close()
    assert not (root / "abort").exists()
    return Written(root, placed)


def killed_store(root: Path) -> Written:
    """Have a process write a store, kill it, and tear the last record as a power cut would."""
    command = [sys.executable, "-m", "support.every_kind", str(root)]
    places = [str(apache.ROOT / "src"), str(apache.ROOT / "tests")]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(places)}
    with subprocess.Popen(command, env=environment, stdout=subprocess.PIPE) as process:
        try:
            assert process.stdout is not None
            placed = msgspec.json.decode(process.stdout.readline(), type=list[Placed])
        finally:
            process.kill()
    assert (root / "abort").exists()
    written = Written(root, placed)
    last = placed.pop()
    position = last.log_offset % LOG_FILE_BYTES
    torn = written.record(last)
    with (root / "commitlog" / f"{last.log_offset - position:020d}").open("r+b") as file:
        file.seek(position + len(torn) // 2)
        file.write(bytes(len(torn) - len(torn) // 2))
    return written


# -- Apache serves it ----------------------------------------------------------------------------


def apache_settings(root: Path) -> dict[str, str]:
    """Return the settings of a broker on a store of ours."""
    return {"storePathRootDir": str(root), **every_kind.SETTINGS, **QUIET}


def check_queues(client: RemotingClient, queues: Queues) -> None:
    """Every queue has its ends and its messages, byte for byte."""
    for (topic, queue_id), records in queues.items():
        assert client.min_offset(topic, queue_id) == 0
        assert client.max_offset(topic, queue_id) == len(records), topic
        assert client.pull_all(topic, queue_id) == records, topic


def check_contents(written: Written, contents: list[Content]) -> None:
    """The records hold what was sent: the store's own bytes are not taken for granted."""
    for place in written.placed:
        sent = contents[place.number].message
        stored = as_message(written.record(place))
        assert stored.topic == place.topic == contents[place.number].stored_topic
        assert (stored.queue_id, stored.body) == (place.queue_id, sent.body)
        assert stored.raw.born_host == sent.born_host
        assert (stored.raw.flag, stored.raw.born_timestamp) == (sent.flag, sent.born_timestamp)
        assert stored.raw.reconsume_times == sent.reconsume_times
        given = {k: v for k, v in sent.properties.items() if k != "DELAY"}
        assert given.items() <= stored.properties.items()
        assert ("DELAY" in sent.properties) == (stored.properties.get("DELAY") == "18")


def check_keys(client: RemotingClient, written: Written, contents: list[Content]) -> None:
    """Every key finds the newest messages that have it, and no other."""
    by_key: dict[tuple[str, str], list[bytes]] = defaultdict(list)
    unique: dict[tuple[str, str], list[bytes]] = defaultdict(list)
    for place in written.placed:
        content = contents[place.number]
        if content.message.sys_flag & 0xC == 0xC:
            continue  # rolled back messages are not indexed
        for key in content.keys:
            by_key[place.topic, key].append(written.record(place))
        if content.unique_key is not None:
            unique[place.topic, content.unique_key].append(written.record(place))
    assert len(by_key) > 700
    for (topic, key), records in by_key.items():
        hits = [hit for hit in client.query(topic, key) if key in as_message(hit).keys]
        assert once(hits) == records, key
    for (topic, key), records in unique.items():
        found = client.query(topic, key, unique=True)
        assert once(hit for hit in found if as_message(hit).unique_key == key) == records, key


def once(hits: Iterable[bytes]) -> list[bytes]:
    """Return hits without repetition.

    A message whose two keys have one hash is in the index twice; and Apache, recovering, indexes
    the last message of the last good index file once more.
    """
    return list(dict.fromkeys(hits))


def check_offset_ids(client: RemotingClient, written: Written) -> None:
    """Every message is found by its id, prepared ones too."""
    for place in written.placed:
        assert client.view(place.log_offset) == written.record(place)


def check_times(client: RemotingClient, queues: Queues) -> None:
    """A store time leads to a message of that time.

    Only in queues of one file: 4.9 chooses among several by the time of their last change on disk,
    which is not the time of our messages.
    """
    looked_at = 0
    for (topic, queue_id), records in queues.items():
        times = [as_message(record).raw.store_timestamp for record in records]
        if len(records) * UNIT_BYTES <= QUEUE_FILE_BYTES:
            for time in times:
                assert times[client.search_offset(topic, queue_id, time)] == time
                looked_at += 1
    assert looked_at > 20


def check_committed(client: RemotingClient) -> None:
    """The offsets that we wrote for a group are known."""
    for queue_id, offset in every_kind.COMMITTED.items():
        header = QueryConsumerOffsetRequest(
            consumer_group=every_kind.READER_GROUP, topic="PlainTopic", queue_id=queue_id
        )
        answer = client.want(RequestCode.QUERY_CONSUMER_OFFSET, header)
        assert OffsetResponse.decode(answer.fields).offset == offset


def check_all(client: RemotingClient, written: Written) -> None:
    """Apache serves everything."""
    contents = every_kind.contents()
    queues = written.queues()
    check_contents(written, contents)
    check_queues(client, queues)
    check_keys(client, written, contents)
    check_offset_ids(client, written)
    check_times(client, queues)
    check_committed(client)


def as_message(record: bytes) -> MessageRecord:
    """Return a record as a value."""
    message, _end = decode_record(record, 0, len(record))
    return message


# -- and the way back ----------------------------------------------------------------------------


def append_through_apache(client: RemotingClient) -> None:
    """Send single messages, a batch and a delayed one, enough for a new log file."""
    for n in range(30):
        properties = {"UNIQ_KEY": unique_key(90_000 + n), "KEYS": f"apache-{n}", "TAGS": "Apache"}
        body = bytes([n]) * (50_000 if n % 2 else 10)
        message = NewMessage("PlainTopic", n % 4, body, properties, BORN_MS, BORN_HOST)
        client.send(send_header(message, properties), body)
    batch = NewMessage("BatchTopic", 1, b"", {}, BORN_MS, BORN_HOST)
    inner = [
        BatchMessage(n, b"inner", encode_properties({"UNIQ_KEY": unique_key(91_000 + n)}))
        for n in range(7)
    ]
    header = send_header(batch, {"WAIT": "true"}, batch=True)
    client.send(header, encode_batch(inner), RequestCode.SEND_BATCH_MESSAGE)
    late = NewMessage("DelayTopic", 0, b"late", {"DELAY": "18"}, BORN_MS, BORN_HOST)
    client.send(send_header(late, late.properties), b"late")


def all_queues(client: RemotingClient, known: Iterable[tuple[str, int]]) -> Queues:
    """Return what Apache serves now."""
    return {(topic, queue_id): client.pull_all(topic, queue_id) for topic, queue_id in known}


def pulled(store: MessageStore, topic: str, queue_id: int) -> Iterator[bytes]:
    """Yield what we serve from a queue."""
    offset = 0
    while True:
        found = store.get(topic, queue_id, offset, 32)
        if not found.records:
            return
        yield from (bytes(record) for record in found.records)
        offset = found.next_offset


def check_way_back(root: Path, served: Queues, *, clean: bool) -> None:
    """We open what Apache left, serve all of it, and go on from there."""
    store = every_kind.make_store(root, VirtualClock(4 * every_kind.STORED_MS))
    report = store.open(1)
    assert report.clean == clean
    for (topic, queue_id), records in served.items():
        assert list(pulled(store, topic, queue_id)) == records, topic
        check_our_index(store, records)
    more = NewMessage("PlainTopic", 2, b"ours again", {}, BORN_MS, BORN_HOST)
    stored = store.put([more])
    assert stored.queue_offset == len(served["PlainTopic", 2])
    assert as_message(list(pulled(store, "PlainTopic", 2))[-1]).body == b"ours again"
    assert store.close()


def check_our_index(store: MessageStore, records: list[bytes]) -> None:
    """Our index finds messages whoever indexed them."""
    assert store.index is not None
    for message in map(as_message, records):
        for key in (*message.keys, message.unique_key):
            if key is not None:
                found = store.index.query(message.topic, key, 64, 0, FOREVER_MS)
                assert message.log_offset in found.log_offsets, key


# -- the tests -----------------------------------------------------------------------------------


def test_apache_serves_a_store_that_we_closed(apache_version: str, tmp_path: Path) -> None:
    written = closed_store(tmp_path / "ours")
    copy = tmp_path / "store"
    shutil.copytree(written.root, copy)
    with apache.broker(apache_version, tmp_path / "apache", apache_settings(copy)) as broker:
        with broker.client() as client:
            check_all(client, written)
            append_through_apache(client)
            served = all_queues(client, written.queues())
        broker.stop()
    assert len(served[SCHEDULE_TOPIC, 17]) == 4
    check_way_back(copy, served, clean=True)


def test_apache_recovers_a_store_that_we_were_killed_on(
    apache_version: str, tmp_path: Path
) -> None:
    written = killed_store(tmp_path / "ours")
    copy = tmp_path / "store"
    shutil.copytree(written.root, copy)
    with apache.broker(apache_version, tmp_path / "apache", apache_settings(copy)) as broker:
        with broker.client() as client:
            check_all(client, written)
            append_through_apache(client)
            served = all_queues(client, written.queues())
        broker.kill()
    check_way_back(copy, served, clean=False)


def test_we_recover_the_same_from_what_was_killed(tmp_path: Path) -> None:
    written = killed_store(tmp_path / "ours")
    store = every_kind.make_store(written.root, VirtualClock(2 * every_kind.STORED_MS))
    report = store.open(1)
    assert not report.clean
    for (topic, queue_id), records in written.queues().items():
        assert list(pulled(store, topic, queue_id)) == records, topic
    assert store.close()
