from __future__ import annotations

import sys
import time
import tracemalloc

import pytest

from gantrymq.errors import InvalidValue, ProtocolError
from gantrymq.limits import EXT_FIELDS_MAX, JSON_DEPTH_MAX
from gantrymq.wire.codes import LanguageCode
from gantrymq.wire.command import JSON_HEADER, Command
from gantrymq.wire.header_codec import decode_header, encode_header


def decode(header: str | bytes) -> Command:
    data = header.encode() if isinstance(header, str) else header
    return decode_header(data, JSON_HEADER, b"body")


def with_ext(ext: str) -> str:
    return f'{{"code":1,"opaque":2,"extFields":{ext}}}'


def test_least_header() -> None:
    command = decode('{"code":1,"opaque":2}')
    assert command == Command(code=1, opaque=2, version=0, language=LanguageCode.JAVA, body=b"body")


def test_everything_that_is_tolerated() -> None:
    command = decode(
        '\n{ "code": 11, "flag": 2, "opaque": -5, "version": 333, "language": "CPP", "remark": "",'
        ' "serializeTypeCurrentRPC": "JSON", "unknown": {"x": [1, null]}, "extFields": '
        '{"i": 0, "n": -12, "big": 18446744073709551616, "t": true, "f": false, "z": null, "s": "",'
        ' "d": 1.5, "u": "\\u00fc\\u0001\\ud83d\\ude80"} }\n'
    )
    assert command.fields == {
        "i": "0",
        "n": "-12",
        "big": "18446744073709551616",
        "t": "true",
        "f": "false",
        "s": "",
        "d": "1.5",
        "u": "ü\x01🚀",
    }
    assert (command.remark, command.is_oneway, command.language) == ("", True, LanguageCode.CPP)


@pytest.mark.parametrize(
    ("text", "language"),
    [
        ('"PYTHON"', LanguageCode.PYTHON),
        ("9", LanguageCode.GO),
        ('"COBOL"', "COBOL"),
        ("99", 99),
        ("null", LanguageCode.JAVA),
    ],
)
def test_language(text: str, language: object) -> None:
    command = decode(f'{{"code":1,"opaque":2,"language":{text}}}')
    assert command.language == language
    assert decode(encode_header(command)).language == language


def test_null_remark_and_fields() -> None:
    command = decode('{"code":1,"opaque":2,"remark":null,"extFields":null}')
    assert (command.remark, command.fields) == (None, {})


def test_repeated_keys_the_last_wins() -> None:
    command = decode('{"code":1,"opaque":2,"code":3,"extFields":{"a":"1","a":"2"}}')
    assert (command.code, command.fields) == (3, {"a": "2"})


@pytest.mark.parametrize(
    ("header", "field"),
    [
        (b"", "header"),
        (b"{", "header"),
        (b"[]", "header"),
        (b"null", "header"),
        (b'\xef\xbb\xbf{"code":1,"opaque":2}', "header"),
        (b'{"code":1,"opaque":2} x', "header"),
        (b'{"opaque":2}', "header.code"),
        (b'{"code":1}', "header.opaque"),
        (b'{"code":"1x","opaque":2}', "header.code"),
        (b'{"code":"","opaque":2}', "header.code"),
        (b'{"code":null,"opaque":2}', "header.code"),
        (b'{"code":1,"opaque":null}', "header.opaque"),
        (b'{"code":1,"opaque":"2147483648"}', "header.opaque"),
        (b'{"code":1.5,"opaque":2}', "header.code"),
        (b'{"code":true,"opaque":2}', "header.code"),
        (b'{"code":2147483648,"opaque":2}', "header.code"),
        (b'{"code":1,"opaque":-2147483649}', "header.opaque"),
        (b'{"code":' + b"9" * 5000 + b',"opaque":2}', "header.code"),
        (b'{"code":1,"opaque":2,"flag":"x"}', "header.flag"),
        (b'{"code":1,"opaque":2,"version":[]}', "header.version"),
        (b'{"code":1,"opaque":2,"language":{}}', "header.language"),
        (b'{"code":1,"opaque":2,"remark":5}', "header.remark"),
        (b'{"code":1,"opaque":2,"extFields":[]}', "header.extFields"),
        (b'{"code":1,"opaque":2,"extFields":"x"}', "header.extFields"),
        (b'{"code":1,"opaque":2,"extFields":{"a":"1","queueId":{}}}', "header.extFields.queueId"),
        (b'{"code":1,"opaque":2,"extFields":{"a":1,"queueId":[3]}}', "header.extFields.queueId"),
        (b'{"code":1,"opaque":2,"extFields":{"queueId":1e999}}', "header.extFields.queueId"),
        (b'{"code":1,"opaque":2,"extFields":{"b":' + b"9" * 5000 + b"}}", "header.extFields.b"),
        (b'{"code":1,"opaque":2,"extFields":{"a":"\xff"}}', "header"),
        (b'{"code":1,"opaque":2,"extFields":{"\xff":"a"}}', "header"),
        (b'{"code":[],"opaque":2,"extFields":{"a":"\xff"}}', "header.code"),
        (b'{"code":1,"opaque":2,"extFields":{"a":[],"\xff":1}}', "header"),
        (b'{"code":1,"opaque":2,"remark":"\\ud800"}', "header"),
        (b'{"code":1,"opaque":2,"extFields":{"a":"\\udc00"}}', "header"),
    ],
)
def test_refused(header: bytes, field: str) -> None:
    with pytest.raises(ProtocolError) as caught:
        decode(header)
    assert caught.value.field == field


