"""Members of a group with failover in this process, on a real etcd and real sockets."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from gantrymq.node.config import read_broker_config
from gantrymq.node.failover_node import FailoverNode
from support.nodes import SMALL, name_server
from support.samples import json_request, send_fields
from support.transport import RawClient, until

if TYPE_CHECKING:
    from collections.abc import Coroutine
    from pathlib import Path
    from typing import Any

    from gantrymq.node.namesrv_node import NamesrvNode

TEST_S_MAX = 60


def run(main: Coroutine[Any, Any, None]) -> None:
    asyncio.run(asyncio.wait_for(main, TEST_S_MAX))


class Group:
    """Members of one group and their name server."""

    def __init__(self, folder: Path, etcd_at: str, **settings: str) -> None:
        self.folder = folder
        self.etcd_at = etcd_at
        self.settings = {"brokerRole": "SYNC_MASTER", "failoverLeaseSeconds": "2"} | settings
        self.names: NamesrvNode = name_server(folder / "names")
        self.nodes: dict[int, FailoverNode] = {}

    async def start(self, *members: int) -> Group:
        await self.names.start()
        for member in members:
            await self.join(member)
        await self.settled(*members)
        return self

    async def join(self, member: int, **settings: str) -> FailoverNode:
        folder = self.folder / f"broker{member}"
        properties = SMALL | self.settings | {
            "storePathRootDir": str(folder),
            "namesrvAddr": f"127.0.0.1:{self.names.port}",
            "failoverEtcd": self.etcd_at,
            "failoverId": str(member),
        }  # fmt: skip
        found = read_broker_config(properties | settings, folder)
        node = self.nodes[member] = FailoverNode(found.broker, found.store)
        await node.start()
        return node

    async def settled(self, *members: int) -> FailoverNode:
        """Wait until one of the members is master and the others are in sync with it."""
        await until(lambda: self.in_sync() == set(members))
        (master,) = self.masters()
        return master

    def masters(self) -> list[FailoverNode]:
        return [node for node in self.nodes.values() if node.is_master]

    def in_sync(self) -> set[int]:
        masters = self.masters()
        return set(masters[0].in_sync.state.in_sync) if len(masters) == 1 else set()  # type: ignore[union-attr]

    async def send(self, node: FailoverNode, body: bytes) -> int:
        client = await RawClient.connect(node.address)
        try:
            await client.send(json_request(310, send_fields(b="T", e="0", i=""), body))
            (answer,) = await client.receive(1)
            return answer.code
        finally:
            client.close()

    async def stop(self) -> None:
        for node in self.nodes.values():
            await node.stop()
        await self.names.stop()


async def drop(node: FailoverNode) -> None:
    """Take a member away without a hand-over: as far as the others can see, it has died."""
    for task in node.failover._tasks:
        task.cancel()
    await asyncio.gather(*node.failover._tasks, return_exceptions=True)
    node.failover._session = ""
    await node.inner.stop()
