"""White lists of addresses: what each form lets in, and what is no pattern."""

from __future__ import annotations

import pytest

from gantrymq.errors import InvalidValue
from gantrymq.security.addresses import joined, read_address, read_pattern

LETS_IN = [
    ("", [], ["10.0.0.1", "::1"]),
    ("  ", [], ["10.0.0.1"]),
    ("*", ["10.0.0.1", "::1"], []),
    ("*.*.*.*", ["10.0.0.1", "::1"], []),
    ("*:*:*:*:*:*:*:*", ["10.0.0.1", "::1"], []),
    ("10.0.0.1", ["10.0.0.1"], ["10.0.0.2", "10.0.0.11", "::1"]),
    ("10.0.0.1,10.0.0.7", ["10.0.0.1", "10.0.0.7"], ["10.0.0.2"]),
    ("10.0.0.{1,7}", ["10.0.0.1", "10.0.0.7"], ["10.0.0.2", "10.0.0.17"]),
    ("10.0.0.*", ["10.0.0.0", "10.0.0.255"], ["10.0.1.0", "110.0.0.1"]),
    ("10.0.*.*", ["10.0.0.0", "10.0.255.255"], ["10.1.0.0"]),
    ("10.*.*.*", ["10.9.8.7"], ["11.0.0.1"]),
    ("10.0.0.5-20", ["10.0.0.5", "10.0.0.20"], ["10.0.0.4", "10.0.0.21", "10.0.0.200"]),
    ("10.0.0.0-0", ["10.0.0.0"], ["10.0.0.1"]),
    ("10.0.3-5.*", ["10.0.3.0", "10.0.5.255"], ["10.0.2.1", "10.0.6.1", "10.0.33.1"]),
    ("10.1-2.*.*", ["10.1.9.9", "10.2.9.9"], ["10.3.0.0"]),
    ("fe80::1", ["fe80::1", "FE80:0:0:0:0:0:0:1"], ["fe80::2"]),
    ("fe80::1,10.0.0.1", ["fe80::1", "10.0.0.1"], ["::1"]),
    ("fe80::{a,b}", ["fe80::a", "fe80::b"], ["fe80::c"]),
    ("1050:0:0:0:5:600:300c:*", ["1050::5:600:300c:1"], ["1050::5:600:300d:1"]),
    ("1050::5:600:300c:*", ["1050::5:600:300c:ffff"], ["1050::5:601:300c:1"]),
    ("fe80::1-200", ["fe80::1", "fe80::1ff", "fe80::200"], ["fe80::201", "fe80::", "fe80::1:1"]),
    ("2::ac5:78:1-200:*", ["2::ac5:78:1:9", "2::ac5:78:200:0"], ["2::ac5:78:201:0", "2::"]),
    ("fe80::*", ["fe80::1", "fe80::ffff"], ["fe80::1:0", "fe81::1"]),
]


@pytest.mark.parametrize(("pattern", "inside", "outside"), LETS_IN)
def test_a_pattern_lets_in_what_it_says(
    pattern: str, inside: list[str], outside: list[str]
) -> None:
    found = read_pattern(pattern)
    for host in inside:
        assert found.has(read_address(f"[{host}]:4711")), host
    for host in outside:
        assert not found.has(read_address(f"[{host}]:4711")), host


@pytest.mark.parametrize(
    "pattern",
    [
        "10.0.0", "10.0.0.256", "a host", "10.0.0.1,", "10.0.0.{}", "10.0.0.{1,300}",
        "10.0.{1,2}.3",
        "10.0.0.{1", "{1,2}", "*.0.0.1", "1-2.0.0.1", "10.0.0.-5", "10.0.0.5-", "10.0.0.9-5",
        "10.0.0.1-256", "10.0.*.7", "10.0.1-5.7", "10.0.0.0.*", "10.0.0.x-y", "10.x.0.*",
        "fe80::*:1", "fe80:1-2::1", "fe80::1-fffff", "fe80::2-1", "fe80:1:*", "1:2:3:4:5:6:7:8:*",
        "*:*", "fe80::1::*", "10.0.0.1-٣",
    ],
)  # fmt: skip
def test_what_is_no_pattern_is_refused(pattern: str) -> None:
    with pytest.raises(InvalidValue, match="is no pattern of addresses"):
        read_pattern(pattern)


def test_addresses_of_connections() -> None:
    assert str(read_address("10.0.0.1:80")) == "10.0.0.1"
    assert str(read_address("[::1]:80")) == "::1"
    assert str(read_address("::1:80")) == "::1"
    assert str(read_address("[::ffff:10.0.0.1]:80")) == "10.0.0.1"
    assert str(read_address("[fe80::1%eth0]:80")) == "fe80::1"
    assert read_address("?") is None
    assert read_address("a.socket:0") is None


def test_an_address_that_nobody_can_read_is_let_in_by_nothing_but_everything() -> None:
    assert not joined(["10.0.0.1", "10.0.*.*", "fe80::1"]).has(None)
    assert read_pattern("*").has(None)


def test_patterns_are_joined() -> None:
    found = joined(["10.0.0.1", "10.1.0.*", ""])
    assert found.has(read_address("10.0.0.1:1"))
    assert found.has(read_address("10.1.0.9:1"))
    assert not found.has(read_address("10.2.0.9:1"))
    assert joined(["10.0.0.1", "*"]).everybody
