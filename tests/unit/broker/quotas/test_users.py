"""Quotas and connections of users, as the router of a broker with access control sees them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from gantrymq.broker.protection import protect
from gantrymq.broker.quotas import throttled
from gantrymq.errors import InvalidValue
from gantrymq.node.access import NodeAccess, access_places
from gantrymq.security import user_file
from gantrymq.security.accounts import Secret
from gantrymq.security.sealing import SealKey, make_key
from gantrymq.security.user_file import built_users
from support.accounts import Signer, signed_request
from support.broker_rig import BrokerRig
from support.client_peers import FakePeer
from support.samples import pull_fields, send_fields

if TYPE_CHECKING:
    from pathlib import Path

FOUND, BUSY = 0, 2
ANNA, BEN = Signer("anna", "secret-of-anna"), Signer("ben", "secret-of-ben")


def guarded(folder: Path, quota: str, **settings: Any) -> tuple[BrokerRig, NodeAccess]:  # noqa: ANN401
    """Return a broker whose user anna has a quota, and ben has none; both may do everything."""
    write(folder, quota)
    rig = BrokerRig(**settings)
    node = NodeAccess(access_places(folder), rig.clock)
    protect(rig.broker.router, rig.service, rig.store, node.access, {}, rig.broker.limiting.users)
    return rig, node


def write(folder: Path, quota: str) -> None:
    key = make_key(folder / "users.key")
    texts = []
    for signer in (ANNA, BEN):
        sealed = key.seal(signer.access_key, Secret(signer.secret_key))
        texts.append(f'[users.{signer.access_key}]\nrole = "admin"\nsecret = "{sealed}"\n')
    texts[0] += f"quota = {{ {quota} }}\n" if quota else ""
    (folder / "users.toml").write_text("\n".join(texts), encoding="utf-8")


def send(signer: Signer, body: bytes = b"x") -> bytes:
    return signed_request(signer, 310, send_fields(b="T", i=""), body)


def pull(signer: Signer, **more: object) -> bytes:
    fields = pull_fields(
        topic="T", queueId="0", queueOffset="0", sysFlag="6", suspendTimeoutMillis="15000"
    )
    return signed_request(signer, 11, fields | more)


def test_a_user_over_its_quota_is_refused_and_others_are_not(tmp_path: Path) -> None:
    rig, _ = guarded(tmp_path, "send_requests = 2")
    assert [rig.ask(send(ANNA)).code for _ in range(2)] == [FOUND] * 2
    over = rig.begin(send(ANNA))
    assert [rig.ask(send(BEN)).code for _ in range(5)] == [FOUND] * 5
    rig.tick(throttled.REFUSAL_S_MAX)
    assert over.answer.code == BUSY
    assert str(over.answer.remark).startswith(
        "[QUOTA_USER]the user anna has used up its quota of 2 requests a second"
    )
    assert rig.store.statistics.busy["QUOTA_USER"] == 1
    assert len(rig.bodies()) == 7
    rig.tick(1.0)
    assert rig.ask(send(ANNA)).code == FOUND


def test_bytes_that_are_read_count_whatever_the_request(tmp_path: Path) -> None:
    rig, _ = guarded(tmp_path, "read_bytes = 1000")
    for _ in range(3):
        assert rig.ask(send(BEN, bytes(600))).code == FOUND
    rig.turns()
    assert rig.ask(pull(ANNA)).code == FOUND
    waiting = rig.begin(pull(ANNA))
    assert not waiting.is_answered
    assert rig.ask(pull(BEN)).code == FOUND
    rig.tick(2.0)
    assert waiting.answer.code == FOUND, "it was done when its turn came"


def test_a_read_whose_turn_is_far_off_is_refused(tmp_path: Path) -> None:
    rig, _ = guarded(tmp_path, "read_bytes = 100")
    assert rig.ask(send(BEN, bytes(1_000))).code == FOUND
    rig.turns()
    assert rig.ask(pull(ANNA)).code == FOUND
    answer = rig.ask(pull(ANNA))
    assert answer.code == BUSY
    assert "[QUOTA_USER]" in str(answer.remark)


def test_a_default_holds_for_users_without_a_quota(tmp_path: Path) -> None:
    rig, _ = guarded(tmp_path, "send_requests = 0", user_send_requests=1)
    assert [rig.ask(send(ANNA)).code for _ in range(5)] == [FOUND] * 5, "0 is no limit"
    assert rig.ask(send(BEN)).code == FOUND
    over = rig.begin(send(BEN))
    rig.tick(0.3)
    assert over.answer.code == BUSY


def test_a_changed_file_holds_at_once(tmp_path: Path) -> None:
    rig, node = guarded(tmp_path, "")
    assert [rig.ask(send(ANNA)).code for _ in range(5)] == [FOUND] * 5
    write(tmp_path, "send_requests = 1")
    rig.clock.jump(10.0)
    node.tick()
    assert rig.ask(send(ANNA)).code == FOUND
    over = rig.begin(send(ANNA))
    rig.tick(0.3)
    assert over.answer.code == BUSY


def test_a_user_has_so_many_connections(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    rig, _ = guarded(tmp_path, "connections = 2")
    peers = [FakePeer(number) for number in range(10, 14)]
    for peer in peers[:2]:
        assert rig.ask(send(ANNA), peer).code == FOUND
        assert rig.ask(send(ANNA), peer).code == FOUND, "the second request is no second connection"
    answer = rig.ask(send(ANNA), peers[2])
    assert answer.code == BUSY
    assert str(answer.remark).startswith("[CONNECTIONS_USER]the user anna has 2 connections")
    before = peers[2].closed_because
    rig.tick(0.3)
    assert (before, peers[2].closed_because) == (None, "user anna has too many"), "answered first"
    assert "a connection of user anna from 10.0.0.1:12 is closed" in caplog.text
    assert rig.broker.limiting.connections_refused == 1
    assert rig.ask(send(BEN), peers[3]).code == FOUND
    rig.service.closed(peers[0])
    assert rig.ask(send(ANNA), FakePeer(20)).code == FOUND, "there is room again"
    for peer in (*peers, FakePeer(20)):
        rig.service.closed(peer)
    assert rig.broker.limiting.users.connections_of("anna") == 0


# -- the file -------------------------------------------------------------------------------------


def test_a_role_gives_each_of_its_users_a_quota() -> None:
    file = user_file.read(
        b"[roles.app]\nquota = { send_bytes = 1_000_000, connections = 5 }\n"
        b'[users.anna]\nrole = "app"\nquota = { send_bytes = 7 }\n[users.ben]\nrole = "app"\n'
    )
    users = built_users(file, SealKey(bytes(32)))
    assert users["anna"].quota == {"send_bytes": 7, "connections": 5}
    assert users["ben"].quota == {"send_bytes": 1_000_000, "connections": 5}
    assert user_file.read(user_file.written(file)) == file


@pytest.mark.parametrize(
    ("quota", "said"),
    [
        ("quota = 5", "users.anna.quota is no table"),
        ("quota = { speed = 5 }", "users.anna.quota: 'speed' means nothing here"),
        ('quota = { send_bytes = "5MB" }', "users.anna.quota.send_bytes is '5MB'"),
        ("quota = { send_bytes = -1 }", "users.anna.quota.send_bytes is '-1'"),
        ("quota = { send_bytes = true }", "users.anna.quota.send_bytes is 'True'"),
    ],
)
def test_what_is_no_quota_is_refused(quota: str, said: str) -> None:
    with pytest.raises(InvalidValue, match=said.replace("(", r"\(")):
        user_file.read(f"[users.anna]\n{quota}\n".encode())
