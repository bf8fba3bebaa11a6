"""A master whose readers are far behind sends them to its slave; a Java consumer goes, and returns.

Nothing counts as being in memory at first (`accessMessageInMemoryMaxRatio=0`), so whatever is read
is a backlog. Which broker has served how much, each says for itself.
"""

from __future__ import annotations

import time
from contextlib import ExitStack, suppress
from typing import TYPE_CHECKING, Final

import pytest

from gantrymq.errors import GantryError
from gantrymq.wire.bodies.route import KV_TABLE, TOPIC_ROUTE
from gantrymq.wire.codes import RequestCode
from gantrymq.wire.headers.namesrv import GetRouteInfoRequest
from interop.peers.clients import command_of
from interop.peers.scenarios import QUEUES, World, texts
from support import peers
from support.failover_group import Broker, start_name_server
from support.remoting import RemotingClient

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

BACKLOG: Final = 600
MORE: Final = 200
READY_S_MAX: Final = 60


class Pair:
    """A master and its slave, each a process."""

    def __init__(self, stack: ExitStack, folder: Path) -> None:
        self.names = start_name_server(stack, folder)
        self.brokers: list[Broker] = []
        for broker_id, role in enumerate(("SYNC_MASTER", "SLAVE")):
            settings = {
                "namesrvAddr": self.names, "brokerRole": role, "brokerId": str(broker_id),
                "slaveReadEnable": "true", "accessMessageInMemoryMaxRatio": "0",
                "haSendHeartbeatInterval": "500",
            }  # fmt: skip
            self.brokers.append(Broker(folder, f"broker{broker_id}", settings))
            stack.callback(self.brokers[-1].stop)
            self.wait(self._registered(broker_id), f"broker {broker_id} does not come")

    def _registered(self, broker_id: int) -> Callable[[], bool]:
        """Return what tells whether a route names a broker, so that a client can find it."""
        host, _, port = self.names.rpartition(":")
        header = GetRouteInfoRequest(topic="TBW102")

        def is_there() -> bool:
            with suppress(OSError, GantryError), RemotingClient(host, int(port)) as client:
                answer = client.ask(RequestCode.GET_ROUTEINFO_BY_TOPIC, header)
                route = TOPIC_ROUTE.decode(answer.body) if answer.code == 0 else None
                return route is not None and any(
                    broker_id in one.addresses for one in route.brokers
                )
            return False

        return is_there

    @staticmethod
    def wait(condition: Callable[[], bool], what: str) -> None:
        deadline = time.monotonic() + READY_S_MAX
        while not condition():
            assert time.monotonic() < deadline, what
            time.sleep(0.05)

    def served(self) -> tuple[int, int]:
        """Return how many messages master and slave have given to consumers."""
        counts = []
        for broker in self.brokers:
            with broker.client() as client:
                answer = client.want(RequestCode.GET_BROKER_RUNTIME_INFO)
            counts.append(int(KV_TABLE.decode(answer.body).table["msgGetTotalTodayNow"]))
        master, slave = counts
        return master, slave

    def wait_level(self, topic: str) -> None:
        """Wait until the slave can be read as far as the master."""

        def ends(broker: Broker) -> list[int]:
            with suppress(OSError, GantryError), broker.client() as client:
                return [client.max_offset(topic, queue) for queue in range(QUEUES)]
            return []

        def is_level() -> bool:
            wanted = ends(self.brokers[0])
            return sum(wanted) > 0 and ends(self.brokers[1]) == wanted

        self.wait(is_level, "the slave does not have what the master has")

    def set_ratio(self, percent: int) -> None:
        """Let so much of the machine's memory count as holding the end of the log."""
        text = f"accessMessageInMemoryMaxRatio={percent}\n".encode()
        for broker in self.brokers:
            with broker.client() as client:
                client.want(RequestCode.UPDATE_BROKER_CONFIG, None, text)


@pytest.fixture
def stack() -> Iterator[ExitStack]:
    with ExitStack() as held:
        yield held


@pytest.mark.tool("java")
@pytest.mark.tool("javac")
@pytest.mark.tool("mvn")
def test_a_consumer_goes_to_the_slave_and_comes_back(stack: ExitStack, tmp_path: Path) -> None:
    command = command_of("java-4.9.7")
    pair = Pair(stack, tmp_path)
    peer = stack.enter_context(peers.running(command, pair.names, tmp_path / "java"))
    world = World(peer, pair.names, pair.brokers[0].port, "busy")
    topic, producer = world.topic(), world.producer()
    backlog = texts(BACKLOG, "backlog")
    world.send(topic, [{"body": body} for body in backlog], producer=producer)
    pair.wait_level(topic)

    # The master answers each queue's first pull, and says where to go; the slave gives the rest.
    consumer = world.consumer(topic)
    world.all_of(consumer, backlog)
    master, slave = pair.served()
    assert master + slave == BACKLOG
    assert 0 < master < BACKLOG // 4, (master, slave)

    # The backlog is in memory now, as it is if there is enough of it: the slave sends them back.
    pair.set_ratio(40)
    turn = texts(MORE, "turn")
    world.send(topic, [{"body": body} for body in turn], producer=producer)
    world.all_of(consumer, backlog + turn)
    before = pair.served()
    back = texts(MORE, "back")
    world.send(topic, [{"body": body} for body in back], producer=producer)
    world.all_of(consumer, backlog + turn + back)
    gained = [now - then for now, then in zip(pair.served(), before, strict=True)]
    assert sum(gained) == MORE
    # A queue whose pull was held by the slave gets one more answer there, of what has come by then.
    assert gained[1] < MORE // 2, gained

    # Another group begins at the first message: it is far behind, and goes to the slave as well.
    pair.set_ratio(0)
    world.all_of(world.consumer(topic), backlog + turn + back)
    late = [now - then for now, then in zip(pair.served(), before, strict=True)]
    assert sum(late) == MORE + BACKLOG + 2 * MORE
    assert late[1] > BACKLOG, late
