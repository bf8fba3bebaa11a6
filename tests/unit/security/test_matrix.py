"""Every request code by every role: on a broker's own entrance, and on a name server's.

The table below is written by hand, from what a code does and not from the code under test. It names
every request code there is, so that a new one has to be put in its place.
"""

from __future__ import annotations

from asyncio import Future
from typing import TYPE_CHECKING

import msgspec
import pytest

from gantrymq.broker.protection import protect
from gantrymq.namesrv.handlers import NameServer
from gantrymq.security.access import EXCEPTION, Access
from gantrymq.security.account_files import AccountFiles
from gantrymq.security.requests import AccountRequests
from gantrymq.testing.clock import VirtualClock
from gantrymq.wire.codes import RequestCode
from gantrymq.wire.frame import FrameParser
from gantrymq.wire.peer import RawReply
from support.accounts import (
    ADMIN,
    BOTH,
    HOST,
    PUBLISHER,
    SUBSCRIBER,
    WITHOUT,
    WRONG,
    Signer,
    signed_request,
    write_accounts,
)
from support.broker_rig import BrokerRig
from support.client_peers import FakePeer
from support.samples import LONG_NAMES, pull_fields, send_fields

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path

    from gantrymq.wire.peer import Pending

# What is needed: a permission to publish, to subscribe, either, any account, an administrator.
TABLE: dict[str, set[int]] = {
    "publish": {10, 310, 320, 370},
    "subscribe": {
        11, 361, 36, 12, 321, 34, 35, 38, 14, 15, 41, 42, 400,
        200050, 200051, 200052, 200053, 200054, 200055, 200151,
    },
    "either": {29, 30, 31, 32, 202, 351, 300, 203, 208, 352, 343, 345, 303},
    "account": {
        33, 37,  # and a permission for the topic of the message that they name
        46, 101, 105, 106, 324, 325, 901,
    },
    "administrator": {
        13, 17, 18, 21, 22, 23, 25, 26, 27, 28, 39, 40, 43, 45, 47, 50, 51, 52, 53, 54, 60, 61,
        100, 102, 103, 104, 200, 201, 204, 205, 206, 207, 209, 210, 211, 212, 213, 214, 215, 216,
        217, 219, 220, 221, 222, 223, 224, 225, 301, 302, 304, 305, 306, 307, 308, 309, 311, 312,
        313, 314, 315, 316, 317, 318, 319, 322, 323, 326, 327, 328, 329, 353, 354, 355, 401, 402,
        513, 902, 903, 904, 905, 906, 907, 908, *range(1001, 1019), 2001, 2002, 2003, 2004,
        *range(3001, 3011), 5001, 200056, *range(200070, 200080),
    },
}  # fmt: skip
ROLES: dict[str, tuple[Signer | None, str, set[str]]] = {
    "nobody": (None, "10.0.0.1:1", set()),
    "wrong signature": (WRONG, "10.0.0.1:1", set()),
    "another's address": (HOST, "10.8.8.9:1", set()),
    "no permission": (WITHOUT, "10.0.0.1:1", {"account"}),
    "PUB": (PUBLISHER, "10.0.0.1:1", {"account", "publish", "either"}),
    "SUB": (SUBSCRIBER, "10.0.0.1:1", {"account", "subscribe", "either"}),
    "PUB|SUB": (BOTH, "10.0.0.1:1", {"account", "publish", "subscribe", "either"}),
    "administrator": (ADMIN, "10.0.0.1:1", set(TABLE)),
    "white account": (HOST, "10.8.8.8:1", set(TABLE)),
    "white address": (None, "10.9.9.7:1", set(TABLE)),
}
CODES = sorted(RequestCode)
QUEUE = {"topic": "T", "brokerName": "broker-a", "queueId": 0}
BODIES = {
    34: {"clientID": "c", "producerDataSet": [], "consumerDataSet": [{
        "groupName": "G", "subscriptionDataSet": [{"topic": "T", "subString": "*"}]}]},
    41: {"consumerGroup": "G", "clientId": "c", "mqSet": [QUEUE]},
    42: {"consumerGroup": "G", "clientId": "c", "mqSet": [QUEUE]},
    400: {"topic": "T", "consumerGroup": "G", "clientId": "c", "strategyName": "AVG"},
    200151: {"brokerName": "broker-a", "acks": [
        {"c": "G", "t": "T", "so": 0, "q": 0, "rq": 0, "pt": 1, "it": 1}]},
}  # fmt: skip


