"""etcd itself, one node on the loopback; ended by its own process id when the block ends."""

from __future__ import annotations

import subprocess
import time
from contextlib import contextmanager
from typing import TYPE_CHECKING, Final

from support import tools
from support.ports import free_port

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from pathlib import Path

START_S_MAX: Final = 60


class Running:
    """An etcd that answers."""

    def __init__(self, process: subprocess.Popen[bytes], host: str, port: int) -> None:
        self._process = process
        self.address = f"{host}:{port}"

    @property
    def pid(self) -> int:
        """Return its process id."""
        return self._process.pid


def command_of(folder: Path, host: str, port: int, peer_port: int) -> list[str]:
    """Return what starts an etcd of one node."""
    return [
        tools.path("etcd"), "--data-dir", str(folder / "data"), "--name", "one",
        "--listen-client-urls", f"http://{host}:{port}",
        "--advertise-client-urls", f"http://{host}:{port}",
        "--listen-peer-urls", f"http://{host}:{peer_port}",
        "--initial-advertise-peer-urls", f"http://{host}:{peer_port}",
        "--initial-cluster", f"one=http://{host}:{peer_port}",
    ]  # fmt: skip


@contextmanager
def etcd(folder: Path, host: str = "127.0.0.1", inside: Sequence[str] = ()) -> Iterator[Running]:
    """Run an etcd with its data under `folder`, started by the command `inside` if there is one."""
    from gantrymq.cluster.etcd import Etcd, EtcdTrouble  # noqa: PLC0415  (an extra)

    folder.mkdir(parents=True, exist_ok=True)
    client, peer = free_port(), free_port()
    command = [*inside, *command_of(folder, host, client, peer)]
    log = folder / "etcd.log"

    with log.open("wb") as output:
        process = subprocess.Popen(command, stdout=output, stderr=output)
    running = Running(process, host, client)
    asked = Etcd([f"{host}:{client}"], "none", "none")
    deadline = time.monotonic() + START_S_MAX
    try:
        while True:
            try:
                asked.view()
                break
            except EtcdTrouble:
                if process.poll() is not None or time.monotonic() > deadline:
                    raise RuntimeError(f"etcd does not start:\n{log.read_text()}") from None
                time.sleep(0.05)
        yield running
    finally:
        process.kill()
        process.wait()
