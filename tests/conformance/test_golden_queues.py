"""Consume queues, their extension and the index, against the files that Apache brokers wrote.

Two directions. *Theirs*: what an Apache broker left behind is loaded, recovered and asked. *Ours*:
queues and index are built from the commit log alone and compared with Apache's files, every byte of
every file. What the formats leave free:

- consume queues: bytes behind the last unit. A new file is all zeros, and so are ours; Apache does
  not wipe what it cuts off, so in a store that was damaged other bytes may stand there.
- extension: the same; and the bitmaps, which depend on who was consuming at that time (they are
  taken from Apache's units here).
- index files: their names, which are the time of their making; and after a crash what damage left
  in the last one. All else follows from the log, for 5.5.0 with its additional keys of tags.
"""

from __future__ import annotations

import struct
from typing import TYPE_CHECKING

import msgspec
import pytest

from gantrymq.kernel import PRE_BLANK_SIZE, QueueRun
from gantrymq.store.consume_queue_ext import ExtUnit
from gantrymq.store.index import key_hash
from support.golden import STORE, STORE_LABELS
from support.golden_disk import (
    ROOT,
    dispatches,
    flush,
    golden_disk,
    index,
    keys_as_apache,
    queue_table,
    runs,
)
from support.stores import GoldenStore, golden_store

if TYPE_CHECKING:
    from gantrymq.store.queue_table import QueueTable

UNIT = struct.Struct(">qiq")
FOREVER = (0, 2**63 - 1)
CLEAN = [label for label in STORE_LABELS if not label.endswith(("killed", "torn", "-length-file"))]
KNOWN_WRONG = {("apache-4.9.7-zero-length-file", "SpamA", 1): 50}
"""Apache takes the zero unit at a file's start for a message; the commit log says 50."""


class Queue(msgspec.Struct, rename="camel"):
    topic: str
    queue_id: int
    min_offset: int
    max_offset: int


class Query(msgspec.Struct, rename="camel"):
    topic: str
    key: str
    unique: bool
    max_num: int
    hits: list[tuple[str, int, int, int]] = []
    index_last_update_timestamp: str = "0"
    index_last_update_phyoffset: str = "0"


class Manifest(msgspec.Struct, rename="camel"):
    queues: list[Queue]
    query_message: list[Query]


def manifest(label: str) -> Manifest:
    return msgspec.json.decode((STORE / label / "manifest.json").read_bytes(), type=Manifest)


@pytest.fixture(params=STORE_LABELS)
def store(request: pytest.FixtureRequest) -> GoldenStore:
    label: str = request.param
    return golden_store(label)


def is_ext(store: GoldenStore) -> bool:
    return "cqext" in store.label


def offsets(table: QueueTable, queues: list[Queue]) -> list[Queue]:
    """Return the same queues with the offsets that our table has."""
    found = []
    for queue in queues:
        ours = table.queue(queue.topic, queue.queue_id)
        found.append(Queue(queue.topic, queue.queue_id, ours.min_offset, ours.max_offset))
    return found


def expected(label: str) -> list[Queue]:
    queues = manifest(label).queues
    for queue in queues:
        queue.max_offset = KNOWN_WRONG.get((label, queue.topic, queue.queue_id), queue.max_offset)
    return queues


def with_addresses(table: QueueTable, theirs: QueueTable, run: QueueRun) -> QueueRun:
    """Put a run's tags codes into the extension, with Apache's bitmaps."""
    queue = table.queue(run.topic.decode(), run.queue_id)
    extension = table.extension(queue)
    other = theirs.queue(queue.topic, queue.queue_id)
    their_extension = theirs.extension(other)
    assert extension is not None
    assert their_extension is not None
    units = b""
    for number, (log_offset, size, tags_code) in enumerate(UNIT.iter_unpack(run.units)):
        their_unit = other.unit(run.first_queue_offset + number)
        assert their_unit is not None
        known = their_extension.read(their_unit.tags_code)
        assert known is not None
        assert known.tags_code == tags_code
        address = extension.append(ExtUnit(tags_code, known.store_timestamp, known.bitmap))
        assert address is not None
        units += UNIT.pack(log_offset, size, address)
    return run._replace(units=units)


# -- theirs ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("label", CLEAN)
def test_a_clean_store_needs_nothing(label: str) -> None:
    store = golden_store(label)
    disk = golden_disk(store, "consumequeue", "consumequeue_ext")
    table = queue_table(disk, ext=is_ext(store))
    table.load()
    table.recover()
    table.correct_min_offsets(0)
    assert offsets(table, expected(label)) == expected(label)
    assert table.log_end_max == store.end
    assert not any(queue.is_pending for queue in table)
    assert table.begin_flush(thorough=True).writes == []


def test_a_queue_is_read_as_it_was_written(store: GoldenStore) -> None:
    table = queue_table(golden_disk(store, "consumequeue"))
    table.load()
    table.recover()
    table.truncate_to(store.end)
    on_disk = store.queue_units()
    read = 0
    for queue in table:
        units = queue.read(0, queue.max_offset + 7)
        assert len(units) == 20 * queue.max_offset
        for offset in range(queue.max_offset):
            unit = units[20 * offset : 20 * offset + 20]
            assert unit == on_disk[queue.topic, queue.queue_id, offset]
            assert queue.unit(offset) == UNIT.unpack(unit)
            read += 1
    assert read >= len(on_disk) - 100 * store.is_torn


