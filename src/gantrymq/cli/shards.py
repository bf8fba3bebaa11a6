"""Several broker groups on one machine, one process each: the system's own way to use more cores.

Each shard is a broker of its own, with its own name, port and store; name servers and clients see
as many brokers. The parent starts them, passes signals on, and ends when they have ended. A shard
that ends by itself takes the others with it: whoever watches the parent must learn of it.
"""

from __future__ import annotations

import asyncio
import ctypes
import signal
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Final

from gantrymq.cli.arguments import PROGRAM
from gantrymq.errors import InvalidValue
from gantrymq.node.access import broker_places
from gantrymq.node.broker_node import completed
from gantrymq.node.config import COPIED_NAMES, settings_text
from gantrymq.node.lifecycle import stop_signals

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from gantrymq.node.config import BrokerConfig

PORT_STEP: Final = 10
"""Between two shards; each uses its port, the one above and the one two below."""

PR_SET_PDEATHSIG: Final = 1


def shard_properties(
    found: BrokerConfig, properties: Mapping[str, str], number: int
) -> dict[str, str]:
    """Return the settings of one shard: name, port and directory of its own."""
    settings = completed(found.broker)
    shard = dict(properties)
    _own_directories(shard, found, number)
    shard["brokerName"] = f"{settings.name}-{number}"
    shard["listenPort"] = str(settings.port + number * PORT_STEP)
    if settings.metrics_port > 0:
        shard["metricsPort"] = str(settings.metrics_port + number)
    if settings.acl:
        places = broker_places(settings, found.store)
        shard["aclPath"] = str(places.accounts.absolute())
        if settings.users_file:
            shard["usersFile"] = str(places.users.absolute())
        if settings.users_key_file:
            shard["usersKeyFile"] = str(places.key.absolute())
    return shard


def _own_directories(shard: dict[str, str], found: BrokerConfig, number: int) -> None:
    """Give a shard a directory of its own wherever the file names one.

    A log below the root is found below the shard's root; one on another disk stays on that disk.
    """
    paths = found.store.paths
    root, own = paths.root.absolute(), f"shard-{number}"
    shard["storePathRootDir"] = str(root / own)
    logs = [path.absolute() for path in paths.commit_log]
    elsewhere = [path for path in logs if not path.is_relative_to(root)]
    if elsewhere:
        shard["storePathCommitLog"] = paths.splitter.join(str(path / own) for path in logs)
    else:
        shard.pop("storePathCommitLog", None)
    if paths.read_only_commit_log:
        shard["readOnlyCommitLogStorePaths"] = paths.splitter.join(
            str(path.absolute() / own) for path in paths.read_only_commit_log
        )
    for name in COPIED_NAMES:
        shard.pop(name, None)


def run_shards(
    found: BrokerConfig,
    properties: Mapping[str, str],
    count: int,
    say: Callable[[str], None],
    log_level: str = "warning",
) -> int:
    """Run so many brokers until a signal, or until one of them ends; return the exit status.

    Raises:
        InvalidValue: the settings are such that shards would share what each must have alone.
    """
    if properties.get("haMasterAddress", "").strip():
        raise InvalidValue(
            f"haMasterAddress names one master, and each of {count} shards has its own: leave it "
            "out, slaves find theirs by name servers"
        )
    with tempfile.TemporaryDirectory(prefix="gantrymq-shards-") as folder:
        files = []
        for number in range(count):
            path = Path(folder) / f"shard-{number}.conf"
            path.write_text(
                settings_text(shard_properties(found, properties, number)), encoding="utf-8"
            )
            files.append(path)
        return asyncio.run(_life(files, say, log_level))


def _end_with_parent() -> None:
    """Let the system tell this process to stop when its parent is killed, where it can (Linux).

    Runs in the child, before it becomes a broker.
    """
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGTERM)


def _started(command: list[str]) -> subprocess.Popen[bytes]:
    """Start a shard; a Ctrl-C is the parent's alone, which tells it once to stop."""
    return subprocess.Popen(command, process_group=0, preexec_fn=_end_with_parent)  # noqa: PLW1509, S603


async def _life(files: list[Path], say: Callable[[str], None], log_level: str) -> int:
    """Start, wait, stop. There is one thread: the system tells children of each that ends."""
    loop = asyncio.get_running_loop()
    changed = asyncio.Event()
    loop.add_signal_handler(signal.SIGCHLD, changed.set)
    command = [sys.executable, "-m", "gantrymq", "broker", "--log", log_level, "-c"]
    children = [_started([*command, str(path)]) for path in files]
    is_stopping = False

    def stop() -> None:
        nonlocal is_stopping
        if is_stopping:
            return  # a broker that is told twice ends at once
        is_stopping = True
        for child in children:
            if child.poll() is None:
                child.terminate()

    for number in stop_signals():
        loop.add_signal_handler(number, stop)
    say(f"{len(children)} shards, processes {', '.join(str(child.pid) for child in children)}")
    while all(child.poll() is None for child in children):
        await changed.wait()
        changed.clear()
    if not is_stopping:
        for place, child in enumerate(children):
            if child.returncode is not None:
                _complain(place, child.pid, child.returncode)
        stop()
    while any(child.poll() is None for child in children):
        await changed.wait()
        changed.clear()
    return 0 if all(child.returncode == 0 for child in children) else 1


def _complain(number: int, pid: int, status: int) -> None:
    """Say which shard ended by itself."""
    how = f"by signal {-status}" if status < 0 else f"with status {status}"
    sys.stderr.write(
        f"{PROGRAM}: shard {number} (process {pid}) ended {how}; the others are stopped too\n"
    )
    sys.stderr.flush()
