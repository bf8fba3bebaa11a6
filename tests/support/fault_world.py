"""Servers that are killed under load, and clients that must not care.

A broker can say that it is at 127.0.0.2, where a `faulty_proxy` listens, and be at the same port of
127.0.0.1. So clients that were sent there by the name server go through the proxy. `Traffic` is a
producer that goes on whatever happens and a consumer, and knows what was acknowledged.
"""

from __future__ import annotations

import asyncio
import itertools
import os
import signal
import subprocess
import sys
import time
from collections import Counter
from contextlib import asynccontextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, TypeVar

from gantrymq.client.errors import GantryError
from gantrymq.client.producer import Producer
from gantrymq.client.push_consumer import PushConsumer
from gantrymq.client.results import SendStatus
from gantrymq.client.settings import ClientSettings, parse_name_servers
from gantrymq.errors import GantryError as AnyGantryError
from gantrymq.wire.codes import RequestCode
from support import ports
from support.consuming import until
from support.remoting import RemotingClient
from support.routes import wait_for_route

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Coroutine

    from gantrymq.client.received import ReceivedMessage

ROOT: Final = Path(__file__).parents[2]
HERE: Final = "127.0.0.1"
ELSEWHERE: Final = "127.0.0.2"
"""Where clients are told that a broker is that is behind a proxy."""
START_S_MAX: Final = 90.0
RESUME_S_MAX: Final = 90.0
"""How long traffic may take to flow again when the fault is over."""
IS_LONG: Final = os.environ.get("GANTRYMQ_LONG_FAULTS") == "1"
TEST_S_MAX: Final = 900.0 if IS_LONG else 240.0
Result = TypeVar("Result")


def run(main: Coroutine[Any, Any, Result], seconds: float = TEST_S_MAX) -> Result:
    """Run a test's coroutine on a loop of its own; one that hangs is a failure."""

    async def bounded() -> Result:
        return await asyncio.wait_for(main, seconds)

    return asyncio.run(bounded())


class Program:
    """A server of ours as a process that can be killed and started again on the same port."""

    def __init__(self, work: Path, kind: str, port: int, settings: dict[str, str]) -> None:
        self.port = port
        self.address = f"{HERE}:{port}"
        self._asked = (
            RequestCode.GET_BROKER_CONFIG
            if kind == "broker"
            else RequestCode.GET_BROKER_CLUSTER_INFO
        )
        work.mkdir(parents=True, exist_ok=True)
        config = work / f"{kind}-{port}.conf"
        given = {"bindAddress": HERE, "listenPort": str(port), **settings}
        config.write_text("".join(f"{k}={v}\n" for k, v in given.items()), encoding="utf-8")
        self._command = [sys.executable, "-m", "gantrymq", kind, "-c", str(config)]
        self._log = work / f"{kind}-{port}.log"
        self._process: subprocess.Popen[bytes] | None = None

    def start(self) -> None:
        """Start it and wait until it answers."""
        environment = {**os.environ, "PYTHONPATH": str(ROOT / "src"), "PYTHONUNBUFFERED": "1"}
        environment.pop("NAMESRV_ADDR", None)
        with self._log.open("ab") as output:
            self._process = subprocess.Popen(
                self._command, env=environment, stdout=output, stderr=output
            )
        deadline = time.monotonic() + START_S_MAX
        while time.monotonic() < deadline:
            if self._process.poll() is not None:
                raise AssertionError(f"it ended: {self.said()}")
            try:
                with RemotingClient(HERE, self.port) as client:
                    client.ask(self._asked)
            except (OSError, AnyGantryError):
                time.sleep(0.01)
            else:
                return
        raise AssertionError(f"it does not answer: {self.said()}")

    def kill(self) -> None:
        """End it as a crash does."""
        if self._process is not None:
            self._process.kill()
            self._process.wait()
            self._process = None

    def freeze(self) -> None:
        """Let it hold its connections and do nothing."""
        assert self._process is not None
        self._process.send_signal(signal.SIGSTOP)

    def thaw(self) -> None:
        """Let it go on."""
        assert self._process is not None
        self._process.send_signal(signal.SIGCONT)

    def said(self) -> str:
        """Return the end of its log."""
        return self._log.read_text(encoding="utf-8", errors="replace")[-4000:]


def name_server(work: Path) -> Program:
    """Return a name server that was not started."""
    port = ports.free_port()
    files = {
        "kvConfigPath": str(work / f"kv-{port}.json"),
        "configStorePath": str(work / f"names-{port}.properties"),
    }
    return Program(work, "namesrv", port, files)