def test_the_table_has_every_code_once() -> None:
    listed = [code for codes in TABLE.values() for code in codes]
    assert sorted(listed) == CODES


def request(
    code: int, signer: Signer | None, *, binary: bool = False, topic: str = "T", flag: int = 0
) -> bytes:
    """Return a request about a topic and group G that says all that is asked of it."""
    named = {"topic": topic, "group": "G", "consumerGroup": "G", "clientID": "c", "queueId": 0}
    if code in {310, 320, 325}:
        fields = send_fields(b=topic)
    elif code in {10, 324}:
        fields = {LONG_NAMES[name]: text for name, text in send_fields(b=topic).items()}
    elif code in {11, 361}:
        fields = pull_fields(topic=topic, consumerGroup="G", queueId=0)
    else:
        fields = named
    if code in {324, 325}:
        fields["topic" if code == 324 else "b"] = "DefaultCluster_REPLY_TOPIC"
    if code in {36, 33}:
        fields |= {"offset": 10**9, "delayLevel": 0}
    if code == 37:
        fields |= {"producerGroup": "P", "tranStateTableOffset": 0, "commitLogOffset": 10**9,
                   "commitOrRollback": 8, "msgId": "x"}  # fmt: skip
    body = msgspec.json.encode(BODIES[code]) if code in BODIES else b"body"
    return signed_request(signer, code, fields, body, binary=binary, flag=flag)


def guarded(folder: Path) -> tuple[BrokerRig, Access]:
    """Return a broker with access control."""
    rig = BrokerRig()
    files = AccountFiles(write_accounts(folder), VirtualClock())
    access = Access(lambda: files.rules, rig.clock)
    requests = AccountRequests(files, name="broker-a", address="10.0.0.9:1", cluster="c")
    protect(rig.broker.router, rig.service, rig.store, access, requests.handlers)
    return rig, access


def answered(rig: BrokerRig, data: bytes, peer: FakePeer | None = None) -> list[Pending]:
    """Return what is answered by now, and give up what waits."""
    pendings = rig.take(data, peer)
    rig.turns()
    for pending in pendings:
        if isinstance(pending, Future) and not pending.done():
            pending.cancel()
    rig.turns()
    return [one for one in pendings if not (isinstance(one, Future) and one.cancelled())]


def refusals(pendings: Iterable[Pending]) -> list[str]:
    """Return the sentences of the answers that are refusals of access control."""
    found = []
    for pending in pendings:
        answer = pending.result() if isinstance(pending, Future) and pending.done() else pending
        if isinstance(answer, RawReply):
            (answer,) = FrameParser().feed(b"".join(map(bytes, answer.parts)))
        remark = str(getattr(answer, "remark", None) or "")
        if getattr(answer, "code", 0) == 1 and remark.startswith(EXCEPTION):
            found.append(remark)
    return found


def expected(code: int, role: str) -> bool:
    """Tell whether a role may make a request."""
    kind = next(kind for kind, codes in TABLE.items() if code in codes)
    return kind in ROLES[role][2]


@pytest.mark.parametrize("binary", [False, True], ids=["json", "binary"])
@pytest.mark.parametrize("role", ROLES)
def test_a_broker(tmp_path: Path, role: str, binary: bool) -> None:
    rig, _ = guarded(tmp_path)
    signer, address, _ = ROLES[role]
    wrong = []
    for code in CODES:
        peer = FakePeer(code)
        peer.address = address
        pendings = answered(rig, request(code, signer, binary=binary), peer)
        if bool(refusals(pendings)) is expected(code, role):
            wrong.append(f"{code.name} ({code}): {refusals(pendings) or 'passed'}")
    assert not wrong


@pytest.mark.parametrize("role", ROLES)
def test_a_name_server(tmp_path: Path, role: str) -> None:
    files = AccountFiles(write_accounts(tmp_path), VirtualClock())
    name_server = NameServer(VirtualClock())
    name_server.check = Access(lambda: files.rules, VirtualClock()).check
    signer, address, _ = ROLES[role]
    peer = FakePeer(1)
    peer.address = address
    wrong = []
    for code in CODES:
        (asked,) = FrameParser().feed(request(code, signer))
        answer = name_server.handle(asked, peer)
        if bool(refusals([answer])) is expected(code, role):
            wrong.append(f"{code.name} ({code}): {answer}")
    assert not wrong


