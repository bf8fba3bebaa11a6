"""Walking over a range of the log, and finding a place to begin."""

from __future__ import annotations

import struct
from typing import TYPE_CHECKING

import pytest

from gantrymq.errors import InvalidValue
from gantrymq.kernel.values import Scan, Stop
from support.samples import (
    GOLDEN_RECORD,
    IPV6_HOST,
    blank_on_disk,
    log_of,
    record_on_disk,
)

if TYPE_CHECKING:
    from collections.abc import Callable

    from gantrymq.kernel.interface import Kernel

BASE = 5000
RECORDS = [
    GOLDEN_RECORD._replace(store_timestamp=11),
    GOLDEN_RECORD._replace(store_timestamp=5, topic=b"t" * 200),
    GOLDEN_RECORD._replace(store_timestamp=17, sys_flag=0x10, born_host=IPV6_HOST),
]
LOG = log_of(RECORDS, BASE)
ENDS = [len(log_of(RECORDS[:n], BASE)) for n in range(4)]


def scan(kernel: Kernel, log: bytes, records_max: int = 100) -> Scan:
    return kernel.scan_records(log, 0, len(log), BASE, True, records_max)


def test_a_good_log(kernel: Kernel) -> None:
    result = scan(kernel, LOG)
    assert result == Scan(len(LOG), 3, Stop.END, 11, 17)
    assert type(result) is Scan
    assert type(result.stop) is Stop


def test_nothing_at_all(kernel: Kernel) -> None:
    assert scan(kernel, b"") == Scan(0, 0, Stop.END, 0, 0)


def test_positions_count_from_the_buffer(kernel: Kernel) -> None:
    result = kernel.scan_records(LOG, ENDS[1], len(LOG), BASE, True, 100)
    assert result == Scan(len(LOG), 2, Stop.END, 5, 17)


@pytest.mark.parametrize(
    ("records_max", "expected"),
    [(1, Scan(ENDS[1], 1, Stop.LIMIT, 11, 11)), (2, Scan(ENDS[2], 2, Stop.LIMIT, 11, 5)),
     (3, Scan(ENDS[3], 3, Stop.END, 11, 17)), (2**63, Scan(ENDS[3], 3, Stop.END, 11, 17))],
)  # fmt: skip
def test_no_more_than_asked_for(kernel: Kernel, records_max: int, expected: Scan) -> None:
    assert scan(kernel, LOG, records_max) == expected


def test_the_limit_comes_before_what_follows(kernel: Kernel) -> None:
    assert scan(kernel, LOG + blank_on_disk(30), 3).stop is Stop.LIMIT
    assert scan(kernel, LOG + b"\0", 3).stop is Stop.LIMIT


def wrong_at(place: int, raw: bytes) -> bytes:
    """Return the log with its second record spoiled."""
    at = ENDS[1] + place
    return LOG[:at] + raw + LOG[at + len(raw) :]


STOPS = {
    "seven bytes": (LOG[: ENDS[1] + 7], Stop.INCOMPLETE),
    "a cut record": (LOG[: ENDS[2] - 1], Stop.INCOMPLETE),
    "a size past the range": (wrong_at(0, struct.pack(">i", 2**31 - 1)), Stop.INCOMPLETE),
    "a blank": (LOG[: ENDS[1]] + blank_on_disk(20), Stop.BLANK),
    "a blank of no size": (LOG[: ENDS[1]] + struct.pack(">iI", 0, 0xCBD43194), Stop.BLANK),
    "zeros": (LOG[: ENDS[1]] + bytes(20), Stop.BAD_MAGIC),
    "another magic": (wrong_at(4, b"\xda\xa3\x20\xa8"), Stop.BAD_MAGIC),
    "size 91 in version 2": (wrong_at(0, struct.pack(">i", 91)), Stop.BAD_SIZE),
    "size zero": (wrong_at(0, struct.pack(">i", 0)), Stop.BAD_SIZE),
    "size negative": (wrong_at(0, struct.pack(">i", -1)), Stop.BAD_SIZE),
    "sum of the lengths": (wrong_at(84, struct.pack(">i", 6)), Stop.BAD_SIZE),
    "another offset": (wrong_at(28, struct.pack(">q", 1)), Stop.BAD_OFFSET),
    "another body": (wrong_at(88, b"HELLO"), Stop.BAD_CRC),
    "another CRC": (wrong_at(8, b"\xff"), Stop.BAD_CRC),
}


