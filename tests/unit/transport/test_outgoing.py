"""What stands in for an answer that a slow peer cannot have, and what must be sent all the same."""

from __future__ import annotations

import mmap

import pytest

from gantrymq.transport.outgoing import DATA_BYTES_MIN, JOINED_BYTES_MAX, busy_instead, gather
from gantrymq.wire.codes import ResponseCode
from gantrymq.wire.command import BINARY_HEADER, JSON_HEADER, Command
from gantrymq.wire.frame import FrameParser, encode_frame
from gantrymq.wire.peer import RawReply

DATA = bytes(DATA_BYTES_MIN)


def sliced(frame: bytes) -> RawReply:
    """Return a frame as a pull's answer is: the head, then a slice of a mapped file."""
    return RawReply((frame[: -len(DATA)], memoryview(frame)[-len(DATA) :]))


@pytest.mark.parametrize("serialize_type", [JSON_HEADER, BINARY_HEADER])
@pytest.mark.parametrize("raw", [True, False])
def test_data_can_be_asked_for_again(serialize_type: int, raw: bool) -> None:
    request = Command.request(11, 4711, serialize_type=serialize_type)
    answer = request.response(fields={"nextBeginOffset": "3"}, body=DATA)
    busy = busy_instead(sliced(encode_frame(answer)) if raw else answer)
    assert busy is not None
    (command,) = FrameParser().feed(busy)
    assert command.code == ResponseCode.SYSTEM_BUSY
    assert (command.opaque, command.serialize_type) == (4711, serialize_type)
    assert command.is_response
    assert (command.fields, command.body) == ({}, b"")


def test_a_report_of_something_done_is_always_sent() -> None:
    stored = Command.request(310, 1).response(fields={"msgId": "x" * 2 * DATA_BYTES_MIN})
    frame = encode_frame(stored)
    assert busy_instead(stored) is None
    assert busy_instead(RawReply((frame,))) is None
    assert busy_instead(RawReply((frame * 100,))) is None
    assert busy_instead(RawReply((memoryview(frame),))) is None
    data = encode_frame(Command.request(11, 2).response(body=DATA))
    assert busy_instead(RawReply((frame, *sliced(data).parts))) is None


def test_small_parts_are_joined_and_large_ones_are_not_copied() -> None:
    large = memoryview(bytes(JOINED_BYTES_MAX + 1))
    with mmap.mmap(-1, JOINED_BYTES_MAX + 1) as mapped:
        pieces = gather([b"a", bytearray(b"b"), large, memoryview(b"c"), b"d", mapped])
        assert pieces[0] == b"ab"
        assert pieces[1] is large
        assert pieces[2] == b"cd"
        last = pieces[3]
        assert isinstance(last, memoryview)
        assert last.obj is mapped
        last.release()
    assert gather([b"a", b"b"]) == [b"ab"]
