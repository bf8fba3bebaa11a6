"""One record: its bytes, its checks, its hashes."""

from __future__ import annotations

import struct
import zlib
from typing import TYPE_CHECKING

import pytest

from gantrymq.errors import InvalidValue, RecordError
from gantrymq.kernel.values import Record
from support.samples import (
    GOLDEN_RECORD,
    GOLDEN_RECORD_BYTES,
    IPV6_HOST,
    blank_on_disk,
    record_on_disk,
)

if TYPE_CHECKING:
    from gantrymq.kernel.interface import Kernel

IPV6_RECORD = GOLDEN_RECORD._replace(
    sys_flag=0x30 | 0x701, born_host=IPV6_HOST, store_host=bytes(16) + b"\xff\xff\xff\xff"
)
LONG_RECORD = GOLDEN_RECORD._replace(topic=b"t" * 128)


def encode(kernel: Kernel, record: Record) -> bytes:
    target = bytearray(100_000)
    end = kernel.encode_record(target, 3, len(target), record)
    assert not any(target[:3])
    assert not any(target[end:])
    return bytes(target[3:end])


class TestEncoding:
    """From values to bytes."""

    def test_the_golden_record(self, kernel: Kernel) -> None:
        assert len(GOLDEN_RECORD_BYTES) == 122
        assert kernel.record_bytes(GOLDEN_RECORD) == 122
        assert encode(kernel, GOLDEN_RECORD) == GOLDEN_RECORD_BYTES

    @pytest.mark.parametrize(
        "record",
        [
            IPV6_RECORD,
            LONG_RECORD,
            GOLDEN_RECORD._replace(topic=b"t" * 127),
            GOLDEN_RECORD._replace(topic=b"t" * 32767, properties=b"p" * 32767),
            GOLDEN_RECORD._replace(body=b"", properties=b""),
            GOLDEN_RECORD._replace(sys_flag=0x10, born_host=IPV6_HOST),
            GOLDEN_RECORD._replace(sys_flag=0x20, store_host=IPV6_HOST),
            GOLDEN_RECORD._replace(
                queue_id=-1,
                flag=-(2**31),
                queue_offset=-(2**63),
                log_offset=2**63 - 1,
                sys_flag=-49,
                born_timestamp=-1,
                store_timestamp=2**63 - 1,
                reconsume_times=2**31 - 1,
                prepared_offset=-2,
            ),
        ],
        ids=["ipv6", "long", "127", "largest", "empty", "born", "store", "numbers"],
    )
    def test_every_shape(self, kernel: Kernel, record: Record) -> None:
        raw = encode(kernel, record)
        assert raw == record_on_disk(record)
        assert kernel.record_bytes(record) == len(raw)
        assert kernel.decode_record(raw, 0, len(raw), True) == (record, len(raw))

    def test_eight_bytes_stay_free_for_the_blank(self, kernel: Kernel) -> None:
        target = bytearray(131)
        assert kernel.encode_record(target, 1, 130, GOLDEN_RECORD) == -1
        assert not any(target)
        assert kernel.encode_record(target, 1, 131, GOLDEN_RECORD) == 123
        assert target[1:123] == GOLDEN_RECORD_BYTES
        assert kernel.encode_record(target, 131, 131, GOLDEN_RECORD) == -1

    def test_a_view_is_written_through(self, kernel: Kernel) -> None:
        target = bytearray(300)
        end = kernel.encode_record(memoryview(target)[100:], 0, 200, GOLDEN_RECORD)
        assert target[100 : 100 + end] == GOLDEN_RECORD_BYTES

    def test_a_blank(self, kernel: Kernel) -> None:
        target = bytearray(b"\xaa" * 40)
        kernel.encode_blank(target, 10, 30)
        assert target == b"\xaa" * 10 + struct.pack(">iI", 20, 0xCBD43194) + b"\xaa" * 22
        kernel.encode_blank(target, 10, 18)
        assert target[10:14] == struct.pack(">i", 8)

    @pytest.mark.parametrize("left", [0, 7])
    def test_a_blank_needs_eight_bytes(self, kernel: Kernel, left: int) -> None:
        with pytest.raises(InvalidValue, match=f"^blank: {left} bytes left, 8 needed$"):
            kernel.encode_blank(bytearray(40), 10, 10 + left)

    @pytest.mark.parametrize(
        ("changes", "message"),
        [
            ({"born_host": b"1234567"}, "record: born host has 7 bytes, its sysFlag asks for 8"),
            ({"born_host": IPV6_HOST}, "record: born host has 20 bytes, its sysFlag asks for 8"),
            ({"sys_flag": 0x10}, "record: born host has 8 bytes, its sysFlag asks for 20"),
            ({"sys_flag": 0x20}, "record: store host has 8 bytes, its sysFlag asks for 20"),
            ({"store_host": b""}, "record: store host has 0 bytes, its sysFlag asks for 8"),
            ({"topic": b""}, "record: the topic is empty"),
            ({"topic": b"t" * 32768}, "record: topic of 32768 bytes is over 32767"),
            ({"properties": b"p" * 32768}, "record: properties of 32768 bytes are over 32767"),
            (
                {"born_host": b"", "topic": b""},
                "record: born host has 0 bytes, its sysFlag asks for 8",
            ),
            ({"topic": b"", "properties": b"p" * 40000}, "record: the topic is empty"),
        ],
    )
    def test_what_cannot_be_encoded(
        self, kernel: Kernel, changes: dict[str, bytes | int], message: str
    ) -> None:
        record = Record(**(GOLDEN_RECORD._asdict() | changes))
        with pytest.raises(InvalidValue) as measured:
            kernel.record_bytes(record)
        with pytest.raises(InvalidValue) as encoded:
            kernel.encode_record(bytearray(10), 0, 10, record)
        assert (str(measured.value), str(encoded.value)) == (message, message)

    @pytest.mark.parametrize(
        ("name", "bits"),
        [("queue_id", 32), ("flag", 32), ("sys_flag", 32), ("reconsume_times", 32),
         ("queue_offset", 64), ("log_offset", 64), ("born_timestamp", 64),
         ("store_timestamp", 64), ("prepared_offset", 64)],
    )  # fmt: skip
    def test_a_number_that_does_not_fit(self, kernel: Kernel, name: str, bits: int) -> None:
        for value in (2 ** (bits - 1), -(2 ** (bits - 1)) - 1, 2**100):
            record = Record(**(GOLDEN_RECORD._asdict() | {name: value, "topic": b""}))
            with pytest.raises(InvalidValue, match=r"^record: a number is out of range$"):
                kernel.encode_record(bytearray(1000), 0, 1000, record)
            with pytest.raises(InvalidValue, match=r"^record: a number is out of range$"):
                kernel.record_bytes(record)

    def test_a_record_over_31_bits(self, kernel: Kernel) -> None:
        largest = GOLDEN_RECORD._replace(body=bytes(2**31 - 1 - 117))  # of untouched pages
        assert kernel.record_bytes(largest) == 2**31 - 1
        with pytest.raises(InvalidValue, match=r"^record: 2147483648 bytes are over 2147483647$"):
            kernel.record_bytes(largest._replace(properties=largest.properties + b"\x02"))

    @pytest.mark.parametrize(("position", "limit"), [(-1, 5), (5, 4), (0, 41), (41, 41)])
    def test_a_place_outside(self, kernel: Kernel, position: int, limit: int) -> None:
        message = f"range: position={position} limit={limit} do not lie within a buffer of 40 bytes"
        with pytest.raises(InvalidValue) as record:
            kernel.encode_record(bytearray(40), position, limit, GOLDEN_RECORD._replace(topic=b""))
        with pytest.raises(InvalidValue) as blank:
            kernel.encode_blank(bytearray(40), position, limit)
        assert (str(record.value), str(blank.value)) == (message, message)


