"""When timers are due, and the handles by which they are taken back."""

from __future__ import annotations

import base64

import pytest

from gantrymq.broker.settings import BrokerSettings, LiveSettings
from gantrymq.broker.timer import rules
from gantrymq.testing.clock import START_MS, VirtualClock
from gantrymq.wire.properties import encode_properties
from gantrymq.wire.response_errors import IllegalOperation, MessageIllegal, SystemFailure
from support.store_rig import message


def timing(**changes: object) -> rules.Timing:
    settings = BrokerSettings(name="broker-a", **changes)  # type: ignore[arg-type]
    return rules.Timing(LiveSettings(settings), VirtualClock())


@pytest.mark.parametrize(
    ("properties", "moment_ms"),
    [
        ({"TIMER_DELAY_SEC": "3"}, START_MS + 3000),
        ({"TIMER_DELAY_MS": "3500"}, START_MS + 3500),
        ({"TIMER_DELIVER_MS": str(START_MS + 7)}, START_MS + 7),
        ({"TIMER_DELAY_SEC": "1", "TIMER_DELAY_MS": "9", "TIMER_DELIVER_MS": "9"}, START_MS + 1000),
        ({"TIMER_DELAY_MS": "-5"}, START_MS - 5),
    ],
)
def test_a_message_says_when_it_is_due(properties: dict[str, str], moment_ms: int) -> None:
    assert rules.due_ms(properties, START_MS) == moment_ms


@pytest.mark.parametrize("text", ["", "x", "1.5", "9" * 40, "--1", "٣"])
def test_a_time_that_is_no_number_is_refused(text: str) -> None:
    with pytest.raises(MessageIllegal, match="TIMER_DELAY_MS"):
        rules.due_ms({"TIMER_DELAY_MS": text}, START_MS)


@pytest.mark.parametrize(
    ("moment_ms", "second_ms"), [(1794779283619, 1794779283000), (2000, 1000), (2001, 2000)]
)
def test_the_second_is_over_when_the_moment_has_come(moment_ms: int, second_ms: int) -> None:
    assert rules.rounded_down(moment_ms) == second_ms
    assert second_ms + 1000 >= moment_ms


def test_a_timer_waits_in_its_topic_with_a_handle() -> None:
    properties = {"TIMER_DELAY_MS": "2500", "UNIQ_KEY": "K"}
    stored, handle = timing().as_timer(message(queue_id=3, properties=properties))
    assert (stored.topic, stored.queue_id) == ("rmq_sys_wheel_timer", 0)
    out_ms = START_MS + 2000
    assert stored.properties == properties | {
        "TIMER_OUT_MS": str(out_ms), "REAL_TOPIC": "T", "REAL_QID": "3",
    }  # fmt: skip
    assert base64.urlsafe_b64decode(handle or "") == b"v1 T broker-a %d K" % (out_ms + 1)
    assert rules.out_ms_of(encode_properties(stored.properties)) == out_ms


def test_a_timer_that_is_due_is_an_ordinary_message() -> None:
    late = message(properties={"TIMER_DELIVER_MS": "5"})
    assert timing().as_timer(late) == (late, None)


def test_a_timer_may_not_wait_longer_than_the_setting_says() -> None:
    longest = timing(timer_delay_max_s=10)
    longest.as_timer(message(properties={"TIMER_DELAY_SEC": "10"}))
    with pytest.raises(MessageIllegal, match="timerMaxDelaySec"):
        longest.as_timer(message(properties={"TIMER_DELAY_MS": "10001"}))


def test_without_timers_none_is_taken() -> None:
    with pytest.raises(SystemFailure, match="timerWheelEnable"):
        timing(timers=False).as_timer(message(properties={"TIMER_DELAY_SEC": "1"}))


@pytest.mark.parametrize(
    ("properties", "out_ms"),
    [
        (b"TIMER_OUT_MS\x0112", 12),
        (b"A\x01TIMER_OUT_MS\x0112", None),
        (b"XTIMER_OUT_MS\x019\x02TIMER_OUT_MS\x0112\x02B\x01c", 12),
        (b"TIMER_OUT_MS\x01x", None),
        (b"", None),
    ],
)
def test_the_time_is_found_among_the_properties(properties: bytes, out_ms: int | None) -> None:
    assert rules.out_ms_of(properties) == out_ms


def test_a_handle_is_read_back() -> None:
    handle = rules.Handle("T", "broker-a", 12001, "KEY")
    assert rules.parse_handle(handle.text) == handle
    assert rules.parse_handle(handle.text.rstrip("=")) == handle


@pytest.mark.parametrize(
    "raw",
    [b"", b"v1", b"v2 T b 1 K", b"v1 T b x K", b"v1 T b 1 ", b"v1 T b 1 K\x01", b"\xff" * 9],
)
def test_what_is_no_handle_is_refused(raw: bytes) -> None:
    with pytest.raises(IllegalOperation):
        rules.parse_handle(base64.urlsafe_b64encode(raw).decode())


@pytest.mark.parametrize("text", ["?", "not base64!", "A" * 10_000, "é"])
def test_what_is_no_base64_is_refused(text: str) -> None:
    with pytest.raises(IllegalOperation):
        rules.parse_handle(text)
