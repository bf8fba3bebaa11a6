from __future__ import annotations

import struct

import pytest

from gantrymq.errors import InvalidValue, ProtocolError
from gantrymq.limits import EXT_FIELDS_MAX
from gantrymq.wire.codes import LanguageCode, RequestCode
from gantrymq.wire.command import BINARY_HEADER, Command
from gantrymq.wire.header_codec import decode_header, encode_header, widen_code


def pair(key: bytes, value: bytes) -> bytes:
    return struct.pack(">h", len(key)) + key + struct.pack(">i", len(value)) + value


def header(
    ext: bytes = b"",
    *,
    code: int = 11,
    language: int = 0,
    remark: bytes = b"",
    remark_bytes: int | None = None,
    ext_bytes: int | None = None,
) -> bytes:
    return (
        struct.pack(">hBhii", code, language, 407, 5, 0)
        + struct.pack(">i", len(remark) if remark_bytes is None else remark_bytes)
        + remark
        + struct.pack(">i", len(ext) if ext_bytes is None else ext_bytes)
        + ext
    )


def decode(data: bytes) -> Command:
    return decode_header(data, BINARY_HEADER, b"body")


def test_plain() -> None:
    data = header(pair(b"a", b"1") + pair("ü".encode(), "🚀".encode()), remark=b"why")
    command = decode(data)
    assert command == Command(
        code=11,
        opaque=5,
        version=407,
        language=LanguageCode.JAVA,
        remark="why",
        fields={"a": "1", "ü": "🚀"},
        body=b"body",
        serialize_type=BINARY_HEADER,
    )
    assert encode_header(command) == data


def test_repeated_keys_and_nulls_are_written_again() -> None:
    data = header(
        pair(b"a", b"1") + pair(b"b", b"") + pair(b"", b"x") + pair(b"a", b"2") + pair(b"c", b"3")
    )
    command = decode(data)
    assert command.fields == {"a": "2", "c": "3"}
    assert command.wire_pairs == (("a", "1"), ("b", ""), ("", "x"), ("a", "2"), ("c", "3"))
    assert encode_header(command) == data


def test_a_null_after_a_value_takes_it_away() -> None:
    assert decode(header(pair(b"a", b"1") + pair(b"a", b""))).fields == {}
    assert decode(header(pair(b"a", b"") + pair(b"a", b"1"))).fields == {"a": "1"}


def test_unknown_language_ordinal_is_kept() -> None:
    data = header(language=200)
    assert decode(data).language == 200
    assert encode_header(decode(data)) == data


def test_unknown_language_name_becomes_other() -> None:
    command = Command(code=1, opaque=2, language="COBOL", serialize_type=BINARY_HEADER)
    assert decode(encode_header(command)).language is LanguageCode.OTHER


@pytest.mark.parametrize("code", [code for code in RequestCode if code > 32767])
def test_wide_codes(code: RequestCode) -> None:
    sent = encode_header(Command(code=code, opaque=1, serialize_type=BINARY_HEADER))
    arrived = decode(sent).code
    assert arrived == code - 3 * 65536
    assert widen_code(arrived) is code
    assert arrived not in set(RequestCode)


def test_narrow_codes() -> None:
    assert widen_code(RequestCode.PULL_MESSAGE) == 11
    assert widen_code(-1000) == -1000
    command = Command(code=-1006, opaque=-1, flag=1, serialize_type=BINARY_HEADER)
    assert decode(encode_header(command)).code == -1006


@pytest.mark.parametrize("size", range(21))
def test_too_short(size: int) -> None:
    with pytest.raises(ProtocolError) as caught:
        decode(header()[:size])
    assert caught.value.field == "header"


def test_truncation_at_every_byte() -> None:
    data = header(pair(b"topic", b"T") + pair(b"queueId", b"0"), remark=b"why")
    for size in range(len(data)):
        with pytest.raises(ProtocolError) as caught:
            decode(data[:size])
        assert caught.value.field.startswith("header")


@pytest.mark.parametrize(
    ("data", "field"),
    [
        (header(remark_bytes=-1), "header.remark"),
        (header(remark_bytes=1), "header.remark"),
        (header(remark_bytes=2**31 - 1), "header.remark"),
        (header(remark=b"\xff"), "header.remark"),
        (header(ext_bytes=-1), "header.extFields"),
        (header(ext_bytes=1), "header.extFields"),
        (header(ext_bytes=2**31 - 1), "header.extFields"),
        (header() + b"x", "header.extFields"),
        (header(b"\x00"), "header.extFields"),
        (header(b"\x80\x00"), "header.extFields"),
        (header(b"\x00\x02a"), "header.extFields"),
        (header(b"\x00\x01\xff\x00\x00\x00\x00"), "header.extFields"),
        (header(b"\x00\x01a\x00\x00\x00"), "header.extFields.a"),
        (header(b"\x00\x01a\xff\xff\xff\xff"), "header.extFields.a"),
        (header(b"\x00\x01a\x7f\xff\xff\xff"), "header.extFields.a"),
        (header(pair(b"queueId", b"\xc3")), "header.extFields.queueId"),
    ],
)
def test_refused(data: bytes, field: str) -> None:
    with pytest.raises(ProtocolError) as caught:
        decode(data)
    assert caught.value.field == field


def test_entries_are_bounded() -> None:
    entries = [pair(str(at).encode(), b"v") for at in range(EXT_FIELDS_MAX + 1)]
    assert len(decode(header(b"".join(entries[:-1]))).fields) == EXT_FIELDS_MAX
    with pytest.raises(ProtocolError) as caught:
        decode(header(b"".join(entries)))
    assert caught.value.field == "header.extFields"


@pytest.mark.parametrize(
    "command",
    [
        Command(code=1, opaque=2**31, serialize_type=BINARY_HEADER),
        Command(code=1, opaque=1, language=256, serialize_type=BINARY_HEADER),
        Command(code=1, opaque=1, fields={"k" * 32768: "v"}, serialize_type=BINARY_HEADER),
        Command(code=1, opaque=1, remark="\ud800", serialize_type=BINARY_HEADER),
    ],
)
def test_values_that_cannot_be_written(command: Command) -> None:
    with pytest.raises(InvalidValue):
        encode_header(command)