def broker(work: Path, *name_servers: Program, address: str = HERE) -> Program:
    """Return a broker that was not started; `address` is where clients are told to find it."""
    settings = {
        "namesrvAddr": ";".join(one.address for one in name_servers),
        "brokerName": "broker-a",
        "brokerIP1": address,
        "storePathRootDir": str(work / "store"),
        "registerNameServerPeriod": "10000",
        "mappedFileSizeCommitLog": str(16 << 20),
        "maxHashSlotNum": "10000",
        "maxIndexNum": "40000",
        "diskSpaceWarningLevelRatio": "0.99",
        "diskSpaceCleanForciblyRatio": "0.99",
    }
    return Program(work, "broker", ports.free_broker_port(), settings)


class Traffic:
    """A producer that goes on whatever happens, and a consumer; both in the process of the test."""

    def __init__(self, namesrv: str, topic: str, group: str, *, senders: int = 8) -> None:
        self._namesrv, self.topic, self._group = namesrv, topic, group
        self._senders = senders
        self.pause_s = 0.002
        """Between two sends of a sender."""
        self.acknowledged: set[bytes] = set()
        self.sent: set[bytes] = set()
        self.failed: Counter[str] = Counter()
        self.delivered: Counter[bytes] = Counter()
        self._newest_acknowledged = self._newest_delivered = -1
        self._numbers = itertools.count()
        self._stops = False

    @asynccontextmanager
    async def flowing(self) -> AsyncIterator[None]:
        """Send and consume while the block runs; then check that nothing was lost."""
        consumer = PushConsumer(
            self._namesrv,
            self._group,
            start="first",
            route_s=1.0,
            heartbeat_s=1.0,
            rebalance_s=1.0,
            persist_s=0.5,
            close_timeout_s=3.0,
        )
        consumer.subscribe(self.topic, "*", self._handle)
        settings = ClientSettings(
            name_servers=parse_name_servers(self._namesrv), route_s=1.0, heartbeat_s=1.0
        )
        producer = Producer(self._namesrv, "fault_producers", timeout_s=2.0, settings=settings)
        await asyncio.to_thread(wait_for_route, self._namesrv.partition(";")[0])
        async with consumer, producer:
            senders = [asyncio.create_task(self._send(producer)) for _ in range(self._senders)]
            try:
                await self.resumes()
                yield
                self._stops = True
                await asyncio.wait_for(asyncio.gather(*senders), RESUME_S_MAX)
                await until(lambda: self.acknowledged <= set(self.delivered), RESUME_S_MAX)
            finally:
                for task in senders:
                    task.cancel()

    async def resumes(self, seconds: float = RESUME_S_MAX) -> float:
        """Return when something new was acknowledged and delivered; say how long it took."""
        begun = time.monotonic()
        first = next(self._numbers)
        try:
            await until(lambda: self._newest_acknowledged > first, seconds)
            await until(lambda: self._newest_delivered > first, seconds)
        except TimeoutError:
            raise AssertionError(
                f"nothing after number {first}: acknowledged {self._newest_acknowledged}, "
                f"delivered {self._newest_delivered}, failed {self.failed}"
            ) from None
        return time.monotonic() - begun

    async def _send(self, producer: Producer) -> None:
        while not self._stops:
            body = b"%d" % next(self._numbers)
            self.sent.add(body)
            try:
                result = await producer.send(self.topic, body)
            except GantryError as error:
                if not error.retriable:
                    raise  # all these faults are over some time
                self.failed[type(error).__name__] += 1
                await asyncio.sleep(0.02)
            else:
                if result.status is SendStatus.SEND_OK:
                    self.acknowledged.add(body)
                    self._newest_acknowledged = max(self._newest_acknowledged, int(body))
            await asyncio.sleep(self.pause_s)

    async def _handle(self, message: ReceivedMessage) -> None:
        self.delivered[message.body] += 1
        self._newest_delivered = max(self._newest_delivered, int(message.body))

    def check(self) -> None:
        """Check the promise: what was acknowledged was delivered, and nothing was made up."""
        assert self.acknowledged, "nothing was acknowledged"
        lost = self.acknowledged - set(self.delivered)
        assert not lost, f"{len(lost)} acknowledged messages were not delivered: {sorted(lost)[:5]}"
        assert set(self.delivered) <= self.sent

    @property
    def twice(self) -> int:
        """Return how many deliveries there were too many."""
        return self.delivered.total() - len(self.delivered)
