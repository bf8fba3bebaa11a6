"""The log as columns; pyarrow, which did not write them, must find them in order."""

from __future__ import annotations

import struct
from typing import TYPE_CHECKING

import pyarrow as pa
import pytest

from gantrymq.errors import InvalidValue
from gantrymq.kernel.values import (
    COLUMN_NAMES,
    Column,
    Columns,
    Record,
    Stop,
)
from support.arrow import as_pylists
from support.samples import (
    GOLDEN_RECORD,
    IPV6_HOST,
    blank_on_disk,
    log_of,
    properties,
)

if TYPE_CHECKING:
    from collections.abc import Sequence

    from gantrymq.kernel.interface import Kernel

BASE = 0x1_0000_0000
BYTES_MAX = 2**29
ODD = GOLDEN_RECORD._replace(
    queue_id=-1,
    flag=-7,
    queue_offset=2**62,
    sys_flag=0x30,
    born_timestamp=-1,
    store_timestamp=2**63 - 1,
    reconsume_times=3,
    prepared_offset=-9,
    born_host=IPV6_HOST,
    store_host=bytes(15) + b"\x01\xff\xff\xff\xff",
    body=b"\xff\x00",
    topic="\u4e2d".encode(),
    properties=b"",
)
MARKED = GOLDEN_RECORD._replace(
    topic=b"t\xff",
    properties=properties({"UNIQ_KEY": "U1"})
    + b"\x02TAGS\x01\xe4\xb8x\x02KEYS\x01a\x02KEYS\x01b c",
)
RECORDS = [GOLDEN_RECORD, ODD, MARKED]


def scan(
    kernel: Kernel,
    records: Sequence[Record],
    names: Sequence[str] = COLUMN_NAMES,
    topics: Sequence[bytes] = (),
    rows_max: int = 1000,
    bytes_max: int = BYTES_MAX,
) -> Columns:
    log = log_of(records, BASE)
    return kernel.scan_columns(log, 0, len(log), BASE, True, names, topics, rows_max, bytes_max)


def test_every_column(kernel: Kernel) -> None:
    result = scan(kernel, RECORDS)
    sizes = [len(log_of([record])) for record in RECORDS]
    starts = [BASE, BASE + sizes[0], BASE + sizes[0] + sizes[1]]
    assert (result.rows, result.scanned, result.stop) == (3, 3, Stop.END)
    assert type(result) is Columns
    assert all(type(column) is Column for column in result.columns.values())
    assert as_pylists(result) == {
        "queue_id": [3, -1, 3],
        "store_size": sizes,
        "body_crc": [0x3610A686, kernel.crc32(b"\xff\x00"), 0x3610A686],
        "flag": [0, -7, 0],
        "sys_flag": [0, 0x30, 0],
        "reconsume_times": [0, 3, 0],
        "queue_offset": [7, 2**62, 7],
        "log_offset": starts,
        "born_timestamp": [1700000000000, -1, 1700000000000],
        "store_timestamp": [1700000000123, 2**63 - 1, 1700000000123],
        "prepared_offset": [0, -9, 0],
        "body": [b"hello", b"\xff\x00", b"hello"],
        "topic": ["TopicTest", "\u4e2d", "t\ufffd"],
        "properties": [
            "TAGS\x01TagA\x02KEYS\x01K1",
            "",
            "UNIQ_KEY\x01U1\x02TAGS\x01\ufffdx\x02KEYS\x01a\x02KEYS\x01b c",
        ],
        "born_host": ["10.0.0.1:12345", "fd00:0:0:0:0:0:0:2:20911", "10.0.0.1:12345"],
        "store_host": ["127.0.0.1:10911", "0:0:0:0:0:0:0:1:-1", "127.0.0.1:10911"],
        "message_id": [
            f"7F00000100002A9F{starts[0]:016X}",
            f"00000000000000000000000000000001FFFFFFFF{starts[1]:016X}",
            f"7F00000100002A9F{starts[2]:016X}",
        ],
        "tags": ["TagA", None, "\ufffdx"],
        "keys": ["K1", None, "b c"],
        "unique_key": [None, None, "U1"],
    }


def test_the_columns_asked_for_in_that_order(kernel: Kernel) -> None:
    result = scan(kernel, RECORDS, ["body", "queue_id", "body"])
    assert list(result.columns) == ["body", "queue_id"]
    assert result.columns["queue_id"].values == struct.pack("<iii", 3, -1, 3)
    assert scan(kernel, RECORDS, []).columns == {}
    assert scan(kernel, RECORDS, []).rows == 3


