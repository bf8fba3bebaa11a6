from __future__ import annotations

import struct

import pytest

from gantrymq.errors import InvalidValue, RecordError
from gantrymq.limits import BATCH_MESSAGES_MAX
from gantrymq.wire.batch import BatchMessage, decode_batch, encode_batch

MESSAGES = [
    BatchMessage(7, b"one", b"a\x01b"),
    BatchMessage(-1, b"", b""),
    BatchMessage(0, b"2", b""),
]
BODY = encode_batch(MESSAGES)


def one(
    total: int, body_bytes: int, body: bytes, properties_bytes: int, properties: bytes
) -> bytes:
    head = struct.pack(">iiiii", total, 0, 0, 0, body_bytes)
    return head + body + struct.pack(">h", properties_bytes) + properties


def test_both_ways() -> None:
    assert decode_batch(BODY) == MESSAGES
    assert BODY[:20] == struct.pack(">iiiii", 22 + 3 + 3, 0, 0, 7, 3)


def test_magic_and_crc_are_passed_over() -> None:
    assert decode_batch(BODY[:4] + b"\xff" * 8 + BODY[12:]) == MESSAGES


@pytest.mark.parametrize("size", range(len(BODY)))
def test_truncation_at_every_byte(size: int) -> None:
    ends = {28, 50}
    if size in ends:
        assert decode_batch(BODY[:size]) == MESSAGES[: 1 if size == 28 else 2]
        return
    with pytest.raises(RecordError) as caught:
        decode_batch(BODY[:size])
    assert caught.value.field.startswith("batch")


@pytest.mark.parametrize(
    ("message", "field"),
    [
        (one(23, 1, b"x", 0, b""), None),
        (one(-1, 1, b"x", 0, b""), "total"),
        (one(0, 1, b"x", 0, b""), "total"),
        (one(21, 1, b"x", 0, b""), "total"),
        (one(24, 1, b"x", 0, b""), "total"),
        (one(2**31 - 1, 1, b"x", 0, b""), "total"),
        (one(23, -1, b"x", 0, b""), "bodyLength"),
        (one(23, 2, b"x", 0, b""), "bodyLength"),
        (one(23, 2**31 - 1, b"x", 0, b""), "bodyLength"),
        (one(23, 0, b"x", 0, b""), "propertiesLength"),
        (one(23, 1, b"x", 1, b""), "propertiesLength"),
        (one(24, 1, b"x", -1, b"p"), "propertiesLength"),
        (one(24, 1, b"x", 0, b"p"), "propertiesLength"),
    ],
)
def test_lengths(message: bytes, field: str | None) -> None:
    if field is None:
        assert decode_batch(message) == [BatchMessage(0, b"x", b"")]
        return
    with pytest.raises(RecordError) as caught:
        decode_batch(BODY + message)
    assert caught.value.field == f"batch[3].{field}"


def test_count_is_bounded() -> None:
    empty = BatchMessage(0, b"", b"")
    assert len(decode_batch(encode_batch([empty] * BATCH_MESSAGES_MAX))) == BATCH_MESSAGES_MAX
    with pytest.raises(RecordError, match="more than"):
        decode_batch(one(22, 0, b"", 0, b"") * (BATCH_MESSAGES_MAX + 1))


@pytest.mark.parametrize(
    "messages",
    [
        [],
        [BatchMessage(0, b"", b"")] * (BATCH_MESSAGES_MAX + 1),
        [BatchMessage(0, b"x", b"p" * 32768)],
        [BatchMessage(2**31, b"x", b"")],
    ],
    ids=["none", "many", "properties", "flag"],
)
def test_what_is_not_written(messages: list[BatchMessage]) -> None:
    with pytest.raises(InvalidValue):
        encode_batch(messages)
