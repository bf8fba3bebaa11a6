"""The servers of a run, each a process: name servers, brokers, and etcd where masters are elected.

A server that ends by itself is started again, as a service manager would, and is counted.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Final, NamedTuple

from chaos.disk import SmallDisk
from chaos.shim import FaultPage
from support import ports
from support.etcd import command_of

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from contextlib import ExitStack

    from chaos.network import Link, Network

ROOT: Final = Path(__file__).parents[2]
END_S_MAX: Final = 20
BROKER_NAME: Final = "group"
SYNC_FLUSH: Final = {"flushDiskType": "SYNC_FLUSH"}
MEMBER: Final = {"brokerRole": "SYNC_MASTER"}
CRASHES: Final = frozenset({-signal.SIGSEGV, -signal.SIGBUS, -signal.SIGABRT, -signal.SIGILL})


class Setting(NamedTuple):
    """A deployment."""

    name: str
    brokers: Sequence[Mapping[str, str]]
    has_etcd: bool = False


SETTINGS: Final = {
    one.name: one
    for one in (
        Setting("sync-flush", [SYNC_FLUSH]),
        Setting("async-flush", [{}]),
        Setting("sync-master", [MEMBER, {"brokerRole": "SLAVE", "brokerId": "1"}]),
        Setting("failover", [MEMBER, MEMBER], has_etcd=True),
        Setting("failover-3", [MEMBER | SYNC_FLUSH] * 3, has_etcd=True),
    )
}


class Server:
    """One process, which may be ended and started again."""

    def __init__(
        self,
        name: str,
        command: Sequence[str],
        folder: Path,
        link: Link,
        page: FaultPage | None = None,
        disk: SmallDisk | None = None,
    ) -> None:
        self.name, self.link, self.page, self.disk = name, link, page, disk
        self.store = folder / name
        self.log = folder / f"{name}.log"
        self._command = command
        self._process: subprocess.Popen[bytes] | None = None
        self.is_wanted = False
        self.ends: list[int] = []
        """Exit statuses of those that nobody ended."""

    @property
    def is_alive(self) -> bool:
        """Say whether the process runs, or stands still."""
        return self._process is not None and self._process.poll() is None

    def start(self) -> None:
        """Start it, unless it runs."""
        self.is_wanted = True
        if self.is_alive:
            return
        environment = {
            **os.environ, "PYTHONPATH": str(ROOT / "src"), "PYTHONUNBUFFERED": "1",
            **(self.page.environment if self.page else {}),
        }  # fmt: skip
        with self.log.open("ab") as output:
            self._process = subprocess.Popen(
                [*self.link.inside, *self._command], env=environment, stdout=output, stderr=output
            )

    def kill(self) -> None:
        """End it at once."""
        self.is_wanted = False
        self._signal(signal.SIGKILL)
        if self._process is not None:
            self._process.wait(END_S_MAX)

    def pause(self) -> None:
        """Let it stand still."""
        self._signal(signal.SIGSTOP)

    def go_on(self) -> None:
        """Let it go on."""
        self._signal(signal.SIGCONT)

    def _signal(self, number: signal.Signals) -> None:
        if self._process is not None and self._process.poll() is None:
            self._process.send_signal(number)

    def look_after(self) -> None:
        """Start it again if it ended by itself."""
        if self.is_wanted and self._process is not None and self._process.poll() is not None:
            self.ends.append(self._process.returncode)
            self.start()


class Places(NamedTuple):
    """What the servers of a run have been given to live in."""

    stack: ExitStack
    folder: Path
    network: Network
    shim: Path | None
    """The library of faults; None where there is no compiler."""
    disk_mebibytes: int
    """The size of each broker's own disk; 0 where none can be mounted."""


