"""Which request goes to whom, and that each gets one answer, or none if it wants none."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

import pytest

from gantrymq.broker.answers import answer
from gantrymq.broker.router import Router
from gantrymq.wire.codes import RequestCode
from gantrymq.wire.command import Command
from gantrymq.wire.headers.targets import QueueRequest
from gantrymq.wire.response_errors import NoPermission, TopicNotExist
from gantrymq.wire.settling import REMARK_CHARACTERS_MAX
from support.broker_rig import BrokerRig
from support.client_peers import FakePeer
from support.samples import binary_request, json_request

if TYPE_CHECKING:
    from collections.abc import Callable

    from gantrymq.wire.peer import Answer, Peer, Pending

GOOD, REFUSES, FAILS, MALFORMED, LATER, FUTURE, LATER_FAILS, LONG = range(1, 9)
NOT_SUPPORTED, SYSTEM_ERROR, NO_PERMISSION, NOT_EXIST = 3, 1, 16, 17


def handle(request: Command, _peer: Peer) -> Pending:
    match request.code:
        case 2:
            raise TopicNotExist("no topic")
        case 3:
            raise ZeroDivisionError("on purpose")
        case 4:
            QueueRequest.decode({"topic": "T", "queueId": "x"})
        case 5 | 7:
            return later(request)
        case 6:
            future: asyncio.Future[Answer] = asyncio.get_running_loop().create_future()
            future.set_result(answer(request, body=b"future"))
            return future
        case 8:
            raise TopicNotExist("x" * 100_000)
    return answer(request, body=b"good")


async def later(request: Command) -> Answer:
    await asyncio.sleep(0)
    if request.code == LATER_FAILS:
        raise ZeroDivisionError("later")
    return answer(request, body=b"later")


def ask(router: Router, code: int, *, oneway: bool = False) -> Answer:
    async def main() -> Answer:
        pending = router.handle(Command.request(code, 5, oneway=oneway), FakePeer(1))
        return await pending if asyncio.iscoroutine(pending) else pending  # type: ignore[return-value]

    return asyncio.run(main())


ROUTER = Router(dict.fromkeys(range(1, 9), handle), {3001: "we have no such thing; use that"})
EXPECTED = {
    GOOD: (0, None), REFUSES: (NOT_EXIST, "no topic"), FAILS: (SYSTEM_ERROR, "on purpose"),
    MALFORMED: (SYSTEM_ERROR, "queueId"), LATER: (0, None), FUTURE: (0, None),
    LATER_FAILS: (SYSTEM_ERROR, "later"), LONG: (NOT_EXIST, "xxx"),
    4711: (NOT_SUPPORTED, "4711 not supported"), 3001: (NOT_SUPPORTED, "use that"),
}  # fmt: skip


@pytest.mark.parametrize("code", EXPECTED)
def test_each_is_answered(code: int) -> None:
    expected, words = EXPECTED[code]
    found = ask(ROUTER, code)
    assert isinstance(found, Command)
    assert (found.code, found.opaque, found.is_response) == (expected, 5, True)
    if words is None:
        assert found.body
    else:
        assert words in str(found.remark)
        assert len(str(found.remark)) <= REMARK_CHARACTERS_MAX


@pytest.mark.parametrize("code", EXPECTED)
def test_oneway_is_silent(code: int) -> None:
    assert ask(ROUTER, code, oneway=True) is None


def test_a_check_may_refuse_anything() -> None:
    def check(_code: int, _request: Command, _peer: Peer) -> None:
        raise NoPermission("who are you")

    for code in (GOOD, 9999):  # what nobody handles is no way around it
        found = ask(Router({GOOD: handle}, check=check), code)
        assert isinstance(found, Command)
        assert (found.code, found.remark) == (NO_PERMISSION, "who are you")


def test_a_check_sees_the_whole_code() -> None:
    seen: list[int] = []

    def check(code: int, _request: Command, _peer: Peer) -> None:
        seen.append(code)

    router = Router({RequestCode.POP_MESSAGE: handle, GOOD: handle}, check=check)
    for code in (200_050, 200_050 & 0xFFFF, GOOD, 9999):
        ask(router, code)
    assert seen == [200_050, 200_050, GOOD, 9999]


def test_codes_cut_off_by_the_binary_header_are_known() -> None:
    router = Router({RequestCode.POP_MESSAGE: lambda request, _peer: answer(request, body=b"pop")})
    for code in (200_050, 200_050 & 0xFFFF):
        found = ask(router, code)
        assert isinstance(found, Command)
        assert found.body == b"pop"


def test_the_broker_knows_what_clients_ask() -> None:
    codes = BrokerRig().service._router.codes
    for code in (10, 11, 12, 14, 15, 29, 30, 31, 32, 33, 34, 35, 36, 37, 38, 41, 42, 46, 310, 320,
                 324, 325, 361):  # fmt: skip
        assert code in codes, code


def test_an_unknown_code_leaves_the_connection_alone() -> None:
    rig = BrokerRig()
    assert rig.ask(json_request(9999, {})).code == NOT_SUPPORTED
    assert rig.ask(json_request(30, {"topic": "T", "queueId": "0"})).code == 0
    assert rig.peer.is_open


@pytest.mark.parametrize(
    ("code", "said"),
    [
        (105, "question for a name server"),
        (103, "question for a name server"),
        (39, "brokers ask clients"),
        (513, "static topics"),
        (2001, "cold reads"),
        (1005, "no controller"),
        (1012, "no controller"),
        (906, "stand in for each other"),
        (354, "no RocksDB"),
        (902, "no broker container"),
        (5001, "nothing to switch to"),
        (200070, "light topics"),
        (200070 & 0xFFFF, "light topics"),
    ],
)
@pytest.mark.parametrize("make", [json_request, binary_request])
def test_what_a_broker_has_not_is_refused_with_a_sentence(
    make: Callable[..., bytes], code: int, said: str
) -> None:
    rig = BrokerRig()
    refused = rig.ask(make(code if make is json_request else code & 0xFFFF, {}))
    assert refused.code == NOT_SUPPORTED
    assert said in str(refused.remark)
    assert rig.peer.is_open


def test_every_request_that_there_is_gets_an_answer() -> None:
    """What no Apache broker answers either is said to be unknown by its number."""
    rig = BrokerRig()
    codes = rig.broker.router.codes
    unknown = []
    for code in RequestCode:
        if code not in codes:
            refused = rig.ask(json_request(code, {}))
            assert refused.code == NOT_SUPPORTED
            if str(code.value) in str(refused.remark):
                unknown.append(code.value)
    assert unknown == [13, 22, 23, 27, 47, 209, 210, 211, 212, 213, 214, 301, 302]


def test_a_filter_server_cannot_register() -> None:
    rig = BrokerRig()
    request = json_request(RequestCode.REGISTER_FILTER_SERVER, {"filterServerAddr": "127.0.0.1:1"})
    refused = rig.ask(request)
    assert refused.code == NOT_SUPPORTED
    assert "301" in str(refused.remark)
    assert rig.peer.is_open
