"""Consume queue extensions (enableConsumeQueueExt): Apache reads ours, and we read what it adds."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from gantrymq.kernel import kernel
from gantrymq.store.consume_queue_ext import ExtUnit, is_ext_address
from gantrymq.store.files import OsFiles
from gantrymq.store.message_store import Identity, MessageStore
from gantrymq.store.put import NewMessage
from gantrymq.store.settings import read_settings
from gantrymq.store.worker import InlineWorker, Workers
from gantrymq.testing.clock import VirtualClock
from gantrymq.wire.codes import RequestCode
from gantrymq.wire.headers.pull import PullMessageRequest
from gantrymq.wire.sysflag import PullFlag
from support import apache, every_kind
from support.every_kind import BORN_HOST, BORN_MS, STORE_HOST, send_header
from support.remoting import READER_GROUP, split_records

if TYPE_CHECKING:
    from pathlib import Path

    from support.remoting import RemotingClient

pytestmark = [pytest.mark.tool("java"), pytest.mark.tool("mvn")]

TOPIC = "PlainTopic"
COUNT = 30
SETTINGS = {
    **every_kind.SETTINGS,
    "enableConsumeQueueExt": "true",
    "mappedFileSizeConsumeQueueExt": "4096",
    "autoCreateTopicEnable": "false",
    "autoCreateSubscriptionGroup": "false",
    "osPageCacheBusyTimeOutMills": "10000",
    "waitTimeMillsInSendQueue": "10000",
}


def ours(root: Path) -> MessageStore:
    """Return our store, open."""
    worker = InlineWorker()
    store = MessageStore(
        read_settings({"storePathRootDir": str(root), **SETTINGS}),
        Identity(STORE_HOST),
        files=OsFiles(),
        clock=VirtualClock(every_kind.STORED_MS),
        workers=Workers.made(lambda _name: worker),
    )
    assert store.open(1).clean
    return store


def message(number: int) -> NewMessage:
    """Return a message with tag A, B or C."""
    return NewMessage(TOPIC, 0, b"%d" % number, {"TAGS": "ABC"[number % 3]}, BORN_MS, BORN_HOST)


def tagged(client: RemotingClient, tag: str) -> list[int]:
    """Return the numbers that a consumer of one tag gets: a broker chooses by the extension."""
    found: list[int] = []
    offset = 0
    while offset < client.max_offset(TOPIC, 0):
        header = PullMessageRequest(
            consumer_group=READER_GROUP, topic=TOPIC, queue_id=0, queue_offset=offset,
            max_msg_nums=32, sys_flag=PullFlag.SUBSCRIPTION, commit_offset=0,
            suspend_timeout_millis=0, sub_version=0, subscription=tag, expression_type="TAG",
        )  # fmt: skip
        answer = client.ask(RequestCode.PULL_MESSAGE, header)
        found += [
            int(kernel.decode_record(raw, 0, len(raw), True)[0].body)
            for raw in split_records(answer.body)
        ]
        assert int(answer.fields["nextBeginOffset"]) > offset
        offset = int(answer.fields["nextBeginOffset"])
    return found


def units(store: MessageStore) -> list[ExtUnit | None]:
    """Return what the extension has of each message."""
    queue = store.queues.find(TOPIC, 0)
    assert queue is not None
    extension = store.queues.extension(queue)
    assert extension is not None
    found = []
    for offset in range(queue.max_offset):
        unit = queue.unit(offset)
        assert unit is not None
        assert is_ext_address(unit.tags_code)
        found.append(extension.read(unit.tags_code))
    return found


def test_apache_reads_ours_and_we_read_what_it_adds(apache_version: str, tmp_path: Path) -> None:
    root = tmp_path / "store"
    store = ours(root)
    for number in range(COUNT):
        store.put([message(number)])
    every_kind.write_config(root)
    assert store.close()
    assert (root / "consumequeue_ext" / TOPIC / "0").is_dir()
    settings = {"storePathRootDir": str(root), **SETTINGS}
    with apache.broker(apache_version, tmp_path / "apache", settings) as broker:
        with broker.client() as client:
            assert tagged(client, "A") == list(range(0, COUNT, 3))
            assert tagged(client, "B") == list(range(1, COUNT, 3))
            for number in range(COUNT, 2 * COUNT):
                added = message(number)
                client.send(send_header(added, added.properties), added.body)
            assert tagged(client, "C") == list(range(2, 2 * COUNT, 3))
        broker.stop()
    again = ours(root)
    hashes = [kernel.string_hash(tag) for tag in (b"A", b"B", b"C")]
    known = units(again)
    assert [one.tags_code for one in known if one is not None] == [
        hashes[number % 3] for number in range(2 * COUNT)
    ]
    assert again.close()