def test_a_number_that_python_does_not_print() -> None:
    digits = sys.get_int_max_str_digits()
    sys.set_int_max_str_digits(640)
    try:
        with pytest.raises(ProtocolError) as caught:
            decode(with_ext('{"queueId":' + "9" * 1000 + "}"))
    finally:
        sys.set_int_max_str_digits(digits)
    assert caught.value.field == "header.extFields.queueId"


@pytest.mark.parametrize("brackets", ["[", '{"a":', '[{"a":'])
@pytest.mark.parametrize("place", ['"other":', '"extFields":{"x":', '"code":'])
def test_depth_is_bounded(brackets: str, place: str) -> None:
    for depth in (JSON_DEPTH_MAX, 100_000):
        with pytest.raises(ProtocolError):
            decode(f'{{"code":1,"opaque":2,{place}{brackets * depth}')


def test_depth_just_allowed() -> None:
    nested = "[" * (JSON_DEPTH_MAX - 1) + "]" * (JSON_DEPTH_MAX - 1)
    assert decode(f'{{"code":1,"opaque":2,"other":{nested}}}').code == 1
    with pytest.raises(ProtocolError, match="nested"):
        decode(f'{{"code":1,"opaque":2,"other":[{nested}]}}')


def test_brackets_and_colons_in_text_do_not_count() -> None:
    text = '{[:\\"' * 2000
    assert decode(with_ext(f'{{"a":"{text}","b":[{{}}]}}'.replace(',"b":[{}]', ""))).fields == {
        "a": '{[:"' * 2000
    }
    many = "[]," * 100 + "[]"
    assert decode(f'{{"code":1,"opaque":2,"other":[{many}],"colons":"{":" * 2000}"}}').code == 1


def test_entries_are_bounded() -> None:
    def ext(count: int) -> str:
        return with_ext("{" + ",".join(f'"k{at}":"v"' for at in range(count)) + "}")

    assert len(decode(ext(EXT_FIELDS_MAX)).fields) == EXT_FIELDS_MAX
    for count in (EXT_FIELDS_MAX + 1, EXT_FIELDS_MAX + 1000):
        with pytest.raises(ProtocolError) as caught:
            decode(ext(count))
        assert caught.value.field == "header.extFields"


@pytest.mark.parametrize(
    "header",
    [
        b'{"code":1,"opaque":2,"extFields":{' + b'"a":1,' * 1_000_000,
        b'{"code":1,"opaque":2,"x":' + b"[" * 4_000_000,
        b'{"code":1,"opaque":2,"x":"' + b'\\"[' * 1_000_000,
        b"{" * 70 + b'"' + b'\\"' * 2_000_000,
        b'"' * 4_000_000 + b"[" * 70,
    ],
    ids=["entries", "depth", "open text", "open text in depth", "texts"],
)
def test_hostile_headers_cost_little(header: bytes) -> None:
    tracemalloc.start()
    started = time.perf_counter()
    try:
        with pytest.raises(ProtocolError):
            decode(header)
        _now, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert peak < 4 * len(header)
    assert time.perf_counter() - started < 30


def test_what_is_written() -> None:
    command = Command.request(310, 7, {"b": "T\x01ü", "e": "0"}, remark="r")
    assert (
        encode_header(command)
        == (
            '{"code":310,"extFields":{"b":"T\\u0001ü","e":"0"},"flag":0,"language":"PYTHON","opaque":7,'
            '"remark":"r","serializeTypeCurrentRPC":"JSON","version":407}'
        ).encode()
    )
    assert encode_header(Command(code=0, opaque=1, flag=1)) == (
        b'{"code":0,"extFields":{},"flag":1,"language":"PYTHON","opaque":1,'
        b'"serializeTypeCurrentRPC":"JSON","version":407}'
    )


def test_text_that_cannot_be_written() -> None:
    with pytest.raises(InvalidValue, match="Unicode"):
        encode_header(Command(code=1, opaque=2, fields={"a": "\ud800"}))


def test_unknown_serialization() -> None:
    with pytest.raises(ProtocolError) as caught:
        decode_header(b"{}", 2)
    assert caught.value.field == "frame.serializeType"
    with pytest.raises(InvalidValue):
        encode_header(Command(code=1, opaque=2, serialize_type=2))