def test_nothing_at_all(kernel: Kernel) -> None:
    result = scan(kernel, [])
    assert (result.end, result.rows, result.scanned, result.stop) == (0, 0, 0, Stop.END)
    assert result.columns["queue_id"] == Column(b"", None, None)
    assert result.columns["tags"] == Column(b"", bytes(4), None)
    assert all(values == [] for values in as_pylists(result).values())


@pytest.mark.parametrize("rows", [1, 7, 8, 9, 16, 17])
def test_the_validity_bitmap(kernel: Kernel, rows: int) -> None:
    tags = [None if n % 3 == 1 else f"t{n}" for n in range(rows)]
    records = [
        GOLDEN_RECORD._replace(properties=b"" if tag is None else b"TAGS\x01" + tag.encode())
        for tag in tags
    ]
    result = scan(kernel, records, ["tags"])
    validity = result.columns["tags"].validity
    assert as_pylists(result)["tags"] == tags
    assert validity is None if None not in tags else len(validity or b"") == (rows + 7) // 8


def test_topics(kernel: Kernel) -> None:
    records = [GOLDEN_RECORD._replace(topic=topic) for topic in (b"a", b"b", b"a", b"c", b"ab")]
    result = scan(kernel, records, ["topic"], [b"a", b"c", b"a"])
    assert (result.rows, result.scanned, result.stop) == (3, 5, Stop.END)
    assert as_pylists(result)["topic"] == ["a", "a", "c"]
    assert scan(kernel, records, ["topic"], [b""]).rows == 0


def test_rows_max(kernel: Kernel) -> None:
    records = [GOLDEN_RECORD._replace(topic=topic) for topic in (b"a", b"b", b"b", b"a", b"b")]
    size = len(log_of(records)) // 5
    first = scan(kernel, records, ["topic"], [b"a"], rows_max=1)
    assert (first.end, first.rows, first.scanned, first.stop) == (3 * size, 1, 3, Stop.LIMIT)
    both = scan(kernel, records, ["topic"], [b"a"], rows_max=2)
    assert (both.end, both.rows, both.scanned, both.stop) == (5 * size, 2, 5, Stop.END)


def test_bytes_max(kernel: Kernel) -> None:
    records = [GOLDEN_RECORD] * 3
    assert scan(kernel, records, bytes_max=1)[:4] == (122, 1, 1, Stop.LIMIT)
    assert scan(kernel, records, bytes_max=243)[:4] == (122, 1, 1, Stop.LIMIT)
    assert scan(kernel, records, bytes_max=244)[:4] == (244, 2, 2, Stop.LIMIT)
    assert scan(kernel, records, bytes_max=366)[:4] == (366, 3, 3, Stop.END)


def test_it_walks_as_a_scan_does(kernel: Kernel) -> None:
    log = log_of([GOLDEN_RECORD], BASE)
    cases = [
        (log + blank_on_disk(9), Stop.BLANK),
        (log + bytes(9), Stop.BAD_MAGIC),
        (log + log, Stop.BAD_OFFSET),
        (log + log[:50], Stop.INCOMPLETE),
    ]
    for raw, stop in cases:
        result = kernel.scan_columns(raw, 0, len(raw), BASE, True, ["body"], [], 9, BYTES_MAX)
        assert (result.end, result.rows, result.stop) == (122, 1, stop)
    spoiled = log.replace(b"hello", b"hellO")
    assert kernel.scan_columns(spoiled, 0, 122, BASE, True, [], [], 9, 99).stop is Stop.BAD_CRC
    assert kernel.scan_columns(spoiled, 0, 122, BASE, False, [], [], 9, 99).stop is Stop.END


def test_names_must_be_known(kernel: Kernel) -> None:
    with pytest.raises(InvalidValue) as caught:
        scan(kernel, RECORDS, ["body", "Body"], rows_max=0)
    assert str(caught.value) == f"columns: 'Body' is not one of {', '.join(COLUMN_NAMES)}"


@pytest.mark.parametrize(
    ("rows_max", "bytes_max"), [(0, 1), (-1, 1), (1, 0), (1, -1), (1, 2**29 + 1)]
)
def test_limits_must_be_sensible(kernel: Kernel, rows_max: int, bytes_max: int) -> None:
    with pytest.raises(InvalidValue) as caught:
        scan(kernel, RECORDS, rows_max=rows_max, bytes_max=bytes_max)
    expected = "columns: rows_max and bytes_max must be positive, bytes_max at most 536870912"
    assert str(caught.value) == expected


def test_large_limits_are_good(kernel: Kernel) -> None:
    assert scan(kernel, RECORDS, rows_max=2**70, bytes_max=2**29).rows == 3


def test_pyarrow_reads_a_batch_of_them(kernel: Kernel) -> None:
    lists = as_pylists(scan(kernel, RECORDS * 50))
    table = pa.table(lists)
    assert table.num_rows == 150
