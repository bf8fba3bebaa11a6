"""Timers of a whole broker: to the second, never early, through restarts, and taken back."""

from __future__ import annotations

import json
import struct
from pathlib import Path

import pytest

from gantrymq.broker.timer.rules import Handle
from gantrymq.testing.clock import START_MS, VirtualClock
from gantrymq.testing.disk import SimulatedFiles
from gantrymq.wire.properties import decode_properties
from support.golden_trees import unpacked
from support.store_rig import ROOT
from support.timed_rig import TimedRig

TIMERS = "rmq_sys_wheel_timer"


def test_a_timer_comes_when_its_second_is_over_and_not_before() -> None:
    rig = TimedRig()
    rig.clock.jump(0.4)
    rig.send(b"late", TIMER_DELAY_MS="2500")
    rig.send(b"exact", TIMER_DELIVER_MS=str(START_MS + 2000))
    seen: dict[bytes, int] = {}
    for _ in range(40):
        rig.wait(0.1, step=0.1)
        for body in rig.bodies("T"):
            seen.setdefault(body, rig.clock.now_ms() - START_MS)
    assert seen == {b"exact": 2000, b"late": 3000}


def test_a_delivered_timer_says_what_an_apache_broker_says() -> None:
    rig = TimedRig()
    rig.send(b"x", queue_id=1, TIMER_DELAY_SEC="2", UNIQ_KEY="K", TAGS="a")
    rig.wait(3)
    (record,) = rig.records("T", 1)
    properties = decode_properties(record.properties)
    assert properties["TIMER_OUT_MS"] == str(START_MS + 1000)
    assert (properties["REAL_TOPIC"], properties["REAL_QID"]) == ("T", "1")
    assert properties["TIMER_ENQUEUE_MS"] == str(START_MS)
    assert int(properties["TIMER_DEQUEUE_MS"]) == record.store_timestamp
    assert record.queue_offset == 0


def test_timers_of_one_second_keep_their_order_in_a_queue() -> None:
    rig = TimedRig()
    for number in range(100):
        rig.send(b"%d" % number, TIMER_DELIVER_MS=str(START_MS + 5000))
    rig.wait(6)
    assert rig.bodies("T") == [b"%d" % number for number in range(100)]


def test_a_kill_loses_no_timer_and_repeats_only_what_was_delivered_lately() -> None:
    rig = TimedRig()
    for number in range(300):
        rig.send(b"%d" % number, TIMER_DELAY_SEC=str(2 + number % 100))
    rig.wait(40)
    early = set(rig.bodies("T"))
    assert 50 < len(early) < 200
    rig = rig.again()
    rig.wait(80)
    bodies = rig.bodies("T")
    assert set(bodies) == {b"%d" % number for number in range(300)}
    again = len(bodies) - 300
    assert again <= 3 * 5, "no more than of the last seconds"


def test_a_clean_stop_repeats_nothing() -> None:
    rig = TimedRig()
    for number in range(50):
        rig.send(b"%d" % number, TIMER_DELAY_SEC=str(1 + number))
    rig.wait(20)
    rig = rig.stop()
    rig.wait(40)
    assert sorted(rig.bodies("T"), key=int) == [b"%d" % number for number in range(50)]


