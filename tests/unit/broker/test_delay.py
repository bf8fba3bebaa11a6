"""Delayed messages: in their order, never early, none left out, whatever clock and store do."""

from __future__ import annotations

import errno
import logging

import pytest

from gantrymq.testing.clock import START_MS
from gantrymq.testing.disk import Operation
from gantrymq.wire.properties import decode_properties
from support.broker_rig import BrokerRig
from support.samples import json_request
from support.store_rig import message

LEVELS = {"messageDelayLevel": "1s 5s 10s 1h"}
SCHEDULE = "SCHEDULE_TOPIC_XXXX"


def rig_with(**store: str) -> BrokerRig:
    return BrokerRig(LEVELS | store)


def delay(rig: BrokerRig, *bodies: bytes, level: int = 1, queue_id: int = 0) -> None:
    for body in bodies:
        asked = rig.begin_send(body, i=f"DELAY\x01{level}\x02k\x01v", e=str(queue_id))
        rig.work("log_flush")
        rig.turns()
        assert asked.answer.code == 0


def progress(rig: BrokerRig, level: int = 1) -> int:
    return rig.broker.tables.delays.find(level)


def test_each_level_delivers_when_its_time_has_passed() -> None:
    rig = rig_with()
    for level, name in ((1, b"second"), (2, b"five"), (3, b"ten")):
        delay(rig, name, level=level)
    for seconds, expected in (
        (0.999, []), (0.001, [b"second"]), (3.999, [b"second"]), (0.001, [b"second", b"five"]),
        (4.999, [b"second", b"five"]), (0.001, [b"second", b"five", b"ten"]),
    ):  # fmt: skip
        rig.settle(seconds)
        assert rig.bodies() == expected, f"after {seconds} s more"


def test_a_level_above_the_last_waits_as_the_last() -> None:
    rig = BrokerRig()
    delay(rig, b"far", level=99)
    assert rig.bodies(SCHEDULE, 17) == [b"far"]
    rig.settle(7199.9)
    assert rig.bodies() == []
    rig.settle(0.1)
    assert rig.bodies() == [b"far"]


def test_two_levels_are_all_there_are_when_two_are_set() -> None:
    rig = rig_with(messageDelayLevel="1s 2s")
    delay(rig, b"one", level=1)
    delay(rig, b"two", level=2)
    delay(rig, b"three", level=3)
    assert [rig.bodies(SCHEDULE, queue) for queue in range(3)] == [[b"one"], [b"two", b"three"], []]
    for seconds, expected in (
        (0.999, []), (0.001, [b"one"]), (0.999, [b"one"]), (0.001, [b"one", b"two", b"three"]),
    ):  # fmt: skip
        rig.settle(seconds)
        assert rig.bodies() == expected, f"after {seconds} s more"


def test_what_is_delivered_is_what_was_sent() -> None:
    rig = rig_with()
    delay(rig, b"hello", queue_id=1)
    rig.settle(1)
    (record,) = rig.records("T", 1)
    assert (record.body, record.born_host) == (b"hello", rig.peer.host)
    assert record.store_timestamp == START_MS + 1000
    kept = decode_properties(record.properties)
    assert kept == {
        "k": "v", "CLUSTER": "DefaultCluster", "DELAY": "1", "REAL_TOPIC": "T", "REAL_QID": "1",
    }, "as what an Apache broker delivers: the level can still be read"  # fmt: skip
    assert progress(rig) == 1


def test_an_idle_level_costs_nothing_and_wakes_by_itself() -> None:
    rig = rig_with()
    rig.settle()
    assert rig.broker.delay.tick() is None
    delay(rig, b"x", level=2)
    assert rig.broker._delay_entry.due is not None
    rig.settle(5)
    assert rig.bodies() == [b"x"]
    assert rig.broker.delay.tick() is None


def test_many_messages_keep_their_order() -> None:
    rig = rig_with()
    sent = [b"%d" % number for number in range(700)]
    for number, body in enumerate(sent):
        delay(rig, body)
        if number % 100 == 0:
            rig.clock.jump(0.001)
    rig.settle(2)
    assert rig.bodies() == sent
    assert progress(rig) == 700


def test_a_broker_that_was_away_delivers_what_is_overdue() -> None:
    rig = rig_with()
    delay(rig, b"a", b"b")
    assert rig.broker.close()
    rig.clock.jump(3600)
    later = rig.again()
    later.settle()
    assert later.bodies() == [b"a", b"b"]


def test_after_a_kill_none_is_missing_and_few_come_twice() -> None:
    rig = rig_with(flushDelayOffsetInterval="10000")
    delay(rig, b"a", b"b")
    rig.settle(1)
    rig.settle(10)  # saved
    delay(rig, b"c", b"d")
    rig.settle(1)
    assert rig.bodies() == [b"a", b"b", b"c", b"d"]
    later = rig.again()
    later.settle()
    assert later.bodies() == [b"a", b"b", b"c", b"d", b"c", b"d"], "since the last save"
    assert progress(later) == 4
    later.settle(20)
    assert later.again().bodies() == later.bodies()


