"""Whole stores that Apache brokers left behind: read as they are, and opened, recovered and served.

Compared with what an Apache broker of the same release said after opening a copy. Where ours must
differ it says so beside the test: the offset by time that 4.9 looks for in the wrong file, and the
one queue that Apache itself answers wrongly (manifest: `knownWrong`).
"""

from __future__ import annotations

import gzip
from hashlib import sha256
from typing import TYPE_CHECKING

import msgspec
import pytest

from gantrymq.kernel import UNIT_BYTES
from gantrymq.store.export import export_lines
from gantrymq.store.get import units_of
from gantrymq.store.query import MessageQuery
from gantrymq.store.reader import StoreReader
from gantrymq.store.search import Boundary, TimeSearch
from gantrymq.store.status import GetStatus
from gantrymq.store.verify import Kind, verify
from gantrymq.wire.record import decode_record
from support.golden import STORE, STORE_LABELS, stored_messages
from support.golden_trees import (
    Manifest,
    Search,
    configuration,
    data_digest,
    manifest,
    message_store,
    tree_digest,
    unpacked,
)

if TYPE_CHECKING:
    from pathlib import Path

    from gantrymq.store.message_store import MessageStore

FOREVER = (0, 2**63 - 1)
UNITS_A_FILE = 1000 // UNIT_BYTES


class Opened:
    """A golden store, unpacked and opened by our broker's store."""

    def __init__(self, label: str, folder: Path) -> None:
        self.label = label
        self.root = unpacked(label, folder)
        self.manifest: Manifest = manifest(label)
        self.store: MessageStore = message_store(self.root, configuration(label))
        self.report = self.store.open(1234)

    @property
    def is_5x(self) -> bool:
        """Tell which release wrote it."""
        return "5.5.0" in self.label


@pytest.fixture(params=STORE_LABELS)
def label(request: pytest.FixtureRequest) -> str:
    name: str = request.param
    return name


