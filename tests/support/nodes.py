"""Name servers and brokers in the process of a test, on real sockets and in small files."""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeVar

from gantrymq.node.all_in_one import AllInOne
from gantrymq.node.broker_node import BrokerNode
from gantrymq.node.config import read_broker_config, read_namesrv_settings
from gantrymq.node.namesrv_node import NamesrvNode
from gantrymq.wire.command import Command
from gantrymq.wire.frame import encode_frame
from support.transport import RawClient

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from gantrymq.node.observed import Observed
    from gantrymq.transport.tls import ServerTls

SMALL = {
    "mappedFileSizeCommitLog": str(1 << 20),
    "maxHashSlotNum": "1000",
    "maxIndexNum": "4000",
    "diskSpaceWarningLevelRatio": "0.99",
    "diskSpaceCleanForciblyRatio": "0.99",
    "waitTimeMillsInSendQueue": "10000",
    "bindAddress": "127.0.0.1",
    "brokerIP1": "127.0.0.1",
    "brokerName": "broker-a",
    "listenPort": "0",
}


made: list[AllInOne | BrokerNode | NamesrvNode | Observed] = []
"""Every node of the test that runs, so that one which fails leaves none behind."""
Kind = TypeVar("Kind", AllInOne, BrokerNode, NamesrvNode)


def _noted(node: Kind) -> Kind:
    made.append(node)
    return node


def name_server(folder: Path, port: int = 0, tls: ServerTls | None = None) -> NamesrvNode:
    """Return a name server that was not started."""
    settings = {
        "listenPort": str(port),
        "bindAddress": "127.0.0.1",
        "kvConfigPath": str(folder / "kvConfig.json"),
        "configStorePath": str(folder / "namesrv.properties"),
    }
    return _noted(NamesrvNode(read_namesrv_settings(settings), tls=tls))


def broker_node(folder: Path, *name_servers: str, **settings: str) -> BrokerNode:
    """Return a broker that was not started; `settings` are Apache's."""
    properties = SMALL | {"namesrvAddr": ";".join(name_servers)} | settings
    found = read_broker_config({"storePathRootDir": str(folder)} | properties, folder)
    return _noted(BrokerNode(found.broker, found.store, client_tls=found.client_tls))


def all_in_one(folder: Path, **settings: str) -> AllInOne:
    """Return both in one that was not started."""
    found = read_broker_config({"storePathRootDir": str(folder)} | SMALL | settings, folder)
    names = {
        "listenPort": "0",
        "bindAddress": settings.get("bindAddress", "127.0.0.1"),
        "insecure": settings.get("insecure", "false"),
        "kvConfigPath": str(folder / "kvConfig.json"),
        "configStorePath": str(folder / "namesrv.properties"),
    }
    tls = found.tls if found.tls.cert_path else None
    parts = read_namesrv_settings(names), found.broker, found.store
    return _noted(AllInOne(*parts, tls=tls, client_tls=found.client_tls))


async def ask(port: int, code: int, fields: Mapping[str, str], body: bytes = b"") -> Command:
    """Ask over a connection of its own."""
    return await ask_at(f"127.0.0.1:{port}", code, fields, body)


async def ask_at(address: str, code: int, fields: Mapping[str, str], body: bytes = b"") -> Command:
    """Ask whoever is at an address over a connection of its own."""
    client = await RawClient.connect(address)
    try:
        await client.send(encode_frame(Command.request(code, 1, fields, body)))
        (answer,) = await client.receive(1)
        return answer
    finally:
        client.close()