def spoiled(place: int, raw: bytes, base: bytes = GOLDEN_RECORD_BYTES) -> bytes:
    return base[:place] + raw + base[place + len(raw) :]


LENGTHS = "record.lengths: the inner lengths do not add up to the total size of "
BODY_AT, TOPIC_AT, PROPERTIES_AT = 84, 93, 103
BAD = {
    "nothing": (b"", "record.size: 0 bytes left, a record needs more"),
    "seven bytes": (GOLDEN_RECORD_BYTES[:7], "record.size: 7 bytes left, a record needs more"),
    "cut": (GOLDEN_RECORD_BYTES[:121], "record.size: 121 bytes left, a record needs more"),
    "zeros": (bytes(200), "record.magic: 0x00000000 is no message record"),
    "blank": (blank_on_disk(100), "record.magic: 0xCBD43194 is no message record"),
    "size below 91": (spoiled(0, struct.pack(">i", 90)), LENGTHS + "90"),
    "size negative": (spoiled(0, struct.pack(">i", -5)), LENGTHS + "-5"),
    "v2 below 92": (spoiled(0, struct.pack(">iI", 91, 0xDAA320AB)), LENGTHS + "91"),
    "too small for its sum": (spoiled(0, struct.pack(">i", 121)), LENGTHS + "121"),
    "too large for its sum": (spoiled(0, struct.pack(">i", 123)) + b"\0", LENGTHS + "123"),
    "body length negative": (spoiled(BODY_AT, struct.pack(">i", -1)), LENGTHS + "122"),
    "body length too large": (spoiled(BODY_AT, struct.pack(">i", 2**31 - 1)), LENGTHS + "122"),
    "topic length negative": (spoiled(TOPIC_AT, b"\x80"), LENGTHS + "122"),
    "topic length too large": (spoiled(TOPIC_AT, b"\x7f"), LENGTHS + "122"),
    "properties length negative": (spoiled(PROPERTIES_AT, b"\xff\xff"), LENGTHS + "122"),
    "properties length too small": (spoiled(PROPERTIES_AT, b"\0\x10"), LENGTHS + "122"),
    "properties length too large": (spoiled(PROPERTIES_AT, b"\0\x12"), LENGTHS + "122"),
    "hosts that do not fit": (
        spoiled(
            36,
            struct.pack(">i", 0x30),
            record_on_disk(GOLDEN_RECORD._replace(body=b"", properties=b"", topic=b"")),
        ),
        LENGTHS + "91",
    ),
    "another body": (
        spoiled(88, b"hellO"),
        f"record.bodyCrc: 0x3610A686 stored, 0x{zlib.crc32(b'hellO') & 0x7FFFFFFF:08X} computed",
    ),
    "CRC with its sign bit": (
        spoiled(8, b"\xb6\x10\xa6\x86"),
        "record.bodyCrc: 0xB610A686 stored, 0x3610A686 computed",
    ),
}