def test_progress_waits_until_the_delivery_is_safe() -> None:
    rig = rig_with(flushDiskType="SYNC_FLUSH")
    delay(rig, b"a")
    rig.tick(1)
    assert rig.store.log.wrote_offset > rig.store.flush.flushed_offset
    assert progress(rig) == 0
    rig.work("log_flush")
    rig.turns()
    assert progress(rig) == 1
    assert rig.bodies() == [b"a"]


def test_a_store_that_refuses_is_asked_again(caplog: pytest.LogCaptureFixture) -> None:
    rig = rig_with()
    delay(rig, b"a", b"b")
    rig.store.writability.forbid("test", "no room")
    rig.settle(1)
    assert progress(rig) == 0
    assert caplog.text.count("delay level 1 waits") == 1
    rig.settle(0.5)
    assert caplog.text.count("delay level 1 waits") == 1, "a pause between two attempts"
    rig.store.writability.allow("test")
    rig.settle(0.6)
    assert rig.bodies() == [b"a", b"b"]


def test_a_fault_does_not_stop_a_level_for_good(
    caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    rig = rig_with()
    delay(rig, b"a")
    with monkeypatch.context() as broken:
        broken.setattr(rig.store, "put", _fails)
        rig.settle(1)
    assert "on purpose" in caplog.text
    rig.settle(1)
    assert rig.bodies() == [b"a"]


def _fails(*_: object) -> None:
    raise ZeroDivisionError("on purpose")


@pytest.mark.parametrize("properties", [{}, {"REAL_TOPIC": "T", "REAL_QID": "x"},
                                        {"REAL_TOPIC": "T", "REAL_QID": "9" * 30}])  # fmt: skip
def test_a_message_without_a_place_is_passed_over(
    properties: dict[str, str], caplog: pytest.LogCaptureFixture
) -> None:
    rig = rig_with()
    rig.store.put([message(b"lost", SCHEDULE, 0, properties=properties)])
    delay(rig, b"a")
    rig.settle(2)
    assert rig.bodies() == [b"a"]
    assert "where it belongs" in caplog.text


def test_a_message_that_became_too_large_does_not_hold_up_others(
    caplog: pytest.LogCaptureFixture,
) -> None:
    rig = rig_with(maxMessageSize="1000")
    delay(rig, bytes(900), b"small")
    assert rig.broker.close()
    later = rig.again(maxMessageSize="100")
    later.settle(1)
    assert later.bodies() == [b"small"]
    assert "maxMessageSize" in caplog.text


def test_a_slave_delivers_nothing(caplog: pytest.LogCaptureFixture) -> None:
    rig = rig_with()
    delay(rig, b"a")
    assert rig.broker.close()
    slave = BrokerRig(
        LEVELS | {"brokerRole": "SLAVE"}, disk=rig.disk.kill(), clock=rig.clock, is_first=False,
        broker_id=1,
    )  # fmt: skip
    before = slave.store.log.wrote_offset
    slave.settle(10)
    assert slave.store.log.wrote_offset == before
    assert [one for one in caplog.records if one.levelno >= logging.WARNING] == []


# -- a clock that is set --------------------------------------------------------------------------


def delivered_after(rig: BrokerRig, body: bytes, step: float, most: float) -> float:
    """Return how many seconds pass until a message is delivered."""
    passed = 0.0
    while body not in rig.bodies():
        assert passed < most, "it is never delivered"
        rig.settle(step)
        passed += step
    return passed


@pytest.mark.parametrize("back_s", [0.001, 0.5, 3, 3600])
def test_a_clock_set_back_makes_nothing_early_and_little_late(back_s: float) -> None:
    rig = rig_with()
    delay(rig, b"before", level=2)
    rig.settle(1)
    rig.clock.set_now_ms(rig.clock.now_ms() - round(back_s * 1000))
    delay(rig, b"after", level=2)
    passed = delivered_after(rig, b"before", 0.1, 20)
    assert passed + 0.001 >= 4.0
    assert passed <= 10.2, "at most twice the time of its level"
    passed += delivered_after(rig, b"after", 0.1, 20)
    assert passed + 0.001 >= 5.0
    assert passed <= 10.2


def test_a_tiny_step_back_does_not_deliver_at_once() -> None:
    """Store timestamps never go back, so entries seem to be from the future for a moment."""
    rig = rig_with()
    rig.store_some(b"stamps the log")
    rig.clock.set_now_ms(rig.clock.now_ms() - 2)
    delay(rig, b"an hour", level=4)
    rig.settle(3599)
    assert b"an hour" not in rig.bodies()
    rig.settle(1.01)
    assert b"an hour" in rig.bodies()


def test_a_flow_of_messages_is_not_slowed_down_by_a_clock_that_was_set_back() -> None:
    rig = rig_with()
    delay(rig, b"first")
    rig.clock.set_now_ms(rig.clock.now_ms() - 3_600_000)
    sent = [b"first"]
    for number in range(50):
        rig.settle(0.1)
        sent.append(b"%d" % number)
        delay(rig, sent[-1])
    for _ in range(21):
        rig.settle(0.1)
    assert rig.bodies() == sent


def test_a_clock_set_forward_delivers_at_once() -> None:
    rig = rig_with()
    delay(rig, b"x", level=4)
    rig.settle(1)
    rig.clock.set_now_ms(rig.clock.now_ms() + 3_600_000)
    rig.settle(1)
    assert rig.bodies() == [b"x"]


def test_levels_that_were_shortened_deliver_sooner() -> None:
    rig = rig_with()
    delay(rig, b"x", level=4)
    assert rig.broker.close()
    later = rig.again(messageDelayLevel="1s 5s 10s 20s")
    later.settle()
    later.settle(19.9)
    assert later.bodies() == []
    later.settle(0.2)
    assert later.bodies() == [b"x"]


def test_levels_that_are_gone_are_left_alone() -> None:
    rig = rig_with()
    delay(rig, b"x", level=4)
    assert rig.broker.close()
    later = rig.again(messageDelayLevel="1s 2s")
    later.settle(7200)
    assert later.bodies() == []
    later.send(b"y", i="DELAY\x014")
    later.settle(2)
    assert later.bodies() == [b"y"], "a level above the highest counts as the highest"


def test_progress_beyond_the_log_goes_back_to_its_end() -> None:
    rig = rig_with()
    rig.broker.tables.delays.set(1, 50)
    delay(rig, b"a")
    rig.settle(1)
    assert progress(rig) == 1, "that of a log which lost its end"
    delay(rig, b"b")
    rig.settle(1)
    assert rig.bodies() == [b"b"]


def test_a_level_that_is_still_there_delays_no_second_time() -> None:
    rig = rig_with()
    delay(rig, b"once")
    rig.settle(1)
    group = {"group": "g", "offset": str(rig.records()[0].log_offset), "delayLevel": "0"}
    assert rig.ask(json_request(36, group)).code == 0
    rig.settle(11)
    (again,) = rig.records("%RETRY%g")
    assert decode_properties(again.properties)["DELAY"] == "3", "that of its first retry"
    rig.settle(60)
    assert rig.bodies() == [b"once"]


# -- entries that are not in memory ----------------------------------------------------------------

MANY = 60
"""More than the units of a queue that stay in memory."""


def evict(rig: BrokerRig, *directories: str) -> int:
    """Take the files of a schedule queue out of memory; return how many there are."""
    root = rig.store.queues.queue(SCHEDULE, 0).directory.parents[2]
    paths = [
        root / kind / SCHEDULE / "0" / name
        for kind in directories
        for name in rig.disk.names(root / kind / SCHEDULE / "0")
    ]
    for path in paths:
        rig.disk.evict(path)
    return len(paths)


@pytest.mark.parametrize(
    ("extension", "cold"),
    [
        ("false", ["consumequeue"]),
        ("true", ["consumequeue"]),
        ("true", ["consumequeue_ext"]),
        ("true", ["consumequeue", "consumequeue_ext"]),
    ],
)
def test_entries_that_are_not_in_memory_are_read_by_the_worker(
    extension: str, cold: list[str]
) -> None:
    rig = rig_with(enableConsumeQueueExt=extension, mappedFileSizeConsumeQueueExt="20000")
    bodies = [b"%03d" % number for number in range(MANY)]
    delay(rig, *bodies)
    rig.store.flush_queues(thorough=True)
    rig.work("queue_flush")
    reader = rig.workers["cold_read"]
    assert evict(rig, *cold) == len(cold)
    rig.tick(1)
    assert reader.waiting_jobs == 1
    assert rig.bodies() == [], "the loop has not waited for them"
    assert rig.ask(json_request(10, {"a": "g", "b": "T", "e": "1"}, b"meanwhile")).code >= 0
    rig.settle(0)
    assert rig.bodies() == bodies
    assert progress(rig) == MANY


def test_times_of_messages_whose_extension_is_gone_are_read_by_the_worker() -> None:
    rig = rig_with(enableConsumeQueueExt="true", mappedFileSizeConsumeQueueExt="20000")
    bodies = [b"%03d" % number for number in range(MANY)]
    delay(rig, *bodies)
    assert rig.broker.close()
    again = rig.again(rig.disk, enableConsumeQueueExt="false")
    for file in again.store.log.files:
        again.disk.evict(file.region.path)
    evict(again, "consumequeue")
    again.tick(1)
    assert again.bodies() == []
    assert again.workers["cold_read"].waiting_jobs > 0
    again.settle(0)
    assert again.bodies() == bodies


def test_entries_that_cannot_be_read_hold_up_their_level_and_no_other(
    caplog: pytest.LogCaptureFixture,
) -> None:
    rig = rig_with()
    delay(rig, *(b"%03d" % number for number in range(MANY)))
    delay(rig, b"five", level=2)
    rig.store.flush_queues(thorough=True)
    rig.work("queue_flush")
    evict(rig, "consumequeue")
    rig.disk.fail(Operation.READ, errno.EIO)
    rig.settle(1)
    assert "delay level 1 waits 1000 ms: reading its entries from 0 on" in caplog.text
    rig.settle(4)
    assert sorted(rig.bodies()) == sorted([*(b"%03d" % number for number in range(MANY)), b"five"])
