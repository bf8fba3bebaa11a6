"""A group with failover as an operator has it: etcd, a name server, brokers, each a process.

Producers send to whoever takes it and remember what was acknowledged; brokers are killed, and come
back. What a consumer finds in the end is compared with what was acknowledged.
"""

from __future__ import annotations

import os
import signal
import statistics
import subprocess
import sys
import threading
import time
from contextlib import ExitStack, suppress
from pathlib import Path
from random import Random
from typing import TYPE_CHECKING, Final, NamedTuple, Self

from gantrymq.errors import GantryError
from gantrymq.kernel import kernel
from gantrymq.wire.headers.send import SendMessageV2Request
from support import ports
from support.etcd import etcd
from support.gantry import log_end
from support.remoting import RemotingClient

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from types import TracebackType

ROOT: Final = Path(__file__).parents[2]
SEND: Final = 310
STORED: Final = frozenset({0, 10, 11, 12})
"""SEND_OK and the three codes of messages that are stored, but not as safe as they should be."""
TOPIC: Final = "Kept"
QUEUES: Final = 4
WAIT_S_MAX: Final = 60
PRODUCERS: Final = 4


class Report(NamedTuple):
    """What became of a run."""

    acknowledged: int
    lost: int
    duplicates: int
    seconds: list[float]
    """From each kill to the first send that was taken again."""

    def in_words(self) -> str:
        return (
            f"{len(self.seconds)} masters killed, {self.acknowledged} messages acknowledged, "
            f"{self.lost} lost, {self.duplicates} twice; first send taken after "
            f"{statistics.median(self.seconds):.2f} s (median), {max(self.seconds):.2f} s (longest)"
        )


def header(queue: int) -> SendMessageV2Request:
    return SendMessageV2Request(
        producer_group="p", topic=TOPIC, default_topic="TBW102", default_topic_queue_nums=QUEUES,
        queue_id=queue, sys_flag=0, born_timestamp=1, flag=0, properties="",
    )  # fmt: skip


class Broker:
    """One broker's process."""

    def __init__(
        self,
        folder: Path,
        label: str,
        settings: Mapping[str, str],
        host: str = "127.0.0.1",
        inside: Sequence[str] = (),
    ) -> None:
        """Start it with small files; `settings` are Apache's, `inside` a command to start it by."""
        self.port = ports.free_broker_port()
        self.host = host
        self._inside = inside
        self.store = folder / label
        self.log = folder / f"{label}.log"
        self._conf = folder / f"{label}.conf"
        self.settings = {
            "storePathRootDir": str(self.store),
            "mappedFileSizeCommitLog": str(16 << 20),
            "maxHashSlotNum": "10000", "maxIndexNum": "40000",
            "diskSpaceWarningLevelRatio": "0.99", "diskSpaceCleanForciblyRatio": "0.99",
            "waitTimeMillsInSendQueue": "10000",
            "brokerName": "group", "brokerIP1": host, "bindAddress": host,
            "insecure": "true",  # a namespace has no loopback that others reach
            "listenPort": str(self.port), **settings,
        }  # fmt: skip
        self._process: subprocess.Popen[bytes] | None = None
        self.start()

    def start(self) -> None:
        self._conf.write_text("".join(f"{k}={v}\n" for k, v in self.settings.items()))
        command = [sys.executable, "-m", "gantrymq", "broker", "-c", str(self._conf)]
        self._process = _started([*self._inside, *command], self.log)

    def kill(self) -> None:
        assert self._process is not None
        self._process.send_signal(signal.SIGKILL)
        self._process.wait()

    def pause(self) -> None:
        """Stop it where it stands: it knows nothing of the time that passes."""
        assert self._process is not None
        self._process.send_signal(signal.SIGSTOP)

    def go_on(self) -> None:
        assert self._process is not None
        self._process.send_signal(signal.SIGCONT)

    def terminate(self) -> None:
        """Tell it to stop, as an operator does."""
        assert self._process is not None
        self._process.terminate()

    def wait(self) -> int:
        """Wait for its end; return its exit status."""
        assert self._process is not None
        return self._process.wait(WAIT_S_MAX)

    @property
    def address(self) -> str:
        return f"{self.host}:{self.port}"

    def stop(self) -> None:
        if self._process is not None and self._process.poll() is None:
            self._process.kill()
            self._process.wait()

    def client(self) -> RemotingClient:
        return RemotingClient(self.host, self.port, 5.0)

    def takes(self) -> int | None:
        """Return what it answers to a send; None if it does not."""
        with suppress(OSError, GantryError), self.client() as client:
            return client.ask(SEND, header(0), b"probe").code
        return None


def _started(command: list[str], log: Path) -> subprocess.Popen[bytes]:
    environment = {**os.environ, "PYTHONPATH": str(ROOT / "src"), "PYTHONUNBUFFERED": "1"}
    with log.open("ab") as output:
        return subprocess.Popen(command, env=environment, stdout=output, stderr=output)


def start_name_server(
    stack: ExitStack, folder: Path, host: str = "127.0.0.1", **settings: str
) -> str:
    """Start a name server until the block ends; return its address. `settings` are Apache's."""
    port = ports.free_port()
    conf = folder / "namesrv.conf"
    given = {
        "listenPort": str(port), "bindAddress": host, "insecure": "true",
        "kvConfigPath": f"{folder}/kv.json", **settings,
    }  # fmt: skip
    conf.write_text("".join(f"{name}={value}\n" for name, value in given.items()))
    command = [sys.executable, "-m", "gantrymq", "namesrv", "-c", str(conf)]
    process = _started(command, folder / "names.log")
    stack.callback(process.wait)
    stack.callback(process.kill)
    return f"{host}:{port}"


