"""What a load measures, and how the answers of a broker are counted."""

from __future__ import annotations

import pytest

from gantrymq.client.load import LoadFailed, Measured
from gantrymq.client.load_pull import count_records
from gantrymq.client.load_run import run_send
from gantrymq.client.load_send import SendPlan, templates
from gantrymq.wire.frame import FrameParser


def test_percentiles_are_of_all_answers() -> None:
    measured = Measured(messages=1000, seconds=2.0)
    for number in range(1000, 0, -1):
        measured.note(number / 1_000_000 + 1e-9)
    assert measured.percentiles_us() == {"p50": 501, "p99": 991, "p999": 1000, "max": 1000}
    assert measured.per_second == 500


def test_nothing_measured_is_nothing_said() -> None:
    assert Measured().percentiles_us() == {}
    assert Measured().per_second == 0


def test_the_first_refusal_is_kept() -> None:
    measured = Measured()
    measured.refuse(2, "busy")
    measured.refuse(13, "illegal")
    assert (measured.refused, measured.first_refusal) == (2, "code 2: busy")


def test_a_send_goes_to_each_queue_in_turn() -> None:
    plan = SendPlan(topic="T", queues=3, body_bytes=10, batch=2)
    commands = [FrameParser().feed(one.numbered(0, 0))[0] for one in templates(plan, 1)]
    assert [command.fields["e"] for command in commands] == ["0", "1", "2"]
    assert {command.fields["m"] for command in commands} == {"true"}


def test_records_are_counted_by_their_sizes() -> None:
    record = (100).to_bytes(4, "big") + bytes(96)
    assert count_records(b"") == 0
    assert count_records(record * 3) == 3
    for wrong in (record + b"x", (0).to_bytes(4, "big") + bytes(96)):
        with pytest.raises(LoadFailed):
            count_records(wrong)


def test_more_in_flight_than_memory_is_refused() -> None:
    with pytest.raises(LoadFailed, match="in flight"):
        run_send(
            "127.0.0.1:1", lambda _seconds, _messages: None, topic="T", queues=1, connections=1000,
            window=4096, body_bytes=4 << 20, batch=1, seconds=1,
        )  # fmt: skip
