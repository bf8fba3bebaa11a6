from __future__ import annotations

import pytest

from gantrymq.errors import InvalidValue, RecordError
from gantrymq.model.message import Host
from gantrymq.wire.hosts import decode_host, encode_host, parse_host

V4 = Host("127.0.0.1", 10911)
V6 = Host("fd00::2", 65535)


@pytest.mark.parametrize("host", [V4, V6, Host("10.0.0.255", 0)])
def test_both_ways(host: Host) -> None:
    assert decode_host(encode_host(host), "x") == host
    assert parse_host(host.text) == host


@pytest.mark.parametrize(
    ("text", "host"),
    [
        ("[fd00::2]:65535", V6),
        ("fd00:0:0:0:0:0:0:2:65535", V6),
        ("127.0.0.1:010911"[:15], Host("127.0.0.1", 1091)),
    ],
)
def test_parse(text: str, host: Host) -> None:
    assert parse_host(text) == host


@pytest.mark.parametrize(
    "text",
    ["", "127.0.0.1", "127.0.0.1:", "127.0.0.1:x", "127.0.0.1:-1", "127.0.0.1:65536",
     "127.0.0.1:123456", "localhost:1", ":1", "[::1:1", "1.2.3.4:٣"],
)  # fmt: skip
def test_not_parsed(text: str) -> None:
    with pytest.raises(InvalidValue):
        parse_host(text)


@pytest.mark.parametrize(
    "data", [b"", bytes(7), bytes(9), bytes(21), b"\x7f\0\0\1\xff\xff\xff\xff"]
)
def test_not_decoded(data: bytes) -> None:
    with pytest.raises(RecordError) as caught:
        decode_host(data, "record.bornHost")
    assert caught.value.field == "record.bornHost"
