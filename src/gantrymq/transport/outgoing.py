"""Answers on their way to a socket: encoded, put together, and small when the peer is slow.

An answer that carries data (a pull's slices of the log, a long list) can be asked for again. When
a peer has asked for more than it reads, such an answer is replaced by SYSTEM_BUSY. What says that
something *was done*, as the answer to a send does, is never replaced: it is small, and the bound on
unanswered requests bounds all of them together.
"""

from __future__ import annotations

import logging
import struct
from mmap import mmap
from typing import TYPE_CHECKING, Final

import msgspec

from gantrymq.errors import GantryError, InvalidValue, shown
from gantrymq.limits import ERROR_TEXT_CHARACTERS_MAX
from gantrymq.wire.codes import ResponseCode
from gantrymq.wire.command import Command
from gantrymq.wire.frame import encode_frame
from gantrymq.wire.header_codec import decode_header

if TYPE_CHECKING:
    from gantrymq.kernel.interface import Buffer
    from gantrymq.wire.peer import RawReply

logger = logging.getLogger(__name__)

FRAME_HEAD: Final = struct.Struct(">II")
"""The total, then serialize type and header size: see `wire.frame`."""
JOINED_BYTES_MAX: Final = 16 * 1024
"""A larger part goes to the socket as it is; smaller ones are copied together."""
DATA_BYTES_MIN: Final = 4096
"""A body of at least this size is data, not the report of something done."""
BUSY_REMARK: Final = "[OVERLOAD]the connection has more unsent answers than it may; read them first"


def encode_answer(answer: Command) -> bytes:
    """Return the frame of an answer; one that cannot be encoded becomes SYSTEM_ERROR."""
    try:
        return encode_frame(answer)
    except InvalidValue as error:
        logger.exception("an answer with code %s cannot be sent", answer.code)
        remark = shown(f"the answer cannot be sent: {error}", ERROR_TEXT_CHARACTERS_MAX)
        return encode_frame(_without_data(answer, ResponseCode.SYSTEM_ERROR, remark))


def busy_instead(answer: Command | RawReply) -> bytes | None:
    """Return the frame that stands in for an answer with data; None: this one must be sent."""
    if isinstance(answer, Command):
        if len(answer.body) < DATA_BYTES_MIN:
            return None
        return encode_frame(_without_data(answer, ResponseCode.SYSTEM_BUSY, BUSY_REMARK))
    command = _header_of(answer.parts)
    if command is None:
        return None
    return encode_frame(_without_data(command, ResponseCode.SYSTEM_BUSY, BUSY_REMARK))


def _header_of(parts: tuple[Buffer, ...]) -> Command | None:
    """Return the command of a frame with data, without it; None if it has none."""
    if not any(isinstance(part, memoryview | mmap) for part in parts):
        return None
    size = sum(map(len, parts))
    if size < FRAME_HEAD.size:
        return None
    total, head = FRAME_HEAD.unpack(_first(parts, FRAME_HEAD.size))
    header_end = FRAME_HEAD.size + (head & 0xFFFFFF)
    if total + 4 != size or size - header_end < DATA_BYTES_MIN:
        return None  # several frames, or no data
    try:
        return decode_header(_first(parts, header_end)[FRAME_HEAD.size :], head >> 24)
    except GantryError:
        return None


def _first(parts: tuple[Buffer, ...], count: int) -> bytes:
    """Return the first bytes of several parts, and touch no more of them."""
    found = bytearray()
    for part in parts:
        if len(found) >= count:
            break
        with memoryview(part) as view:
            found += view[: count - len(found)]
    return bytes(found)


def _without_data(answer: Command, code: int, remark: str) -> Command:
    return msgspec.structs.replace(
        answer, code=code, remark=remark, fields={}, body=b"", wire_pairs=None
    )


def gather(parts: list[Buffer]) -> list[bytes | bytearray | memoryview]:
    """Return the same bytes in as few pieces as copying little allows.

    Runs of small parts are joined; a large one stays what it is, a slice of a mapped file.
    """
    pieces: list[bytes | bytearray | memoryview] = []
    small: list[Buffer] = []
    for part in parts:
        if len(part) <= JOINED_BYTES_MAX:
            small.append(part)
            continue
        if small:
            pieces.append(b"".join(small))
            small = []
        pieces.append(memoryview(part) if isinstance(part, mmap) else part)
    if small:
        pieces.append(b"".join(small))
    return pieces
