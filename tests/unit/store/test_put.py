"""What may be stored, what becomes of it, and which status says so."""

from __future__ import annotations

import errno

import pytest

from gantrymq.errors import InvalidValue
from gantrymq.kernel import LaneStop
from gantrymq.store.errors import StoreBusy, StoreNotWritable
from gantrymq.store.put import MessageCheck, Writability, delayed
from gantrymq.store.status import PutStatus
from gantrymq.testing.disk import Operation
from support.samples import IPV6_HOST
from support.store_rig import BORN_HOST, STORE_HOST, Rig, frames, message

OK = PutStatus.PUT_OK
ILLEGAL = PutStatus.MESSAGE_ILLEGAL
REFUSED = PutStatus.SERVICE_NOT_AVAILABLE


def slow(rig: Rig, seconds: float) -> None:
    """Let the next append take so long: it needs a new file, and forcing that is slow."""
    rig.disk.on_sync = lambda _path: rig.clock.jump(seconds)


class TestOrderOfChecks:
    """Each check is reached when those before it pass, and hides those behind it."""

    def test_a_store_that_is_closed(self) -> None:
        rig = Rig()
        rig.store.writability.is_slave = True
        rig.store.close()
        assert rig.put(b"x").status is REFUSED
        assert rig.store.writability.reason == "the store is not open"

    def test_a_slave(self) -> None:
        rig = Rig({"brokerRole": "SLAVE"})
        rig.store.writability.forbid("disk", "full")
        assert rig.put(b"x").status is REFUSED
        assert "slave" in str(rig.store.writability.reason)

    def test_a_store_that_may_not_be_written(self) -> None:
        rig = Rig()
        rig.store.writability.forbid("space", "the disk is full")
        assert rig.put(b"x").status is REFUSED
        buffer = frames([b"x"])
        with pytest.raises(StoreNotWritable, match="the disk is full"):
            rig.store.append_sends(buffer, 0, len(buffer), BORN_HOST)
        rig.store.writability.allow("space")
        assert rig.put(b"x").status is OK

    def test_a_busy_page_cache_comes_before_the_message(self) -> None:
        rig = Rig()
        slow(rig, 1.5)
        rig.put(b"x")
        rig.disk.on_sync = None
        assert rig.put(b"x", topic="t" * 200).status is PutStatus.OS_PAGE_CACHE_BUSY
        rig.store.writability.forbid("space", "the disk is full")
        assert rig.put(b"x").status is REFUSED

    @pytest.mark.parametrize(
        "bad",
        [
            {"topic": "t" * 128},
            {"topic": ""},
            {"topic": "../up"},
            {"topic": "a\0b"},
            {"topic": "\ud800"},
            {"properties": {"k": "v" * 32766}},
            {"properties": {"k": "a\x02b"}},
            {"sys_flag": 1 << 40},
            {"born_host": b"abc"},
        ],
        ids=str,
    )
    def test_a_message_that_cannot_be(self, bad: dict[str, object]) -> None:
        rig = Rig({"mappedFileSizeCommitLog": "65536"})
        assert rig.put(b"x", **bad).status is ILLEGAL
        assert rig.store.log.wrote_offset == 0
        assert rig.put(b"good").queue_offset == 0

    def test_the_longest_that_may_be(self) -> None:
        rig = Rig({"mappedFileSizeCommitLog": "65536"})
        assert rig.put(b"x", topic="t" * 127).status is OK
        assert rig.put(b"x", properties={"k": "v" * 32765}).status is OK

    def test_the_largest_body(self) -> None:
        rig = Rig({"mappedFileSizeCommitLog": "262144", "maxMessageSize": "1000"})
        assert rig.put(bytes(1000)).status is OK
        assert rig.put(bytes(1001)).status is ILLEGAL
        assert len(rig.bodies()) == 1

    def test_a_message_that_fits_no_file(self) -> None:
        rig = Rig()
        assert rig.put(bytes(4096)).status is ILLEGAL
        assert rig.put(bytes(2000), bytes(2000)).status is ILLEGAL
        assert rig.put(b"x").queue_offset == 0

    def test_a_file_that_cannot_be_made(self) -> None:
        rig = Rig()
        rig.disk.fail(Operation.CREATE, errno.ENOSPC)
        assert rig.put(b"x").status is PutStatus.CREATE_MAPPED_FILE_FAILED
        assert rig.put(b"x").queue_offset == 0

    def test_no_message_and_several_queues_are_the_callers_fault(self) -> None:
        rig = Rig()
        with pytest.raises(InvalidValue):
            rig.store.put([])
        with pytest.raises(InvalidValue, match="same queue"):
            rig.store.put([message(queue_id=0), message(queue_id=1)])
        with pytest.raises(InvalidValue, match="same queue"):
            rig.store.put([message(), message(properties={"DELAY": "1"})])


