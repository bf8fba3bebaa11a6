"""The replies to the hot requests, with their frame, in the header codec of the request.

The numbers in the header are few and the texts are checked, so a reply is written out as it looks
on the wire; nothing here needs a general JSON writer.
"""

from __future__ import annotations

import struct
from typing import Final

from gantrymq.errors import InvalidValue
from gantrymq.kernel.reference.integers import fits
from gantrymq.kernel.values import BINARY_HEADER, JSON_HEADER

_SUCCESS: Final = 0
_RESPONSE_FLAG: Final = 1
_PYTHON: Final = 3
"""Language code; its name in JSON is PYTHON."""
_HEADER_BYTES_MAX: Final = 0xFFFFFF
"""Its length has 24 bits."""
_PRINTABLE: Final = frozenset(range(0x20, 0x7F)) - frozenset(b'"\\')


def encode_send_reply(
    opaque: int,
    serialize_type: int,
    version: int,
    queue_id: int,
    queue_offset: int,
    message_ids: bytes,
    region: bytes,
    trace_on: bool,
) -> bytes:
    """Return the whole frame of a SUCCESS reply to a send."""
    _check_type(serialize_type)
    ids = printable("message ids", message_ids)
    region_text = printable("region", region)
    _check_numbers((opaque, version, queue_id), (queue_offset,))
    fields = {
        "msgId": ids,
        "queueId": str(queue_id),
        "queueOffset": str(queue_offset),
        "TRACE_ON": "true" if trace_on else "false",
    }
    # In binary an empty value reads as null, and nulls are not written.
    if region_text or serialize_type == JSON_HEADER:
        fields["MSG_REGION"] = region_text
    header = _header(serialize_type, _SUCCESS, version, opaque, "", fields)
    return _framed(serialize_type, header, 0)


def encode_pull_reply(
    opaque: int,
    serialize_type: int,
    version: int,
    code: int,
    remark: bytes,
    suggest_broker_id: int,
    next_begin_offset: int,
    min_offset: int,
    max_offset: int,
    body_bytes: int,
) -> bytes:
    """Return length and header of a pull reply; `body_bytes` of body follow it on the wire."""
    _check_type(serialize_type)
    remark_text = printable("remark", remark)
    _check_numbers(
        (opaque, version, code), (suggest_broker_id, next_begin_offset, min_offset, max_offset)
    )
    fields = {
        "suggestWhichBrokerId": str(suggest_broker_id),
        "nextBeginOffset": str(next_begin_offset),
        "minOffset": str(min_offset),
        "maxOffset": str(max_offset),
    }
    header = _header(serialize_type, code, version, opaque, remark_text, fields)
    return _framed(serialize_type, header, body_bytes)


def encode_refusal(
    opaque: int,
    serialize_type: int,
    version: int,
    code: int,
    remark: bytes,
    region: bytes,
    trace_on: bool,
) -> bytes:
    """Return the whole frame of a reply to a send that was not taken."""
    fields = {"TRACE_ON": "true" if trace_on else "false"}
    if region or serialize_type == JSON_HEADER:
        fields["MSG_REGION"] = region.decode("ascii")
    header = _header(serialize_type, code, version, opaque, remark.decode("ascii"), fields)
    return _framed(serialize_type, header, 0)


def printable(what: str, text: bytes) -> str:
    """Return a text that needs no escapes in JSON, or raise InvalidValue."""
    if not _PRINTABLE.issuperset(text):
        raise InvalidValue(f"reply: {what} must be printable ASCII without quotes")
    return text.decode("ascii")


def _check_type(serialize_type: int) -> None:
    if serialize_type not in {JSON_HEADER, BINARY_HEADER}:
        raise InvalidValue(f"reply: serialize type {serialize_type} is neither 0 nor 1")


def _check_numbers(of_32_bits: tuple[int, ...], of_64_bits: tuple[int, ...]) -> None:
    if not all(fits(n, 32) for n in of_32_bits) or not all(fits(n, 64) for n in of_64_bits):
        raise InvalidValue("reply: a number is out of range")


def _header(
    serialize_type: int, code: int, version: int, opaque: int, remark: str, fields: dict[str, str]
) -> bytes:
    if serialize_type == JSON_HEADER:
        return _json_header(code, version, opaque, remark, fields)
    return _binary_header(code, version, opaque, remark, fields)


def _json_header(
    code: int, version: int, opaque: int, remark: str, fields: dict[str, str]
) -> bytes:
    ext = ",".join(f'"{name}":"{value}"' for name, value in fields.items())
    said = f'"remark":"{remark}",' if remark else ""
    return (
        f'{{"code":{code},"extFields":{{{ext}}},"flag":{_RESPONSE_FLAG},"language":"PYTHON",'
        f'"opaque":{opaque},{said}"serializeTypeCurrentRPC":"JSON","version":{version}}}'
    ).encode("ascii")


def _binary_header(
    code: int, version: int, opaque: int, remark: str, fields: dict[str, str]
) -> bytes:
    # Code and version have 16 bits here; Java, too, writes what is left of a larger one.
    fixed = struct.pack(">HBHii", code & 0xFFFF, _PYTHON, version & 0xFFFF, opaque, _RESPONSE_FLAG)
    ext = b"".join(
        struct.pack(">h", len(name))
        + name.encode()
        + struct.pack(">i", len(value))
        + value.encode()
        for name, value in fields.items()
    )
    said = remark.encode()
    return fixed + struct.pack(">i", len(said)) + said + struct.pack(">i", len(ext)) + ext


def _framed(serialize_type: int, header: bytes, body_bytes: int) -> bytes:
    total = 4 + len(header) + body_bytes
    if len(header) > _HEADER_BYTES_MAX:
        raise InvalidValue(f"reply: a header of {len(header)} bytes is over {_HEADER_BYTES_MAX}")
    if body_bytes < 0 or not fits(total, 32):
        raise InvalidValue("reply: a number is out of range")
    return struct.pack(">iI", total, serialize_type << 24 | len(header)) + header
