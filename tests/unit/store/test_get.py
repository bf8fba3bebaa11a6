"""Reading a queue: statuses, next offsets, limits, filters, files that are gone."""

from __future__ import annotations

import pytest

from gantrymq.kernel import QueueUnit, kernel
from gantrymq.store.consume_queue import ConsumeQueue
from gantrymq.store.get import Found, QueueReader, TransferLimits
from gantrymq.store.status import GetStatus
from support.queues import drop_table_files_before, tag_filter
from support.store_rig import Rig, message


@pytest.fixture
def rig() -> Rig:
    """Return a store with 30 messages in queue 0 of T, tags a, b and c in turn."""
    made = Rig()
    for number in range(30):
        made.put(b"%02d" % number + bytes(200), properties={"TAGS": "abc"[number % 3]})
    return made


def answer(found: Found) -> tuple[GetStatus, int]:
    return found.status, found.next_offset


def bodies(found: Found) -> list[bytes]:
    return [kernel.decode_record(raw, 0, len(raw), True)[0].body[:2] for raw in found.records]


class TestOutside:
    """Offsets that no message has."""

    def test_a_queue_that_is_not_there(self, rig: Rig) -> None:
        found = rig.store.get("T", 7, 5, 32)
        # Apache makes the queue when somebody asks for it, so NO_MATCHED_LOGIC_QUEUE is never seen.
        assert answer(found) == (GetStatus.NO_MESSAGE_IN_QUEUE, 0)
        assert (found.min_offset, found.max_offset, found.records) == (0, 0, [])

    def test_a_queue_without_messages(self, rig: Rig) -> None:
        rig.store.queues.queue("T", 1)
        assert answer(rig.store.get("T", 1, 5, 32)) == (GetStatus.NO_MESSAGE_IN_QUEUE, 0)

    @pytest.mark.parametrize(
        ("offset", "status", "next_offset"),
        [
            (30, GetStatus.OFFSET_OVERFLOW_ONE, 30),
            (31, GetStatus.OFFSET_OVERFLOW_BADLY, 30),
            (-1, GetStatus.OFFSET_TOO_SMALL, 0),
        ],
    )
    def test_before_and_behind(
        self, rig: Rig, offset: int, status: GetStatus, next_offset: int
    ) -> None:
        found = rig.store.get("T", 0, offset, 32)
        assert answer(found) == (status, next_offset)
        assert (found.min_offset, found.max_offset) == (0, 30)

    def test_below_the_least_offset(self, rig: Rig) -> None:
        rig.store.flush_queues(thorough=False)
        rig.settle()
        rig.store.log.drop_first()
        drop_table_files_before(rig.store.queues, rig.store.log.min_offset)
        queue = rig.store.queues.find("T", 0)
        assert queue is not None
        least = queue.min_offset
        assert least > 0
        found = rig.store.get("T", 0, 0, 32)
        assert answer(found) == (GetStatus.OFFSET_TOO_SMALL, least)

    def test_units_that_cannot_be_read(self, rig: Rig, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(ConsumeQueue, "read", lambda *_arguments: b"")
        # A file has ten units: the reader is sent to the next.
        assert answer(rig.store.get("T", 0, 13, 32)) == (GetStatus.OFFSET_FOUND_NULL, 20)


class TestLimits:
    """How much one read returns."""

    def test_as_many_as_were_asked_for(self, rig: Rig) -> None:
        found = rig.store.get("T", 0, 3, 4)
        assert answer(found) == (GetStatus.FOUND, 7)
        assert bodies(found) == [b"03", b"04", b"05", b"06"]
        assert found.record_bytes == sum(len(raw) for raw in found.records)

    def test_the_first_message_is_always_taken(self, rig: Rig) -> None:
        reader = QueueReader(rig.store.log, TransferLimits(memory_bytes=1, memory_count=1))
        found = reader.read(rig.store.queues.find("T", 0), 0, 0, None)
        assert (answer(found), bodies(found)) == ((GetStatus.FOUND, 1), [b"00"])

    @pytest.mark.parametrize(
        ("limits", "count"),
        [
            (TransferLimits(), 30),
            (TransferLimits(memory_count=5), 5),
            (TransferLimits(memory_bytes=1000), 3),
            (TransferLimits(hot_bytes=1 << 30, disk_count=1), 30),
            (TransferLimits(hot_bytes=1, disk_count=6), 6),
            (TransferLimits(hot_bytes=1, disk_bytes=1000), 3),
            (TransferLimits(hot_bytes=0, disk_count=6), 6),
        ],
    )
    def test_in_memory_and_from_disk(self, rig: Rig, limits: TransferLimits, count: int) -> None:
        reader = QueueReader(rig.store.log, limits)
        found = reader.read(rig.store.queues.find("T", 0), 0, 32, None)
        assert answer(found) == (GetStatus.FOUND, count)

    def test_the_store_knows_its_memory(self) -> None:
        rig = Rig(memory_bytes=1000)  # 40 % of it are hot
        for number in range(20):
            rig.put(b"%02d" % number)
        cold, hot = rig.store.get("T", 0, 0, 32), rig.store.get("T", 0, 18, 32)
        assert (len(cold.records), cold.from_slave) == (8, True)
        assert (len(hot.records), hot.from_slave) == (2, False)
        assert cold.behind_bytes > 400 > hot.behind_bytes

    def test_with_no_part_of_the_memory_nothing_is_hot(self) -> None:
        rig = Rig({"accessMessageInMemoryMaxRatio": "0"}, memory_bytes=1 << 40)
        for number in range(20):
            rig.put(b"%02d" % number)
        last = rig.store.get("T", 0, 19, 32)
        assert (len(last.records), last.from_slave) == (1, True)

    def test_units_and_records_of_several_files_are_one_queue(self, rig: Rig) -> None:
        assert len(rig.store.log.files) > 1
        assert bodies(rig.store.get("T", 0, 0, 32)) == [b"%02d" % number for number in range(30)]


class TestFilters:
    """Messages that a reader did not ask for."""

    def test_by_tag(self, rig: Rig) -> None:
        found = rig.store.get("T", 0, 0, 4, tag_filter("b", "c"))
        assert answer(found) == (GetStatus.FOUND, 6)
        assert bodies(found) == [b"01", b"02", b"04", b"05"]

    def test_none_matches(self, rig: Rig) -> None:
        found = rig.store.get("T", 0, 10, 4, tag_filter("x"))
        assert answer(found) == (GetStatus.NO_MATCHED_MESSAGE, 30)

    def test_one_that_matches_is_found_whatever_follows(self, rig: Rig) -> None:
        found = rig.store.get("T", 0, 28, 4, tag_filter("b"))
        assert (answer(found), bodies(found)) == ((GetStatus.FOUND, 30), [b"28"])

    def test_a_hash_below_zero(self) -> None:
        tag = next(f"t{n}" for n in range(10**6) if kernel.string_hash(b"t%d" % n) < 0)
        rig = Rig()
        rig.put(b"x", properties={"TAGS": tag})
        found = rig.store.get("T", 0, 0, 1, tag_filter(tag))
        assert found.status is GetStatus.FOUND

    def test_by_what_is_in_the_message(self, rig: Rig) -> None:
        class Odd:
            def by_unit(self, unit: QueueUnit) -> bool:
                return unit.size > 0

            def by_record(self, record: memoryview) -> bool:
                return kernel.decode_record(record, 0, len(record), False)[0].body[1] % 2 == 1

        found = rig.store.get("T", 0, 0, 3, Odd())
        assert bodies(found) == [b"01", b"03", b"05"]
        assert answer(found) == (GetStatus.FOUND, 6)


class TestRemoved:
    """Messages whose file is gone, while the queue still tells of them."""

    def test_they_are_passed_over_file_by_file(self, rig: Rig) -> None:
        rig.store.log.drop_first()
        first = rig.store.log.min_offset
        found = rig.store.get("T", 0, 0, 32)
        assert found.status is GetStatus.FOUND
        assert int.from_bytes(found.records[0][28:36]) == first
        assert found.next_offset == 30

    def test_nothing_is_left_of_them(self, rig: Rig) -> None:
        kept = len(rig.store.log.files[-1].region.buffer)
        while len(rig.store.log.files) > 1:
            rig.store.log.drop_first()
        assert kept == 4096
        found = rig.store.get("T", 0, 0, 4)
        # All that a read looks at: it goes on to the first that is there.
        assert found.status is GetStatus.FOUND
        rig.store.log.load([])
        assert answer(rig.store.get("T", 0, 0, 4)) == (GetStatus.MESSAGE_WAS_REMOVING, 30)

    def test_a_slice_outlives_its_file(self, rig: Rig) -> None:
        found = rig.store.get("T", 0, 0, 1)
        rig.store.log.drop_first().close()
        assert bodies(found) == [b"00"]


def test_offsets_without_a_message_are_passed_over() -> None:
    rig = Rig()
    stored = [rig.store.offsets.take("T", 0, 5), rig.put(b"05").queue_offset]
    assert stored == [0, 5]
    found = rig.store.get("T", 0, 5, 10)
    assert bodies(found) == [b"05"]
    assert found.min_offset == 5
    rig.store.offsets.take("T", 0, 2)
    rig.store.put([message(b"08")])
    found = rig.store.get("T", 0, 5, 10)
    assert (bodies(found), found.next_offset) == ([b"05", b"08"], 9)