def test_topic_and_properties_are_counted_together_with_the_body() -> None:
    check = MessageCheck(1 << 20)
    assert check.status(b"T", 1 << 20, b"") is OK
    assert check.status(b"T", (1 << 20) + 1, b"") is ILLEGAL


def test_reasons_come_and_go_by_their_source() -> None:
    writability = Writability()
    writability.is_open = True
    writability.forbid("a", "first")
    writability.forbid("b", "second")
    assert writability.reason == "first"
    writability.allow("a")
    assert writability.reason == "second"
    writability.allow("b")
    writability.allow("b")
    assert writability.reason is None


class TestStored:
    """What is in the log afterwards."""

    def test_places_and_offsets(self) -> None:
        rig = Rig()
        first, second, other = rig.put(b"a"), rig.put(b"b", b"c"), rig.put(b"d", queue_id=1)
        assert (first.queue_offset, first.log_offset, first.messages) == (0, 0, 1)
        assert (second.queue_offset, second.log_offset, second.messages) == (1, first.end, 2)
        assert (other.topic, other.queue_id, other.queue_offset) == ("T", 1, 0)
        records = rig.records()
        assert [record.body for record in records] == [b"a", b"b", b"c"]
        assert [record.queue_offset for record in records] == [0, 1, 2]
        assert records[1].log_offset == first.end
        assert {record.store_host for record in records} == {STORE_HOST}
        assert {record.store_timestamp for record in records} == {rig.clock.now_ms()}

    def test_sends_and_puts_share_the_offsets_of_a_queue(self) -> None:
        rig = Rig()
        buffer = frames([b"1", b"2"])
        rig.store.append_sends(buffer, 0, len(buffer), BORN_HOST)
        assert rig.put(b"3").queue_offset == 2
        rig.store.append_sends(buffer, 0, len(buffer), BORN_HOST)
        rig.store.close_topic("T")
        assert rig.put(b"6").queue_offset == 5
        rig.store.open_topic("T", 1)
        rig.store.append_sends(buffer, 0, len(buffer), BORN_HOST)
        assert rig.bodies() == [b"1", b"2", b"3", b"1", b"2", b"6", b"1", b"2"]

    def test_a_send_that_is_not_ordinary_is_handed_back(self) -> None:
        rig = Rig()
        buffer = frames([b"1"]) + frames([b"2"], topic="Unknown")
        run = rig.store.append_sends(buffer, 0, len(buffer), BORN_HOST)
        assert (run.messages, run.stop) == (1, LaneStop.POLICY)

    def test_a_message_may_keep_the_host_that_stored_it_first(self) -> None:
        rig = Rig()
        rig.put(b"a", store_host=b"\1\2\3\4\0\0\0\5")
        assert rig.records()[0].store_host == b"\1\2\3\4\0\0\0\5"

    def test_long_addresses_are_marked(self) -> None:
        rig = Rig()
        rig.put(b"a", born_host=IPV6_HOST, sys_flag=0x1)
        rig.put(b"b", store_host=IPV6_HOST, sys_flag=0x10)
        rig.put(b"c", born_host=IPV6_HOST, store_host=IPV6_HOST)
        rig.put(b"d")
        records = rig.records()
        assert [record.sys_flag for record in records] == [0x11, 0x20, 0x30, 0]
        assert [len(record.born_host) for record in records] == [20, 8, 20, 8]
        assert [len(record.store_host) for record in records] == [8, 20, 20, 8]


