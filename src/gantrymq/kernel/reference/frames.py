"""Where one frame ends and the next begins.

  4 bytes          1            3              header length      the rest
+-----------+----------------+---------------+-----------------+-----------+
| total     | serialize type | header length | header          | body      |
+-----------+----------------+---------------+-----------------+-----------+
            |<------------------------ total ----------------------------->|
"""

from __future__ import annotations

import struct
from typing import TYPE_CHECKING, Final

from gantrymq.errors import InvalidValue, ProtocolError
from gantrymq.kernel.reference.bounds import check_range
from gantrymq.kernel.values import BINARY_HEADER, JSON_HEADER, Frame

if TYPE_CHECKING:
    from gantrymq.kernel.interface import Buffer

_FRAME_BYTES_MAX: Final = 2**31 - 1


def split_frames(
    buffer: Buffer, start: int, end: int, frame_bytes_max: int
) -> tuple[list[Frame], int]:
    """Return the complete frames in the range and the position behind the last of them."""
    check_range(buffer, start, end)
    if not 8 <= frame_bytes_max <= _FRAME_BYTES_MAX:
        raise InvalidValue("frames: frame_bytes_max must be between 8 and 2147483647")
    frames: list[Frame] = []
    position = start
    while True:
        try:
            frame = frame_at(buffer, position, end, frame_bytes_max)
        except ProtocolError:
            # The good frames before it are served first; then it comes first, and is reported.
            if not frames:
                raise
            break
        if frame is None:
            break
        frames.append(frame)
        position = frame.end
    return frames, position


def frame_at(buffer: Buffer, position: int, end: int, frame_bytes_max: int) -> Frame | None:
    """Return the frame that begins at `position`, or None if not all of it is there.

    Every field is checked as soon as its bytes are there: nobody waits for, or makes room for, a
    frame that can never become a good one.
    """
    if end - position < 4:
        return None
    total: int = struct.unpack_from(">i", buffer, position)[0]
    if not 4 <= total <= frame_bytes_max - 4:
        raise ProtocolError("frame.length", f"{total} is not between 4 and {frame_bytes_max - 4}")
    if end - position < 8:
        return None
    word: int = struct.unpack_from(">I", buffer, position + 4)[0]
    serialize_type, header_bytes = word >> 24, word & 0xFFFFFF
    if serialize_type not in {JSON_HEADER, BINARY_HEADER}:
        raise ProtocolError(
            "frame.serializeType", f"{serialize_type} is neither 0 (JSON) nor 1 (ROCKETMQ)"
        )
    if header_bytes > total - 4:
        raise ProtocolError(
            "frame.headerLength",
            f"{header_bytes} is more than the {total - 4} bytes left in the frame",
        )
    if end - position < 4 + total:
        return None
    header = position + 8
    return Frame(position, header, header + header_bytes, position + 4 + total, serialize_type)
