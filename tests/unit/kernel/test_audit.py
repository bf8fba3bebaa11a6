"""What an audit asks of a range of the log."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from gantrymq.errors import InvalidValue
from gantrymq.kernel.values import Audit, AuditRun, Stop
from support.samples import GOLDEN_RECORD, blank_on_disk, log_of, properties

if TYPE_CHECKING:
    from gantrymq.kernel.interface import Kernel

BASE = 7000
PLAIN = GOLDEN_RECORD._replace(queue_id=0, queue_offset=0, properties=b"")


def audit(kernel: Kernel, log: bytes, records_max: int = 10**6) -> Audit:
    return kernel.audit_records(log, 0, len(log), BASE, records_max, (1000, 5000))


def test_it_says_of_a_range_what_dispatch_makes_of_it(kernel: Kernel) -> None:
    records = [
        GOLDEN_RECORD._replace(topic=b"t%d" % (n % 7), queue_id=n % 3, queue_offset=n // 21,
                               body=b"x" * n, sys_flag=(0, 4, 8, 12)[n % 4])
        for n in range(300)
    ]  # fmt: skip
    log = log_of(records, BASE)
    found, made = audit(kernel, log), kernel.dispatch_records(log, 0, len(log), BASE, True, 999, ())
    assert (found.end, found.records, found.stop) == (made.end, made.records, made.stop)
    assert [run[:4] for run in found.runs] == [run[:4] for run in made.runs]
    assert found.keys == len(made.keys) // 20
    assert type(found) is Audit
    assert type(found.runs[0]) is AuditRun


def test_sizes_are_added_up_queue_by_queue(kernel: Kernel) -> None:
    bodies = {0: [b"", b"four"], 1: [b"x" * 5000]}
    records = [
        PLAIN._replace(queue_id=queue, queue_offset=at, body=body)
        for queue, some in bodies.items()
        for at, body in enumerate(some)
    ]
    found = audit(kernel, log_of(records, BASE))
    empty = kernel.record_bytes(PLAIN._replace(body=b""))
    assert [run.record_bytes for run in found.runs] == [2 * empty + 4, empty + 5000]
    assert found.end == 3 * empty + 5004


@pytest.mark.parametrize(
    ("words", "keys"),
    [({}, 0), ({"UNIQ_KEY": "u"}, 1), ({"KEYS": "a bb  c "}, 3), ({"KEYS": "  "}, 0),
     ({"UNIQ_KEY": "u", "KEYS": "a b"}, 3)],
)  # fmt: skip
def test_keys_are_counted(kernel: Kernel, words: dict[str, str], keys: int) -> None:
    record = PLAIN._replace(properties=properties(words))
    assert audit(kernel, log_of([record], BASE)).keys == keys
    assert audit(kernel, log_of([record._replace(sys_flag=12)], BASE)).keys == 0


def test_every_flipped_bit_of_a_body_stops_it(kernel: Kernel) -> None:
    body = bytes(range(200))
    log = log_of([PLAIN, PLAIN._replace(queue_offset=1, body=body)], BASE)
    first, at = kernel.record_bytes(PLAIN), log.index(body)
    for bit in range(8 * len(body)):
        spoiled = bytearray(log)
        spoiled[at + bit // 8] ^= 1 << bit % 8
        found = audit(kernel, bytes(spoiled))
        assert (found.end, found.records, found.stop) == (first, 1, Stop.BAD_CRC)


def test_it_walks_as_a_scan_does(kernel: Kernel) -> None:
    log = log_of([PLAIN, PLAIN._replace(queue_offset=1)], BASE)
    one = audit(kernel, log, records_max=1)
    assert (one.end, one.records, one.stop) == (len(log) // 2, 1, Stop.LIMIT)
    assert audit(kernel, log + blank_on_disk(10)).stop is Stop.BLANK
    assert audit(kernel, log[:-1]).stop is Stop.INCOMPLETE
    moved = kernel.audit_records(log, 0, len(log), BASE + 1, 9, ())
    assert moved == Audit(0, 0, Stop.BAD_OFFSET, [], 0)
    with pytest.raises(InvalidValue, match="delays must be"):
        kernel.audit_records(log, 0, len(log), BASE, 9, [-1])