class TestDelay:
    """A delayed message waits in another topic."""

    def test_it_is_stored_by_its_level(self) -> None:
        rig = Rig()
        stored = rig.put(b"later", queue_id=1, properties={"DELAY": "3", "TAGS": "a"})
        assert (stored.topic, stored.queue_id) == ("SCHEDULE_TOPIC_XXXX", 2)
        assert rig.bodies("T", 1) == []
        (record,) = rig.records("SCHEDULE_TOPIC_XXXX", 2)
        assert record.properties == (b"DELAY\x013\x02TAGS\x01a\x02REAL_TOPIC\x01T\x02REAL_QID\x011")
        queue = rig.store.queues.find("SCHEDULE_TOPIC_XXXX", 2)
        assert queue is not None
        unit = queue.unit(0)
        assert unit is not None
        assert unit.tags_code == record.store_timestamp + 10_000, "the time of delivery"

    @pytest.mark.parametrize(
        ("text", "queue_id"), [("1", 0), ("18", 17), ("19", 17), ("2147483647", 17)]
    )
    def test_the_highest_level_takes_all_above_it(self, text: str, queue_id: int) -> None:
        assert Rig().put(b"x", properties={"DELAY": text}).queue_id == queue_id

    @pytest.mark.parametrize("text", ["0", "-1", "", "soon", "1_0", " 1", "\uff11"])
    def test_no_level_is_no_delay(self, text: str) -> None:
        properties = {"DELAY": text} if text else {}
        assert Rig().put(b"x", properties=properties).topic == "T"

    def test_without_levels_nothing_waits(self) -> None:
        assert delayed(message(properties={"DELAY": "1"}), 0).topic == "T"

    @pytest.mark.parametrize(("sys_flag", "topic"), [(0x4, "T"), (0xC, "T"), (0x8, "SCHEDULE")])
    def test_only_plain_and_committed_messages_wait(self, sys_flag: int, topic: str) -> None:
        stored = Rig().put(b"x", properties={"DELAY": "1"}, sys_flag=sys_flag)
        assert stored.topic.startswith(topic)


class TestTransactions:
    """Half messages and those that roll back are in no queue."""

    @pytest.mark.parametrize("sys_flag", [0x4, 0xC])
    def test_they_take_no_offset(self, sys_flag: int) -> None:
        rig = Rig()
        rig.put(b"plain")
        stored = rig.put(b"half", sys_flag=sys_flag)
        assert (stored.status, stored.queue_offset) == (OK, 0)
        assert rig.put(b"plain again").queue_offset == 1
        assert rig.bodies() == [b"plain", b"plain again"]
        assert rig.again().bodies() == [b"plain", b"plain again"]

    def test_a_committed_one_does(self) -> None:
        rig = Rig()
        rig.put(b"plain")
        assert rig.put(b"committed", sys_flag=0x8, prepared_offset=77).queue_offset == 1
        assert rig.records()[1].prepared_offset == 77


class TestBusyPageCache:
    """An append that took too long makes the store refuse the backlog for as long again."""

    @pytest.mark.parametrize(("took", "busy_for"), [(1.5, 1.0), (1.1, 1.0), (30.0, 1.0)])
    def test_for_how_long(self, took: float, busy_for: float) -> None:
        rig = Rig()
        slow(rig, took)
        assert rig.put(b"slow").status is OK
        rig.disk.on_sync = None
        assert rig.put(b"x").status is PutStatus.OS_PAGE_CACHE_BUSY
        buffer = frames([b"x"])
        with pytest.raises(StoreBusy):
            rig.store.append_sends(buffer, 0, len(buffer), BORN_HOST)
        rig.clock.jump(busy_for - 0.001)
        assert rig.store.page_cache.is_busy
        rig.clock.jump(0.001)
        assert rig.put(b"x").status is OK
        assert rig.bodies() == [b"slow", b"x"]

    def test_a_shorter_limit(self) -> None:
        rig = Rig({"osPageCacheBusyTimeOutMills": "100"})
        slow(rig, 0.2)
        rig.put(b"slow")
        assert rig.store.page_cache.is_busy
        rig.clock.jump(0.2)
        assert not rig.store.page_cache.is_busy

    def test_not_slow_enough(self) -> None:
        rig = Rig()
        slow(rig, 1.0)
        rig.put(b"slow")
        assert not rig.store.page_cache.is_busy

    def test_slow_sends_count_too(self) -> None:
        rig = Rig()
        slow(rig, 2.0)
        buffer = frames([b"x"])
        rig.store.append_sends(buffer, 0, len(buffer), BORN_HOST)
        assert rig.put(b"x").status is PutStatus.OS_PAGE_CACHE_BUSY