class Group:
    """Everything, until the block ends."""

    def __init__(self, folder: Path, members: int = 2, lease_s: int = 2) -> None:
        self._folder = folder
        self._members = members
        self._lease_s = lease_s
        self._stack = ExitStack()
        self._stop = threading.Event()
        self._threads: list[threading.Thread] = []
        self.acknowledged: set[bytes] = set()
        self.brokers: list[Broker] = []
        self.names = ""

    client_host = "127.0.0.1"
    """Where clients and the name server are."""

    def place(self, member: int) -> tuple[str, Sequence[str]]:
        """Return a member's address, and by which command it is started there."""
        return self.client_host, ()

    def _start_etcd(self, stack: ExitStack, folder: Path) -> str:
        return stack.enter_context(etcd(folder)).address

    def __enter__(self) -> Self:
        folder = self._folder
        etcd_at = self._start_etcd(self._stack, folder / "etcd")
        names = self.names = start_name_server(self._stack, folder, self.client_host)
        for member in range(1, self._members + 1):
            settings = {
                "brokerRole": "SYNC_MASTER", "namesrvAddr": names,
                "failoverEtcd": etcd_at, "failoverId": str(member),
                "failoverLeaseSeconds": str(self._lease_s),
            }  # fmt: skip
            host, inside = self.place(member)
            self.brokers.append(Broker(folder, f"broker{member}", settings, host, inside))
            self._stack.callback(self.brokers[-1].stop)
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._end_producers()
        self._stack.close()

    def _end_producers(self) -> None:
        self._stop.set()
        for thread in self._threads:
            thread.join(WAIT_S_MAX)

    # -- who is master ----------------------------------------------------------------------------

    def master(self, codes: frozenset[int] = STORED) -> Broker:
        """Return the broker that answers a send with one of these; wait for it."""
        deadline = time.monotonic() + WAIT_S_MAX
        while time.monotonic() < deadline:
            for broker in self.brokers:
                if broker.takes() in codes:
                    return broker
            time.sleep(0.02)
        logs = "\n".join(f"{one.log.name}:\n{log_end(one.log)}" for one in self.brokers)
        raise AssertionError(f"no master after {WAIT_S_MAX} s\n{logs}")

    # -- load -------------------------------------------------------------------------------------

    def produce(self) -> None:
        """Begin to send, from several threads, until the block ends."""
        self._threads = [
            threading.Thread(target=self._produce, args=(number,), daemon=True)
            for number in range(PRODUCERS)
        ]
        for thread in self._threads:
            thread.start()

    def _produce(self, number: int) -> None:
        dice, sent = Random(number), 0
        while not self._stop.is_set():
            broker = dice.choice(self.brokers)
            with suppress(OSError, GantryError), broker.client() as client:
                while not self._stop.is_set():
                    body = b"%d-%d" % (number, sent)
                    sent += 1
                    code = client.ask(SEND, header(sent % QUEUES), body).code
                    if code == 0:
                        self.acknowledged.add(body)
                    elif code not in STORED:
                        break
            time.sleep(0.01)

    def kill_rounds(self, rounds: int, dice: Random) -> Report:
        """Kill the master again and again under load; return what a consumer finds."""
        self.master(frozenset({0}))
        self.produce()
        seconds = []
        for _ in range(rounds):
            victim = self.master(frozenset({0}))
            time.sleep(dice.uniform(0.1, 0.6))
            victim.kill()
            begun = time.monotonic()
            self.master()
            seconds.append(time.monotonic() - begun)
            victim.start()
        last = self.master(frozenset({0}))
        self._end_producers()
        return self.compared(last, seconds)

    def pause_rounds(self, rounds: int) -> tuple[Report, int]:
        """Pause the master for longer than its lease, again and again under load.

        Returns also how often it took a send when it went on, with another one elected meanwhile.
        """
        self.master(frozenset({0}))
        self.produce()
        seconds, taken = [], 0
        for _ in range(rounds):
            victim = self.master(frozenset({0}))
            time.sleep(0.5)
            victim.pause()
            begun = time.monotonic()
            others = [one for one in self.brokers if one is not victim]
            while not any(one.takes() in STORED for one in others):
                assert time.monotonic() - begun < WAIT_S_MAX, "nobody is elected"
            seconds.append(time.monotonic() - begun)
            victim.go_on()
            taken += sum(victim.takes() in STORED for _ in range(20))
        last = self.master(frozenset({0}))
        self._end_producers()
        return self.compared(last, seconds), taken

    def compared(self, broker: Broker, seconds: list[float]) -> Report:
        """Return what one broker serves beside what was acknowledged."""
        with broker.client() as client:
            raws = [raw for queue in range(QUEUES) for raw in client.pull_all(TOPIC, queue)]
        found = [kernel.decode_record(raw, 0, len(raw), True)[0].body for raw in raws]
        found = [body for body in found if body != b"probe"]
        lost = self.acknowledged - set(found)
        return Report(len(self.acknowledged), len(lost), len(found) - len(set(found)), seconds)
