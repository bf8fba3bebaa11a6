"""A slave that takes its master's log in pieces, and a master that waits for its slaves."""

from __future__ import annotations

import struct
from random import Random
from typing import TYPE_CHECKING

import msgspec
import pytest

from gantrymq.errors import InvalidValue
from gantrymq.kernel import UNIT_BYTES
from gantrymq.store.errors import StoreNotWritable
from gantrymq.store.reader import StoreReader
from gantrymq.store.status import PutStatus
from support.golden import HA, STORE
from support.golden_trees import unpacked
from support.store_rig import Rig

if TYPE_CHECKING:
    from pathlib import Path

SYNC = {"flushDiskType": "SYNC_FLUSH"}


def slave_of(log_bytes: int, **changes: str) -> Rig:
    return Rig({"brokerRole": "SLAVE", "mappedFileSizeCommitLog": str(log_bytes), **changes})


def units(queue: object, count: int) -> bytes:
    return queue.read(queue.min_offset, count)  # type: ignore[attr-defined,no-any-return]


def delays(label: str) -> dict[str, str]:
    """Return the delay levels that a store was written with: units of delayed messages differ."""
    text = (STORE / label / "broker.conf").read_text()
    return dict(line.split("=", 1) for line in text.splitlines() if "messageDelayLevel=" in line)


def feed(rig: Rig, start: int, log: bytes, sizes: Random | int) -> None:
    """Give a slave a log in pieces that never cross a file."""
    file_bytes, position = rig.store.log.file_bytes, 0
    while position < len(log):
        size = sizes if isinstance(sizes, int) else sizes.choice((1, 3, 7, 100, 997, 5000))
        room = file_bytes - (start + position) % file_bytes
        piece = log[position : position + min(size, room)]
        rig.store.append_replica(start + position, piece)
        assert rig.store.dispatched_offset <= rig.store.log.committed_offset
        position += len(piece)


@pytest.mark.parametrize("label", ["apache-4.9.7-clean", "apache-5.5.0-clean"])
@pytest.mark.parametrize("sync", [True, False], ids=["SYNC_FLUSH", "ASYNC_FLUSH"])
def test_a_golden_log_in_odd_pieces_gives_the_same_queues(
    label: str, sync: bool, tmp_path: Path
) -> None:
    with StoreReader.open(unpacked(label, tmp_path)) as golden:
        start, end = golden.min_log_offset, golden.max_log_offset
        log = b"".join(bytes(span.buffer[span.start : span.end]) for span in golden.spans())
        assert len(log) == end - start > 0
        rig = slave_of(golden.log.file_bytes, **delays(label), **(SYNC if sync else {}))
        feed(rig, start, log, Random(5))
        rig.settle()
        assert rig.store.log.wrote_offset == rig.store.dispatched_offset == end
        compared = 0
        for expected in golden.queue_table:
            found = rig.store.queues.find(expected.topic, expected.queue_id)
            count = expected.max_offset - expected.min_offset
            if count == 0:
                continue
            assert found is not None
            assert (found.max_offset, found.log_end) == (expected.max_offset, expected.log_end)
            assert found.read(expected.min_offset, count) == expected.read(
                expected.min_offset, count
            )
            compared += count
        assert compared > 50
    assert rig.store.close()


@pytest.mark.parametrize("sync", [True, False], ids=["SYNC_FLUSH", "ASYNC_FLUSH"])
def test_byte_by_byte(sync: bool) -> None:
    master = Rig()
    for number in range(30):
        master.put(b"%02d" % number + bytes(200))
    log = b"".join(bytes(file.region.buffer[: file.wrote]) for file in master.store.log.files)
    assert len(master.store.log.files) > 1
    slave = slave_of(4096, **(SYNC if sync else {}))
    feed(slave, 0, log, 1)
    slave.settle()
    assert slave.records() == master.records()
    assert len(slave.records()) == 30
    assert slave.store.dispatched_offset == len(log)
    # The times that the master gave go on counting: the next record is not older.
    assert slave.store.log.committed_stamp_ms == master.store.log.committed_stamp_ms
    assert slave.store.close()


