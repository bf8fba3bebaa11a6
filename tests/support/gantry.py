"""Our own server as a process of its own, as an operator starts it; ended by its process id."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import time
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Final, NamedTuple

from support import ports
from support.remoting import RemotingClient

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

ROOT: Final = Path(__file__).parents[2]
START_SECONDS_MAX: Final = 90
STOP_SECONDS_MAX: Final = 90
LOG_LINES_SHOWN: Final = 40
SMALL_FILES: Final = {
    "mappedFileSizeCommitLog": str(16 << 20),
    "maxHashSlotNum": "10000",
    "maxIndexNum": "40000",
}
"""Files are made in their full length, and a run of tests starts many servers."""
_SMALL: Final = {
    **SMALL_FILES,
    # A disk that is nearly full is no reason to refuse what a test sends.
    "diskSpaceWarningLevelRatio": "0.99",
    "diskSpaceCleanForciblyRatio": "0.99",
    # Nor is a machine that has no time for the server because it runs other tests.
    "waitTimeMillsInSendQueue": "10000",
}
_READY: Final = re.compile(r"is ready: name server (\S+:\d+), broker \S+:(\d+),")


class NotRunning(Exception):
    """It did not start, or ended by itself; the text has the end of its log."""


class Running(NamedTuple):
    """A server that answers."""

    name_server: str
    port: int
    """The broker's."""
    log: Path
    pid: int

    def client(self) -> RemotingClient:
        """Return a new connection to the broker."""
        return RemotingClient("127.0.0.1", self.port)


@contextmanager
def server(work: Path, settings: Mapping[str, str]) -> Iterator[Running]:
    """Run `gantrymq server` with its data under `work`; it must end well when it is told to.

    Raises:
        NotRunning: it did not start, or did not run to the end of the block, or would not stop.
    """
    work.mkdir(parents=True, exist_ok=True)
    config = work / "broker.conf"
    properties = {**_SMALL, "brokerIP1": "127.0.0.1", "bindAddress": "127.0.0.1", **settings}
    config.write_text("".join(f"{k}={v}\n" for k, v in properties.items()), encoding="utf-8")
    command = [
        sys.executable, "-m", "gantrymq", "server", "--data", str(work / "data"),
        # Message ids have the broker's port, so it is one that is known before it listens.
        "--namesrv-port", "0", "--port", str(ports.free_broker_port()), "-c", str(config),
        "--dashboard-port", "0",
    ]  # fmt: skip
    environment = {**os.environ, "PYTHONPATH": str(ROOT / "src"), "PYTHONUNBUFFERED": "1"}
    log = work / "server.log"
    with log.open("wb") as output:
        process = subprocess.Popen(command, env=environment, stdout=output, stderr=output)
    try:
        yield _when_ready(process, log)
        if process.poll() is not None:
            raise NotRunning(f"it ended with {process.returncode}:\n{log_end(log)}")
        process.terminate()
        if process.wait(STOP_SECONDS_MAX) != 0:
            raise NotRunning(f"it stopped with {process.returncode}:\n{log_end(log)}")
    except subprocess.TimeoutExpired:
        raise NotRunning(f"it does not stop:\n{log_end(log)}") from None
    finally:
        if process.poll() is None:
            process.kill()
        process.wait()


def _when_ready(process: subprocess.Popen[bytes], log: Path) -> Running:
    deadline = time.monotonic() + START_SECONDS_MAX
    while time.monotonic() < deadline:
        said = _READY.search(log.read_text(encoding="utf-8", errors="replace"))
        if said is not None:
            return Running(said[1], int(said[2]), log, process.pid)
        if process.poll() is not None:
            raise NotRunning(f"it ended with {process.returncode}:\n{log_end(log)}")
        time.sleep(0.02)
    raise NotRunning(f"not ready after {START_SECONDS_MAX} s:\n{log_end(log)}")


def log_end(log: Path) -> str:
    """Return what a server said last."""
    lines = log.read_text(encoding="utf-8", errors="replace").splitlines()
    return "\n".join(lines[-LOG_LINES_SHOWN:])
