"""Consume queue units and index keys built from the log."""

from __future__ import annotations

import struct
from typing import TYPE_CHECKING

import pytest

from gantrymq.kernel.values import Dispatch, QueueRun, Record, Stop
from support.samples import GOLDEN_RECORD, blank_on_disk, log_of, properties

if TYPE_CHECKING:
    from collections.abc import Sequence

    from gantrymq.kernel.interface import Kernel

BASE = 7000
PLAIN = GOLDEN_RECORD._replace(queue_id=0, queue_offset=0, properties=b"")


def dispatch(
    kernel: Kernel, records: Sequence[Record], delays_ms: Sequence[int] = (1000, 5000)
) -> Dispatch:
    log = log_of(records, BASE)
    return kernel.dispatch_records(log, 0, len(log), BASE, True, 10**6, delays_ms)


def tags_code(kernel: Kernel, record: Record, delays_ms: Sequence[int] = (1000, 5000)) -> int:
    (run,) = dispatch(kernel, [record], delays_ms).runs
    code: int = struct.unpack(">qiq", run.units)[2]
    return code


def key_hashes(kernel: Kernel, record: Record) -> list[int]:
    keys = dispatch(kernel, [record]).keys
    return [entry[0] for entry in struct.iter_unpack(">iqq", keys)]


def java_hash(text: str) -> int:
    value = 0
    units = text.encode("utf-16-be")
    for at in range(0, len(units), 2):
        value = (value * 31 + int.from_bytes(units[at : at + 2])) % 2**32
    return value - 2**32 if value >= 2**31 else value