@pytest.mark.parametrize("release", ["4.9.7", "5.5.0"])
def test_what_apaches_master_sent_to_an_empty_slave(release: str) -> None:
    name = f"ha-new-empty-slave-{release}"
    facts = msgspec.json.decode((HA / f"{name}.json").read_bytes())
    sent = (HA / f"{name}.master-to-slave.bin").read_bytes()
    rig = slave_of(65536)
    reports = [0]
    for frame in facts["masterFrames"]:
        offset, size = struct.unpack_from(">qi", sent, frame["at"])
        body = sent[frame["at"] + 12 : frame["at"] + 12 + size]
        rig.store.append_replica(offset, body)
        if rig.store.log.wrote_offset != reports[-1]:
            reports.append(rig.store.log.wrote_offset)
    assert reports == list(dict.fromkeys(facts["slaveReports"]))
    assert rig.store.log.min_offset == facts["masterFrames"][0]["physicalOffset"]
    assert rig.store.dispatched_offset == reports[-1]
    queued = sum(len(units(queue, 10_000)) // UNIT_BYTES for queue in rig.store.queues)
    assert queued > 30


class TestRefused:
    """Bytes that a slave does not take."""

    def test_on_a_master(self) -> None:
        with pytest.raises(StoreNotWritable, match="only a slave"):
            Rig().store.append_replica(0, b"x")

    def test_after_it_was_closed(self) -> None:
        rig = slave_of(4096)
        assert rig.store.close()
        with pytest.raises(StoreNotWritable, match="not open"):
            rig.store.append_replica(0, b"x")

    @pytest.mark.parametrize(("offset", "size"), [(1, 1), (4095, 1), (0, 4097), (8192 + 5, 1)])
    def test_at_the_wrong_place(self, offset: int, size: int) -> None:
        rig = slave_of(4096)
        with pytest.raises(InvalidValue):
            rig.store.append_replica(offset, bytes(size))
        assert rig.store.dispatched_offset == rig.store.log.wrote_offset

    def test_a_slave_takes_no_messages(self) -> None:
        assert slave_of(4096).put(b"x").status is PutStatus.SERVICE_NOT_AVAILABLE


def test_what_is_cut_is_cut_off_by_the_next_start() -> None:
    master = Rig()
    first = master.put(b"one")
    master.put(b"two")
    log = bytes(master.store.log.files[0].region.buffer[: master.store.log.wrote_offset])
    slave = slave_of(4096, **SYNC)
    slave.store.append_replica(0, log[: first.end + 20])
    slave.settle()
    assert slave.store.dispatched_offset == first.end
    assert not slave.store.close()
    again = slave.again()
    assert again.store.log.wrote_offset == first.end
    again.store.append_replica(first.end, log[first.end :])
    again.settle()
    assert [record.body for record in again.records()] == [b"one", b"two"]


def test_half_a_record_is_never_served_whatever_byte_it_was_cut_at() -> None:
    """A piece may end within properties, where neither lengths nor check sum show it."""
    master = Rig()
    properties = {"KEYS": "k", "TAGS": "TagA", "UNIQ_KEY": "0123456789ABCDEF"}
    first = master.put(b"one", properties=properties)
    master.put(b"two", properties=properties)
    log = bytes(master.store.log.files[0].region.buffer[: master.store.log.wrote_offset])
    for cut in range(first.end, len(log)):
        slave = slave_of(4096)
        slave.store.append_replica(0, log[:cut])
        killed = slave.again()
        assert killed.store.log.wrote_offset == first.end, f"cut at {cut}"
        killed.store.append_replica(first.end, log[first.end :])
        assert [record.body for record in killed.records()] == [b"one", b"two"]


def test_messages_without_properties_are_not_taken_for_half_ones() -> None:
    rig = Rig()
    rig.put(b"one")
    rig.put(b"two")
    assert rig.again().bodies() == [b"one", b"two"]


def test_a_topic_made_again_while_its_queue_is_being_saved() -> None:
    master = Rig()
    before = master.put(b"old").end
    master.store.delete_topic("T")
    master.settle()
    master.store.open_topic("T", 2)
    master.put(b"new")
    log = bytes(master.store.log.files[0].region.buffer[: master.store.log.wrote_offset])
    for written_before in (False, True):
        slave = slave_of(4096)
        slave.store.append_replica(0, log[:before])
        if written_before:
            slave.store.flush_queues(thorough=False)
            slave.settle()
        assert slave.store.flush_queues(thorough=True)
        slave.store.append_replica(before, log[before:])
        slave.settle()
        assert slave.store.gate.failure is None
        assert [record.body for record in slave.records()] == [b"new"]
        assert slave.store.close(), "a clean stop"
        assert [record.body for record in slave.again().records()] == [b"new"]


class Slaves:
    """As many slaves as a test says; none further than 1000 bytes behind counts."""

    def __init__(self, rig: Rig) -> None:
        self.count = 0
        self._gate = rig.store.gate

    def is_available(self, end: int) -> bool:
        return self.count > 0 and end - self._gate.replicated_offset < 1000

    def shown_until(self) -> int | None:
        return None

    def moved(self) -> None:
        """Send nothing."""


class TestSyncMaster:
    """SYNC_MASTER answers when a slave has the message."""

    @pytest.fixture
    def rig(self) -> Rig:
        made = Rig({"brokerRole": "SYNC_MASTER", "haSlaveFallbehindMax": "1000"})
        self.replicas = Slaves(made)
        made.store.replicas = self.replicas
        return made

    def test_without_a_slave(self) -> None:
        rig = Rig({"brokerRole": "SYNC_MASTER"})
        assert rig.hold(rig.put(b"x")) == [PutStatus.SLAVE_NOT_AVAILABLE]

    def test_it_waits_for_the_slave(self, rig: Rig) -> None:
        self.replicas.count += 1
        first, second = rig.put(b"x"), rig.put(b"y")
        out, later = rig.hold(first), rig.hold(second)
        assert (out, later) == ([], [])
        rig.store.gate.replicated(first.end)
        assert (out, later) == ([PutStatus.PUT_OK], [])
        rig.tick(3.0)
        assert later == [PutStatus.FLUSH_SLAVE_TIMEOUT]

    def test_a_slave_that_has_left(self, rig: Rig) -> None:
        self.replicas.count += 1
        self.replicas.count -= 1
        assert rig.hold(rig.put(b"x")) == [PutStatus.SLAVE_NOT_AVAILABLE]

    def test_a_slave_too_far_behind(self, rig: Rig) -> None:
        self.replicas.count += 1
        near, far = rig.put(bytes(100)), rig.put(bytes(900))
        assert near.end < 1000 < far.end
        assert rig.hold(near) == []
        assert rig.hold(far) == [PutStatus.SLAVE_NOT_AVAILABLE]
        rig.store.gate.replicated(near.end)
        assert rig.hold(rig.put(b"")) == [PutStatus.SLAVE_NOT_AVAILABLE]
        rig.store.gate.replicated(far.end)
        assert rig.hold(rig.put(b"")) == []

    def test_who_does_not_want_to_wait(self, rig: Rig) -> None:
        assert rig.hold(rig.put(b"x"), waits=False) == [PutStatus.PUT_OK]

    def test_an_async_master_never_waits(self) -> None:
        rig = Rig()
        assert rig.hold(rig.put(b"x")) == [PutStatus.PUT_OK]

    def test_the_disk_is_waited_for_where_there_is_no_slave(self) -> None:
        rig = Rig({"brokerRole": "SYNC_MASTER"} | SYNC)
        out = rig.hold(rig.put(b"x"))
        assert out == []
        rig.settle()
        assert out == [PutStatus.SLAVE_NOT_AVAILABLE]
