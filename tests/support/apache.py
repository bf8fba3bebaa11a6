"""Apache RocketMQ itself: fetched once for each clone, started on a directory, stopped, or killed.

The releases come from Maven Central by their coordinates (`tests/interop/apache/pom.xml`) and stay
in `build/apache`, some 150 MB for both; a run that finds them there needs no network. A JVM takes
its settings from a file, listens on the loopback alone, and is ended by its own process id when the
`with` block ends, whatever happened in it.

    with apache.broker("5.5.0", work, {"storePathRootDir": str(root)}) as broker:
        with broker.client() as client:
            client.max_offset("Topic", 0)

`benchmarks` start brokers too, so nothing here knows of pytest.
"""

from __future__ import annotations

import fcntl
import os
import subprocess
import time
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Final

from gantrymq.errors import GantryError
from gantrymq.wire.codes import RequestCode
from support import tools
from support.ports import free_broker_port, free_port
from support.remoting import RemotingClient

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

ROOT: Final = Path(__file__).parents[2]
HOME: Final = ROOT / "build" / "apache"
POM: Final = ROOT / "tests" / "interop" / "apache" / "pom.xml"
VERSIONS: Final = ("4.9.7", "5.5.0")
FETCH_SECONDS_MAX: Final = 300
FETCH_TRIES: Final = 3
START_SECONDS_MAX: Final = 90
STOP_SECONDS_MAX: Final = 60
LOG_LINES_SHOWN: Final = 40

HEAP: Final = ("-Xms256m", "-Xmx512m")
NO_TLS: Final = "-Dtls.server.mode=disabled"
"""Saves the two seconds in which Apache makes a certificate of its own."""
QUICK_START: Final = (*HEAP, "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1", NO_TLS)
"""A JVM that starts fast on a small machine and need not be fast afterwards."""
AS_SHIPPED: Final = (
    "-server", "-Xms2g", "-Xmx2g", "-XX:+UseG1GC", "-XX:G1HeapRegionSize=16m",
    "-XX:G1ReservePercent=25", "-XX:InitiatingHeapOccupancyPercent=30",
    "-XX:SoftRefLRUPolicyMSPerMB=0", "-XX:-OmitStackTraceInFastThrow", "-XX:+AlwaysPreTouch",
    "-XX:MaxDirectMemorySize=15g", "-XX:-UseLargePages", "-XX:+IgnoreUnrecognizedVMOptions",
)  # fmt: skip
"""A JVM as Apache's own runbroker.sh starts it, with a quarter of its heap of 8 GiB."""
_MODULES: Final = (
    # Unmapping a file goes through the insides of java.base, as Apache's own runbroker.sh allows.
    "--add-exports=java.base/jdk.internal.ref=ALL-UNNAMED",
    "--add-opens=java.base/jdk.internal.ref=ALL-UNNAMED",
    "--add-opens=java.base/java.nio=ALL-UNNAMED",
    "--add-opens=java.base/sun.nio.ch=ALL-UNNAMED",
)
_LOGBACK: Final = """\
<configuration>
  <appender name="out" class="ch.qos.logback.core.ConsoleAppender">
    <encoder><pattern>%d %p %t %c{0} - %m%n</pattern></encoder>
  </appender>
  <root level="INFO"><appender-ref ref="out"/></root>
</configuration>
"""
_LOGBACK_NAMES: Final = ("logback_broker.xml", "logback_namesrv.xml")


class NotFetched(Exception):
    """A release cannot be had here; the text says why."""


class NotStarted(Exception):
    """A server ended, or did not answer in time; the text has the end of its log."""


# -- fetching ------------------------------------------------------------------------------------


def fetch(version: str, home: Path = HOME) -> str:
    """Return the class path of a release, which is fetched if this clone does not have it.

    Raises:
        NotFetched: Maven is missing, or cannot get it.
    """
    home.mkdir(parents=True, exist_ok=True)
    listing = home / f"{version}.classpath"
    with (home / "lock").open("w") as lock:
        # One download for all workers of a test run.
        fcntl.flock(lock, fcntl.LOCK_EX)
        known = _known(listing)
        if known is not None:
            return known
        _run_maven(version, home, listing)
    known = _known(listing)
    if known is None:
        raise NotFetched(f"Maven ended well and {listing} does not name what is there")
    return known


def _known(listing: Path) -> str | None:
    """Return the class path that was noted, if all of it is still there."""
    if not listing.exists():
        return None
    text = listing.read_text(encoding="utf-8").strip()
    return text if text and all(Path(jar).exists() for jar in text.split(os.pathsep)) else None


def _run_maven(version: str, home: Path, listing: Path) -> None:
    why = tools.problem("mvn")
    if why is not None:
        raise NotFetched(f"mvn: {why}")
    unfinished = listing.with_suffix(".unfinished")
    command = [
        tools.path("mvn"), "--batch-mode", "--quiet", "--no-transfer-progress",
        # A file that was once not found is asked for again.
        "--update-snapshots",
        "--file", str(POM), f"-Drocketmq.version={version}",
        f"-Dmaven.repo.local={home / 'repository'}", f"-Dmdep.outputFile={unfinished}",
        "dependency:build-classpath",
    ]  # fmt: skip
    said = ""
    for _ in range(FETCH_TRIES):
        try:
            done = subprocess.run(
                command, capture_output=True, text=True, check=False, timeout=FETCH_SECONDS_MAX
            )
        except subprocess.TimeoutExpired:
            said = f"not done after {FETCH_SECONDS_MAX} s"
            continue
        if done.returncode == 0:
            unfinished.replace(listing)
            return
        said = "\n".join((done.stdout + done.stderr).splitlines()[:10])
    raise NotFetched(f"Maven cannot get Apache RocketMQ {version}: {said}")