@pytest.mark.parametrize(("log", "stop"), STOPS.values(), ids=STOPS.keys())
def test_every_reason_to_stop(kernel: Kernel, log: bytes, stop: Stop) -> None:
    assert scan(kernel, log) == Scan(ENDS[1], 1, stop, 11, 11)


def test_the_first_check_that_fails_is_told(kernel: Kernel) -> None:
    wrong_offset_and_body = wrong_at(28, bytes(8))
    at = ENDS[1] + 88
    both = wrong_offset_and_body[:at] + b"X" + wrong_offset_and_body[at + 1 :]
    assert scan(kernel, both).stop is Stop.BAD_OFFSET


def test_checks_that_can_be_left_out(kernel: Kernel) -> None:
    moved = wrong_at(28, struct.pack(">q", 1))
    assert kernel.scan_records(moved, 0, len(moved), -1, True, 9).stop is Stop.END
    spoiled = wrong_at(88, b"HELLO")
    assert kernel.scan_records(spoiled, 0, len(spoiled), BASE, False, 9).stop is Stop.END


def test_a_body_that_is_not_there_has_no_crc(kernel: Kernel) -> None:
    raw = record_on_disk(GOLDEN_RECORD._replace(body=b"", log_offset=BASE), crc=77)
    assert scan(kernel, raw).stop is Stop.END


@pytest.mark.parametrize("records_max", [0, -1])
def test_at_least_one_record(kernel: Kernel, records_max: int) -> None:
    message = "^scan: records_max must be positive$"
    with pytest.raises(InvalidValue, match=message):
        kernel.scan_records(LOG, 0, len(LOG), BASE, True, records_max)
    with pytest.raises(InvalidValue, match=message):
        kernel.dispatch_records(LOG, 0, len(LOG), BASE, True, records_max, [])


@pytest.mark.parametrize(("start", "end"), [(-1, 5), (6, 5), (0, len(LOG) + 1)])
def test_a_range_outside(kernel: Kernel, start: int, end: int) -> None:
    said = f"range: start={start} end={end} do not lie within a buffer of {len(LOG)} bytes"
    calls: list[Callable[[], object]] = [
        lambda: kernel.scan_records(LOG, start, end, BASE, True, 0),
        lambda: kernel.dispatch_records(LOG, start, end, BASE, True, 0, []),
        lambda: kernel.find_record(LOG, start, end, BASE),
        lambda: kernel.gather_records(LOG, start, end, LOG, 0, 0, 0, (), 1, 1),
        lambda: kernel.scan_columns(LOG, start, end, BASE, True, ["x"], [], 0, 0),
    ]
    for call in calls:
        with pytest.raises(InvalidValue) as caught:
            call()
        assert str(caught.value) == said


class TestFinding:
    """A reader may begin at any byte."""

    @pytest.mark.parametrize("start", range(0, len(LOG), 7))
    def test_the_next_record_is_found(self, kernel: Kernel, start: int) -> None:
        expected = next((at for at in [*ENDS[:3]] if at >= start), -1)
        assert kernel.find_record(LOG, start, len(LOG), BASE) == expected

    def test_36_bytes_must_be_there(self, kernel: Kernel) -> None:
        assert kernel.find_record(LOG, 0, 36, BASE) == 0
        assert kernel.find_record(LOG, 0, 35, BASE) == -1
        assert kernel.find_record(b"", 0, 0, BASE) == -1

    def test_it_must_belong_there(self, kernel: Kernel) -> None:
        assert kernel.find_record(LOG, 0, len(LOG), BASE + 1) == -1
        assert kernel.find_record(b"x" + LOG, 0, len(LOG), BASE - 1) == 1

    def test_its_size_must_be_possible(self, kernel: Kernel) -> None:
        small = struct.pack(">i", 90) + LOG[4 : ENDS[1]]
        assert kernel.find_record(small, 0, len(small), BASE) == -1
        least = struct.pack(">iI", 91, 0xDAA320AB) + LOG[8 : ENDS[1]]
        assert kernel.find_record(least, 0, len(least), BASE) == 0

    def test_a_record_inside_a_body_is_passed_over(self, kernel: Kernel) -> None:
        inside = GOLDEN_RECORD._replace(body=record_on_disk(GOLDEN_RECORD), log_offset=BASE)
        log = record_on_disk(inside)
        assert kernel.find_record(log, 1, len(log), BASE) == -1
