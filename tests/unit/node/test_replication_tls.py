"""Replication between brokers that know each other by certificate, and nobody else in between."""

from __future__ import annotations

import asyncio
import os
import ssl
from functools import partial
from typing import TYPE_CHECKING

import pytest

from gantrymq.cluster.frames import encode_report
from gantrymq.cluster.replication_tls import ReplicationTls
from gantrymq.errors import InvalidValue
from gantrymq.node.config import read_broker_config
from gantrymq.store.settings import InvalidSettings
from gantrymq.transport.certificates import LOOK_S
from gantrymq.transport.tls import ClientTls
from support.accounts import write_accounts
from support.attacks import sending
from support.issuing import DAY, Issuer
from support.nodes import ask, broker_node, made
from support.transport import until

if TYPE_CHECKING:
    from pathlib import Path

    from gantrymq.node.broker_node import BrokerNode
    from support.transport import Run

SEND, SUCCESS, SLAVE_NOT_AVAILABLE = 310, 0, 11
READ_S = 5.0
MESSAGES = 200


def certified(issuer: Issuer, **more: str) -> dict[str, str]:
    own = str(issuer.issue("broker", for_both=True))
    return {
        "haTlsCertPath": own, "haTlsKeyPath": own, "haTlsTrustCertPath": str(issuer.path), **more,
    }  # fmt: skip


def slave_of(folder: Path, master: BrokerNode, settings: dict[str, str]) -> BrokerNode:
    given = {"brokerRole": "SLAVE", "brokerId": "1"} | settings
    return broker_node(folder, haMasterAddress=f"127.0.0.1:{master.port + 1}", **given)


async def send(master: BrokerNode, body: bytes = b"x") -> int:
    return (await ask(master.port, SEND, sending("T"), body)).code


def end(node: BrokerNode) -> int:
    return node.broker.store.log.wrote_offset


def _is_in_trouble(slave: BrokerNode) -> bool:
    client = slave.replication.client
    return client is not None and client.trouble is not None


async def stop_all() -> None:
    for node in made:
        await node.stop()


def test_brokers_of_one_issuer_copy(run: Run, tmp_path: Path) -> None:
    issuer = Issuer(tmp_path / "pki")

    async def main() -> None:
        master = broker_node(tmp_path / "master", **certified(issuer, brokerRole="SYNC_MASTER"))
        await master.start()
        for number in range(MESSAGES):  # more than one batch for a slave that comes later
            await send(master, b"%d" % number * 1000)
        slave = slave_of(tmp_path / "slave", master, certified(issuer))
        await slave.start()
        await until(lambda: end(slave) == end(master) > MESSAGES * 1000)
        assert await send(master) == SUCCESS
        await until(lambda: end(slave) == end(master))
        await stop_all()

    run(main())


@pytest.mark.parametrize("what", ["nothing", "another issuer", "no client", "too old", "plain"])
def test_nobody_else_gets_a_byte(run: Run, tmp_path: Path, what: str) -> None:
    issuer, other = Issuer(tmp_path / "pki"), Issuer(tmp_path / "others", "other")
    shown = {
        "nothing": None,
        "another issuer": other.issue("broker", for_both=True),
        "no client": issuer.issue("broker", for_server=True),
        "too old": issuer.issue("broker", for_both=True, lasts=-DAY),
    }

    async def copied(port: int) -> bytes:
        context = None if what == "plain" else issuer.trusting(shown[what])
        try:
            reader, writer = await asyncio.open_connection("127.0.0.1", port, ssl=context)
            writer.write(encode_report(0))
            got = await asyncio.wait_for(reader.read(64), READ_S)
            writer.close()
        except (OSError, asyncio.IncompleteReadError):
            return b""
        return got

    async def main() -> None:
        master = broker_node(
            tmp_path / "master", haSendHeartbeatInterval="100", brokerRole="SYNC_MASTER",
            **certified(issuer),
        )  # fmt: skip
        await master.start()
        assert await send(master) == SLAVE_NOT_AVAILABLE
        assert await copied(master.port + 1) == b""
        assert await send(master) == SLAVE_NOT_AVAILABLE, "nobody counts as a slave"
        assert not master.replication.server.connections
        await stop_all()

    run(main())


def test_a_slave_believes_no_other_master(run: Run, tmp_path: Path) -> None:
    issuer, other = Issuer(tmp_path / "pki"), Issuer(tmp_path / "others", "other")

    async def main() -> None:
        for number, settings in enumerate((certified(other), {})):
            master = broker_node(tmp_path / f"master{number}", **settings)
            await master.start()
            assert await send(master) == SUCCESS
            slave = slave_of(tmp_path / f"slave{number}", master, certified(issuer))
            await slave.start()
            await until(partial(_is_in_trouble, slave))
            assert end(slave) == 0
        await stop_all()

    run(main())


def test_a_certificate_is_enough_with_access_control(run: Run, tmp_path: Path) -> None:
    """Without one only addresses count there."""
    issuer = Issuer(tmp_path / "pki")
    write_accounts(tmp_path)

    async def main() -> None:
        guarded = {"aclEnable": "true", "aclPath": str(tmp_path)}
        master = broker_node(tmp_path / "master", **certified(issuer, **guarded))
        await master.start()
        slave = slave_of(tmp_path / "slave", master, certified(issuer, **guarded))
        await slave.start()
        await until(lambda: bool(list(master.replication.group.links)))
        await stop_all()

    run(main())


def test_a_renewed_certificate_is_shown(run: Run, tmp_path: Path) -> None:
    issuer = Issuer(tmp_path / "pki")
    settings = certified(issuer)

    async def shown(port: int) -> bytes:
        context = issuer.trusting(issuer.issue("looks", for_both=True))
        _, writer = await asyncio.open_connection("127.0.0.1", port, ssl=context)
        seen = writer.get_extra_info("ssl_object").getpeercert(binary_form=True)
        writer.close()
        return bytes(seen)

    async def main() -> None:
        master = broker_node(tmp_path / "master", **settings)
        await master.start()
        first = await shown(master.port + 1)
        place = settings["haTlsCertPath"]
        os.replace(issuer.issue("renewed", for_both=True), place)  # noqa: PTH105
        server = master.replication.server
        server.tick(master.replication._clock.monotonic() + LOOK_S)
        assert await shown(master.port + 1) != first
        await stop_all()

    run(main())


def test_files_that_cannot_be_used_do_not_start(tmp_path: Path) -> None:
    issuer = Issuer(tmp_path / "pki")
    good = certified(issuer)
    for name in good:
        with pytest.raises(InvalidSettings, match="go together"):
            read_broker_config({name: good[name]}, tmp_path)

    async def main() -> None:
        for name in good:
            node = broker_node(tmp_path / name, **good | {name: "missing.pem"})
            with pytest.raises(InvalidValue, match=r"missing\.pem"):
                await node.start()

    asyncio.run(main())


def test_whom_a_file_names_is_believed_and_nobody_else(tmp_path: Path) -> None:
    """The machine's own list has hundreds of issuers, any of which could make a broker."""
    issuer = Issuer(tmp_path / "pki")
    own = str(issuer.issue("broker", for_both=True))
    for context in (
        ReplicationTls(own, own, str(issuer.path)).copying(),
        ReplicationTls(own, own, str(issuer.path)).serving(0.0).context,
        ClientTls(trust_path=str(issuer.path)).context(),
    ):
        assert context.cert_store_stats()["x509"] == 1
        assert context.verify_mode == ssl.CERT_REQUIRED