def key_with_hash(prefix: str, wanted: int) -> str:
    """Return letters that give `prefix` and them together a certain hash."""
    places = 8
    rest = wanted - java_hash(prefix) * 31**places - 97 * sum(31**n for n in range(places))
    rest %= 2**32
    while True:
        digits = [rest // 31**n % 31 for n in reversed(range(places))]
        if rest < 31**places and max(digits) < 26:
            return "".join(chr(97 + digit) for digit in digits)
        rest += 2**32


class TestUnits:
    """What becomes of each record, and in which run."""

    def test_one_record(self, kernel: Kernel) -> None:
        result = dispatch(kernel, [GOLDEN_RECORD])
        unit = struct.pack(">qiq", BASE, 122, java_hash("TagA"))
        run = QueueRun(b"TopicTest", 3, 7, unit, BASE + 122, GOLDEN_RECORD.store_timestamp)
        keys = struct.pack(
            ">iqq", abs(java_hash("TopicTest#K1")), BASE, GOLDEN_RECORD.store_timestamp
        )
        assert result == Dispatch(122, 1, Stop.END, [run], keys, [])
        assert type(result) is Dispatch
        assert type(result.runs[0]) is QueueRun

    def test_runs_are_in_order_of_first_appearance(self, kernel: Kernel) -> None:
        a0, a1, a2 = (PLAIN._replace(topic=b"a", queue_offset=n) for n in range(3))
        b5 = PLAIN._replace(topic=b"b", queue_offset=5)
        c1 = PLAIN._replace(topic=b"a", queue_id=1, queue_offset=0)
        result = dispatch(kernel, [a0, b5, a1, c1, a2])
        shape = [
            (r.topic, r.queue_id, r.first_queue_offset, len(r.units) // 20) for r in result.runs
        ]
        assert shape == [(b"a", 0, 0, 3), (b"b", 0, 5, 1), (b"a", 1, 0, 1)]
        assert result.runs[0].log_end == BASE + result.end

    @pytest.mark.parametrize("offset", [0, 2, -1, 2**62])
    def test_a_gap_begins_a_new_run(self, kernel: Kernel, offset: int) -> None:
        result = dispatch(kernel, [PLAIN, PLAIN._replace(queue_offset=offset),
                                   PLAIN._replace(queue_offset=offset + 1)])  # fmt: skip
        assert [(r.first_queue_offset, len(r.units) // 20) for r in result.runs] == [
            (0, 1),
            (offset, 2),
        ]

    def test_many_queues(self, kernel: Kernel) -> None:
        records = [
            PLAIN._replace(topic=b"t%d" % (n % 97), queue_id=n % 3, queue_offset=n // 291)
            for n in range(1000)
        ]
        result = dispatch(kernel, records)
        assert len(result.runs) == 291
        assert sum(len(run.units) for run in result.runs) == 20_000

    @pytest.mark.parametrize(
        ("bits", "units", "keys"), [(0, 1, 1), (4, 0, 1), (8, 1, 1), (12, 0, 0)]
    )
    def test_transactions(self, kernel: Kernel, bits: int, units: int, keys: int) -> None:
        result = dispatch(kernel, [GOLDEN_RECORD._replace(sys_flag=bits)])
        assert (len(result.runs), len(result.keys) // 20, result.records) == (units, keys, 1)

    def test_it_walks_as_a_scan_does(self, kernel: Kernel) -> None:
        log = log_of([PLAIN, PLAIN], BASE)
        one = kernel.dispatch_records(log, 0, len(log), BASE, True, 1, [])
        assert (one.end, one.records, one.stop) == (len(log) // 2, 1, Stop.LIMIT)
        log += blank_on_disk(10)
        assert kernel.dispatch_records(log, 0, len(log), BASE, True, 9, []).stop is Stop.BLANK
        assert (
            kernel.dispatch_records(log, 0, len(log), BASE + 1, True, 9, []).stop is Stop.BAD_OFFSET
        )
        spoiled = log.replace(b"hello", b"hellO", 1)
        assert kernel.dispatch_records(spoiled, 0, len(log), BASE, True, 9, []).stop is Stop.BAD_CRC
        assert kernel.dispatch_records(spoiled, 0, len(log), BASE, False, 9, []).records == 2

    def test_the_unit_holds_the_record_s_own_offset(self, kernel: Kernel) -> None:
        log = log_of([PLAIN], 99)
        (run,) = kernel.dispatch_records(log, 0, len(log), -1, True, 9, []).runs
        assert struct.unpack(">qiq", run.units)[0] == 99
        assert run.log_end == 99 + len(log)

    def test_multi_dispatch_is_pointed_out(self, kernel: Kernel) -> None:
        marked = PLAIN._replace(properties=b"INNER_MULTI_DISPATCH\x01%LMQ%a")
        empty = PLAIN._replace(properties=b"INNER_MULTI_DISPATCH\x01")
        prepared = marked._replace(sys_flag=4)
        size = len(log_of([PLAIN]))
        assert dispatch(kernel, [PLAIN, marked, empty, prepared]).multi == [size]


class TestTagsCodes:
    """A hash, or the time of delivery."""

    @pytest.mark.parametrize("tag", ["Aa", "BB", "polygenelubricants", "\U0001f600", "a||b", " x "])
    def test_the_hash_of_the_tag(self, kernel: Kernel, tag: str) -> None:
        record = PLAIN._replace(properties=properties({"K": "v", "TAGS": tag}))
        assert tags_code(kernel, record) == java_hash(tag)

    def test_colliding_tags_have_one_code(self, kernel: Kernel) -> None:
        codes = {
            tags_code(kernel, PLAIN._replace(properties=b"TAGS\x01" + tag))
            for tag in (b"Aa", b"BB")
        }
        assert codes == {2112}

    def test_a_negative_hash_is_extended(self, kernel: Kernel) -> None:
        record = PLAIN._replace(properties=b"TAGS\x01polygenelubricants")
        assert tags_code(kernel, record) == -(2**31)

    def test_invalid_text_is_mended(self, kernel: Kernel) -> None:
        record = PLAIN._replace(properties=b"TAGS\x01a\xff")
        assert tags_code(kernel, record) == java_hash("a\ufffd")

    @pytest.mark.parametrize(
        "text",
        [
            b"",
            b"TAGS",
            b"TAGS\x01",
            b"TAGS\x02x\x01y",
            b"\x01TAGS",
            b"tags\x01a",
            b"TAGSX\x01a",
            b"\x02\x02\x01\x02",
        ],
    )
    def test_without_a_tag_it_is_zero(self, kernel: Kernel, text: bytes) -> None:
        assert tags_code(kernel, PLAIN._replace(properties=text)) == 0

    @pytest.mark.parametrize(
        ("text", "tag"),
        [
            (b"TAGS\x01a\x02TAGS\x01b", "b"),
            (b"TAGS\x01a\x02TAGS\x01", "a"),
            (b"TAGS\x01a\x01b\x02", "a\x01b"),
            (b"\x02\x02TAGS\x01a\x02", "a"),
            (b"x\x02TAGS\x01a\x02y", "a"),
        ],
    )
    def test_odd_property_strings(self, kernel: Kernel, text: bytes, tag: str) -> None:
        assert tags_code(kernel, PLAIN._replace(properties=text)) == java_hash(tag)

    @pytest.mark.parametrize(
        ("level", "delay"),
        [("1", 1000), ("2", 5000), ("3", 5000), ("+1", 1000), ("2147483647", 5000)],
    )
    def test_a_waiting_message_has_its_time(self, kernel: Kernel, level: str, delay: int) -> None:
        record = PLAIN._replace(
            topic=b"SCHEDULE_TOPIC_XXXX", properties=properties({"DELAY": level, "TAGS": "x"})
        )
        assert tags_code(kernel, record) == record.store_timestamp + delay

    @pytest.mark.parametrize("level", ["0", "-1", "x", "1 ", "2147483648", "\u0661", "1\u0661"])
    def test_a_level_that_is_none(self, kernel: Kernel, level: str) -> None:
        record = PLAIN._replace(
            topic=b"SCHEDULE_TOPIC_XXXX", properties=properties({"DELAY": level, "TAGS": "x"})
        )
        assert tags_code(kernel, record) == java_hash("x")

    def test_without_levels_it_waits_a_second(self, kernel: Kernel) -> None:
        record = PLAIN._replace(topic=b"SCHEDULE_TOPIC_XXXX", properties=b"DELAY\x015")
        assert tags_code(kernel, record, []) == record.store_timestamp + 1000

    def test_the_time_wraps(self, kernel: Kernel) -> None:
        record = PLAIN._replace(
            topic=b"SCHEDULE_TOPIC_XXXX", properties=b"DELAY\x011", store_timestamp=2**63 - 1
        )
        assert tags_code(kernel, record) == -(2**63) + 999
        assert tags_code(kernel, record, []) == -(2**63) + 999

    def test_elsewhere_a_delay_means_nothing(self, kernel: Kernel) -> None:
        assert tags_code(kernel, PLAIN._replace(properties=b"DELAY\x011")) == 0


class TestIndexKeys:
    """UNIQ_KEY first, then the words of KEYS."""

    def test_order_and_words(self, kernel: Kernel) -> None:
        record = PLAIN._replace(
            topic="t\u00e9".encode(),
            properties=properties({"KEYS": " a  b\U0001f600 ", "UNIQ_KEY": "U 1"}),
        )
        expected = [abs(java_hash(f"t\u00e9#{key}")) for key in ("U 1", "a", "b\U0001f600")]
        assert key_hashes(kernel, record) == expected

    def test_offset_and_time(self, kernel: Kernel) -> None:
        first = PLAIN._replace(properties=b"KEYS\x01a", store_timestamp=-5)
        result = dispatch(kernel, [PLAIN, first])
        at = BASE + len(log_of([PLAIN]))
        assert struct.unpack(">iqq", result.keys)[1:] == (at, -5)

    def test_the_least_integer_becomes_zero(self, kernel: Kernel) -> None:
        key = key_with_hash("TopicTest#", -(2**31))
        assert java_hash("TopicTest#" + key) == -(2**31)
        assert key_hashes(kernel, PLAIN._replace(properties=b"KEYS\x01" + key.encode())) == [0]

    def test_a_negative_hash_loses_its_sign(self, kernel: Kernel) -> None:
        key = key_with_hash("TopicTest#", -12345)
        assert key_hashes(kernel, PLAIN._replace(properties=b"KEYS\x01" + key.encode())) == [12345]

    @pytest.mark.parametrize("text", [b"", b"KEYS\x01", b"KEYS\x01   ", b"UNIQ_KEY\x01\x02KEYS"])
    def test_no_keys(self, kernel: Kernel, text: bytes) -> None:
        assert key_hashes(kernel, PLAIN._replace(properties=text)) == []

    def test_invalid_text(self, kernel: Kernel) -> None:
        record = PLAIN._replace(topic=b"t\xe4\xb8", properties=b"KEYS\x01\xff \xe4")
        expected = [abs(java_hash("t\ufffd#\ufffd"))] * 2
        assert key_hashes(kernel, record) == expected
