"""A broker in a thread of the test's own process: clients block, the test reaches into the store.

Real sockets, real files. What touches the broker's state goes through `call`, to its event loop.
"""

from __future__ import annotations

import asyncio
import threading
from contextlib import contextmanager
from typing import TYPE_CHECKING, TypeVar

from support.nodes import broker_node
from support.remoting import RemotingClient

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from gantrymq.node.broker_node import BrokerNode
    from gantrymq.store.message_store import MessageStore

Result = TypeVar("Result")
WAIT_S = 90


class RunningBroker:
    """A broker that answers."""

    def __init__(self, node: BrokerNode, loop: asyncio.AbstractEventLoop, host: str) -> None:
        self.node = node
        self.host = host
        self._loop = loop

    @property
    def store(self) -> MessageStore:
        """Return its store; only to be touched by `call`."""
        return self.node.broker.store

    def client(self) -> RemotingClient:
        """Return a new connection."""
        return RemotingClient(self.host, self.node.port)

    def call(self, what: Callable[[], Result]) -> Result:
        """Do something on the broker's event loop."""

        async def run() -> Result:
            return what()

        return asyncio.run_coroutine_threadsafe(run(), self._loop).result(WAIT_S)


@contextmanager
def running(folder: Path, host: str = "127.0.0.1", **settings: str) -> Iterator[RunningBroker]:
    """Run a broker to the end of the block; `settings` are Apache's."""
    folder.mkdir(parents=True, exist_ok=True)
    node = broker_node(folder, bindAddress=host, brokerIP1=host, **settings)
    loop = asyncio.new_event_loop()
    thread = threading.Thread(target=loop.run_forever, name="broker")
    thread.start()
    try:
        asyncio.run_coroutine_threadsafe(node.start(), loop).result(WAIT_S)
        yield RunningBroker(node, loop, host)
    finally:
        asyncio.run_coroutine_threadsafe(node.stop(), loop).result(WAIT_S)
        loop.call_soon_threadsafe(loop.stop)
        thread.join(WAIT_S)
        loop.close()
