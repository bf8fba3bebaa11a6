"""Access control in a process: who gets in on real sockets, and how the parts know each other."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

import pytest

from gantrymq.cli.shards import shard_properties
from gantrymq.cluster import forwarding
from gantrymq.cluster.forwarding import Forwarding
from gantrymq.errors import GantryError, InvalidValue
from gantrymq.node.config import read_broker_config, read_namesrv_settings
from gantrymq.node.namesrv_node import NamesrvNode
from gantrymq.security.access import EXCEPTION, Access
from gantrymq.security.account_files import AccountFiles
from gantrymq.testing.clock import VirtualClock
from gantrymq.wire.codes import ResponseCode
from gantrymq.wire.command import Command
from gantrymq.wire.signing import ACCESS_KEY, signed_fields
from support.access_matrix import write_users
from support.accounts import ADMIN, PUBLISHER, SUBSCRIBER, Signer, signed_request, write_accounts
from support.client_peers import FakePeer
from support.nodes import all_in_one, ask, broker_node, made
from support.samples import send_fields

if TYPE_CHECKING:
    from pathlib import Path

    from support.transport import Run

LOOPBACK = "globalWhiteRemoteAddresses:\n  - 127.0.0.1\n"


def by(signer: Signer, **fields: str) -> dict[str, str]:
    return signed_fields(signer, fields, b"")


def refused(answer: Command) -> bool:
    return answer.code == 1 and str(answer.remark).startswith(EXCEPTION)


def test_both_in_one_process_know_each_other_and_nobody_else(run: Run, tmp_path: Path) -> None:
    write_accounts(tmp_path)

    async def main() -> None:
        node = all_in_one(tmp_path, aclEnable="true", aclPath=str(tmp_path))
        await node.start()
        assert node.account is not None
        names, port = node.namesrv.port, node.broker.port
        assert await node.broker.wait_registered(), "its own name server takes its registration"
        for at, code in ((names, 106), (names, 206), (names, 103), (port, 26), (port, 9999)):
            assert refused(await ask(at, code, {}))
        assert (await ask(names, 106, by(PUBLISHER))).code == 0
        assert refused(await ask(names, 206, by(PUBLISHER)))
        assert (await ask(names, 206, by(ADMIN))).code == 0
        assert refused(await ask(port, 26, by(SUBSCRIBER)))
        shown = await ask(port, 26, by(ADMIN))
        assert b"aclEnable=true" in shown.body
        assert b"secret" not in shown.body
        own = Signer(node.account.access_key, node.account.secret_key)
        assert (await ask(port, 26, by(own))).code == 0
        listed = await ask(port, 54, by(ADMIN))
        assert own.access_key.encode() not in listed.body
        assert own.secret_key not in repr(node.account)
        assert await node.stop()

    run(main())


def _name_server(folder: Path) -> NamesrvNode:
    settings = {
        "listenPort": "0", "bindAddress": "127.0.0.1", "aclEnable": "true",
        "kvConfigPath": str(folder / "kvConfig.json"),
        "configStorePath": str(folder / "namesrv.properties"),
    }  # fmt: skip
    made.append(node := NamesrvNode(read_namesrv_settings(settings)))
    return node


@pytest.mark.parametrize("own", ["", "administrator"])
def test_a_broker_signs_to_a_name_server_that_checks(run: Run, tmp_path: Path, own: str) -> None:
    write_accounts(tmp_path)

    async def main() -> None:
        names = _name_server(tmp_path)
        await names.start()
        broker = broker_node(
            tmp_path / "store", f"127.0.0.1:{names.port}",
            aclEnable="true", aclPath=str(tmp_path), aclBrokerAccessKey=own,
        )  # fmt: skip
        await broker.start()
        assert await broker.wait_registered(0.5 if not own else 5.0) is bool(own)
        assert await broker.stop()
        assert await names.stop()

    run(main())


@pytest.mark.parametrize(
    ("settings", "why"),
    [
        ({}, "there is no account file"),
        ({"aclBrokerAccessKey": "nobody-known"}, "no account of"),
        ({"aclBrokerAccessKey": "publisher"}, "no administrator"),
    ],
)
def test_what_cannot_be_does_not_start(
    run: Run, tmp_path: Path, settings: dict[str, str], why: str
) -> None:
    if settings:
        write_accounts(tmp_path)

    async def main() -> None:
        broker = broker_node(
            tmp_path / "store", aclEnable="true", aclPath=str(tmp_path), **settings
        )
        with pytest.raises(InvalidValue, match=f"aclEnable is true, and .*{why}"):
            await broker.start()
        assert not (tmp_path / "store").exists()

    run(main())


@pytest.mark.parametrize("named", ["usersFile", "usersKeyFile"])
def test_users_without_access_control_are_refused(tmp_path: Path, named: str) -> None:
    """Whoever names the file relies on its rules."""
    with pytest.raises(GantryError, match=f"{named} is .*aclEnable is not true"):
        read_broker_config({named: str(tmp_path / "users.toml")}, tmp_path)


@pytest.mark.parametrize(("own", "may"), [("admin", True), ("operator", False)])
def test_a_broker_signs_as_a_user(run: Run, tmp_path: Path, own: str, may: bool) -> None:
    write_users(tmp_path)

    async def main() -> None:
        names = _name_server(tmp_path)
        await names.start()
        broker = broker_node(
            tmp_path / "store", f"127.0.0.1:{names.port}",
            aclEnable="true", aclPath=str(tmp_path), aclBrokerAccessKey=own,
        )  # fmt: skip
        if may:
            await broker.start()
            assert await broker.wait_registered(5.0)
            assert await broker.stop()
        else:
            with pytest.raises(InvalidValue, match="that account is no administrator"):
                await broker.start()
        assert await names.stop()

    run(main())


def test_a_name_server_without_accounts_does_not_start(run: Run, tmp_path: Path) -> None:
    async def main() -> None:
        with pytest.raises(InvalidValue, match="there is no account file"):
            await _name_server(tmp_path).start()

    run(main())


@pytest.mark.parametrize("is_white", [False, True])
def test_the_replication_port_is_for_white_addresses(
    run: Run, tmp_path: Path, is_white: bool
) -> None:
    write_accounts(tmp_path)
    if is_white:
        (tmp_path / "acl").mkdir()
        (tmp_path / "acl" / "slaves.yml").write_text(LOOPBACK)

    async def main() -> None:
        broker = broker_node(tmp_path / "store", aclEnable="true", aclPath=str(tmp_path))
        await broker.start()
        reader, writer = await asyncio.open_connection("127.0.0.1", broker.port + 1)
        writer.write((0).to_bytes(8))
        try:
            told = await asyncio.wait_for(reader.read(12), 5)
        except ConnectionError:
            told = b""
        assert bool(told) is is_white
        writer.close()
        assert await broker.stop()

    run(main())


def test_every_shard_has_the_same_accounts(tmp_path: Path) -> None:
    told = {"aclEnable": "true", "storePathRootDir": str(tmp_path), "brokerName": "b"}
    found = read_broker_config(told, tmp_path)
    places = {shard_properties(found, told, number)["aclPath"] for number in range(3)}
    assert places == {str(tmp_path / "config")}
    told |= {"usersFile": str(tmp_path / "people.toml"), "usersKeyFile": str(tmp_path / "a.key")}
    shard = shard_properties(read_broker_config(told, tmp_path), told, 1)
    assert shard["usersFile"] == str(tmp_path / "people.toml")
    assert shard["usersKeyFile"] == str(tmp_path / "a.key")


def passed_on(answer: object) -> bool:
    """Tell whether a request goes to the next master, for which nobody waits here."""
    if not asyncio.iscoroutine(answer):
        return False
    given_up = asyncio.run(answer)
    assert given_up.code == ResponseCode.SERVICE_NOT_AVAILABLE
    return True


def test_a_master_that_hands_over_checks_what_it_passes_on(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(forwarding, "WAIT_S", 0.0)
    files = AccountFiles(write_accounts(tmp_path), VirtualClock())
    front = Forwarding()
    front.is_on = True
    front.check = Access(lambda: files.rules, VirtualClock()).check
    peer = FakePeer(1)
    for signer, flag, passed in ((None, 0, False), (SUBSCRIBER, 0, False), (None, 2, False),
                                 (PUBLISHER, 0, True)):  # fmt: skip
        frame = signed_request(signer, 310, send_fields(b="T"), b"body", flag=flag)
        answers = front.take(frame, 0, len(frame), peer).answers
        if flag:
            assert answers == []
            continue
        (answer,) = answers
        assert passed_on(answer) is passed
        if not passed:
            assert isinstance(answer, Command)
            assert refused(answer)
    assert front.total == 1


def test_a_place_in_the_log_is_not_vouched_for_where_only_a_certificate_was_shown(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """With this broker's signature the next master would let it end anybody's transaction."""
    monkeypatch.setattr(forwarding, "WAIT_S", 0.0)
    front = Forwarding()
    front.is_on = True
    front.check = lambda _code, _request, _peer: None
    for code, certificate, signer, passed in (
        (37, ("cn:anna",), None, False),
        (36, ("cn:anna",), None, False),
        (310, ("cn:anna",), None, True),  # its topic was checked here
        (37, ("cn:anna",), PUBLISHER, True),  # the next master sees the signature
        (37, (), None, True),  # an address that may do everything
    ):
        peer = FakePeer(1)
        peer.certificate = certificate
        frame = signed_request(signer, code, send_fields(b="T"), b"body")
        (answer,) = front.take(frame, 0, len(frame), peer).answers
        assert passed_on(answer) is passed, code
        if not passed:
            assert isinstance(answer, Command)
            assert "ask the next master" in str(answer.remark)


def test_a_request_passed_on_for_a_white_client_is_signed_by_the_broker(run: Run) -> None:
    sent: list[Command] = []

    class Successor:
        async def ask(self, _address: str, request: Command, _timeout_s: float) -> Command:
            sent.append(request)
            return request.response()

    front = Forwarding()
    front.is_on = True
    front.successor = lambda: "10.0.0.2:10911"
    front.connections = Successor()  # type: ignore[assignment]
    front.sign = lambda request: request.with_fields(request.fields | {ACCESS_KEY: "broker"})

    async def main() -> None:
        for signer in (None, PUBLISHER):
            frame = signed_request(signer, 310, send_fields(b="T"), b"body")
            (answer,) = front.take(frame, 0, len(frame), FakePeer(1)).answers
            assert asyncio.iscoroutine(answer)
            await answer

    run(main())
    assert [request.fields[ACCESS_KEY] for request in sent] == ["broker", "publisher"]
