"""Binary headers, which RocketMQ calls ROCKETMQ serialization. All numbers are big-endian.

    bytes  0      2      3      5      9      13            17+n
           +------+------+------+------+------+------+------+------+---------+
           | code | lang | ver- |opaque| flag |remark|remark| ext  | entries |
           | i16  | u8   | sion | i32  | i32  | size | text | size |         |
           |      |      | i16  |      |      | i32  |      | i32  |         |
           +------+------+------+------+------+------+------+------+---------+

    entry: i16 key size, key, i32 value size, value; repeated until the ext size is used up

A size of 0 means null: there is no difference between an empty text and none. Keys may repeat and
the last one counts, even if it is null; `Command.wire_pairs` keeps them all.

The code has 16 bits, so Java writes the low half of POP_MESSAGE (200050) and of all codes above
32767. Decoding keeps what is on the wire; a server that wants to understand such a request calls
`widen_code`. Apache's own brokers do not, and answer "not supported".
"""

from __future__ import annotations

import struct
from typing import Final

from gantrymq.errors import InvalidValue, ProtocolError
from gantrymq.limits import EXT_FIELDS_MAX
from gantrymq.wire.codes import LanguageCode, RequestCode
from gantrymq.wire.command import BINARY_HEADER, Command, check_encodable, ext_place

_FIXED: Final = struct.Struct(">hBhii")
_INT16: Final = struct.Struct(">h")
_INT32: Final = struct.Struct(">i")
_BYTES_MIN: Final = 21
_LANGUAGES: Final = {language.value: language for language in LanguageCode}
_WIDE_CODES: Final = {code & 0xFFFF: code for code in RequestCode if code > 0x7FFF}


def widen_code(code: int) -> int:
    """Return the request code whose low 16 bits `code` is, if there is one; else `code` itself."""
    return _WIDE_CODES.get(code, code)


def decode_binary_header(header: bytes, body: bytes) -> Command:
    """Return the command that a binary header and a body make.

    Raises ProtocolError naming the part that is wrong.
    """
    if len(header) < _BYTES_MIN:
        raise ProtocolError("header", f"has {len(header)} bytes, of at least {_BYTES_MIN}")
    code, language, version, opaque, flag = _FIXED.unpack_from(header)
    remark, position = _read_text(header, _FIXED.size, len(header) - 4, "header.remark")
    (ext_bytes,) = _INT32.unpack_from(header, position)
    position += 4
    if ext_bytes != len(header) - position:
        left = len(header) - position
        raise ProtocolError("header.extFields", f"has {left} bytes, and says {ext_bytes}")
    pairs = _read_pairs(header, position)
    last = dict(pairs)
    fields = {key: value for key, value in last.items() if key and value}
    return Command(
        code=code,
        opaque=opaque,
        flag=flag,
        version=version,
        language=_LANGUAGES.get(language, language),
        remark=remark or None,
        fields=fields,
        body=body,
        serialize_type=BINARY_HEADER,
        wire_pairs=tuple(pairs) if len(fields) != len(pairs) else None,
    )


def encode_binary_header(command: Command) -> bytes:
    """Return the binary header of a command; of a code over 16 bits the low half, as Java does.

    Raises InvalidValue for text that is not Unicode, a key over 32767 bytes, a number over 32 bits,
    an ext value that is not text.
    """
    check_encodable(command)
    pairs = command.fields.items() if command.wire_pairs is None else command.wire_pairs
    language = command.language
    if isinstance(language, str):
        language = LanguageCode.OTHER
    try:
        ext = b"".join([_write_pair(key, value) for key, value in pairs])
        remark = (command.remark or "").encode()
        return b"".join(
            (
                struct.pack(">H", command.code & 0xFFFF),
                struct.pack(">BH", language, command.version & 0xFFFF),
                struct.pack(">ii", command.opaque, command.flag),
                _INT32.pack(len(remark)),
                remark,
                _INT32.pack(len(ext)),
                ext,
            )
        )
    except (struct.error, UnicodeEncodeError) as error:
        raise InvalidValue(f"value that a binary header cannot hold: {error}") from error


def _write_pair(key: str, value: str) -> bytes:
    name = key.encode()
    text = value.encode()
    return b"".join((_INT16.pack(len(name)), name, _INT32.pack(len(text)), text))


def _read_text(header: bytes, position: int, end: int, place: str) -> tuple[str, int]:
    """Return the text behind a 4-byte size at `position`, and the position behind it."""
    if end - position < 4:
        raise ProtocolError(place, "ends before its size")
    (size,) = _INT32.unpack_from(header, position)
    return _slice_text(header, position + 4, size, end, place)


def _slice_text(header: bytes, start: int, size: int, end: int, place: str) -> tuple[str, int]:
    if not 0 <= size <= end - start:
        raise ProtocolError(place, f"has {end - start} bytes at most, and says {size}")
    try:
        return header[start : start + size].decode(), start + size
    except UnicodeDecodeError as error:
        raise ProtocolError(place, f"is not UTF-8: {error}") from error


def _read_pairs(header: bytes, position: int) -> list[tuple[str, str]]:
    pairs: list[tuple[str, str]] = []
    end = len(header)
    while position < end:
        if len(pairs) == EXT_FIELDS_MAX:
            raise ProtocolError("header.extFields", f"has more than {EXT_FIELDS_MAX} entries")
        if end - position < 2:
            raise ProtocolError("header.extFields", "ends before the size of a key")
        (size,) = _INT16.unpack_from(header, position)
        key, position = _slice_text(header, position + 2, size, end, "header.extFields")
        value, position = _read_text(header, position, end, ext_place(key))
        pairs.append((key, value))
    return pairs
