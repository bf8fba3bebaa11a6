"""Many files of a log: each but the last ends in a blank record, and Apache serves all of them.

And a log whose transient store pool was lost with its process: Apache opens what was committed.
"""

from __future__ import annotations

import shutil
import struct
from typing import TYPE_CHECKING

import pytest

from gantrymq.kernel import BLANK_MAGIC, Stop, kernel
from gantrymq.store.put import NewMessage
from gantrymq.store.reader import StoreReader
from gantrymq.store.status import PutStatus
from gantrymq.store.verify import verify
from gantrymq.testing.clock import VirtualClock
from support import apache, every_kind
from support.every_kind import BORN_HOST, BORN_MS
from support.small_stores import small_store

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = [pytest.mark.tool("java"), pytest.mark.tool("mvn")]

FILE_BYTES = 1 << 20
MESSAGES = 10_000
QUEUES = 4
TOPIC = "PlainTopic"
SIZES = {
    "mappedFileSizeCommitLog": str(FILE_BYTES),
    "mappedFileSizeConsumeQueue": "20000",
    "maxHashSlotNum": "5000",
    "maxIndexNum": "20000",
}
QUIET = {
    "autoCreateTopicEnable": "false",
    "transactionCheckInterval": "86400000",
    "timerWheelEnable": "false",
    "cleanFileForciblyEnable": "false",
    "fileReservedTime": "480000",
}


def body_of(number: int) -> bytes:
    """Return a body of about 3 KiB: lengths differ, so that files end at any distance."""
    return b"%d:" % number + bytes([number % 251]) * (3000 + number % 145)


def written(root: Path) -> None:
    """Store ten thousand messages and stop."""
    clock = VirtualClock(every_kind.STORED_MS)
    store = small_store(root, clock, **SIZES)
    store.open(1)
    for number in range(MESSAGES):
        properties = {"KEYS": f"k{number}", "TAGS": f"t{number % 3}"}
        message = NewMessage(
            TOPIC, number % QUEUES, body_of(number), properties, BORN_MS, BORN_HOST
        )
        assert store.put([message]).status is PutStatus.PUT_OK
        if number % 10 == 0:
            clock.jump(0.001)
    every_kind.write_config(root)
    assert store.close()


def check_blanks(root: Path) -> int:
    """See that records fill every file but the last up to a blank record; return their number."""
    paths = sorted((root / "commitlog").iterdir())
    records = 0
    for number, path in enumerate(paths):
        raw = path.read_bytes()
        assert len(raw) == FILE_BYTES
        found = kernel.scan_records(raw, 0, len(raw), number * FILE_BYTES, True, MESSAGES)
        records += found.records
        if path == paths[-1]:
            assert not any(raw[found.end :])
            continue
        assert found.stop is Stop.BLANK
        left = FILE_BYTES - found.end
        assert struct.unpack_from(">II", raw, found.end) == (left, BLANK_MAGIC)
        assert 8 <= left < len(body_of(144)) + 200 + 8, "the next message would have fitted"
    assert len(paths) >= MESSAGES * 3000 // FILE_BYTES
    return records


def test_apache_serves_every_file(apache_version: str, tmp_path: Path) -> None:
    root = tmp_path / "store"
    written(root)
    assert check_blanks(root) == MESSAGES
    with StoreReader.open(root) as reader:
        assert verify(reader).is_sound
        ours = {
            queue_id: [bytes(raw) for raw in reader.raw_messages(TOPIC, queue_id)]
            for queue_id in range(QUEUES)
        }
    assert sum(map(len, ours.values())) == MESSAGES
    settings = {"storePathRootDir": str(root), **SIZES, **QUIET}
    with (
        apache.broker(apache_version, tmp_path / "apache", settings) as broker,
        broker.client() as client,
    ):
        for queue_id, records in ours.items():
            assert client.pull_all(TOPIC, queue_id) == records


def test_apache_serves_what_was_committed_of_a_pool(apache_version: str, tmp_path: Path) -> None:
    root, clock = tmp_path / "live", VirtualClock(every_kind.STORED_MS)
    pool = {"transientStorePoolEnable": "true", "transientStorePoolSize": "2"}
    store = small_store(root, clock, **SIZES, **pool, commitCommitLogLeastPages="1000")
    store.open(1)
    every_kind.write_config(root)
    for number in range(800):
        message = NewMessage(TOPIC, number % QUEUES, body_of(number), {}, BORN_MS, BORN_HOST)
        assert store.put([message]).status is PutStatus.PUT_OK
        if number == 700:
            assert store.commit(0)
    shutil.copytree(root, tmp_path / "killed")
    assert store.close()
    with StoreReader.open(tmp_path / "killed") as reader:
        ours = {
            queue_id: [bytes(raw) for raw in reader.raw_messages(TOPIC, queue_id)]
            for queue_id in range(QUEUES)
        }
    count = sum(map(len, ours.values()))
    assert 701 <= count < 800, "what was not committed is lost, and nothing else"
    settings = {"storePathRootDir": str(tmp_path / "killed"), **SIZES, **QUIET}
    with (
        apache.broker(apache_version, tmp_path / "apache", settings) as broker,
        broker.client() as client,
    ):
        for queue_id, records in ours.items():
            assert client.pull_all(TOPIC, queue_id) == records
