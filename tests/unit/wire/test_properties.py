from __future__ import annotations

import pytest

from gantrymq.errors import InvalidValue
from gantrymq.limits import PROPERTIES_BYTES_MAX
from gantrymq.wire.properties import decode_properties, encode_properties


@pytest.mark.parametrize(
    ("text", "properties"),
    [
        ("", {}),
        ("a\x01b", {"a": "b"}),
        ("a\x01b\x02", {"a": "b"}),
        ("a\x01b\x02c\x01d", {"a": "b", "c": "d"}),
        ("a\x01b\x02\x02c\x01d\x02", {"a": "b", "c": "d"}),
        ("a\x01b\x02a\x01c", {"a": "c"}),
        ("a\x01\x02c\x01d", {"c": "d"}),
        ("\x01b\x02c\x01d", {"c": "d"}),
        ("ab\x02c\x01d", {"c": "d"}),
        ("a\x01b\x01c", {"a": "b\x01c"}),
        ("ü\x01🚀", {"ü": "🚀"}),
    ],
)
def test_decode(text: str, properties: dict[str, str]) -> None:
    assert decode_properties(text) == properties
    assert decode_properties(text.encode()) == properties


def test_broken_text_is_mended() -> None:
    assert decode_properties(b"a\x01\xff\xc3\x02b\x01c") == {"a": "\ufffd\ufffd", "b": "c"}


def test_encode() -> None:
    assert encode_properties({}) == b""
    assert encode_properties({"a": "b", "c": "ü"}) == "a\x01b\x02c\x01ü".encode()


@pytest.mark.parametrize(
    ("properties", "words"),
    [
        ({"": "v"}, "lost"),
        ({"n": ""}, "lost"),
        ({"n\x01": "v"}, "separator"),
        ({"n": "v\x02"}, "separator"),
        ({"n": "\x01"}, "separator"),
        ({"n": "\ud800"}, "Unicode"),
        ({"n": "v" * PROPERTIES_BYTES_MAX}, "at most 32767"),
        ({"n": "ü" * 16384}, "at most 32767"),
    ],
)
def test_what_is_not_written(properties: dict[str, str], words: str) -> None:
    with pytest.raises(InvalidValue, match=words):
        encode_properties(properties)


def test_largest() -> None:
    properties = {"n": "v" * (PROPERTIES_BYTES_MAX - 2)}
    assert decode_properties(encode_properties(properties)) == properties
