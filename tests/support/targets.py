"""Servers that the tests of the client run against: our own, and Apache RocketMQ's, old and new."""

from __future__ import annotations

import asyncio
import itertools
import time
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Final

from gantrymq.wire.codes import RequestCode
from gantrymq.wire.headers.topic import CreateTopicRequest
from gantrymq.wire.record import MessageRecord, decode_record
from support import apache, gantry
from support.remoting import RemotingClient
from support.routes import ROUTE_S_MAX, TEMPLATE, wait_for_route

if TYPE_CHECKING:
    from collections.abc import Iterator

SETTINGS: Final = {
    # A producer is asked about its half messages within two seconds or so.
    "transactionTimeOut": "1000",
    "transactionCheckInterval": "1000",
    "enablePropertyFilter": "true",
    "traceTopicEnable": "true",
    "recallMessageEnable": "true",
    "mappedFileSizeCommitLog": str(16 << 20),
    "maxHashSlotNum": "10000",
    "maxIndexNum": "40000",
}
_TRANSPORT: Final = Path(__file__).parents[1] / "unit" / "transport"
CERTIFICATE: Final = str(_TRANSPORT / "localhost.pem")
_TLS: Final = {
    "tls.server.mode": "permissive",
    "tls.test.mode.enable": "false",
    "tls.server.certPath": CERTIFICATE,
    "tls.server.keyPath": str(_TRANSPORT / "localhost.key.pem"),
}
"""With a certificate that is there already: making one takes Apache two seconds."""


class Target:
    """A name server and a broker that tests may use."""

    def __init__(self, kind: str, namesrv: str, broker: str) -> None:
        self.kind = kind
        """`gantrymq`, `apache-4.9.7` or `apache-5.5.0`."""
        self.namesrv = namesrv
        self.broker = broker
        """`host:port`."""
        self._names = itertools.count(1)

    @property
    def is_v4(self) -> bool:
        """Tell whether it has none of what came with 5.0: timers, pop, recall."""
        return self.kind == "apache-4.9.7"

    def name(self, what: str) -> str:
        """Return a name that no other test has."""
        return f"{what}_{next(self._names)}"

    def client(self) -> RemotingClient:
        """Return a blocking connection to the broker, to look at what is there."""
        host, _, port = self.broker.rpartition(":")
        return RemotingClient(host, int(port))

    def create_topic(self, name: str, queues: int = 4, *, perm: int = 6) -> str:
        """Make a topic on the broker, wait until the name server knows it, return its name."""
        header = CreateTopicRequest(
            topic=name,
            default_topic="TBW102",
            read_queue_nums=queues,
            write_queue_nums=queues,
            perm=perm,
            topic_filter_type="SINGLE_TAG",
            order=False,
        )
        with self.client() as client:
            client.want(RequestCode.UPDATE_AND_CREATE_TOPIC, header)
        self.wait_for_route(name)
        return name

    def messages(self, topic: str, queues: int = 4) -> list[MessageRecord]:
        """Return every message of a topic, queue by queue."""
        with self.client() as client:
            used = [queue for queue in range(queues) if client.max_offset(topic, queue) > 0]
            raw = [each for queue in used for each in client.pull_all(topic, queue)]
        return [decode_record(each, 0, len(each))[0] for each in raw]

    async def wait_for_messages(
        self, topic: str, count: int, queues: int = 4, seconds: float = ROUTE_S_MAX
    ) -> list[MessageRecord]:
        """Return every message of a topic as soon as there are so many."""
        deadline = time.monotonic() + seconds
        while True:
            found = await asyncio.to_thread(self.messages, topic, queues)
            if len(found) >= count:
                return found
            if time.monotonic() > deadline:
                raise TimeoutError(f"{topic} has {len(found)} messages of {count}: {found}")
            await asyncio.sleep(0.02)

    def wait_for_route(self, topic: str) -> None:
        """Wait until the name server is there and knows a topic."""
        wait_for_route(self.namesrv, topic)


@contextmanager
def running(kind: str, work: Path) -> Iterator[Target]:
    """Start what is asked for."""
    with ExitStack() as stack:
        if kind == "gantrymq":
            ours = stack.enter_context(gantry.server(work, SETTINGS | _TLS))
            target = Target(kind, ours.name_server, f"127.0.0.1:{ours.port}")
        else:
            version = kind.removeprefix("apache-")
            jvm = (*apache.QUICK_START, *(f"-D{name}={value}" for name, value in _TLS.items()))
            names = stack.enter_context(apache.name_server(version, work / "namesrv", jvm=jvm))
            settings = {
                **SETTINGS,
                "storePathRootDir": str(work / "store"),
                "namesrvAddr": names.address,
            }
            broker = stack.enter_context(apache.broker(version, work / "broker", settings, jvm=jvm))
            target = Target(kind, names.address, broker.address)
        target.wait_for_route(TEMPLATE)
        yield target
