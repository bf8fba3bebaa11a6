from __future__ import annotations

import struct
import tracemalloc

import pytest

from gantrymq.errors import InvalidValue, ProtocolError
from gantrymq.limits import FRAME_BYTES_MAX
from gantrymq.wire.command import BINARY_HEADER, JSON_HEADER, Command
from gantrymq.wire.frame import FrameParser, encode_frame

COMMANDS = [
    Command.request(11, 1, {"topic": "T"}),
    Command.request(310, 2, {"b": "T"}, b"body", serialize_type=BINARY_HEADER),
    Command.request(34, 3, body=b"{}"),
]
STREAM = b"".join(encode_frame(command) for command in COMMANDS)


def raw_frame(header: bytes, *, kind: int = JSON_HEADER, total: int | None = None) -> bytes:
    size = 4 + len(header) if total is None else total
    return struct.pack(">iI", size, kind << 24 | len(header)) + header


BAD_FRAMES = {
    "frame.length": [
        struct.pack(">i", -1),
        struct.pack(">i", -(2**31)),
        struct.pack(">i", 0),
        struct.pack(">i", 3),
        struct.pack(">i", FRAME_BYTES_MAX - 3),
        struct.pack(">i", 2**31 - 1),
        b"\x16\x03\x01\x02",
        b"GET / HTTP/1.1\r\n\r\n",
    ],
    "frame.serializeType": [raw_frame(b"{}", kind=2), raw_frame(b"{}", kind=255)],
    "frame.headerLength": [raw_frame(b"{}" * 10, total=10), raw_frame(b"{}", total=5)],
    "header": [raw_frame(b""), raw_frame(b"nonsense"), raw_frame(b"x" * 20, kind=BINARY_HEADER)],
    "header.code": [raw_frame(b'{"opaque":1}')],
    "header.extFields.queueId": [raw_frame(b'{"code":1,"opaque":1,"extFields":{"queueId":[]}}')],
}
ALL_BAD = [(field, frame) for field, frames in BAD_FRAMES.items() for frame in frames]


def test_whole() -> None:
    assert FrameParser().feed(STREAM) == COMMANDS


@pytest.mark.parametrize("kind", [bytes, bytearray, memoryview])
def test_any_buffer(kind: type[bytes | bytearray | memoryview]) -> None:
    parser = FrameParser()
    commands = parser.feed(kind(STREAM[:30])) + parser.feed(kind(STREAM[30:]))
    assert commands == COMMANDS
    assert all(type(command.body) is bytes for command in commands)


@pytest.mark.parametrize("size", range(1, len(STREAM)))
def test_truncation_at_every_byte_waits(size: int) -> None:
    """A part is never an error, and the rest completes it."""
    parser = FrameParser()
    first = parser.feed(STREAM[:size])
    assert parser.error is None
    assert parser.kept_bytes == size - sum(len(encode_frame(command)) for command in first)
    assert first + parser.feed(STREAM[size:]) == COMMANDS
    assert parser.kept_bytes == 0


def test_nothing_gives_nothing() -> None:
    assert FrameParser().feed(b"") == []


@pytest.mark.parametrize(("field", "frame"), ALL_BAD)
def test_bad_frame_closes(field: str, frame: bytes) -> None:
    parser = FrameParser()
    assert parser.feed(frame) == []
    assert parser.error is not None
    assert parser.error.field == field
    assert parser.kept_bytes == 0
    with pytest.raises(ProtocolError) as caught:
        parser.feed(STREAM)
    assert caught.value is parser.error


@pytest.mark.parametrize(("field", "frame"), ALL_BAD)
def test_frames_before_a_bad_one_are_delivered(field: str, frame: bytes) -> None:
    parser = FrameParser()
    assert parser.feed(STREAM + frame + STREAM) == COMMANDS
    assert parser.error is not None
    assert parser.error.field == field


@pytest.mark.parametrize(("field", "frame"), ALL_BAD)
def test_byte_by_byte_finds_the_same(field: str, frame: bytes) -> None:
    parser = FrameParser()
    commands: list[Command] = []
    for byte in STREAM + frame:
        commands += parser.feed(bytes([byte]))
        if parser.error is not None:
            break
    assert commands == COMMANDS
    assert parser.error is not None
    assert parser.error.field == field


@pytest.mark.parametrize("total", [FRAME_BYTES_MAX - 4, 2**31 - 1, FRAME_BYTES_MAX * 4])
def test_announced_size_is_not_allocated(total: int) -> None:
    start = struct.pack(">iI", total, 20) + b'{"code":1,"opaque":2'
    tracemalloc.start()
    try:
        parser = FrameParser()
        assert parser.feed(start) == []
        _now, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert peak < 64 * 1024
    assert (parser.error is None) == (total + 4 <= FRAME_BYTES_MAX)
    assert parser.kept_bytes == (len(start) if parser.error is None else 0)


def test_small_limit() -> None:
    frame = encode_frame(COMMANDS[0])
    assert FrameParser(len(frame)).feed(frame) == [COMMANDS[0]]
    parser = FrameParser(len(frame) - 1)
    assert parser.feed(frame) == []
    assert parser.error is not None
    assert encode_frame(COMMANDS[0], len(frame)) == frame
    with pytest.raises(InvalidValue, match="at most"):
        encode_frame(COMMANDS[0], len(frame) - 1)


def test_many_frames_in_small_pieces_stay_linear() -> None:
    """A megabyte in pieces of 16 bytes, with one frame of half of it."""
    big = Command.request(310, 4, body=bytes(500_000))
    stream = encode_frame(big) + encode_frame(COMMANDS[0]) * 3000
    parser = FrameParser()
    found = 0
    for at in range(0, len(stream), 16):
        found += len(parser.feed(stream[at : at + 16]))
    assert found == 3001


def test_layout() -> None:
    frame = encode_frame(Command.request(11, 1, body=b"xyz"))
    total, header_bytes = struct.unpack(">II", frame[:8])
    assert total == len(frame) - 4
    assert frame[8 + header_bytes :] == b"xyz"
    binary = encode_frame(Command.request(11, 1, serialize_type=BINARY_HEADER))
    assert binary[4] == 1
