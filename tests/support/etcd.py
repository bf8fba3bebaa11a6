"""etcd itself, one node on the loopback; ended by its own process id when the block ends."""

from __future__ import annotations

import subprocess
import time
from contextlib import contextmanager
from typing import TYPE_CHECKING, Final, NamedTuple

from support import tools
from support.ports import free_port

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from pathlib import Path

    from gantrymq.cluster.etcd_connection import EtcdLogin

START_S_MAX: Final = 60


class Running:
    """An etcd that answers."""

    def __init__(self, process: subprocess.Popen[bytes], address: str) -> None:
        self._process = process
        self.address = address

    @property
    def pid(self) -> int:
        """Return its process id."""
        return self._process.pid


class Protection(NamedTuple):
    """How an etcd speaks TLS."""

    certificate: Path
    """With its key."""
    login: EtcdLogin
    """How to ask whether it runs."""
    client_issuer: Path | None = None
    """Who signs the certificates of clients, which it asks for then."""

    @property
    def options(self) -> list[str]:
        """Return what it is started with."""
        own = ["--cert-file", str(self.certificate), "--key-file", str(self.certificate)]
        if self.client_issuer is not None:
            own += ["--client-cert-auth", "--trusted-ca-file", str(self.client_issuer)]
        return own


def command_of(
    folder: Path, host: str, port: int, peer_port: int, protection: Protection | None = None
) -> list[str]:
    """Return what starts an etcd of one node."""
    scheme = "http" if protection is None else "https"
    return [
        tools.path("etcd"), "--data-dir", str(folder / "data"), "--name", "one",
        *(() if protection is None else protection.options),
        "--listen-client-urls", f"{scheme}://{host}:{port}",
        "--advertise-client-urls", f"{scheme}://{host}:{port}",
        "--listen-peer-urls", f"http://{host}:{peer_port}",
        "--initial-advertise-peer-urls", f"http://{host}:{peer_port}",
        "--initial-cluster", f"one=http://{host}:{peer_port}",
    ]  # fmt: skip


@contextmanager
def etcd(
    folder: Path,
    host: str = "127.0.0.1",
    inside: Sequence[str] = (),
    protection: Protection | None = None,
) -> Iterator[Running]:
    """Run an etcd with its data under `folder`, started by the command `inside` if there is one."""
    from gantrymq.cluster.etcd import Etcd, EtcdTrouble  # noqa: PLC0415  (an extra)

    folder.mkdir(parents=True, exist_ok=True)
    client, peer = free_port(), free_port()
    command = [*inside, *command_of(folder, host, client, peer, protection)]
    log = folder / "etcd.log"

    with log.open("wb") as output:
        process = subprocess.Popen(command, stdout=output, stderr=output)
    running = Running(process, f"{'https://' if protection else ''}{host}:{client}")
    asked = Etcd(
        [running.address], "none", "none", login=None if protection is None else protection.login
    )
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
