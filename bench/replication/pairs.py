"""A master and its slave of either make, as processes on this machine."""

from __future__ import annotations

import time
from contextlib import ExitStack, contextmanager
from typing import TYPE_CHECKING, Final, NamedTuple

from bench.compare.brokers import (
    APACHE,
    OURS,
    VERSION,
    NotMeasured,
    Process,
    _process,
    send_header,
)

from gantrymq.errors import GantryError
from support import apache
from support.remoting import RemotingClient

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

SEND: Final = 310
WAIT_S: Final = 60.0
SIZES: Final = {
    "mappedFileSizeCommitLog": str(256 << 20),
    "maxHashSlotNum": "500000",
    "maxIndexNum": "2000000",
    "waitTimeMillsInSendQueue": "10000",
}
BOTH_COUNT: Final = {"inSyncReplicas": "2", "totalReplicas": "2"}
"""5.x waits for nobody by default: a SYNC_MASTER counts itself, and one is enough."""


class Pair(NamedTuple):
    """A master and the slave that copies it."""

    master: Process
    slave: Process


@contextmanager
def pair(maker: str, work: Path, role: str) -> Iterator[Pair]:
    """Start a master in a role and a slave; both are gone when the block ends.

    Raises:
        NotMeasured: they do not start, or the slave does not come.
    """
    with ExitStack() as stack:
        common = SIZES | (BOTH_COUNT if maker == APACHE and role == "SYNC_MASTER" else {})
        if maker == APACHE:
            # A slave of 5.5.0 forgets the address that it is given: a name server has to tell it.
            names = stack.enter_context(apache.name_server(VERSION, work / "names"))
            common |= {"namesrvAddr": names.address}
        folders = work / "master", work / "slave"
        for folder in folders:
            folder.mkdir(parents=True)
        settings = {**common, "storePathRootDir": str(folders[0] / "store"), "brokerRole": role}
        master = stack.enter_context(_process(maker, folders[0], settings))
        behind = {
            **common, "storePathRootDir": str(folders[1] / "store"), "brokerRole": "SLAVE",
            "brokerId": "1",
        }  # fmt: skip
        if maker == OURS:
            behind["haMasterAddress"] = f"127.0.0.1:{master.port + 1}"
        slave = stack.enter_context(_process(maker, folders[1], behind))
        _until_copied(master, slave)
        yield Pair(master, slave)


def _until_copied(master: Process, slave: Process) -> None:
    """Send until a slave has what was sent."""
    deadline = time.monotonic() + WAIT_S
    sent = 0
    while time.monotonic() < deadline:
        try:
            with RemotingClient("127.0.0.1", master.port) as client:
                code = client.ask(SEND, send_header("Copied", 0), b"x").code
                sent += code == 0
            if sent and has_messages(slave.port, "Copied"):
                return
        except (OSError, GantryError):
            pass
        time.sleep(0.05)
    raise NotMeasured("the slave does not copy its master")


def has_messages(port: int, topic: str) -> bool:
    """Tell whether a broker has something in the first queue of a topic."""
    with RemotingClient("127.0.0.1", port) as client:
        return client.max_offset(topic, 0) > 0


__all__ = ["APACHE", "OURS", "Pair", "pair"]
