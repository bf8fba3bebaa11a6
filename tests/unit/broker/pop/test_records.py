"""What pop stores and what clients send back, against what Apache 5.5.0 wrote."""

from __future__ import annotations

import pytest

from gantrymq.broker.pop import handles
from gantrymq.broker.pop.records import AckRecord, CheckPoint, RecordMaker, parse
from gantrymq.broker.timer.rules import rounded_down, waiting
from gantrymq.errors import ContentError
from gantrymq.kernel import kernel
from gantrymq.wire.properties import decode_properties
from support.golden import commit_log

LABEL = "apache-5.5.0-pop-v2records"
MAKER = RecordMaker("rmq_sys_REVIVE_LOG_DefaultCluster", b"\x7f\0\0\1\0\0\x51\xaf")


def golden_records() -> list[tuple[str, bytes, dict[str, str], int]]:
    """Return tag, body, properties and queue of what waited for the revive topic."""
    found = []
    for base, log in commit_log(LABEL).items():
        position = 0
        while position < len(log):
            try:
                record, position = kernel.decode_record(log, position, len(log), False)
            except ContentError:
                break
            properties = decode_properties(record.properties)
            if record.topic == b"rmq_sys_wheel_timer":
                found.append((properties["TAGS"], bytes(record.body), properties, base))
    return found


def test_our_records_are_apaches_byte_for_byte() -> None:
    records = golden_records()
    assert len(records) > 30
    tags = set()
    for tag, body, properties, _ in records:
        value = parse(tag, body)
        assert value is not None
        queue_id = int(properties["REAL_QID"])
        if isinstance(value, CheckPoint):
            made = MAKER.check_point(value, queue_id, 0)
        else:
            assert isinstance(value, AckRecord)
            made = MAKER.ack(value, queue_id, int(properties["TIMER_DELIVER_MS"]), 0)
        assert made.body == body
        stored = waiting(made, rounded_down(int(properties["TIMER_DELIVER_MS"])))
        assert stored.properties == properties
        tags.add(tag)
    assert tags == {"ck", "ack"}


def test_a_check_point_knows_its_messages_with_and_without_steps() -> None:
    point = CheckPoint(c="g", it=1, n=3, pt=2, q=0, so=10, t="T", d=(0, 2, 5))
    assert point.offsets == [10, 12, 15]
    assert CheckPoint(c="g", it=1, n=3, pt=2, q=0, so=10, t="T").offsets == [10, 11, 12]


@pytest.mark.parametrize(
    ("tag", "body"),
    [("ck", b""), ("ck", b"{}"), ("ack", b"[]"), ("bAck", b"\xff"), ("other", b"{}"),
     ("ck", b"[" * 100_000)],
)  # fmt: skip
def test_what_is_no_record_is_passed_over(tag: str, body: bytes) -> None:
    assert parse(tag, body) is None


def test_an_acknowledgement_of_several_names_them_all() -> None:
    ack = AckRecord(aol=(4, 6), bn="b", c="g", pt=5, q=0, so=4, t="T")
    made = MAKER.ack(ack, 3, 9, 0)
    assert made.properties["TAGS"] == "bAck"
    read = parse("bAck", made.body)
    assert isinstance(read, AckRecord)
    assert list(read.offsets) == [4, 6]
    assert read.key == CheckPoint(bn="b", c="g", it=4, n=2, pt=5, q=0, so=4, t="T").key


def test_the_handle_of_a_real_client_is_read() -> None:
    handle = handles.parse_handle("1 1794777724792 60000 2 0 broker-a 0 1")
    assert handle == (1, 1794777724792, 60000, 2, "broker-a")
    assert handles.extra_info(handle, "T", 0, 1) == "1 1794777724792 60000 2 0 broker-a 0 1"


@pytest.mark.parametrize(
    "text",
    ["", "1", "a b c d e f", "1 2 3 4 5", "-1 2 3 4 0 b 0", "1 2 3 99999999999 0 b 0",
     "1 2 3 -4 0 b 0", "1  2 3 4 0 b", "9" * 400],
)  # fmt: skip
def test_what_is_no_handle_is_refused(text: str) -> None:
    with pytest.raises(ContentError, match="extraInfo"):
        handles.parse_handle(text)


def test_topics_are_told_apart_by_a_digit() -> None:
    assert handles.retry_mark("T") == "0"
    for mark, topic in (("1", "%RETRY%g_T"), ("2", "%RETRY%g+T")):
        assert handles.retry_mark(topic) == mark
        assert handles.real_topic("T", "g", mark) == topic
    with pytest.raises(ContentError, match="0, 1 or 2"):
        handles.real_topic("T", "g", "7")
