"""Signatures: those that Apache's tools made, and those that somebody changed."""

from __future__ import annotations

import pytest

from gantrymq.wire.command import Command
from gantrymq.wire.frame import FrameParser
from gantrymq.wire.signing import (
    ACCESS_KEY,
    FORWARDED,
    SIGNATURE,
    UNIQUE_KEY_QUERY,
    content,
    is_signed,
    signature,
    signed,
    signed_fields,
)
from support.accounts import Signer
from support.golden import WIRE_FILES, wire_entries

ME = Signer("somebody", "my-secret")
RECORDED = {
    "mqadmin-4.9.7": 264,
    "mqadmin-4.9.7-rocketmq-serialize": 274,
    "mqadmin-5.5.0": 210,
    "mqadmin-5.5.0-rocketmq-serialize": 209,
}
"""Signed requests of Apache's tools, by both header codecs; their secret is Apache's example."""


@pytest.mark.parametrize("folder", RECORDED)
def test_apaches_signatures_are_ours(folder: str) -> None:
    count = 0
    for path in (one for one in WIRE_FILES if one.parent.name == folder):
        for entry in wire_entries(path):
            (command,) = FrameParser().feed(entry.frame)
            if SIGNATURE in command.fields:
                assert is_signed("12345678", command.fields, command.body), f"{path}:{entry.line}"
                assert not is_signed("12345679", command.fields, command.body)
                count += 1
    assert count == RECORDED[folder]


def test_the_content_is_the_values_by_name_and_the_body() -> None:
    fields = {"b": "2", "a": "1", SIGNATURE: "x", UNIQUE_KEY_QUERY: "true", ACCESS_KEY: "k"}
    assert content(fields, b"body") == b"k12body"
    # HMAC-SHA1 of a known pair, by RFC 2202, case 2
    assert signature("Jefe", b"what do ya want for nothing?") == "7/zfauXrL6LSdBbV8YTfnCWafHk="


@pytest.mark.parametrize(
    "change",
    [
        {"b": "another topic"},
        {"z": "one more field"},
        {ACCESS_KEY: "somebody-else"},
        {SIGNATURE: ""},
        {SIGNATURE: "\udcff"},
        {SIGNATURE: "AAAAAAAAAAAAAAAAAAAAAAAAAAA="},
    ],
)
def test_what_was_changed_is_not_signed(change: dict[str, str]) -> None:
    fields = signed_fields(ME, {"b": "topic"}, b"body")
    assert is_signed(ME.secret_key, fields, b"body")
    assert not is_signed(ME.secret_key, fields | change, b"body")
    assert not is_signed(ME.secret_key, fields, b"other")
    without = {name: text for name, text in fields.items() if name != SIGNATURE}
    assert not is_signed(ME.secret_key, without, b"body")


def test_a_query_by_unique_key_may_be_signed_with_its_flag_or_without() -> None:
    fields = {"topic": "T", UNIQUE_KEY_QUERY: "true", ACCESS_KEY: ME.access_key}
    for with_flag in (False, True):
        made = signature(ME.secret_key, content(fields, b"", with_query_flag=with_flag))
        assert is_signed(ME.secret_key, fields | {SIGNATURE: made}, b"")


def test_a_broker_that_passes_a_request_on_does_not_break_its_signature() -> None:
    request = signed(ME, Command.request(310, 1, {"b": "T"}, b"body"))
    assert is_signed(ME.secret_key, request.fields | {FORWARDED: "1"}, b"body")
