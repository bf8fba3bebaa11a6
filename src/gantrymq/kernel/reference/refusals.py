"""Refusals of sends, many at once: a broker that is sent more than it can take says so cheaply."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from gantrymq.errors import InvalidValue, ProtocolError
from gantrymq.kernel.reference.bounds import check_range
from gantrymq.kernel.reference.frames import frame_at
from gantrymq.kernel.reference.integers import fits
from gantrymq.kernel.reference.replies import encode_refusal, printable
from gantrymq.kernel.reference.requests import decode_request
from gantrymq.kernel.values import Refused, SendRequest

if TYPE_CHECKING:
    from gantrymq.kernel.interface import Buffer

_FRAME_BYTES_MAX: Final = 2**31 - 1
_HEADER_BYTES_MAX: Final = 0xFFFFFF
_HEADER_ROOM: Final = 400
"""More than a header has beside remark and region."""


def refuse_sends(
    buffer: Buffer,
    start: int,
    end: int,
    frame_bytes_max: int,
    version: int,
    code: int,
    remark: bytes,
    region: bytes,
    trace_on: bool,
) -> Refused:
    """Return refusals of the sends at the front of a range."""
    check_range(buffer, start, end)
    if not 8 <= frame_bytes_max <= _FRAME_BYTES_MAX:
        raise InvalidValue("frames: frame_bytes_max must be between 8 and 2147483647")
    printable("remark", remark)
    printable("region", region)
    if not fits(version, 32) or not fits(code, 32):
        raise InvalidValue("reply: a number is out of range")
    header_bytes = _HEADER_ROOM + len(remark) + len(region)
    if header_bytes > _HEADER_BYTES_MAX:
        raise InvalidValue(f"reply: a header of {header_bytes} bytes is over {_HEADER_BYTES_MAX}")
    replies: list[bytes] = []
    position, requests = start, 0
    while True:
        try:
            frame = frame_at(buffer, position, end, frame_bytes_max)
        except ProtocolError:
            break
        request = None if frame is None else decode_request(buffer, frame)
        if frame is None or not isinstance(request, SendRequest):
            break
        if not request.oneway:
            replies.append(
                encode_refusal(
                    request.opaque, request.serialize_type, version, code, remark, region, trace_on
                )
            )
        position = frame.end
        requests += 1
    return Refused(position, requests, b"".join(replies))