def test_every_store_recovers_to_what_apache_says(store: GoldenStore) -> None:
    disk = golden_disk(store, "consumequeue", "consumequeue_ext")
    table = queue_table(disk, ext=is_ext(store))
    table.load()
    table.recover()
    table.truncate_to(store.end)
    for run in runs(store):
        assert table.queue(run.topic.decode(), run.queue_id).append(run) == 0
    table.correct_min_offsets(0)
    assert offsets(table, expected(store.label)) == expected(store.label)
    flush(table, disk)
    # Stale units stood behind the new ends of a torn store; they must not come back.
    again = queue_table(disk, ext=is_ext(store))
    again.load()
    again.recover()
    again.correct_min_offsets(0)
    assert offsets(again, expected(store.label)) == expected(store.label)
    assert again.log_end_max == store.end
    for queue in again:
        other = table.queue(queue.topic, queue.queue_id)
        assert queue.log_end == other.log_end
        assert queue.read(0, queue.max_offset) == other.read(0, queue.max_offset)


def test_the_extension_is_read_completely() -> None:
    store = golden_store("apache-4.9.7-cqext-sql92")
    table = queue_table(golden_disk(store, "consumequeue", "consumequeue_ext"), ext=True)
    table.load()
    table.recover()
    bitmaps = set()
    read = 0
    for queue in table:
        extension = table.extension(queue)
        assert extension is not None
        for log_offset, size, address in UNIT.iter_unpack(queue.read(0, queue.max_offset)):
            assert size != PRE_BLANK_SIZE
            unit = extension.read(address)
            assert unit is not None
            tags_code, stored_at = store.extended(queue.topic, queue.queue_id, address)
            assert unit[:2] == (tags_code, stored_at)
            assert stored_at == store.messages[log_offset]["storeTimestamp"]
            bitmaps.add((queue.topic, len(unit.bitmap)))
            read += 1
        last = extension.read(queue.ext_address)
        assert last is not None
        assert extension.max_address == queue.ext_address + 20 + len(last.bitmap)
    assert read == len(store.messages)
    assert {size for topic, size in bitmaps if topic == "FilterTopic"} == {14}  # 112 bits


# -- ours ------------------------------------------------------------------------------------------


def test_queues_built_from_the_log_are_byte_identical(store: GoldenStore) -> None:
    theirs = queue_table(golden_disk(store, "consumequeue", "consumequeue_ext"), ext=is_ext(store))
    theirs.load()
    theirs.recover()
    disk = golden_disk(store)
    table = queue_table(disk, ext=is_ext(store))
    for run in runs(store):
        fresh = with_addresses(table, theirs, run) if is_ext(store) else run
        assert table.queue(run.topic.decode(), run.queue_id).append(fresh) == 0
    flush(table, disk)
    compared = 0
    for name, raw in store.files.items():
        if not name.startswith(("consumequeue/", "consumequeue_ext/")):
            continue
        if not store.is_torn:
            assert disk.read(ROOT / name) == raw, name
        elif disk.exists(ROOT / name):
            # What the damage zeroed, and what points behind the cut, is not there in both.
            ours = disk.read(ROOT / name)
            for at in range(0, len(raw), 20):
                unit = raw[at : at + 20]
                if any(unit) and int.from_bytes(unit[:8]) < store.end:
                    assert ours[at : at + 20] == unit
        compared += 1
    assert compared >= 14
    assert len(disk.names(ROOT / "consumequeue")) == len(table.topics())


def test_an_index_built_from_the_log_is_byte_identical(store: GoldenStore) -> None:
    disk = golden_disk(store)
    ours = index(disk)
    ours.insert(keys_as_apache(store))
    theirs = [store.files[name] for name in sorted(store.files) if name.startswith("index/")]
    images = [bytes(file.region.buffer) for file in ours.files]
    assert len(ours.take_full()) == len(images) - 1
    if store.is_torn:
        # Theirs goes on behind the torn record: the file that it falls into, and those behind it.
        assert images[:-1] == theirs[: len(images) - 1]
        last = ours.files[-1]
        assert 1 < last.header.next_number < 800
        count = last.header.next_number
        begin = 40 + 4 * 200
        entries = slice(begin, begin + 20 * count)
        assert images[-1][entries] == theirs[len(images) - 1][entries]
    else:
        assert images == theirs


@pytest.mark.parametrize("source", ["theirs", "ours"])
def test_queries_are_answered_as_by_apache(store: GoldenStore, source: str) -> None:
    disk = golden_disk(store, "index")
    found = index(disk)
    if source == "theirs":
        found.load()
    else:
        for dispatch in dispatches(store):
            found.insert(dispatch.keys)
    for query in manifest(store.label).query_message:
        answer = found.query(query.topic, query.key, query.max_num, *FOREVER)
        # The reader of the messages drops what lies behind the end of a cut log.
        offsets = sorted({offset for offset in answer.log_offsets if offset < store.end})
        hits = [hit[3] for hit in query.hits]
        assert offsets == hits, query
        # Where nothing is found the answer has no index fields. After a crash Apache's are of an
        # index that it built anew.
        if source == "theirs" and hits and store.label in CLEAN:
            assert str(answer.last_timestamp) == query.index_last_update_timestamp
            assert str(answer.last_log_offset) == query.index_last_update_phyoffset


def test_every_key_of_every_message_is_found(store: GoldenStore) -> None:
    found = index(golden_disk(store))
    for dispatch in dispatches(store):
        found.insert(dispatch.keys)
    for log_offset, message in store.messages.items():
        topic, words = str(message["topic"]), str(message["keys"] or "").split(" ")
        stored = message["storeTimestamp"]
        assert isinstance(stored, int)
        for key in filter(None, {*words, str(message["uniqKey"] or "")}):
            # The time of an entry is kept in seconds since the beginning of its file.
            answer = found.query(topic, key, 64, stored - 1000, stored)
            assert log_offset in answer.log_offsets or len(answer.log_offsets) == 64, (topic, key)
            assert key_hash(topic, key) >= 0
