"""The answers to sends as a client gets them: many in one read, nearly all of them alike.

Only the form that brokers write is understood here, and it is understood whole: no blanks, no
escapes, nothing unknown. Anything else is left to the general codec, which is right about all of
them and slower.
"""

from __future__ import annotations

import re
import struct
from typing import TYPE_CHECKING, Final

from gantrymq.errors import InvalidValue, ProtocolError
from gantrymq.kernel.reference.bounds import check_range
from gantrymq.kernel.reference.frames import frame_at
from gantrymq.kernel.reference.integers import parse_integer
from gantrymq.kernel.values import BINARY_HEADER, SendAnswer

if TYPE_CHECKING:
    from gantrymq.kernel.interface import Buffer
    from gantrymq.kernel.values import Frame

_FRAME_BYTES_MAX: Final = 2**31 - 1
_SUCCESS: Final = 0
_RESPONSE: Final = 1
_REQUIRED: Final = frozenset({"msgId", "queueId", "queueOffset"})
_KNOWN: Final = _REQUIRED | {"transactionId", "MSG_REGION", "TRACE_ON"}
_NUMBERS: Final = frozenset({"code", "flag", "opaque", "version"})
_TEXTS: Final = frozenset({"language", "serializeTypeCurrentRPC"})

_TEXT: Final = r"[ !#-\[\]-~]*"
"""Printable ASCII without quotes and backslashes."""
_PLAIN: Final = re.compile(_TEXT.encode())
_MEMBER: Final = re.compile(
    rf'"({_TEXT})":(?:(-?[0-9]+)|"({_TEXT})"|(\{{(?:"{_TEXT}":"{_TEXT}",?)*\}}))'
)
_FIELD: Final = re.compile(rf'"({_TEXT})":"({_TEXT})"')
_FIXED: Final = struct.Struct(">hBhiii")


def split_send_replies(
    buffer: Buffer, start: int, end: int, frame_bytes_max: int, opaque_min: int
) -> tuple[list[SendAnswer], int]:
    """Return the plain answers to sends at the front of a range, and the position behind them."""
    check_range(buffer, start, end)
    if not 8 <= frame_bytes_max <= _FRAME_BYTES_MAX:
        raise InvalidValue("frames: frame_bytes_max must be between 8 and 2147483647")
    replies: list[SendAnswer] = []
    position = start
    while True:
        try:
            frame = frame_at(buffer, position, end, frame_bytes_max)
        except ProtocolError:
            break
        reply = _reply(buffer, frame) if frame is not None else None
        if frame is None or reply is None or reply.opaque < opaque_min:
            break
        replies.append(reply)
        position = frame.end
    return replies, position


def _reply(buffer: Buffer, frame: Frame) -> SendAnswer | None:
    if frame.body < frame.end:
        return None
    header = bytes(buffer[frame.header : frame.body])
    found = _binary(header) if frame.serialize_type == BINARY_HEADER else _json(header)
    if found is None:
        return None
    opaque, fields = found
    if not (_REQUIRED <= fields.keys() <= _KNOWN and all(fields.values())):
        return None
    queue_id = parse_integer(fields["queueId"], 32)
    queue_offset = parse_integer(fields["queueOffset"], 64)
    if queue_id is None or queue_offset is None:
        return None
    return SendAnswer(
        opaque,
        queue_id,
        queue_offset,
        fields["msgId"],
        fields.get("transactionId"),
        fields.get("MSG_REGION"),
        fields.get("TRACE_ON", "").lower() != "false",
    )


def _binary(header: bytes) -> tuple[int, dict[str, str]] | None:
    """Return opaque and ext fields of a binary header that is a success without a remark."""
    if len(header) < _FIXED.size + 4:
        return None
    code, _language, _version, opaque, flag, remark = _FIXED.unpack_from(header)
    area: int = struct.unpack_from(">i", header, _FIXED.size)[0]
    at = _FIXED.size + 4
    if (code, flag, remark, area) != (_SUCCESS, _RESPONSE, 0, len(header) - at):
        return None
    fields: dict[str, str] = {}
    while at < len(header):
        parts: list[bytes] = []
        for form in (">h", ">i"):
            behind = at + struct.calcsize(form)
            size = struct.unpack_from(form, header, at)[0] if behind <= len(header) else -1
            if not 0 < size <= len(header) - behind:
                return None
            parts.append(header[behind : behind + size])
            at = behind + size
        if not all(_PLAIN.fullmatch(part) for part in parts):
            return None
        name, value = (part.decode("ascii") for part in parts)
        if name in fields:
            return None
        fields[name] = value
    return opaque, fields


def _json(header: bytes) -> tuple[int, dict[str, str]] | None:
    """Return opaque and ext fields of a JSON header that is a success without a remark."""
    if not (header.isascii() and header[:1] == b"{" and header[-1:] == b"}"):
        return None
    text = header.decode("ascii")
    numbers: dict[str, int | None] = {}
    seen: set[str] = set()
    fields: dict[str, str] | None = None
    at = 1
    while True:
        member = _MEMBER.match(text, at)
        if member is None or member[1] in seen:
            return None
        seen.add(member[1])
        if member[2] is not None and member[1] in _NUMBERS:
            numbers[member[1]] = parse_integer(member[2], 32)
        elif member[4] is not None and member[1] == "extFields":
            fields = _json_fields(member[4])
        elif member[3] is None or member[1] not in _TEXTS:
            return None
        at = member.end() + 1
        if text[member.end() : at] != ",":
            break
    opaque = numbers.get("opaque")
    if at != len(text) or fields is None or opaque is None or None in numbers.values():
        return None
    if (numbers.get("code"), numbers.get("flag")) != (_SUCCESS, _RESPONSE):
        return None
    return opaque, fields


def _json_fields(text: str) -> dict[str, str] | None:
    """Return the members of an object of texts, none of which comes twice."""
    found = _FIELD.findall(text)
    if len(text) != 2 + sum(len(name) + len(value) + 5 for name, value in found) + max(
        len(found) - 1, 0
    ):
        return None  # a comma too many or too few
    fields: dict[str, str] = dict(found)
    return fields if len(fields) == len(found) else None
