"""Two masters with a slave each: their routes, a master that is slow, and one that dies."""

from __future__ import annotations

import asyncio
import json
import threading
import time
from collections import Counter
from contextlib import ExitStack, contextmanager
from typing import TYPE_CHECKING, Final

import pytest

from interop.peers.clients import command_of
from support import peers
from support.failover_group import Broker, start_name_server
from support.faulty_proxy import Proxy
from support.mqadmin import mqadmin

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from support.mqadmin import MqAdmin
    from support.peers import Peer

TOPIC: Final = "Shared"
SLOW_S: Final = 0.6
OUT_S: Final = 30
"""For so long a client leaves out a broker that took 0.55 s."""
START_S_MAX: Final = 90

pytestmark = [
    pytest.mark.tool("java"),
    pytest.mark.tool("javac"),
    pytest.mark.tool("mvn"),
]


class Cluster:
    """Masters a and b with a slave each; master a is reached through a proxy."""

    def __init__(self, stack: ExitStack, folder: Path) -> None:
        self.names = start_name_server(stack, folder, orderMessageEnable="true")
        self.brokers: dict[str, Broker] = {}
        for name in ("a", "b"):
            for broker_id, role in ((0, "ASYNC_MASTER"), (1, "SLAVE")):
                label = f"{name}{broker_id}"
                settings = {
                    "namesrvAddr": self.names, "brokerName": f"broker-{name}",
                    "brokerRole": role, "brokerId": str(broker_id),
                    "haSendHeartbeatInterval": "500",
                }  # fmt: skip
                if label == "a0":
                    # Clients find the proxy where the broker says that it is.
                    settings["bindAddress"] = "127.0.0.2"
                broker = Broker(folder, label, settings)
                stack.callback(broker.stop)
                self.brokers[label] = broker
        self.proxy = stack.enter_context(proxy_to(f"127.0.0.2:{self.brokers['a0'].port}"))

    def address(self, label: str) -> str:
        return f"127.0.0.1:{self.brokers[label].port}"


@contextmanager
def proxy_to(server: str) -> Iterator[Proxy]:
    """Have a proxy at the same port of 127.0.0.1, on an event loop of its own."""
    loop = asyncio.new_event_loop()
    thread = threading.Thread(target=loop.run_forever)
    thread.start()
    proxy = Proxy(server, f"127.0.0.1:{server.rpartition(':')[2]}")
    try:
        asyncio.run_coroutine_threadsafe(proxy.start(), loop).result(10)
        yield proxy
        asyncio.run_coroutine_threadsafe(proxy.close(), loop).result(10)
    finally:
        loop.call_soon_threadsafe(loop.stop)
        thread.join(10)
        loop.close()


@pytest.fixture
def stack() -> Iterator[ExitStack]:
    with ExitStack() as held:
        yield held


@pytest.fixture
def cluster(stack: ExitStack, tmp_path: Path) -> Cluster:
    return Cluster(stack, tmp_path)


def route(tool: MqAdmin) -> dict[str, dict[str, str]]:
    """Return the addresses of each broker in the topic's route, as mqadmin prints them."""
    said = tool.one(f"topicRoute -t {TOPIC}")
    try:
        found = json.loads(said.replace("{0:", '{"0":').replace(",1:", ',"1":'))
    except ValueError:
        return {}
    return {one["brokerName"]: one["brokerAddrs"] for one in found["brokerDatas"]}


def wait_until(condition: Callable[[], bool], what: str) -> None:
    deadline = time.monotonic() + START_S_MAX
    while not condition():
        assert time.monotonic() < deadline, what
        time.sleep(0.2)


def sent_to(peer: Peer, count: int) -> Counter[str]:
    """Send messages; return how many each broker took. All must be stored."""
    messages = [{"body": f"{place}"} for place in range(count)]
    told = peer.call("send", producer="p", topic=TOPIC, how="sync", messages=messages)
    assert [one["status"] for one in told] == ["SEND_OK"] * count
    return Counter(one["broker"] for one in told)


def test_routes_slow_masters_and_dead_ones(
    cluster: Cluster, stack: ExitStack, tmp_path: Path
) -> None:
    java_command, node_command = command_of("java-4.9.7"), command_of("node")
    tool = stack.enter_context(mqadmin("4.9.7", tmp_path / "tool", cluster.names))
    java, avoiding, node = (
        stack.enter_context(peers.running(command, cluster.names, tmp_path / label))
        for command, label in (
            (java_command, "java"), (java_command, "avoiding"), (node_command, "node"),
        )
    )  # fmt: skip

    # Slaves stand in the route beside their masters.
    def is_made() -> bool:
        return "success" in tool.one(f"updateTopic -c DefaultCluster -t {TOPIC} -r 4 -w 4")

    wait_until(lambda: is_made() and len(route(tool)) == 2, "two masters do not come")
    wanted = {
        f"broker-{name}": {str(number): cluster.address(f"{name}{number}") for number in (0, 1)}
        for name in ("a", "b")
    }
    wait_until(lambda: route(tool) == wanted, f"{route(tool)} is not {wanted}")

    # What is said about order is in the next route.
    order = "broker-a:4;broker-b:4"
    assert "success" in tool.one(f"updateOrderConf -t {TOPIC} -m put -v {order}")
    assert f'"orderTopicConf":"{order}"' in tool.one(f"topicRoute -t {TOPIC}")
    assert "success" in tool.one(f"updateOrderConf -t {TOPIC} -m delete")
    assert '"orderTopicConf"' not in tool.one(f"topicRoute -t {TOPIC}")

    java.call("producer", name="p", group="plain")
    avoiding.call("producer", name="p", group="avoiding", avoid_slow=True)
    node.call("producer", name="p", group="node")
    assert sent_to(java, 16) == {"broker-a": 8, "broker-b": 8}

    # A master that is slow is left out by who wants that.
    cluster.proxy.delay_s = SLOW_S
    counts: Counter[str] = Counter()
    counts.update(sent_to(avoiding, 10))
    until = time.monotonic() + OUT_S
    while time.monotonic() < until:
        counts.update(sent_to(avoiding, 10))
        time.sleep(0.2)
    assert counts["broker-a"] >= 1, "it has seen how slow it is"
    assert counts["broker-b"] >= 0.95 * counts.total(), counts
    cluster.proxy.delay_s = 0.0

    # A master that dies: every send goes to the other.
    assert len(sent_to(node, 16)) == 2
    cluster.brokers["b0"].kill()
    assert sent_to(java, 20) == {"broker-a": 20}
    assert sent_to(node, 20) == {"broker-a": 20}
