"""The two brokers as processes: started on a directory, sent to, looked at, stopped or killed.

Both are brokers without a name server, on the loopback, with the same settings file. Each is ended
by its own process id when its block ends, whatever happened in it.
"""

from __future__ import annotations

import subprocess
import sys
import time
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Final, NamedTuple, Protocol

from bench.installed import installed_environment

from gantrymq.errors import GantryError
from gantrymq.wire.headers.send import SendMessageV2Request
from support import apache, ports, tools
from support.remoting import RemotingClient

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from contextlib import AbstractContextManager

OURS: Final = "gantrymq"
APACHE: Final = "apache"
VERSION: Final = "5.5.0"
START_SECONDS_MAX: Final = 600
STOP_SECONDS_MAX: Final = 120
LOG_LINES_SHOWN: Final = 30
TOPIC: Final = "CompareBoot"


class NotMeasured(Exception):
    """A broker could not be made to do what was to be measured; the text says why."""


class Process(Protocol):
    """A running broker of either make."""

    @property
    def port(self) -> int:
        """Return where it listens."""
        ...

    @property
    def pid(self) -> int:
        """Return its process id."""
        ...

    def stop(self) -> None:
        """End it as an operator does; it must end well."""
        ...

    def kill(self) -> None:
        """End it as a crash does."""
        ...


class OurBroker:
    """A running `gantrymq broker`."""

    def __init__(self, process: subprocess.Popen[bytes], port: int, log: Path) -> None:
        self._process = process
        self.port = port
        self._log = log

    @property
    def pid(self) -> int:
        """Return its process id."""
        return self._process.pid

    def stop(self) -> None:
        """Stop it with SIGTERM.

        Raises:
            NotMeasured: it had ended, does not end, or says that it did not end well.
        """
        self._process.terminate()
        try:
            status = self._process.wait(STOP_SECONDS_MAX)
        except subprocess.TimeoutExpired:
            raise NotMeasured(f"it does not stop:\n{self.said()}") from None
        if status != 0:
            raise NotMeasured(f"it stopped with status {status}:\n{self.said()}")

    def kill(self) -> None:
        """Kill it."""
        self._process.kill()
        self._process.wait()

    def check_runs(self) -> None:
        """Raise NotMeasured if it has ended."""
        if self._process.poll() is not None:
            raise NotMeasured(f"it ended with {self._process.returncode}:\n{self.said()}")

    def said(self) -> str:
        """Return the end of its log."""
        lines = self._log.read_text(encoding="utf-8", errors="replace").splitlines()
        return "\n".join(lines[-LOG_LINES_SHOWN:])


class Started(NamedTuple):
    """A broker that has accepted a send."""

    process: Process
    seconds: float
    """From the start of its process to that moment."""


def problem(maker: str) -> str | None:
    """Return why a broker cannot be had here, or None. Fetching it may take minutes."""
    if maker == OURS:
        return None
    why = tools.problem("java")
    if why is not None:
        return f"java: {why}"
    try:
        apache.fetch(VERSION)
    except apache.NotFetched as error:
        return str(error)
    return None


@contextmanager
def started(maker: str, work: Path, settings: Mapping[str, str]) -> Iterator[Started]:
    """Start a broker and give it when it has accepted a send; it is gone when the block ends.

    Raises:
        NotMeasured: it does not start, or takes no send.
    """
    work.mkdir(parents=True, exist_ok=True)
    begun = time.perf_counter()
    try:
        with _process(maker, work, settings) as process:
            _wait_for_send(process)
            yield Started(process, time.perf_counter() - begun)
    except apache.NotStarted as error:
        raise NotMeasured(str(error)) from None


def _process(
    maker: str, work: Path, settings: Mapping[str, str]
) -> AbstractContextManager[Process]:
    if maker == OURS:
        return _our_process(work, settings)
    return _apache_process(work, settings)


@contextmanager
def _apache_process(work: Path, settings: Mapping[str, str]) -> Iterator[Process]:
    with apache.broker(
        VERSION, work, settings, jvm=apache.AS_SHIPPED, wait_seconds=START_SECONDS_MAX
    ) as broker:
        yield broker


@contextmanager
def _our_process(work: Path, settings: Mapping[str, str]) -> Iterator[Process]:
    port = ports.free_broker_port()
    properties = {
        "brokerName": "broker-a",
        "brokerIP1": "127.0.0.1",
        "bindAddress": "127.0.0.1",
        "listenPort": str(port),
        # As Apache is started here: a disk that is nearly full is no reason to delete anything.
        "diskSpaceWarningLevelRatio": "99",
        "diskSpaceCleanForciblyRatio": "99",
        **settings,
    }
    config = work / f"{port}.conf"
    config.write_text("".join(f"{k}={v}\n" for k, v in properties.items()), encoding="utf-8")
    command = [sys.executable, "-m", "gantrymq", "broker", "-c", str(config)]
    environment = installed_environment() | {"PYTHONUNBUFFERED": "1"}
    environment.pop("NAMESRV_ADDR", None)
    log = work / f"{port}.log"
    with log.open("wb") as output:
        process = subprocess.Popen(  # noqa: S603  (our own command)
            command, env=environment, stdout=output, stderr=output
        )
    try:
        yield OurBroker(process, port, log)
    finally:
        if process.poll() is None:
            process.kill()
        process.wait()


def _wait_for_send(process: Process) -> None:
    """Send until it is accepted, on a new connection each time, as an impatient client does."""
    deadline = time.perf_counter() + START_SECONDS_MAX
    why = "nobody listens"
    while time.perf_counter() < deadline:
        if isinstance(process, OurBroker):
            process.check_runs()
        try:
            with RemotingClient("127.0.0.1", process.port) as client:
                client.send(send_header(TOPIC, 0), b"x")
        except (OSError, GantryError) as error:
            why = str(error)
            time.sleep(0.005)
        else:
            return
    raise NotMeasured(f"no send was accepted in {START_SECONDS_MAX} s: {why}")


def send_header(topic: str, queue_id: int) -> SendMessageV2Request:
    """Return the header of a send that makes its topic if need be."""
    return SendMessageV2Request(
        producer_group="compare",
        topic=topic,
        default_topic="TBW102",
        default_topic_queue_nums=8,
        queue_id=queue_id,
        sys_flag=0,
        born_timestamp=int(time.time() * 1000),
        flag=0,
        properties="WAIT\x01true",
        reconsume_times=0,
        unit_mode=False,
        max_reconsume_times=0,
        batch=False,
    )


class Memory(NamedTuple):
    """What a process holds, in MiB."""

    resident: float
    """All of it, pages of mapped files included."""
    private: float
    """What nobody else could use: not the pages of files, which the system takes back at will."""


def memory(pid: int) -> Memory:
    """Return what a process holds now."""
    lines = Path(f"/proc/{pid}/status").read_text(encoding="utf-8").splitlines()
    sizes = {
        name: int(rest.split()[0]) / 1024
        for name, _, rest in (line.partition(":") for line in lines)
        if name in {"VmRSS", "RssAnon"}
    }
    return Memory(round(sizes["VmRSS"], 1), round(sizes["RssAnon"], 1))
