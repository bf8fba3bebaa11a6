"""What stands between a listener and a broker that hands over: every request has its answer."""

from __future__ import annotations

import asyncio
from inspect import iscoroutine
from typing import TYPE_CHECKING, cast

import pytest

from gantrymq.cluster import forwarding
from gantrymq.cluster.forwarding import Forwarding
from gantrymq.errors import ProtocolError
from gantrymq.transport.command_service import CommandService
from gantrymq.wire.peer import PeerGone
from gantrymq.wire.response_errors import NoPermission
from support.client_peers import FakePeer
from support.samples import json_request, send_fields

if TYPE_CHECKING:
    from gantrymq.transport.requester import Connections
    from gantrymq.wire.command import Command
    from gantrymq.wire.peer import Peer

SUCCESS, SYSTEM_ERROR, NOT_AVAILABLE, NO_PERMISSION = 0, 1, 14, 16
SEND, ASK = 310, 30
ONEWAY = 2


def send(opaque: int = 1, flag: int = 0) -> bytes:
    return json_request(SEND, send_fields(b="T"), b"body", opaque=opaque, flag=flag)


class Successor:
    """The next master: answers, or is not there yet."""

    def __init__(self, *answers: int | Exception) -> None:
        self._answers = list(answers)
        self.seen: list[Command] = []

    async def ask(self, _address: str, request: Command, _timeout_s: float) -> Command:
        self.seen.append(request)
        told = self._answers.pop(0)
        if isinstance(told, Exception):
            raise told
        return request.response(told, {"msgId": "there"}, remark="from the next")

    async def tell(self, _address: str, request: Command) -> None:
        self.seen.append(request)


def asked(front: Forwarding, data: bytes) -> list[Command | None]:
    """Return the answers to all of it, those that take their time as well."""

    async def main() -> list[Command | None]:
        taken = front.take(data, 0, len(data), FakePeer(1))
        assert taken.end == len(data)
        answers = [await one if iscoroutine(one) else one for one in taken.answers]
        return cast("list[Command | None]", answers)

    return asyncio.run(main())


def handing_over(successor: Successor) -> Forwarding:
    front = Forwarding()
    front.is_on = True
    front.successor = lambda: "10.0.0.2:10911"
    front.connections = cast("Connections", successor)
    front.behind(CommandService(lambda request, _peer: request.response(body=b"here")))
    return front


def test_without_a_broker_behind_everything_is_told_to_come_again() -> None:
    front = Forwarding()
    refused = asked(front, json_request(ASK, {}, opaque=5) + json_request(ASK, {}, flag=ONEWAY))
    assert [(one.code, one.opaque) for one in refused if one] == [(NOT_AVAILABLE, 5)]
    assert "changes its role" in str(refused[0] and refused[0].remark)


def test_sends_are_passed_on_and_questions_are_answered_here() -> None:
    successor = Successor(PeerGone("not yet"), NOT_AVAILABLE, SUCCESS)
    front = handing_over(successor)
    sent, told = asked(front, send(opaque=7) + json_request(ASK, {}, opaque=8))
    assert sent is not None
    assert told is not None
    assert (sent.code, sent.opaque, sent.fields["msgId"]) == (SUCCESS, 7, "there")
    assert (told.opaque, told.body) == (8, b"here")
    assert len(successor.seen) == 3, "until it takes them"
    assert successor.seen[0].body == b"body"
    assert front.total == 1


def test_a_oneway_send_is_passed_on_in_silence() -> None:
    successor = Successor()
    assert asked(handing_over(successor), send(flag=ONEWAY)) in ([], [None])
    assert len(successor.seen) == 1


def test_a_successor_that_does_not_come_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(forwarding, "WAIT_S", 0.02)
    front = handing_over(Successor())
    front.successor = lambda: None
    (refused,) = asked(front, send())
    assert refused is not None
    assert refused.code == NOT_AVAILABLE
    assert "there is no other master yet" in str(refused.remark)


@pytest.mark.parametrize(
    ("error", "code", "said"),
    [(NoPermission("not you"), NO_PERMISSION, "not you"), (KeyError("x"), SYSTEM_ERROR, "x")],
)
def test_whatever_a_check_raises_is_an_answer_and_nothing_is_passed_on(
    error: Exception, code: int, said: str
) -> None:
    def check(_code: int, _request: Command, _peer: Peer) -> None:
        raise error

    successor = Successor()
    front = handing_over(successor)
    front.check = check
    (refused,) = asked(front, send())
    assert refused is not None
    assert (refused.code, said in str(refused.remark)) == (code, True)
    assert successor.seen == []


def test_what_is_no_frame_ends_the_connection_when_it_is_its_turn() -> None:
    front = handing_over(Successor())
    bad = b"\x00\x00\x00\x06\x00\x00\x00\x02{]"
    good = json_request(ASK, {})
    assert front.take(good + bad, 0, len(good + bad), FakePeer(1)).end == len(good)
    with pytest.raises(ProtocolError):
        front.take(bad, 0, len(bad), FakePeer(1))