class TestDecoding:
    """From bytes to values, or to the reason why not."""

    def test_the_golden_record(self, kernel: Kernel) -> None:
        buffer = b"\xff" * 9 + GOLDEN_RECORD_BYTES + b"\xff" * 9
        record, end = kernel.decode_record(buffer, 9, len(buffer), True)
        assert (record, end) == (GOLDEN_RECORD, 131)
        assert type(record) is Record

    @pytest.mark.parametrize(("raw", "message"), BAD.values(), ids=BAD.keys())
    def test_a_bad_record(self, kernel: Kernel, raw: bytes, message: str) -> None:
        with pytest.raises(RecordError) as caught:
            kernel.decode_record(b"12345" + raw, 5, 5 + len(raw), True)
        assert str(caught.value) == message

    def test_without_verifying_the_body_is_believed(self, kernel: Kernel) -> None:
        raw, _message = BAD["another body"]
        assert kernel.decode_record(raw, 0, len(raw), False)[0].body == b"hellO"

    def test_without_a_body_the_crc_does_not_matter(self, kernel: Kernel) -> None:
        raw = record_on_disk(GOLDEN_RECORD._replace(body=b""), crc=99)
        assert kernel.decode_record(raw, 0, len(raw), True)[0].body == b""

    def test_an_empty_topic_can_be_read(self, kernel: Kernel) -> None:
        smallest = record_on_disk(GOLDEN_RECORD._replace(body=b"", properties=b"", topic=b""))
        assert len(smallest) == 91
        assert kernel.decode_record(smallest, 0, 91, True)[0].topic == b""

    def test_version_2_with_a_short_topic(self, kernel: Kernel) -> None:
        raw = record_on_disk(GOLDEN_RECORD, version=2)
        assert kernel.decode_record(raw, 0, len(raw), True) == (GOLDEN_RECORD, 123)

    @pytest.mark.parametrize(("position", "end"), [(-1, 2), (3, 2), (0, 123)])
    def test_a_range_outside(self, kernel: Kernel, position: int, end: int) -> None:
        with pytest.raises(InvalidValue) as caught:
            kernel.decode_record(GOLDEN_RECORD_BYTES, position, end, True)
        expected = f"range: start={position} end={end} do not lie within a buffer of 122 bytes"
        assert str(caught.value) == expected


class TestHashes:
    """CRC-32 and Java's string hash."""

    @pytest.mark.parametrize("data", [b"", b"a", b"hello", bytes(range(256)) * 5])
    def test_crc32(self, kernel: Kernel, data: bytes) -> None:
        for cut in range(min(len(data), 20)):
            assert kernel.crc32(data[cut:]) == zlib.crc32(data[cut:]) & 0x7FFFFFFF
        assert kernel.crc32(bytearray(data)) == kernel.crc32(memoryview(data)) == kernel.crc32(data)

    def test_crc32_of_hello(self, kernel: Kernel) -> None:
        assert kernel.crc32(b"hello") == 0x3610A686

    @pytest.mark.parametrize(
        ("text", "value"),
        [
            ("", 0), ("a", 97), ("TagA", 2598919), ("Aa", 2112), ("BB", 2112),
            ("polygenelubricants", -(2**31)), ("negative?!", None),
            ("\u4e2d\u6587", 646394), ("\U0001f600", 1772899),
        ],
    )  # fmt: skip
    def test_string_hash(self, kernel: Kernel, text: str, value: int | None) -> None:
        units = text.encode("utf-16-be")
        expected = 0
        for at in range(0, len(units), 2):
            expected = expected * 31 + int.from_bytes(units[at : at + 2])
        expected = (expected + 2**31) % 2**32 - 2**31
        assert kernel.string_hash(text.encode()) == expected
        assert value is None or value == expected

    @pytest.mark.parametrize(
        ("raw", "parts"),
        [
            (b"\xff", 1), (b"\xc3", 1), (b"\xc3\xc3", 2), (b"\xe4\xb8", 1), (b"\xf0\x9f\x98", 1),
            (b"\xed\xa0\x80", 3), (b"\xc0\x80", 2), (b"\xf4\x90\x80\x80", 4), (b"\xe0\x80", 2),
            (b"\xf0\x80\x80", 3), (b"\x80", 1), (b"\xf5", 1),
        ],
    )  # fmt: skip
    def test_ill_formed_parts_count_as_one_character_each(
        self, kernel: Kernel, raw: bytes, parts: int
    ) -> None:
        assert kernel.string_hash(b"a" + raw + b"b") == kernel.string_hash(
            ("a" + "\ufffd" * parts + "b").encode()
        )