@pytest.fixture(scope="module", params=STORE_LABELS)
def opened(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Opened:
    name: str = request.param
    return Opened(name, tmp_path_factory.mktemp(name))


def exported(root: Path, config: Path | None = None) -> list[object]:
    with StoreReader.open(root, config) as reader:
        return [msgspec.json.decode(line) for line in export_lines(reader)]


# -- read, and left as it is ---------------------------------------------------------------------


@pytest.mark.parametrize("with_config", [False, True], ids=["sizes-from-files", "broker.conf"])
def test_the_export_is_what_apache_serves(label: str, with_config: bool, tmp_path: Path) -> None:
    root = unpacked(label, tmp_path)
    before = tree_digest(root)
    found = exported(root, configuration(label) if with_config else None)
    assert found == stored_messages(label)
    assert len(found) == manifest(label).message_count
    assert tree_digest(root) == before


def test_the_export_has_the_very_bytes(tmp_path: Path) -> None:
    name = "apache-4.9.7-killed"
    with StoreReader.open(unpacked(name, tmp_path)) as reader:
        lines = b"".join(line + b"\n" for line in export_lines(reader))
    assert lines == gzip.decompress((STORE / name / "messages.jsonl.gz").read_bytes())


def test_the_reader_finds_queues_and_end(label: str, tmp_path: Path) -> None:
    known = manifest(label)
    with StoreReader.open(unpacked(label, tmp_path)) as reader:
        queues = {(q.topic, q.queue_id): (q.min_offset, q.max_offset) for q in reader.queues()}
        expected = known.max_offsets()
        assert queues == {place: offsets for place, offsets in expected.items() if place in queues}
        assert all(offsets == (0, 0) for place, offsets in expected.items() if place not in queues)
        assert reader.max_log_offset == known.end_of_last_readable_record
        assert reader.report is not None
        assert reader.report.clean is not known.abort_file_present


def test_verify_finds_damage_and_nothing_else(label: str, tmp_path: Path) -> None:
    with StoreReader.open(unpacked(label, tmp_path), configuration(label)) as reader:
        report = verify(reader)
    torn = bool(manifest(label).damage)
    # Queue units that damage took are built again from the log; only the log's own is for good.
    assert dict(report.counts) == ({Kind.TAIL: 1} if torn else {})
    assert report.queue_entries == manifest(label).message_count
    assert report.records == report.queue_entries + report.records_of_deleted_topics
    assert report.records_of_deleted_topics == (0 if "pop" in label else 6)


# -- opened --------------------------------------------------------------------------------------


def test_recovery_ends_where_apache_says(opened: Opened) -> None:
    end = opened.manifest.end_of_last_readable_record
    assert opened.store.log.wrote_offset == end
    assert opened.store.dispatched_offset == end
    assert opened.report.log_end.offset == end
    assert opened.report.clean is not opened.manifest.abort_file_present
    recovered = opened.manifest.recovered
    assert (recovered is None) is opened.report.clean
    if recovered is not None:
        assert recovered.end_of_last_readable_record == end


def test_offsets_are_those_of_apache(opened: Opened) -> None:
    expected = opened.manifest.max_offsets()
    queues = {place: opened.store.queues.queue(*place) for place in expected}
    assert {
        place: (queue.min_offset, queue.max_offset) for place, queue in queues.items()
    } == expected
    known = {(queue.topic, queue.queue_id) for queue in opened.store.queues}
    assert known == set(expected)
    for place, (_least, most) in expected.items():
        assert opened.store.offsets.next_offset(*place) == most
    recovered = opened.manifest.recovered
    right = {wrong.queue: wrong.correct_max_offset for wrong in opened.manifest.known_wrong}
    for name, offset in recovered.max_offsets.items() if recovered is not None else ():
        topic, _, queue_id = name.rpartition("@")
        assert expected[topic, int(queue_id)][1] == right.get(name, offset)


def test_every_message_is_served_byte_for_byte(opened: Opened) -> None:
    expected = {
        (message["topic"], message["queueId"], message["queueOffset"]): message["recordSha256"]
        for message in stored_messages(opened.label)
    }
    served = {}
    for topic, queue_id in opened.manifest.max_offsets():
        offset = 0
        while True:
            found = opened.store.get(topic, queue_id, offset, 32)
            if found.status is not GetStatus.FOUND:
                break
            for number, record in enumerate(found.records):
                served[topic, queue_id, offset + number] = sha256(record).hexdigest()
            assert found.next_offset == offset + len(found.records)
            offset = found.next_offset
        assert found.status in {GetStatus.OFFSET_OVERFLOW_ONE, GetStatus.NO_MESSAGE_IN_QUEUE}
        assert (found.min_offset, found.max_offset) == (0, offset)
    assert served == expected


def test_queries_by_key_are_answered_alike(opened: Opened) -> None:
    query = MessageQuery(opened.store.log, opened.store.index)
    for asked in opened.manifest.query_message:
        found = query.by_key(asked.topic, asked.key, asked.max_num, *FOREVER)
        messages = [decode_record(record, 0, len(record))[0] for record in found.records]
        hits = [(m.topic, m.queue_id, m.queue_offset, m.log_offset) for m in messages]
        assert hits == asked.hits, asked
        assert bool(hits) is (asked.code == 0)
        if not opened.manifest.damage:
            # The index of a torn store was made anew, and Apache's still names what it cut off.
            assert str(found.index_timestamp) == asked.index_last_update_timestamp
            assert str(found.index_log_offset) == asked.index_last_update_phyoffset


def test_messages_are_found_by_log_offset(opened: Opened) -> None:
    query = MessageQuery(opened.store.log, opened.store.index)
    for view in opened.manifest.view_message:
        record = query.by_log_offset(view.offset)
        assert record is not None
        assert sha256(record).hexdigest() == view.record_sha256
        assert decode_record(record, 0, len(record))[0].offset_id == view.msg_id
        assert query.by_log_offset(view.offset + 1) is None
    end = opened.manifest.end_of_last_readable_record
    assert query.by_log_offset(end) is None
    assert query.by_log_offset(-1) is None
    assert query.by_log_offset(2**62) is None


def test_queue_entries_are_those_of_apache(opened: Opened) -> None:
    for sample in opened.manifest.consume_queue_samples:
        queue = opened.store.queues.queue(sample.topic, sample.queue_id)
        wanted = sample.answer.queue_data
        have = units_of(queue.read(0, len(wanted)))
        assert [tuple(unit) for unit in have] == [
            (unit.physic_offset, unit.physic_size, unit.tags_code) for unit in wanted
        ]
        assert queue.min_offset == sample.answer.min_queue_index
        assert queue.max_offset == sample.answer.max_queue_index


def file_by_mtime(root: Path, search: Search, timestamp: int) -> int:
    """Return the number of the queue file that 4.9.7 looks into: by its modification time."""
    folder = root / "consumequeue" / search.topic / str(search.queue_id)
    times = [path.stat().st_mtime_ns // 1_000_000 for path in sorted(folder.iterdir())]
    return next((at for at, time in enumerate(times) if time >= timestamp), len(times) - 1)


def test_offsets_by_time(label: str, tmp_path: Path) -> None:
    """All pairs of 5.5.0; of 4.9.7 those for which it looks into the right file."""
    root, known = unpacked(label, tmp_path), manifest(label)
    compared = passed_over = 0
    with StoreReader.open(root) as reader:
        finder = TimeSearch(reader.log)
        for search in known.search_offset:
            queue = reader.queue_table.queue(search.topic, search.queue_id)
            for timestamp, wanted in search.upper:
                assert finder.offset_at(queue, timestamp, Boundary.UPPER) == wanted
                compared += 1
            for timestamp, wanted in search.lower:
                if search.upper:
                    assert finder.offset_at(queue, timestamp, Boundary.LOWER) == wanted
                else:
                    found = finder.offset_at(queue, timestamp)
                    if file_by_mtime(root, search, timestamp) != found // UNITS_A_FILE:
                        passed_over += 1
                        continue
                    assert found == wanted, (search.topic, search.queue_id, timestamp)
                compared += 1
    assert compared >= 200
    assert passed_over <= (0 if "5.5.0" in label else 60)


def test_earliest_times(opened: Opened) -> None:
    finder = TimeSearch(opened.store.log)
    for queue in opened.manifest.queues:
        ours = opened.store.queues.queue(queue.topic, queue.queue_id)
        assert finder.earliest(ours) == queue.earliest_msg_store_time
    first = stored_messages(opened.label)[0]
    query = MessageQuery(opened.store.log, opened.store.index)
    assert query.earliest_timestamp() == first["storeTimestamp"]


# -- closed, and opened again --------------------------------------------------------------------


def test_a_restart_changes_nothing(label: str, tmp_path: Path) -> None:
    root, config = unpacked(label, tmp_path), configuration(label)
    first = message_store(root, config)
    report = first.open(1)
    assert (root / "abort").exists()
    assert first.close()
    assert not (root / "abort").exists()
    after = data_digest(root)
    assert exported(root) == stored_messages(label)
    second = message_store(root, config)
    again = second.open(2)
    assert again.clean
    assert again.files_dropped == 0
    assert again.log_end.offset == report.log_end.offset
    assert second.close()
    assert data_digest(root) == after
    with StoreReader.open(root, config) as reader:
        assert verify(reader).is_sound
    assert exported(root) == stored_messages(label)
