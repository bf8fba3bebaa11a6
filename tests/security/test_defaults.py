"""What listens where: processes as an operator starts them, and the sockets that the system sees.

Without a word about security nothing is reached from another machine: name server, broker, the port
for VIP clients, replication, dashboard, metrics.
"""

from __future__ import annotations

import os
import subprocess
import sys
import time
from contextlib import contextmanager
from ipaddress import ip_address
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import pytest

from gantrymq.cli import main as cli
from support import ports
from support.accounts import write_accounts
from support.listening import listening
from support.remoting import RemotingClient

if TYPE_CHECKING:
    from collections.abc import Iterator

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")

ROOT = Path(__file__).parents[2]
READY_S_MAX = 60
EVERYWHERE = "0.0.0.0"  # noqa: S104
SMALL = "mappedFileSizeCommitLog=1048576\nmaxHashSlotNum=1000\nmaxIndexNum=4000\n"
ALONE = "for this machine alone"


class Running(NamedTuple):
    """A process, and what it said when it was ready."""

    pid: int
    said: Path

    def sockets(self) -> dict[int, str]:
        """Return port to address of all that it listens at."""
        return {port: address for address, port in listening(self.pid)}

    def wait_for(self, words: str) -> str:
        """Return what it said, once that has these words."""
        deadline = time.monotonic() + READY_S_MAX
        while words not in (text := self.said.read_text()):
            assert time.monotonic() < deadline, text
            time.sleep(0.02)
        return text


@contextmanager
def process(folder: Path, *arguments: str) -> Iterator[Running]:
    """Run a command of ours to the end of the block, from when it is ready."""
    environment = {**os.environ, "PYTHONPATH": str(ROOT / "src"), "PYTHONUNBUFFERED": "1"}
    environment.pop("NAMESRV_ADDR", None)
    said = folder / f"{arguments[0]}.said"
    with said.open("wb") as output:
        begun = subprocess.Popen(
            [sys.executable, "-m", "gantrymq", *arguments],
            env=environment, cwd=folder, stdout=output, stderr=output,
        )  # fmt: skip
    try:
        deadline = time.monotonic() + READY_S_MAX
        while " is ready: " not in said.read_text():
            assert begun.poll() is None, said.read_text()
            assert time.monotonic() < deadline, said.read_text()
            time.sleep(0.02)
        yield Running(begun.pid, said)
    finally:
        begun.terminate()
        begun.wait(READY_S_MAX)


class Ports(NamedTuple):
    """Where a server is told to listen."""

    names: int
    broker: int
    dashboard: int

    @property
    def options(self) -> list[str]:
        """Return them as a command line has them."""
        return [
            "--namesrv-port", str(self.names), "--port", str(self.broker),
            "--dashboard-port", str(self.dashboard), "--metrics-port", "0",
        ]  # fmt: skip

    @property
    def remoting(self) -> set[int]:
        """Return those for clients and slaves: name server, broker, VIP, replication."""
        return {self.names, self.broker, self.broker - 2, self.broker + 1}


@contextmanager
def server(folder: Path, *more: str, settings: str = "") -> Iterator[tuple[Running, Ports]]:
    config = folder / "broker.conf"
    config.write_text(f"{SMALL}{settings}", encoding="utf-8")
    chosen = Ports(ports.free_port(), ports.free_broker_port(), ports.free_port())
    with process(folder, "server", "-c", str(config), *chosen.options, *more) as running:
        running.wait_for("the dashboard is ready")
        yield running, chosen


def test_a_server_is_reached_from_its_machine_alone(tmp_path: Path) -> None:
    with server(tmp_path) as (running, chosen):
        found = running.sockets()
        assert found.keys() > chosen.remoting | {chosen.dashboard}
        assert len(found) == 6  # those, and metrics
        assert [at for at in found.values() if not ip_address(at).is_loopback] == []
        (line,) = [one for one in running.said.read_text().splitlines() if ALONE in one]
        assert "--insecure" in line
        assert "docs/security.md" in line


def test_a_word_lets_other_machines_in_and_only_where_clients_go(tmp_path: Path) -> None:
    with server(tmp_path, "--insecure") as (running, chosen):
        found = running.sockets()
        assert {port for port, at in found.items() if at == EVERYWHERE} == chosen.remoting
        assert len(found) == 6
        text = running.said.read_text()
        assert "whoever reaches it may read, write and administer" in text
        assert ALONE not in text


def test_accounts_let_other_machines_in(tmp_path: Path) -> None:
    write_accounts(tmp_path)
    with server(tmp_path, settings="aclEnable=true\n") as (running, chosen):
        found = running.sockets()
        assert {port for port, at in found.items() if at == EVERYWHERE} == chosen.remoting
        text = running.said.read_text()
        assert "whoever reaches it" not in text
        assert ALONE not in text


