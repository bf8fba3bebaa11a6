"""One request sent many times: its frame is built once, and only its numbers change.

For whoever sends the same thing as fast as it can. The header is a binary one, in which the opaque
has a fixed place. Answers come in the form that the broker likes, Apache's in JSON; of both only
code and opaque are read. Unique keys that were made with `UNIQUE_KEY` are counted up, so that no
two messages have the same.
"""

from __future__ import annotations

import re
import struct
from typing import TYPE_CHECKING, Final, NamedTuple

from gantrymq.errors import InvalidValue
from gantrymq.wire.command import BINARY_HEADER
from gantrymq.wire.frame import encode_frame

if TYPE_CHECKING:
    from gantrymq.wire.command import Command

UNIQUE_KEY: Final = "7F0000012A139A550000" + "0" * 12
"""Stands in a template where each message has a unique key of its own: 32 digits, the last 12 of
which are counted up."""
_OPAQUE_AT: Final = 13
_OPAQUE: Final = struct.Struct(">i")
_KEY_HEAD: Final = UNIQUE_KEY[:20].encode()
_DIGITS: Final = 12
_ANSWER: Final = struct.Struct(">IIhBhi")
_PREFIX_BYTES: Final = 8
_CODE: Final = re.compile(rb'"code":(-?[0-9]{1,9})')
_OPAQUE_TEXT: Final = re.compile(rb'"opaque":(-?[0-9]{1,10})')


class FrameTemplate:
    """A request as bytes, to be numbered and sent again and again."""

    __slots__ = ("_frame", "_keys")

    def __init__(self, request: Command) -> None:
        """Build the frame.

        Raises:
            InvalidValue: the header is not a binary one, or cannot be encoded.
        """
        if request.serialize_type != BINARY_HEADER:
            raise InvalidValue("a template has a binary header: serialize_type must be 1")
        self._frame = bytearray(encode_frame(request))
        self._keys: list[int] = []
        found = self._frame.find(UNIQUE_KEY.encode())
        while found >= 0:
            self._keys.append(found + len(_KEY_HEAD))
            found = self._frame.find(UNIQUE_KEY.encode(), found + 1)

    @property
    def keys(self) -> int:
        """Return how many unique keys a frame uses up."""
        return len(self._keys)

    def numbered(self, opaque: int, first_key: int) -> bytes:
        """Return the frame with this opaque and unique keys from this number on."""
        frame = self._frame
        _OPAQUE.pack_into(frame, _OPAQUE_AT, opaque)
        for number, position in enumerate(self._keys, first_key):
            frame[position : position + _DIGITS] = b"%012X" % (number & 0xFFFFFFFFFFFF)
        return bytes(frame)


class QuickAnswer(NamedTuple):
    """What a hurried client reads of an answer."""

    opaque: int
    code: int
    start: int
    end: int


def quick_answers(buffer: bytes | bytearray) -> tuple[list[QuickAnswer], int]:
    """Return the complete answers in a buffer and how far they reach.

    Raises:
        InvalidValue: a header of which this cannot be read.
    """
    found: list[QuickAnswer] = []
    position, end = 0, len(buffer)
    while end - position >= _ANSWER.size:
        total, head, code, _language, _version, opaque = _ANSWER.unpack_from(buffer, position)
        behind = position + 4 + total
        if behind > end:
            break
        if head >> 24 != BINARY_HEADER:
            start = position + _PREFIX_BYTES
            opaque, code = _in_json(bytes(buffer[start : start + (head & 0xFFFFFF)]))
        found.append(QuickAnswer(opaque, code, position, behind))
        position = behind
    return found, position


def _in_json(header: bytes) -> tuple[int, int]:
    """Return opaque and code of a JSON header, as all brokers write it: the code comes first."""
    code, opaque = _CODE.search(header), _OPAQUE_TEXT.findall(header)
    if code is None or not opaque:
        raise InvalidValue(f"an answer without code or opaque: {header[:64]!r}")
    return int(opaque[-1]), int(code[1])
