"""Arguments of a client: what is taken, what is refused, and in which words."""

from __future__ import annotations

import base64
import hashlib
import hmac
import ssl
from typing import TYPE_CHECKING, Any

import pytest

from gantrymq.client.errors import NoRoute, NoRouteCause, UsedAfterFork
from gantrymq.client.identity import Identity, local_address
from gantrymq.client.namespace import Namespace
from gantrymq.client.producer import Producer
from gantrymq.client.remote import vip_address
from gantrymq.client.settings import (
    ClientSettings,
    Credentials,
    credentials_of,
    parse_name_servers,
)
from gantrymq.errors import InvalidValue
from gantrymq.testing.clock import VirtualClock
from gantrymq.wire.codes import SPOKEN_VERSION
from gantrymq.wire.message_id import UniqueKey
from gantrymq.wire.signing import signed_fields, version_to_say

if TYPE_CHECKING:
    from support.transport import Run


def test_name_servers() -> None:
    assert parse_name_servers("a:1") == ("a:1",)
    assert parse_name_servers(" a:1 ; b:2,a:1;; [::1]:9876 ") == ("a:1", "b:2", "[::1]:9876")


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "namesrv is empty"),
        (" ; ", "namesrv is empty"),
        ("localhost", "not host:port"),
        ("a:1;b:x", "'b:x' is not host:port"),
        ("http://a:1/nsaddr", "not fetched from a URL"),
    ],
)
def test_name_servers_that_are_none(text: str, said: str) -> None:
    with pytest.raises(InvalidValue, match=said):
        parse_name_servers(text)


@pytest.mark.parametrize(
    ("wrong", "said"),
    [
        ({"timeout_s": 0}, "timeout_s is 0: give seconds above 0"),
        ({"timeout_s": "3"}, "timeout_s is '3'"),
        ({"retries": -1}, "retries is -1: give a number of at least 0"),
        ({"in_flight_max": 0}, "in_flight_max is 0"),
        ({"message_bytes_max": 0}, "message_bytes_max is 0"),
        ({"compression": "gzip"}, "say zlib, lz4, zstd, or None"),
        ({"group": ""}, "the group name is blank"),
        ({"group": "a b"}, "illegal characters"),
        ({"access_key": "a"}, "give access_key and secret_key"),
        ({"namespace": "a b"}, "illegal characters"),
        ({"ssl": True}, "give an ssl.SSLContext"),
        ({"trace_topic": "a b"}, "illegal characters"),
        ({"namesrv": 9876}, "give text such as"),
    ],
)
def test_arguments_that_cannot_be(wrong: dict[str, Any], said: str) -> None:
    given: dict[str, Any] = {"namesrv": "127.0.0.1:9876", **wrong}
    with pytest.raises(InvalidValue, match=said):
        Producer(**given)


def test_settings_that_cannot_be() -> None:
    with pytest.raises(InvalidValue, match="no name server"):
        ClientSettings(name_servers=())
    with pytest.raises(InvalidValue, match="give at most 64"):
        ClientSettings(name_servers=tuple(f"a:{port}" for port in range(1, 66)))
    with pytest.raises(InvalidValue, match="heartbeat_s is 0"):
        ClientSettings(name_servers=("a:1",), heartbeat_s=0)
    settings = ClientSettings(name_servers=("a:1",), ssl=ssl.create_default_context())
    assert settings.ssl is not None


def test_secrets_are_not_shown() -> None:
    assert credentials_of(None, None, None) is None
    found = credentials_of("who", "hidden", "token")
    assert found is not None
    assert "who" in repr(found)
    assert "hidden" not in repr(found)
    assert "token" not in repr(found)


def test_a_signature_covers_values_in_the_order_of_their_names() -> None:
    credentials = Credentials("AK", "SK", "ST")
    fields = {"topic": "T", "_UNIQUE_KEY_QUERY": "true", "b": "2", "a": "1"}
    signed = signed_fields(credentials, fields, b"body")
    content = "AK" + "ST" + "1" + "2" + "T"
    expected = hmac.new(b"SK", content.encode() + b"body", hashlib.sha1).digest()
    assert signed.pop("Signature") == base64.b64encode(expected).decode()
    assert signed == {**fields, "AccessKey": "AK", "SecurityToken": "ST"}
    assert version_to_say(fields) == 399
    assert version_to_say({"a": "1"}) == SPOKEN_VERSION


def test_names_in_a_namespace() -> None:
    space = Namespace("ns")
    assert space.wrap("T") == "ns%T"
    assert space.wrap("ns%T") == "ns%T"
    assert space.wrap("%RETRY%g") == "%RETRY%ns%g"
    assert space.wrap("RMQ_SYS_TRACE_TOPIC") == "RMQ_SYS_TRACE_TOPIC"
    assert space.unwrap("ns%T") == "T"
    assert space.unwrap("other%T") == "other%T"
    assert Namespace("").wrap("T") == Namespace("").unwrap("T") == "T"


def test_an_identity_is_made_up_and_noticed() -> None:
    clock = VirtualClock()
    first, second = Identity("10.0.0.7", None, clock), Identity("10.0.0.7", None, clock)
    assert first.client_id != second.client_id
    assert first.client_id.startswith(f"10.0.0.7@{first.pid}#")
    assert Identity("10.0.0.7", "mine", clock).client_id == "10.0.0.7@mine"
    keys = {first.keys.next() for _ in range(100)} | {second.keys.next() for _ in range(100)}
    assert len(keys) == 200
    parsed = UniqueKey.parse(first.keys.next())
    assert (parsed.address, parsed.pid) == ("10.0.0.7", first.pid & 0xFFFF)
    assert parsed.made_at_ms(clock.now_ms()) == clock.now_ms()
    first.check_process()
    first._forks -= 1
    with pytest.raises(UsedAfterFork, match="make a new client after the fork"):
        first.check_process()


def test_the_local_address(run: Run) -> None:
    assert run(local_address(["127.0.0.1:1"], 5)) == "127.0.0.1"
    assert run(local_address(["no-such-host.invalid:1"], 5)) == "127.0.0.1"


def test_the_second_port() -> None:
    assert vip_address("10.0.0.7:10911") == "10.0.0.7:10909"
    assert vip_address("[::1]:10911") == "[::1]:10909"


def test_no_route_may_pass_or_not() -> None:
    assert NoRoute("T", NoRouteCause.NO_NAME_SERVER, "x").retriable
    assert not NoRoute("T", NoRouteCause.UNKNOWN_TOPIC, "x").retriable
