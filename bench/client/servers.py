"""The servers that clients are measured against: ours, and Apache's proxy with its broker inside.

Ours is `gantrymq server`, name server and broker in one process. The proxy is for the client that
speaks gRPC alone; it runs in local mode, so that there is no further hop. All are ended by their
process ids when their block ends.
"""

from __future__ import annotations

import json
import os
import re
import socket
import subprocess
import sys
import time
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Final, NamedTuple

from bench.client.plans import NotMeasured
from bench.installed import installed_environment

from gantrymq.errors import GantryError
from gantrymq.wire.codes import RequestCode, ResponseCode
from gantrymq.wire.headers.namesrv import GetRouteInfoRequest
from gantrymq.wire.headers.offset import UpdateConsumerOffsetRequest
from gantrymq.wire.headers.topic import CreateTopicRequest
from support import apache, ports, tools
from support.remoting import RemotingClient

if TYPE_CHECKING:
    from collections.abc import Iterator

VERSION: Final = "5.5.0"
POM: Final = Path(__file__).parent / "programs" / "pom.xml"
QUEUES: Final = 8
START_S_MAX: Final = 120.0
FETCH_S_MAX: Final = 300.0
SERVED_S_MAX: Final = 120.0
_READY: Final = re.compile(r"is ready: name server (\S+:\d+), broker \S+:(\d+),")
_LOGBACK: Final = """\
<configuration>
  <appender name="out" class="ch.qos.logback.core.ConsoleAppender">
    <encoder><pattern>%d %p %c{0} - %m%n</pattern></encoder>
  </appender>
  <root level="WARN"><appender-ref ref="out"/></root>
</configuration>
"""


class Served(NamedTuple):
    """A broker and what finds it."""

    address: str
    """What a client is given: the name server, or the proxy."""
    name_server: str
    port: int
    """The broker's, for the remoting protocol."""

    def create_topic(self, topic: str) -> None:
        """Make a topic and wait until its route is known."""
        header = CreateTopicRequest(
            topic=topic,
            default_topic="TBW102",
            read_queue_nums=QUEUES,
            write_queue_nums=QUEUES,
            perm=6,
            topic_filter_type="SINGLE_TAG",
            order=False,
        )
        with RemotingClient("127.0.0.1", self.port) as client:
            client.want(RequestCode.UPDATE_AND_CREATE_TOPIC, header)
        _wait_for_route(self.name_server, topic)

    def begin_at_first(self, group: str, topic: str) -> None:
        """Let a group begin with the first message, whatever its client thinks of that."""
        with RemotingClient("127.0.0.1", self.port) as client:
            made = json.dumps({"groupName": group, "consumeEnable": True}).encode()
            client.want(RequestCode.UPDATE_AND_CREATE_SUBSCRIPTIONGROUP, None, made)
            for queue_id in range(QUEUES):
                header = UpdateConsumerOffsetRequest(
                    consumer_group=group, topic=topic, queue_id=queue_id, commit_offset=0
                )
                client.want(RequestCode.UPDATE_CONSUMER_OFFSET, header)

    def wait_until_served(self, topic: str, messages: int) -> None:
        """Wait for consume queues that are built behind the log.

        Raises:
            NotMeasured: they do not get there.
        """
        deadline = time.monotonic() + SERVED_S_MAX
        with RemotingClient("127.0.0.1", self.port) as client:
            while True:
                found = sum(client.max_offset(topic, number) for number in range(QUEUES))
                if found >= messages:
                    return
                if time.monotonic() > deadline:
                    raise NotMeasured(f"{found} of {messages} messages can be read")
                time.sleep(0.1)


def _wait_for_route(name_server: str, topic: str) -> None:
    deadline = time.monotonic() + START_S_MAX
    port = int(name_server.rpartition(":")[2])
    why = ""
    while time.monotonic() < deadline:
        try:
            with RemotingClient("127.0.0.1", port) as client:
                answer = client.ask(
                    RequestCode.GET_ROUTEINFO_BY_TOPIC, GetRouteInfoRequest(topic=topic)
                )
        except (OSError, GantryError) as error:
            why = str(error)
        else:
            if answer.code == ResponseCode.SUCCESS:
                return
            why = str(answer.remark)
        time.sleep(0.05)
    raise NotMeasured(f"the name server does not know {topic} after {START_S_MAX:g} s: {why}")


@contextmanager
def ours(work: Path) -> Iterator[Served]:
    """Run our own server.

    Raises:
        NotMeasured: it does not start.
    """
    work.mkdir(parents=True, exist_ok=True)
    config = work / "broker.conf"
    config.write_text(
        "brokerIP1=127.0.0.1\nbindAddress=127.0.0.1\n"
        # A disk that is nearly full is no reason to delete anything.
        "diskSpaceWarningLevelRatio=0.99\ndiskSpaceCleanForciblyRatio=0.99\n",
        encoding="utf-8",
    )
    command = [
        sys.executable, "-m", "gantrymq", "server", "--data", str(work / "data"),
        "--namesrv-port", "0", "--port", str(ports.free_broker_port()), "-c", str(config),
    ]  # fmt: skip
    environment = installed_environment() | {"PYTHONUNBUFFERED": "1"}
    environment.pop("NAMESRV_ADDR", None)
    log = work / "server.log"
    with _process(command, environment, log) as process:
        deadline = time.monotonic() + START_S_MAX
        while (said := _READY.search(_read(log))) is None:
            if process.poll() is not None or time.monotonic() > deadline:
                raise NotMeasured(f"our server does not start:\n{_read(log)[-2000:]}")
            time.sleep(0.02)
        yield Served(said[1], said[1], int(said[2]))