def test_one_address_holds_for_name_server_and_broker(tmp_path: Path) -> None:
    with server(tmp_path, "--bind", "127.0.0.2") as (running, chosen):
        found = running.sockets()
        assert {found[port] for port in chosen.remoting} == {"127.0.0.2"}
        assert f"name server 127.0.0.2:{chosen.names}" in running.said.read_text()
        with RemotingClient("127.0.0.2", chosen.names) as client:
            assert f"127.0.0.2:{chosen.broker}".encode() in client.ask(106).body


def test_name_servers_and_brokers_alone(tmp_path: Path) -> None:
    names, first = ports.free_port(), ports.free_broker_port()
    (tmp_path / "namesrv.conf").write_text(f"listenPort={names}\nkvConfigPath={tmp_path}/kv.json\n")
    (tmp_path / "broker.conf").write_text(
        f"{SMALL}listenPort={first}\nstorePathRootDir={tmp_path / 'store'}\n"
    )
    with (
        process(tmp_path, "namesrv", "-c", "namesrv.conf") as name_server,
        process(tmp_path, "broker", "-n", f"127.0.0.1:{names}", "-c", "broker.conf") as broker,
    ):
        assert name_server.sockets() == {names: "127.0.0.1"}
        assert broker.sockets() == dict.fromkeys((first, first - 2, first + 1), "127.0.0.1")
        assert f"127.0.0.1:{first}" in broker.said.read_text()
        for one in (name_server, broker):
            assert ALONE in one.said.read_text()


REFUSED = {
    "every address": ("broker", "bindAddress=0.0.0.0", ()),
    "every address of IPv6": ("broker", "bindAddress=::", ()),
    "one address": ("broker", "bindAddress=192.0.2.7\nbrokerIP1=192.0.2.7", ()),
    "a name": ("broker", "bindAddress=broker.example", ()),
    "shards": ("broker", "bindAddress=0.0.0.0", ("--shards", "2")),
    "metrics": ("broker", "metricsPort=0\nmetricsBindAddress=0.0.0.0", ()),
    "metrics as Apache has them": (
        "broker", "metricsExporterType=PROM\nmetricsPromExporterHost=0.0.0.0", (),
    ),
    "told to clients": ("broker", "brokerIP1=192.0.2.7", ()),
    "told to slaves": ("broker", "brokerIP2=192.0.2.7", ()),
    "told to clients, by hand": ("broker", "bindAddress=127.0.0.1\nbrokerIP1=192.0.2.7", ()),
    "a far name server": ("broker", "brokerName=a", ("-n", "192.0.2.1:9876")),
    "a far etcd": ("broker", "failoverEtcd=192.0.2.1:2379\nfailoverId=1", ()),
    "a server": ("server", "brokerName=a", ("--bind", EVERYWHERE)),
    "a server by its file": ("server", "bindAddress=0.0.0.0", ()),
    "a name server": ("namesrv", "bindAddress=0.0.0.0", ()),
    "metrics of a name server": ("namesrv", "metricsPort=0\nmetricsBindAddress=0.0.0.0", ()),
}  # fmt: skip


@pytest.mark.parametrize("what", REFUSED)
def test_what_is_open_without_a_word_does_not_start(
    what: str, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("NAMESRV_ADDR", raising=False)
    role, settings, arguments = REFUSED[what]
    config = tmp_path / "some.conf"
    data = tmp_path / "data"
    places = f"storePathRootDir={data}/store\n" if role != "namesrv" else ""
    config.write_text(f"{settings}\n{places}kvConfigPath={data}/kv.json\n")
    more = ["--data", str(data)] if role == "server" else []
    assert cli.main([role, "-c", str(config), *more, *arguments]) == 1
    (line,) = capsys.readouterr().err.splitlines()
    assert "aclEnable=true" in line
    assert "--insecure" in line
    assert sorted(tmp_path.iterdir()) == [config], "nothing was made"


@pytest.mark.parametrize("arguments", [["--insecure"], []])
def test_apaches_files_start_with_one_more_word(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], arguments: list[str]
) -> None:
    config = tmp_path / "broker.conf"
    config.write_text(
        "brokerClusterName=DefaultCluster\nbrokerName=broker-a\nbrokerId=0\ndeleteWhen=04\n"
        "brokerIP1=192.0.2.7\nnamesrvAddr=192.0.2.1:9876\n" + "insecure=true\n" * (not arguments)
    )
    assert cli.main(["broker", "-p", "-c", str(config), *arguments]) == 0
    printed = dict(line.split("=", 1) for line in capsys.readouterr().out.splitlines())
    assert (printed["bindAddress"], printed["insecure"]) == (EVERYWHERE, "true")
    assert printed["brokerIP1"] == "192.0.2.7"