# -- running -------------------------------------------------------------------------------------


class Server:
    """A running JVM of Apache RocketMQ."""

    def __init__(self, process: subprocess.Popen[bytes], port: int, log: Path) -> None:
        self._process = process
        self.port = port
        self.log = log

    @property
    def pid(self) -> int:
        """Return its process id."""
        return self._process.pid

    @property
    def address(self) -> str:
        """Return where it listens."""
        return f"127.0.0.1:{self.port}"

    def client(self) -> RemotingClient:
        """Return a new connection to it."""
        return RemotingClient("127.0.0.1", self.port)

    def stop(self) -> None:
        """End it as an operator does; it closes its store first.

        Raises:
            NotStarted: it had ended by itself, or would not end.
        """
        if self._process.poll() is not None:
            raise NotStarted(f"it had ended by itself:\n{self._log_end()}")
        self._process.terminate()
        try:
            self._process.wait(STOP_SECONDS_MAX)
        except subprocess.TimeoutExpired:
            raise NotStarted(f"it does not end:\n{self._log_end()}") from None

    def kill(self) -> None:
        """End it as a crash does."""
        self._process.kill()
        self._process.wait()

    def _log_end(self) -> str:
        lines = self.log.read_text(encoding="utf-8", errors="replace").splitlines()
        return "\n".join(lines[-LOG_LINES_SHOWN:])

    def wait_until_it_answers(self, code: int, seconds: float = START_SECONDS_MAX) -> None:
        """Ask until there is an answer."""
        deadline = time.monotonic() + seconds
        while time.monotonic() < deadline:
            if self._process.poll() is not None:
                raise NotStarted(f"it ended with {self._process.returncode}:\n{self._log_end()}")
            try:
                with self.client() as client:
                    client.ask(code)
            except (OSError, GantryError):
                time.sleep(0.02)
            else:
                return
        raise NotStarted(f"no answer after {seconds} s:\n{self._log_end()}")


@contextmanager
def broker(
    version: str,
    work: Path,
    settings: Mapping[str, str],
    *,
    jvm: Sequence[str] = QUICK_START,
    wait_seconds: float = START_SECONDS_MAX,
) -> Iterator[Server]:
    """Run a broker; it is in use when the block begins, and gone when it has ended.

    `work` is for its log and what else it wants to keep; `settings` name the store.

    Raises:
        NotFetched: the release cannot be had.
        NotStarted: it does not start; the text has the end of its log.
    """
    port = free_broker_port()
    properties = {
        "brokerClusterName": "DefaultCluster",
        "brokerName": "broker-a",
        "brokerId": "0",
        "brokerIP1": "127.0.0.1",
        "brokerIP2": "127.0.0.1",
        "listenPort": str(port),
        **settings,
    }
    main = "org.apache.rocketmq.broker.BrokerStartup"
    with _server(version, main, work, port, properties, jvm) as server:
        server.wait_until_it_answers(RequestCode.GET_BROKER_CONFIG, wait_seconds)
        yield server


@contextmanager
def name_server(version: str, work: Path, *, jvm: Sequence[str] = QUICK_START) -> Iterator[Server]:
    """Run a name server; raises as `broker`."""
    port = free_port()
    properties = {
        "listenPort": str(port),
        "kvConfigPath": str(work / "kvConfig.json"),
        "configStorePath": str(work / "namesrv.stored"),
    }
    main = "org.apache.rocketmq.namesrv.NamesrvStartup"
    with _server(version, main, work, port, properties, jvm) as server:
        server.wait_until_it_answers(RequestCode.GET_BROKER_CLUSTER_INFO)
        yield server


@contextmanager
def _server(
    version: str,
    main: str,
    work: Path,
    port: int,
    properties: Mapping[str, str],
    jvm: Sequence[str],
) -> Iterator[Server]:
    class_path = fetch(version)
    conf = work / "conf"
    conf.mkdir(parents=True, exist_ok=True)
    for name in _LOGBACK_NAMES:
        (conf / name).write_text(_LOGBACK, encoding="utf-8")
    given = conf / f"{port}.properties"
    given.write_text("".join(f"{k}={v}\n" for k, v in properties.items()), encoding="utf-8")
    command = [
        tools.path("java"), *jvm, *_MODULES, f"-Duser.home={work}",
        f"-Drmq.logback.configurationFile={conf / _LOGBACK_NAMES[0]}",
        # A disk that is nearly full is no reason to delete what a test has written.
        "-Drocketmq.broker.diskSpaceWarningLevelRatio=0.99",
        "-Drocketmq.broker.diskSpaceCleanForciblyRatio=0.99",
        "-cp", class_path, main, "-c", str(given),
    ]  # fmt: skip
    environment = {**os.environ, "ROCKETMQ_HOME": str(work)}
    environment.pop("NAMESRV_ADDR", None)
    log = work / f"{port}.log"
    with log.open("wb") as output:
        process = subprocess.Popen(command, env=environment, stdout=output, stderr=output)
    try:
        yield Server(process, port, log)
    finally:
        if process.poll() is None:
            process.kill()
        process.wait()