@contextmanager
def proxy(work: Path) -> Iterator[Served]:
    """Run Apache's name server, and its proxy with a broker inside.

    Raises:
        NotMeasured: they cannot be had, or do not start.
    """
    work.mkdir(parents=True, exist_ok=True)
    class_path = _fetch_proxy()
    try:
        with (
            apache.name_server(VERSION, work / "namesrv") as names,
            _proxy_process(work, class_path, names.address) as served,
        ):
            yield served
    except (apache.NotFetched, apache.NotStarted) as error:
        raise NotMeasured(str(error)) from None


@contextmanager
def _proxy_process(work: Path, class_path: str, names: str) -> Iterator[Served]:
    conf = work / "conf"
    conf.mkdir(parents=True, exist_ok=True)
    for name in ("broker", "proxy", "namesrv"):
        (conf / f"rmq.{name}.logback.xml").write_text(_LOGBACK, encoding="utf-8")
    port, grpc_port, remoting_port = (
        ports.free_broker_port(), ports.free_port(), ports.free_port()
    )  # fmt: skip
    broker = {
        "brokerClusterName": "DefaultCluster",
        "brokerName": "broker-a",
        "brokerIP1": "127.0.0.1",
        "listenPort": str(port),
        "haListenPort": str(port + 1),
        "namesrvAddr": names,
        "storePathRootDir": str(work / "store"),
    }
    (conf / "broker.conf").write_text(
        "".join(f"{k}={v}\n" for k, v in broker.items()), encoding="utf-8"
    )
    settings = {
        "rocketMQClusterName": "DefaultCluster",
        "proxyMode": "local",
        "localServeAddr": "127.0.0.1",
        "grpcServerPort": grpc_port,
        "remotingListenPort": remoting_port,
    }
    (conf / "proxy.json").write_text(json.dumps(settings), encoding="utf-8")
    command = [
        tools.path("java"), *apache.AS_SHIPPED, apache.NO_TLS,
        "--add-exports=java.base/jdk.internal.ref=ALL-UNNAMED",
        "--add-opens=java.base/jdk.internal.ref=ALL-UNNAMED",
        "--add-opens=java.base/java.nio=ALL-UNNAMED",
        "--add-opens=java.base/sun.nio.ch=ALL-UNNAMED",
        f"-Duser.home={work}",
        f"-Drmq.logback.configurationFile={conf / 'rmq.proxy.logback.xml'}",
        "-Drocketmq.broker.diskSpaceWarningLevelRatio=0.99",
        "-Drocketmq.broker.diskSpaceCleanForciblyRatio=0.99",
        "-cp", class_path, "org.apache.rocketmq.proxy.ProxyStartup",
        "-n", names, "-pm", "local", "-bc", str(conf / "broker.conf"),
        "-pc", str(conf / "proxy.json"),
    ]  # fmt: skip
    environment = {**os.environ, "ROCKETMQ_HOME": str(work), "RMQ_PROXY_HOME": str(work)}
    environment.pop("NAMESRV_ADDR", None)
    log = work / "proxy.log"
    with _process(command, environment, log) as process:
        _wait_for_port(grpc_port, process, log)
        _wait_for_route(names, "TBW102")
        yield Served(f"127.0.0.1:{grpc_port}", names, port)


def _wait_for_port(port: int, process: subprocess.Popen[bytes], log: Path) -> None:
    deadline = time.monotonic() + START_S_MAX
    while True:
        if process.poll() is not None or time.monotonic() > deadline:
            raise NotMeasured(f"the proxy does not start:\n{_read(log)[-2000:]}")
        try:
            socket.create_connection(("127.0.0.1", port), 1).close()
        except OSError:
            time.sleep(0.1)
        else:
            return


def _fetch_proxy() -> str:
    """Return the class path of the proxy, fetched once for each clone."""
    for name in ("java", "mvn"):
        why = tools.problem(name)
        if why is not None:
            raise NotMeasured(f"{name}: {why}")
    listing = apache.HOME / f"{VERSION}-proxy.classpath"
    if listing.exists():
        text = listing.read_text(encoding="utf-8").strip()
        if text and all(Path(jar).exists() for jar in text.split(os.pathsep)):
            return text
    apache.HOME.mkdir(parents=True, exist_ok=True)
    command = [
        tools.path("mvn"), "--batch-mode", "--quiet", "--no-transfer-progress",
        "--file", str(POM), f"-Drocketmq.version={VERSION}",
        f"-Dmaven.repo.local={apache.HOME / 'repository'}", f"-Dmdep.outputFile={listing}",
        "dependency:build-classpath",
    ]  # fmt: skip
    try:
        done = subprocess.run(  # noqa: S603
            command, capture_output=True, text=True, check=False, timeout=FETCH_S_MAX
        )
    except subprocess.TimeoutExpired:
        raise NotMeasured(f"Maven has not fetched the proxy after {FETCH_S_MAX:g} s") from None
    if done.returncode != 0:
        raise NotMeasured(f"Maven cannot get the proxy: {(done.stdout + done.stderr)[:500]}")
    return listing.read_text(encoding="utf-8").strip()


@contextmanager
def _process(
    command: list[str], environment: dict[str, str], log: Path
) -> Iterator[subprocess.Popen[bytes]]:
    with log.open("wb") as output:
        process = subprocess.Popen(  # noqa: S603  (servers that were asked for)
            command, env=environment, stdout=output, stderr=output
        )
    try:
        yield process
    finally:
        if process.poll() is None:
            process.kill()
        process.wait()


def _read(log: Path) -> str:
    return log.read_text(encoding="utf-8", errors="replace")
