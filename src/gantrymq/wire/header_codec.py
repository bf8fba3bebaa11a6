"""Headers of both serializations: the part of a frame between the length words and the body.

`json_header` and `binary_header` know one form each; this module chooses. Both raise
ProtocolError with a field that starts with `header.`, and nothing else, whatever bytes they are
given.
"""

from __future__ import annotations

from gantrymq.errors import InvalidValue, ProtocolError
from gantrymq.wire.binary_header import decode_binary_header, encode_binary_header, widen_code
from gantrymq.wire.command import BINARY_HEADER, JSON_HEADER, Command
from gantrymq.wire.json_header import decode_json_header, encode_json_header

__all__ = ["decode_header", "encode_header", "widen_code"]


def decode_header(header: bytes, serialize_type: int, body: bytes = b"") -> Command:
    """Return the command that a header and a body make.

    Raises ProtocolError for bytes that are no header of that serialization.
    """
    if serialize_type == JSON_HEADER:
        return decode_json_header(header, body)
    if serialize_type == BINARY_HEADER:
        return decode_binary_header(header, body)
    raise ProtocolError("frame.serializeType", f"{serialize_type} is neither 0 nor 1")


def encode_header(command: Command) -> bytes:
    """Return the header of a command in the command's own serialization.

    Raises InvalidValue for a value that the header cannot hold.
    """
    if command.serialize_type == JSON_HEADER:
        return encode_json_header(command)
    if command.serialize_type == BINARY_HEADER:
        return encode_binary_header(command)
    raise InvalidValue(f"serialize type {command.serialize_type} is neither 0 nor 1")