@pytest.mark.parametrize("binary", [False, True], ids=["json", "binary"])
@pytest.mark.parametrize("oneway", [0, 2], ids=["asked", "oneway"])
def test_the_lanes_are_no_way_around(tmp_path: Path, binary: bool, oneway: int) -> None:
    rig, access = guarded(tmp_path)
    before = rig.store.log.wrote_offset
    for role in ("nobody", "wrong signature", "no permission", "SUB"):
        signer = ROLES[role][0]
        run = b"".join(request(310, signer, binary=binary, flag=oneway) for _ in range(5))
        assert len(refusals(rig.take(run))) == (0 if oneway else 5)
        assert rig.service.take_turn(run, [(0, len(run), rig.peer)]) == []
    rig.turns()
    assert rig.store.log.wrote_offset == before
    assert access.refused == 20
    run = b"".join(request(310, PUBLISHER, binary=binary, flag=oneway) for _ in range(5))
    assert not refusals(rig.take(run))
    assert len(rig.bodies()) == 5


@pytest.mark.parametrize("binary", [False, True], ids=["json", "binary"])
def test_a_known_pull_is_checked_every_time(tmp_path: Path, binary: bool) -> None:
    rig, _ = guarded(tmp_path)
    rig.take(request(310, PUBLISHER) * 3)
    rig.turns()

    def pull(signer: Signer | None) -> bytes:
        fields = pull_fields(
            topic="T", consumerGroup="G", queueId="0", queueOffset="0", sysFlag="4"
        )
        return signed_request(signer, 11, fields, binary=binary)

    for _ in range(3):  # what the lane of pulls would have learnt
        (found,) = rig.take(pull(SUBSCRIBER))
        assert not refusals([found])
    for signer in (None, WRONG, PUBLISHER):
        assert refusals(rig.take(pull(signer)))


def test_a_request_that_lay_for_a_while_is_checked_too(tmp_path: Path) -> None:
    rig, _ = guarded(tmp_path)
    rig.peer.waited_ms = 1
    before = rig.store.log.wrote_offset
    assert len(refusals(rig.take(request(310, SUBSCRIBER) * 3))) == 3
    assert rig.store.log.wrote_offset == before


@pytest.mark.parametrize(
    ("topic", "signer", "may"),
    [
        ("%RETRY%G", SUBSCRIBER, True),  # a consumer that could not send back sends there itself
        ("%RETRY%G", PUBLISHER, False),
        ("%RETRY%G+T", SUBSCRIBER, True),
        ("%DLQ%G", PUBLISHER, True),  # an ordinary topic to access control, as with Apache
        ("%DLQ%G", SUBSCRIBER, False),
        ("RMQ_SYS_TRACE_TOPIC", WITHOUT, True),
        ("RMQ_SYS_TRACE_TOPIC", WRONG, False),
        ("rmq_sys_wheel_timer", BOTH, False),
    ],
)
def test_sends_to_topics_with_rules_of_their_own(
    tmp_path: Path, topic: str, signer: Signer, may: bool
) -> None:
    rig, _ = guarded(tmp_path)
    for code in (10, 310, 320):
        pendings = answered(rig, request(code, signer, topic=topic))
        assert bool(refusals(pendings)) is not may, code


def test_a_place_in_the_log_is_no_way_around_a_topic(tmp_path: Path) -> None:
    """A message is looked at, given back or committed by whoever has its topic alone."""
    rig, _ = guarded(tmp_path)
    rig.take(request(310, PUBLISHER))
    rig.turns()
    at = {"offset": 0, "group": "G", "delayLevel": 0, "originTopic": "mine"}
    end = {"producerGroup": "group", "tranStateTableOffset": 0, "commitLogOffset": 0,
           "commitOrRollback": 8, "msgId": "x", "topic": "mine"}  # fmt: skip
    for code, fields, may, may_not in (
        (33, at, SUBSCRIBER, PUBLISHER),
        (36, at, SUBSCRIBER, None),
        (37, end, PUBLISHER, SUBSCRIBER),
    ):
        assert not refusals(answered(rig, signed_request(may, code, fields))), code
        if may_not is not None:
            (why,) = refusals(rig.take(signed_request(may_not, code, fields)))
            assert "topic T" in why
