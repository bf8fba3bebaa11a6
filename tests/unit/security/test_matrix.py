"""Every request code by every role: on a broker's own entrance, and on a name server's."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from gantrymq.broker.protection import protect
from gantrymq.namesrv.handlers import NameServer
from gantrymq.security.access import Access
from gantrymq.security.account_files import AccountFiles
from gantrymq.security.requests import AccountRequests
from gantrymq.testing.clock import VirtualClock
from gantrymq.wire.frame import FrameParser
from support.access_matrix import (
    CODES,
    ROLES,
    TABLE,
    answered,
    expected,
    refusals,
    request,
)
from support.accounts import (
    BOTH,
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
from support.samples import pull_fields

if TYPE_CHECKING:
    from pathlib import Path


def test_the_table_has_every_code_once() -> None:
    listed = [code for codes in TABLE.values() for code in codes]
    assert sorted(listed) == CODES


def guarded(folder: Path) -> tuple[BrokerRig, Access]:
    """Return a broker with access control."""
    rig = BrokerRig()
    files = AccountFiles(write_accounts(folder), VirtualClock())
    access = Access(lambda: files.rules, rig.clock)
    requests = AccountRequests(files, name="broker-a", address="10.0.0.9:1", cluster="c")
    protect(
        rig.broker.router,
        rig.service,
        rig.store,
        access,
        requests.handlers,
        rig.broker.limiting.users,
    )
    return rig, access


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