@pytest.mark.parametrize("damage", ["a minute", "all minutes", "the progress", "timercheck"])
def test_damage_to_what_was_noted_of_timers_costs_none_of_them(damage: str) -> None:
    rig = TimedRig()
    for number in range(60):
        rig.send(b"%d" % number, TIMER_DELAY_SEC=str(20 + 5 * number))
    rig.wait(40)
    early = rig.bodies("T")
    assert 2 < len(early) < 10
    disk = rig.disk.kill()
    folder, check = ROOT / "timerslots", ROOT / "config" / "timercheck"
    minutes = sorted(name for name in disk.names(folder) if name.isdecimal())
    assert len(minutes) > 3
    chosen = {
        "a minute": [folder / minutes[1]],
        "all minutes": [folder / name for name in minutes],
        "the progress": [folder / "progress"],
        "timercheck": [check],
    }[damage]
    for path in chosen:
        content = bytearray(disk.read(path))
        content[len(content) // 3 if path != check else 20] ^= 0x41
        disk.place(path, bytes(content))
    rig = rig.again(disk)
    seen: dict[bytes, int] = {}
    for _ in range(320):
        rig.wait(1, step=1)
        for body in rig.bodies("T"):
            seen.setdefault(body, (rig.clock.now_ms() - START_MS) // 1000)
    assert set(seen) == {b"%d" % number for number in range(60)}
    late = {body: at for body, at in seen.items() if body not in early}
    assert all(20 + 5 * int(body) <= at <= 20 + 5 * int(body) + 3 for body, at in late.items())
    assert rig.broker.timed.timers.counts == {}


def test_timers_that_came_due_while_nothing_ran_come_at_the_start() -> None:
    rig = TimedRig()
    rig.send(b"x", TIMER_DELAY_SEC="5")
    rig.wait(1)
    after = rig.again()
    after.clock.jump(3600)
    after.settle()
    assert after.bodies("T") == [b"x"]


def test_a_timer_two_days_off_is_stored_anew_and_comes_once() -> None:
    rig = TimedRig({"fileReservedTime": "10"})
    rig.send(b"far", TIMER_DELAY_SEC="40000")
    rig.wait(39_999, step=300)
    assert rig.bodies("T") == []
    rolls = [
        decode_properties(one.properties).get("TIMER_ROLL_TIMES") for one in rig.records(TIMERS)
    ]
    assert rolls == [None, "1", "2"]
    rig.wait(301, step=300)
    assert rig.bodies("T") == [b"far"]
    assert rig.broker.timed.timers.counts == {}


def test_a_clock_that_is_set_back_delays_nothing_else() -> None:
    rig = TimedRig()
    rig.send(b"first", TIMER_DELAY_SEC="1")
    rig.wait(5)
    rig.clock.set_now_ms(START_MS - 3_600_000)
    rig.send(b"second", TIMER_DELAY_SEC="2")
    rig.wait(4)
    assert rig.bodies("T") == [b"first", b"second"]


def test_a_store_that_refuses_is_asked_again_and_nothing_is_doubled() -> None:
    rig = TimedRig()
    for number in range(5):
        rig.send(b"%d" % number, queue_id=number % 2, TIMER_DELAY_SEC="2")
    rig.broker.store.writability.forbid("test", "no")
    rig.wait(6)
    assert rig.bodies("T") == []
    rig.broker.store.writability.allow("test")
    rig.wait(3)
    assert sorted(rig.bodies("T", 0) + rig.bodies("T", 1)) == [b"%d" % n for n in range(5)]


@pytest.mark.parametrize(
    ("properties", "code"),
    [
        ({"TIMER_DELAY_SEC": "259201"}, 13),
        ({"TIMER_DELAY_MS": "x"}, 13),
        ({"TIMER_DELIVER_MS": "5"}, 0),
        ({"TIMER_DELAY_SEC": "259200"}, 0),
    ],
)
def test_what_a_sender_is_told(properties: dict[str, str], code: int) -> None:
    assert TimedRig().send(b"x", "T", 0, **properties).code == code


def test_a_record_that_says_nothing_useful_is_passed_over() -> None:
    rig = TimedRig()
    rig.send(b"no time", topic=TIMERS)
    rig.send(b"no topic", topic=TIMERS, TIMER_OUT_MS="5")
    rig.send(b"good", TIMER_DELAY_SEC="1")
    rig.wait(4)
    assert rig.bodies("T") == [b"good"]


# -- taken back -----------------------------------------------------------------------------------


def recall(rig: TimedRig, handle: str, topic: str = "T") -> int:
    return rig.ask(370, topic=topic, recallHandle=handle, producerGroup="p").code


def test_a_timer_that_is_taken_back_never_comes() -> None:
    rig = TimedRig()
    handle = rig.send(b"gone", TIMER_DELAY_SEC="4", UNIQ_KEY="A").fields["recallHandle"]
    rig.send(b"stays", TIMER_DELAY_SEC="4", UNIQ_KEY="B")
    answer = rig.ask(370, topic="T", recallHandle=handle, producerGroup="p")
    assert (answer.code, answer.fields["msgId"]) == (0, "A")
    rig = rig.again()
    rig.wait(8)
    assert rig.bodies("T") == [b"stays"]


def test_a_handle_that_is_not_for_us_is_refused() -> None:
    rig = TimedRig()
    handle = rig.send(b"x", TIMER_DELAY_SEC="4", UNIQ_KEY="A").fields["recallHandle"]
    soon = START_MS + 4000
    assert recall(rig, handle, "TBW102") == 604
    assert recall(rig, "garbage") == 604
    assert recall(rig, Handle("T", "broker-b", soon, "A").text) == 604
    assert recall(rig, Handle("T", "broker-a", START_MS - 1, "A").text) == 604
    assert recall(rig, Handle("Nowhere", "broker-a", soon, "A").text, "Nowhere") == 17
    rig.wait(6)
    assert recall(rig, handle) == 604
    assert rig.bodies("T") == [b"x"]


def test_recalls_are_off_unless_they_are_set() -> None:
    rig = TimedRig(broker_settings={"recalls": False})
    handle = rig.send(b"x", TIMER_DELAY_SEC="4", UNIQ_KEY="A").fields["recallHandle"]
    assert recall(rig, handle) == 16


def test_what_a_slave_is_told() -> None:
    rig = TimedRig()
    rig.send(b"x", TIMER_DELAY_SEC="100")
    rig.send(b"y", TIMER_DELAY_SEC="100")
    rig.wait(5)
    numbers = struct.unpack(">7q", rig.ask(60).body)
    assert START_MS <= numbers[0] <= rig.clock.now_ms()
    assert numbers[2] == 0, "a record at offset 0 still waits"
    metrics = json.loads(rig.ask(61).body)
    assert metrics["timingCount"]["T"]["count"] == 2
    assert set(metrics["dataVersion"]) == {"counter", "stateVersion", "timestamp"}


# -- from Apache, and to it -----------------------------------------------------------------------


def golden(name: str, folder: Path, now_ms: int) -> TimedRig:
    """Open what an Apache broker has left."""
    root = unpacked(name, folder)
    disk, clock = SimulatedFiles(), VirtualClock(now_ms)
    for path in sorted(root.rglob("*")):
        if path.is_file() and path.name not in {"abort", "lock"}:
            disk.place(ROOT / path.relative_to(root), path.read_bytes())
    settings = {
        "mappedFileSizeCommitLog": "262144",
        "mappedFileSizeConsumeQueue": "1000",
        "maxHashSlotNum": "200",
        "maxIndexNum": "800",
        "messageDelayLevel": "1s 5s 10s 30s 1m 2m 3m 4m 5m 6m 7m 8m 9m 10m 20m 30m 2h 3650d",
        "fileReservedTime": "480000",
    }
    return TimedRig(settings, {"timer_delay_max_s": 400_000_000}, disk, clock)


def test_timers_that_apache_has_left_are_delivered_and_none_of_its_own_again(
    tmp_path: Path,
) -> None:
    rig = golden("apache-5.5.0-clean", tmp_path, 1_794_780_000_000)
    before = len(rig.records("TimerTopic", 0)) + len(rig.records("TimerTopic", 1))
    rig.wait(3)
    assert len(rig.records("TimerTopic", 0)) + len(rig.records("TimerTopic", 1)) == before
    assert rig.broker.timed.timers.counts == {"TimerTopic": 3}
    rig.clock.set_now_ms(2_110_137_921_500)
    rig.wait(20)
    keys = [
        decode_properties(record.properties)["KEYS"]
        for queue_id in (0, 1)
        for record in rig.records("TimerTopic", queue_id)
    ]
    assert sorted(key for key in keys if key.startswith("timersec")) == [
        "timersec0", "timersec1", "timersec2",
    ]  # fmt: skip


def test_apache_is_told_where_to_go_on() -> None:
    rig = TimedRig()
    rig.send(b"soon", TIMER_DELAY_SEC="2")
    rig.send(b"later", TIMER_DELAY_SEC="500")
    rig.wait(70)
    rig = rig.stop()
    content = rig.disk.read(Path("/store/config/timercheck"))
    delivered_ms, _, offset = struct.unpack_from(">3q", content)
    assert len(content) == 4096
    assert delivered_ms == (rig.clock.now_ms() // 1000) * 1000
    assert offset == 1, "the first that waits"


def test_after_apache_everything_in_the_topic_is_looked_at_again() -> None:
    rig = TimedRig()
    rig.send(b"done", TIMER_DELAY_SEC="2")
    rig.send(b"waits", TIMER_DELAY_SEC="50")
    rig.wait(10)
    assert rig.broker.close()
    apache = struct.pack(">7q", START_MS + 20_000, 52, 2, 2, 0, 1, 1).ljust(4096, b"\0")
    rig.disk.place(Path("/store/config/timercheck"), apache)
    after = rig.again()
    after.wait(60)
    assert after.bodies("T") == [b"done", b"waits"]
