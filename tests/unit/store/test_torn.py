"""Records whose properties a power cut has torn, where no CRC looks."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from gantrymq.errors import InvalidValue
from gantrymq.store.status import PutStatus
from gantrymq.store.torn import SECTOR_BYTES, check_never_torn, find_torn
from support.samples import GOLDEN_RECORD, log_of
from support.store_rig import Rig

if TYPE_CHECKING:
    from gantrymq.kernel import Record


def log(*properties: bytes, body: bytes = b"x" * 300) -> tuple[bytearray, list[int]]:
    """Return records with these properties, and where each ends."""
    records: list[Record] = []
    ends: list[int] = []
    for some in properties:
        records.append(GOLDEN_RECORD._replace(body=body, properties=some))
        ends.append(len(log_of(records)))
    return bytearray(log_of(records)), ends


def lose(raw: bytearray, sector: int) -> None:
    """Let a sector be as it was before anything was written."""
    start = sector * SECTOR_BYTES
    raw[start : start + SECTOR_BYTES] = bytes(len(raw[start : start + SECTOR_BYTES]))


def find(raw: bytearray) -> int | None:
    return find_torn(memoryview(raw), 0, len(raw))


def test_whole_records() -> None:
    raw, _ends = log(b"KEYS\x01k" * 50, b"", b"TAGS\x01t")
    assert find(raw) is None
    assert find(bytearray()) is None


@pytest.mark.parametrize("length", [150, 600, 1700])
def test_every_sector_of_properties_is_missed(length: int) -> None:
    raw, ends = log(b"p" * 40, b"q" * length, b"r" * 40)
    properties = range(ends[1] - length, ends[1])
    for border in range(0, len(raw), SECTOR_BYTES):
        if border in properties:
            torn = bytearray(raw)
            # What stands behind the properties in the same sector is not of this record.
            end = min(border + SECTOR_BYTES, ends[1])
            torn[border:end] = bytes(end - border)
            assert find(torn) == ends[0]


def test_a_topic_never_holds_a_zero() -> None:
    raw, ends = log(b"", b"")
    at = raw.rindex(b"TopicTest")
    raw[at + 3] = 0
    assert find(raw) == ends[0]


def test_zeros_that_somebody_sent() -> None:
    raw, ends = log(b"a\x01\0\0\0", b"KEYS\x01" + b"v" * 300 + b"\0" * 20)
    assert ends[1] % SECTOR_BYTES > 20, "the zeros do not begin at a border"
    assert find(raw) is None


def test_the_first_of_several() -> None:
    raw, ends = log(*[b"p" * 400] * 5)
    inside = [
        number
        for number in range(len(raw) // SECTOR_BYTES + 1)
        for end in ends
        if end - 400 <= number * SECTOR_BYTES < end
    ]
    assert len(inside) > 1
    whole = bytes(raw)
    found = []
    for sector in inside:
        raw[:] = whole
        border = sector * SECTOR_BYTES
        end = next(end for end in ends if border < end)
        raw[border : min(end, border + SECTOR_BYTES)] = bytes(
            min(end, border + SECTOR_BYTES) - border
        )
        found.append(find(raw))
    assert found == sorted(found, key=lambda at: -1 if at is None else at)
    assert None not in found


@pytest.mark.parametrize(
    "properties", [b"a\x01b\0", b"\0", b"a\x01" + bytes(SECTOR_BYTES) + b"\x02b\x01c"]
)
def test_what_might_be_taken_for_a_tear_is_not_stored(properties: bytes) -> None:
    with pytest.raises(InvalidValue, match="zero"):
        check_never_torn(GOLDEN_RECORD._replace(properties=properties))


def test_a_message_that_recovery_would_cut_off_is_refused_and_others_are_kept() -> None:
    rig = Rig({"mappedFileSizeCommitLog": "65536"})
    long = {"a": "\0" * SECTOR_BYTES, "b": "c"}
    assert rig.put(b"first", properties={"a": "b\0c"}).status is PutStatus.PUT_OK
    assert rig.put(b"never", properties=long).status is PutStatus.MESSAGE_ILLEGAL
    for count in range(1, SECTOR_BYTES, 37):
        stored = rig.put(b"kept", properties={"a": "\0" * count, "b": "c"})
        assert stored.status is PutStatus.PUT_OK
    kept = len(range(1, SECTOR_BYTES, 37))
    assert rig.again().bodies() == [b"first"] + [b"kept"] * kept