class Cluster:
    """All servers of a setting, until the stack is closed."""

    def __init__(self, places: Places, setting: Setting) -> None:
        self._places = places
        self.setting = setting
        self._ports: dict[str, int] = {}
        self.names = [self._name_server(number) for number in (1, 2)]
        self.etcd = self._etcd() if setting.has_etcd else None
        self.brokers = [
            self._broker(number, given) for number, given in enumerate(setting.brokers, 1)
        ]

    @property
    def servers(self) -> list[Server]:
        """Return all of them."""
        return [*self.names, *([self.etcd] if self.etcd else []), *self.brokers]

    @property
    def name_addresses(self) -> str:
        """Return what clients are told."""
        return ";".join(f"{one.link.host}:{self._ports[one.name]}" for one in self.names)

    def start(self) -> None:
        """Start everything."""
        for server in self.servers:
            server.start()

    def look_after(self) -> None:
        """Start again what ended by itself."""
        for server in self.servers:
            server.look_after()

    def heal(self) -> None:
        """Undo every fault of disk and network, and have every server run. Clocks stay."""
        for server in self.servers:
            server.link.mend()
            if server.disk is not None:
                server.disk.make_room()
            if server.page is not None:
                server.page.heal_disk()
            server.go_on()
            server.start()

    @property
    def crashes(self) -> list[str]:
        """Return the servers that a signal of the system ended: no fault may do that."""
        return [
            f"{server.name} was ended by signal {-status}"
            for server in self.servers
            for status in server.ends
            if status in CRASHES
        ]

    # -- making them ------------------------------------------------------------------------------

    def _port(self, name: str, port: int) -> int:
        self._ports[name] = port
        return port

    def _written(self, name: str, settings: Mapping[str, str]) -> str:
        path = self._places.folder / f"{name}.conf"
        path.write_text("".join(f"{key}={value}\n" for key, value in settings.items()))
        return str(path)

    def _made(self, server: Server) -> Server:
        self._places.stack.callback(server.kill)
        return server

    def _name_server(self, number: int) -> Server:
        name, folder = f"names{number}", self._places.folder
        link = self._places.network.link()
        settings = {
            "listenPort": str(self._port(name, ports.free_port())), "bindAddress": link.host,
            "insecure": "true", "kvConfigPath": f"{folder}/{name}.json",
            "configStorePath": f"{folder}/{name}.properties",
        }  # fmt: skip
        command = [sys.executable, "-m", "gantrymq", "namesrv"]
        command += ["-c", self._written(name, settings)]
        return self._made(Server(name, command, folder, link))

    def _etcd(self) -> Server:
        folder, link = self._places.folder, self._places.network.link()
        (folder / "etcd").mkdir()
        port = self._port("etcd", ports.free_port())
        command = command_of(folder / "etcd", link.host, port, ports.free_port())
        return self._made(Server("etcd", command, folder, link))

    def _broker(self, number: int, given: Mapping[str, str]) -> Server:
        places, name = self._places, f"broker{number}"
        folder, link = places.folder / "disks", places.network.link()
        disk = None
        if places.disk_mebibytes:
            disk = SmallDisk(places.stack, folder / name, places.disk_mebibytes)
        page = None
        if places.shim is not None:
            page = FaultPage(places.folder / f"{name}.page", places.shim, folder / name)
        command = [sys.executable, "-m", "gantrymq", "broker", "-c"]
        command.append(self._written(name, self._broker_settings(number, folder / name, link.host)))
        server = Server(name, command, places.folder, link, page, disk)
        server.store = folder / name / "store"
        return self._made(server)

    def _broker_settings(self, number: int, folder: Path, host: str) -> dict[str, str]:
        settings = {
            "brokerName": BROKER_NAME, "brokerIP1": host, "bindAddress": host, "insecure": "true",
            "listenPort": str(self._port(f"broker{number}", ports.free_broker_port())),
            "namesrvAddr": self.name_addresses, "storePathRootDir": str(folder / "store"),
            # Small files, so that they are full every second or two.
            "mappedFileSizeCommitLog": str(256 << 10), "mappedFileSizeConsumeQueue": "10000",
            "maxHashSlotNum": "1000", "maxIndexNum": "4000",
            # A full disk refuses sends; it deletes nothing that nobody has read.
            "cleanFileForciblyEnable": "false", "diskSpaceWarningLevelRatio": "0.99",
            "diskSpaceCleanForciblyRatio": "0.99",
            "messageDelayLevel": "1s 2s 4s", "flushDelayOffsetInterval": "1000",
            "transactionTimeOut": "1500", "transactionCheckInterval": "1000",
            "transactionCheckMax": "100000", "flushConsumerOffsetInterval": "1000",
            "waitTimeMillsInSendQueue": "2000", "registerNameServerPeriod": "10000",
            **self.setting.brokers[number - 1],
        }  # fmt: skip
        if self.etcd is not None:
            settings |= {
                "failoverEtcd": f"{self.etcd.link.host}:{self._ports['etcd']}",
                "failoverId": str(number), "failoverLeaseSeconds": "2",
            }  # fmt: skip
        return settings
