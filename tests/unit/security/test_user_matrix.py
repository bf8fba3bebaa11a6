"""Every request code by every kind of user, beside Apache's accounts and instead of them."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from gantrymq.broker.protection import protect
from gantrymq.namesrv.handlers import NameServer
from gantrymq.node.access import NodeAccess, access_places
from gantrymq.security.requests import AccountRequests
from gantrymq.testing.clock import VirtualClock
from gantrymq.wire.frame import FrameParser
from support.access_matrix import (
    CODES,
    ROLES,
    USER_ROLES,
    answered,
    expected,
    kind_of,
    refusals,
    request,
    user_signer,
    write_users,
)
from support.accounts import PUBLISHER, Signer, signed_request, write_accounts
from support.broker_rig import BrokerRig
from support.client_peers import FakePeer

if TYPE_CHECKING:
    from pathlib import Path


def guarded(folder: Path, *, beside: bool = False) -> tuple[BrokerRig, NodeAccess]:
    """Return a broker with users, `beside` accounts of Apache's file or alone."""
    if beside:
        write_accounts(folder)
    write_users(folder)
    rig = BrokerRig()
    node = NodeAccess(access_places(folder), VirtualClock())
    requests = AccountRequests(node.files, name="broker-a", address="10.0.0.9:1", cluster="c")
    protect(
        rig.broker.router, rig.service, rig.store, node.access, requests.handlers,
        rig.broker.limiting.users,
    )  # fmt: skip
    return rig, node


@pytest.mark.parametrize("beside", [False, True], ids=["alone", "beside accounts"])
@pytest.mark.parametrize("binary", [False, True], ids=["json", "binary"])
@pytest.mark.parametrize("role", USER_ROLES)
def test_a_broker(tmp_path: Path, role: str, binary: bool, beside: bool) -> None:
    rig, _ = guarded(tmp_path, beside=beside)
    wrong = []
    for code in CODES:
        found = refusals(answered(rig, request(code, user_signer(role), binary=binary)))
        if bool(found) is (kind_of(code) in USER_ROLES[role][1]):
            wrong.append(f"{code.name} ({code}): {found or 'passed'}")
    assert not wrong


@pytest.mark.parametrize("role", USER_ROLES)
def test_a_name_server(tmp_path: Path, role: str) -> None:
    write_users(tmp_path)
    name_server = NameServer(VirtualClock())
    name_server.check = NodeAccess(access_places(tmp_path), VirtualClock()).access.check
    wrong = []
    for code in CODES:
        (asked,) = FrameParser().feed(request(code, user_signer(role)))
        answer = name_server.handle(asked, FakePeer(1))
        if bool(refusals([answer])) is (kind_of(code) in USER_ROLES[role][1]):
            wrong.append(f"{code.name} ({code}): {answer}")
    assert not wrong


@pytest.mark.parametrize("role", ROLES)
def test_accounts_beside_users_are_judged_as_before(tmp_path: Path, role: str) -> None:
    rig, _ = guarded(tmp_path, beside=True)
    signer, address, _ = ROLES[role]
    peer = FakePeer(1)
    peer.address = address
    wrong = [
        code
        for code in CODES
        if bool(refusals(answered(rig, request(code, signer), peer))) is expected(code, role)
    ]
    assert not wrong


@pytest.mark.parametrize("signer", [None, Signer("admin", "not-the-secret"), PUBLISHER])
def test_who_is_no_user_or_does_not_prove_it_may_nothing(
    tmp_path: Path, signer: Signer | None
) -> None:
    rig, _ = guarded(tmp_path)
    for code in CODES:
        assert refusals(answered(rig, request(code, signer))), code


@pytest.mark.parametrize(
    ("topic", "user", "may"),
    [
        ("T", "sender", True),
        ("T2", "sender", False),  # a name is not a beginning
        ("%RETRY%G", "reader", True),  # whoever consumes as a group may use its retry topic
        ("%RETRY%G2", "reader", True),
        ("%RETRY%H", "reader", False),  # topics = ["*"] opens no group
        ("%RETRY%G", "sender", False),
        ("Tb1", "neighbour", True),
        ("Ta1", "neighbour", False),
        ("RMQ_SYS_TRACE_TOPIC", "without", True),
        ("T", "operator", False),  # an operator reads and writes no messages
        ("T", "admin", True),
    ],
)
def test_sends_by_name_and_by_beginning(tmp_path: Path, topic: str, user: str, may: bool) -> None:
    rig, _ = guarded(tmp_path)
    for code in (10, 310, 320):
        found = refusals(answered(rig, request(code, user_signer(user), topic=topic)))
        assert bool(found) is not may, (code, found)


def test_a_star_does_not_open_the_topics_of_everybody(tmp_path: Path) -> None:
    rig, _ = guarded(tmp_path)
    for topic in ("SCHEDULE_TOPIC_XXXX", "RMQ_SYS_TRANS_HALF_TOPIC", "rmq_sys_wheel_timer"):
        (why,) = refusals(answered(rig, request(11, user_signer("reader"), topic=topic)))
        assert f"subscribe for topic {topic}" in why


def test_a_place_in_the_log_is_no_way_around_a_topic(tmp_path: Path) -> None:
    rig, _ = guarded(tmp_path)
    rig.take(request(310, user_signer("sender")))
    rig.turns()
    at = {"offset": 0, "group": "G", "delayLevel": 0, "originTopic": "Ta"}
    for user, may in (("reader", True), ("viewer", False), ("operator", False),
                      ("neighbour", False), ("admin", True)):  # fmt: skip
        found = refusals(answered(rig, signed_request(user_signer(user), 33, at)))
        assert bool(found) is not may, user


@pytest.mark.parametrize(
    ("code", "user", "why"),
    [
        (310, "viewer", "the user viewer lacks the permission publish for topic T"),
        (30, "without", "lacks the permission publish or subscribe or look for topic T"),
        (26, "sender", "needs the role viewer, and the user sender has none"),
        (17, "viewer", "needs the role operator, or manage for topic T, and the user viewer is"),
        (207, "viewer", "needs the role operator, or manage for group G"),
        (25, "operator", "needs the role admin, and the user operator is operator"),
    ],
)
def test_a_refusal_says_what_is_missing(tmp_path: Path, code: int, user: str, why: str) -> None:
    rig, _ = guarded(tmp_path)
    (found,) = refusals(answered(rig, request(code, user_signer(user))))
    assert why in found
    assert "secret-of" not in found


def test_what_cannot_be_read_is_refused_to_those_who_may_nothing(tmp_path: Path) -> None:
    rig, _ = guarded(tmp_path)
    for user in ("manager", "viewer"):
        assert refusals(answered(rig, signed_request(user_signer(user), 200, {}, b"no JSON")))
        assert refusals(answered(rig, signed_request(user_signer(user), 17, {})))
