"""Where frames begin and end, and which bytes are no frame."""

from __future__ import annotations

import mmap
import struct
from typing import TYPE_CHECKING

import pytest

from gantrymq.errors import InvalidValue, ProtocolError
from gantrymq.kernel.values import Frame
from gantrymq.limits import FRAME_BYTES_MAX
from support.samples import frame

if TYPE_CHECKING:
    from gantrymq.kernel.interface import Kernel

ONE = frame(b"{}", b"body")
TWO = frame(b"", b"", 1)


def test_frames_are_found_one_behind_the_other(kernel: Kernel) -> None:
    frames, position = kernel.split_frames(ONE + TWO, 0, len(ONE + TWO), FRAME_BYTES_MAX)
    assert frames == [Frame(0, 8, 10, 14, 0), Frame(14, 22, 22, 22, 1)]
    assert position == 22
    assert all(type(each) is Frame for each in frames)


def test_a_range_is_looked_at_and_nothing_else(kernel: Kernel) -> None:
    buffer = b"\xff" * 5 + ONE + b"\xff" * 9
    frames, position = kernel.split_frames(buffer, 5, 5 + len(ONE), FRAME_BYTES_MAX)
    assert (frames, position) == ([Frame(5, 13, 15, 19, 0)], 19)


def test_any_cut_gives_the_frames_before_it(kernel: Kernel) -> None:
    stream = ONE + TWO + ONE
    borders = [0, len(ONE), len(ONE + TWO), len(stream)]
    for cut in range(len(stream) + 1):
        frames, position = kernel.split_frames(stream, 0, cut, FRAME_BYTES_MAX)
        assert position == max(border for border in borders if border <= cut)
        assert len(frames) == borders.index(position)


@pytest.mark.parametrize("kind", [bytes, bytearray, memoryview])
def test_any_buffer_will_do(kernel: Kernel, kind: type[bytes | bytearray | memoryview]) -> None:
    frames, _position = kernel.split_frames(kind(ONE), 0, len(ONE), FRAME_BYTES_MAX)
    assert len(frames) == 1


def test_a_mapped_file_will_do(kernel: Kernel) -> None:
    with mmap.mmap(-1, 64) as mapped:
        mapped[: len(ONE)] = ONE
        frames, _position = kernel.split_frames(mapped, 0, len(ONE), FRAME_BYTES_MAX)
        assert len(frames) == 1


def test_a_buffer_is_let_go_even_after_an_error(kernel: Kernel) -> None:
    buffer = bytearray(struct.pack(">i", -1))
    with pytest.raises(ProtocolError) as caught:
        kernel.split_frames(buffer, 0, 4, FRAME_BYTES_MAX)
    buffer.append(0)  # BufferError if the traceback still held it
    assert caught.value.field == "frame.length"


BAD = [
    (struct.pack(">i", 3), "frame.length: 3 is not between 4 and 96"),
    (struct.pack(">i", -1), "frame.length: -1 is not between 4 and 96"),
    (struct.pack(">i", 97), "frame.length: 97 is not between 4 and 96"),
    (struct.pack(">i", 97) + b"\x07\0\0\0", "frame.length: 97 is not between 4 and 96"),
    (
        struct.pack(">iI", 8, 0x02FFFFFF),
        "frame.serializeType: 2 is neither 0 (JSON) nor 1 (ROCKETMQ)",
    ),
    (
        struct.pack(">iI", 8, 0xFF000000),
        "frame.serializeType: 255 is neither 0 (JSON) nor 1 (ROCKETMQ)",
    ),
    (
        struct.pack(">iI", 8, 5),
        "frame.headerLength: 5 is more than the 4 bytes left in the frame",
    ),
    (
        struct.pack(">iI", 96, 0x01FFFFFF),
        "frame.headerLength: 16777215 is more than the 92 bytes left in the frame",
    ),
]


@pytest.mark.parametrize(("raw", "message"), BAD)
def test_a_bad_frame_is_refused_as_soon_as_it_shows(
    kernel: Kernel, raw: bytes, message: str
) -> None:
    with pytest.raises(ProtocolError) as caught:
        kernel.split_frames(raw, 0, len(raw), 100)
    assert str(caught.value) == message


@pytest.mark.parametrize(("raw", "message"), BAD)
def test_behind_good_frames_it_waits_for_its_turn(kernel: Kernel, raw: bytes, message: str) -> None:
    assert kernel.split_frames(ONE + raw, 0, len(ONE + raw), 100) == (
        [Frame(0, 8, 10, 14, 0)],
        14,
    ), message


@pytest.mark.parametrize("total", [4, 96])
def test_lengths_at_the_border_are_good(kernel: Kernel, total: int) -> None:
    raw = struct.pack(">iI", total, 0) + bytes(total - 4)
    frames, _position = kernel.split_frames(raw, 0, len(raw), 100)
    assert frames == [Frame(0, 8, 8, 4 + total, 0)]


@pytest.mark.parametrize(("start", "end"), [(-1, 2), (2, 1), (0, 5), (5, 5), (-2, -1)])
def test_a_range_outside_is_refused(kernel: Kernel, start: int, end: int) -> None:
    with pytest.raises(InvalidValue) as caught:
        kernel.split_frames(b"1234", start, end, FRAME_BYTES_MAX)
    expected = f"range: start={start} end={end} do not lie within a buffer of 4 bytes"
    assert str(caught.value) == expected
