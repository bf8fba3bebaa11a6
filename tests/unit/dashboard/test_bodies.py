"""What a request brings with it is bounded before anything is made of it."""

from __future__ import annotations

import asyncio
import time
from typing import TYPE_CHECKING

import pytest
from starlette.requests import Request

from gantrymq.dashboard import bodies
from gantrymq.dashboard.refusing import Refused
from gantrymq.dashboard.settings import CHANGE_BYTES_MAX, LOGIN_BYTES_MAX, network_of
from gantrymq.dashboard.throttle import ADDRESS_TRIES_MAX, NAME_TRIES_MAX, TRIES_MAX, LoginThrottle
from gantrymq.errors import InvalidValue
from gantrymq.testing.clock import VirtualClock

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from starlette.types import Message

    from unit.dashboard.conftest import Desk


def request_of(receive: Callable[[], Awaitable[Message]]) -> Request:
    scope = {"type": "http", "method": "POST", "headers": [(b"content-type", b"application/json")]}
    return Request(scope, receive)


def test_a_login_is_small_and_has_two_texts(desk: Desk) -> None:
    large = {"user": "admin", "password": "long enough", "more": "x" * LOGIN_BYTES_MAX}
    assert desk.ask("POST", "/api/login", data=large).status == 413
    for data in ({"user": ["x"], "password": "x"}, {"user": "admin"}, {}):
        assert desk.ask("POST", "/api/login", data=data).status == 400
    headers = desk.headers_of("viewer")
    long = {"old": "x" * LOGIN_BYTES_MAX}
    assert desk.ask("POST", "/api/password", data=long, **headers).status == 413
    assert desk.called == []


def test_an_address_that_has_to_wait_is_not_read_from(desk: Desk) -> None:
    told = [desk.ask("POST", "/api/login", data=b"no JSON").status for _ in range(62)]
    assert told == [400] * ADDRESS_TRIES_MAX + [429] * 2
    desk.clock.jump(61)
    assert desk.log_in("admin").status == 200


@pytest.mark.parametrize(
    "content",
    [
        b'{"a":' + b"[" * 3000, b'{"a":[[]]}', b'{"a":{"b":{}}}', b'{"a":"\xff"}', b'{"a":1e999}',
        b'{"a":[' + b"[]," * 50_000 + b"[]]}",
    ],
    ids=len,
)  # fmt: skip
def test_deep_and_damaged_bodies_are_refused(desk: Desk, content: bytes) -> None:
    headers = desk.headers_of("admin")
    assert desk.ask("POST", "/api/topic", data=content, **headers).status == 400
    assert desk.ask("POST", "/api/login", data=content[:4000]).status == 400
    assert desk.called == []


def test_only_a_test_message_is_large(desk: Desk) -> None:
    headers = desk.headers_of("admin")
    data = {"topic": "T", "body": "x" * CHANGE_BYTES_MAX}
    assert desk.ask("POST", "/api/topic/send", data=data, **headers).status == 200
    assert desk.ask("POST", "/api/topic", data=data, **headers).status == 413


def test_many_lists_cost_next_to_nothing() -> None:
    content = b'{"a":[' + b"[]," * 1_700_000 + b"[]]}"
    begun = time.perf_counter()
    with pytest.raises(InvalidValue):
        bodies.decode(content, bodies.Values)
    assert time.perf_counter() - begun < 0.2


def test_a_body_that_does_not_come_is_not_waited_for(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bodies, "BODY_S_MAX", 0.05)

    async def drip() -> Message:
        await asyncio.sleep(0.02)
        return {"type": "http.request", "body": b" ", "more_body": True}

    async def gone() -> Message:
        return {"type": "http.disconnect"}

    for receive, status in ((drip, 408), (gone, 400)):
        with pytest.raises(Refused) as caught:
            asyncio.run(bodies.read_body(request_of(receive), 1_000))
        assert caught.value.status == status


def test_guessing_one_name_from_elsewhere_keeps_nobody_out() -> None:
    throttle = LoginThrottle(VirtualClock())
    told = [throttle.wait_of_name_s("10.0.0.1", "admin") for _ in range(TRIES_MAX + 1)]
    assert told == [0.0] * TRIES_MAX + [60.0]
    assert throttle.wait_of_name_s("10.0.0.2", "admin") == 0
    for number in range(NAME_TRIES_MAX):
        throttle.wait_of_name_s(f"10.0.1.{number}", "admin")
    assert throttle.wait_of_name_s("10.0.0.3", "admin") > 0


def test_a_login_that_is_right_wins_no_tries_for_other_names(desk: Desk) -> None:
    told = []
    for number in range(ADDRESS_TRIES_MAX):
        told.append(desk.ask("POST", "/api/login", data=b"{}").status)
        if number % 20 == 0:
            told.append(desk.log_in("viewer").status)
    assert told.count(200) == 3
    assert desk.log_in("viewer").status == 429


def test_ones_own_password_is_not_guessed_either(make_desk: Callable[..., Desk]) -> None:
    desk = make_desk(stubs=False)
    headers = desk.headers_of("viewer")
    data = {"old": "x", "new": "another one"}
    told = [desk.ask("POST", "/api/password", data=data, **headers).status for _ in range(11)]
    assert told == [400] * TRIES_MAX + [429]
    other = desk.headers_of("operator")
    good = {"old": "long enough", "new": "another one"}
    assert desk.ask("POST", "/api/password", data=good, **other).status == 200


def test_whom_an_address_counts_as() -> None:
    assert network_of("10.0.0.1") == "10.0.0.1"
    assert network_of("::ffff:10.0.0.1") == "10.0.0.1"
    assert network_of("2001:db8::1") == network_of("2001:db8::ffff:2") == "2001:db8::/64"
    assert network_of("?") == "?"
