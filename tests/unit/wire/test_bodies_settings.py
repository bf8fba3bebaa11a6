"""Settings as text: Java's rules, line by line."""

from __future__ import annotations

import time

import pytest

from gantrymq.errors import ProtocolError
from gantrymq.wire.bodies.settings import SETTINGS


@pytest.mark.parametrize(
    ("text", "settings"),
    [
        ("", {}),
        ("\n\n  \r\n\t", {}),
        ("a=b", {"a": "b"}),
        ("a=b\nc=d\n", {"a": "b", "c": "d"}),
        ("a=b\r\nc=d\re=f", {"a": "b", "c": "d", "e": "f"}),
        ("  a  =  b c  \n", {"a": "b c  "}),
        ("a:b\nc d\ne", {"a": "b", "c": "d", "e": ""}),
        ("a==b\nc=:d", {"a": "=b", "c": ":d"}),
        ("# c=d\n ! e=f\na=#b", {"a": "#b"}),
        ("# comment \\\na=b", {"a": "b"}),
        ("a=b\\\n   c\\\r\n\td", {"a": "bcd"}),
        ("a=b\\\\\nc=d", {"a": "b\\", "c": "d"}),
        ("a\\ b\\=c\\:=d", {"a b=c:": "d"}),
        ("a=\\t\\n\\r\\f\\u4e2d\\q\\#", {"a": "\t\n\r\f中q#"}),
        ("a=b\\", {"a": "b"}),
        ("a=1\na=2", {"a": "2"}),
        ("=x", {"": "x"}),
        ("键=值", {"键": "值"}),
        (
            "brokerIP1=192.0.2.1\nmessageDelayLevel=1s 5s",
            {"brokerIP1": "192.0.2.1", "messageDelayLevel": "1s 5s"},
        ),
    ],
)
def test_reading(text: str, settings: dict[str, str]) -> None:
    assert SETTINGS.decode(text.encode()) == settings


@pytest.mark.parametrize("body", [b"\xff", b"a=\\u12", b"a=\\ud800", b"a=b\nc=\\uzzzz"])
def test_refusing(body: bytes) -> None:
    with pytest.raises(ProtocolError) as caught:
        SETTINGS.decode(body)
    assert caught.value.field == "body"


def test_writing_is_sorted_and_plain_where_it_can_be() -> None:
    settings = {"b": "x:y=z #!", "a": "C:\\dir", "c": " lead", "d e": "1\n2", "#f": "\t", "": ""}
    body = SETTINGS.encode(settings)
    assert body == b"=\n\\#f=\\t\na=C:\\\\dir\nb=x:y=z #!\nc=\\ lead\nd\\ e=1\\n2\n"
    assert SETTINGS.decode(body) == settings


@pytest.mark.parametrize(
    "body",
    [
        b"a=" + b"\\\n" * 500_000,
        b"\\" * 1_000_001,
        b"a" * 1_000_000,
        b" " * 1_000_000,
        b"a=b\n" * 200_000,
    ],
)
def test_time_grows_with_the_length_only(body: bytes) -> None:
    begun = time.process_time()
    SETTINGS.decode(body)
    assert time.process_time() - begun < 5
