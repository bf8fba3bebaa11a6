"""The dashboard beside a server, and in a cluster of which a part is silent; no browser needed."""

from __future__ import annotations

import asyncio
import json
import os
import re
import signal
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import pytest

from gantrymq.cli import dashboard as command
from gantrymq.dashboard.settings import DashboardSettings
from support import dashboards, gantry, ports

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from support.gantry import Running

WAIT_S = 30
SMALL = "mappedFileSizeCommitLog=16777216\nmaxHashSlotNum=1000\nmaxIndexNum=4000\n"


@contextmanager
def process(*words: str) -> Iterator[tuple[subprocess.Popen[str], list[str]]]:
    """Run `gantrymq` to the end of the block; give it with the lines that it says."""
    environment = {**os.environ, "PYTHONPATH": str(gantry.ROOT / "src"), "PYTHONUNBUFFERED": "1"}
    with subprocess.Popen(
        [sys.executable, "-m", "gantrymq", *words],
        env=environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
    ) as running:  # fmt: skip
        try:
            yield running, []
        finally:
            running.send_signal(signal.SIGCONT)
            running.terminate()
            try:
                running.communicate(timeout=WAIT_S)
            except subprocess.TimeoutExpired:
                running.kill()


def lines_until(running: subprocess.Popen[str], wanted: str) -> list[str]:
    """Return what a process says, up to a line with these words."""
    assert running.stdout is not None
    said: list[str] = []
    for line in running.stdout:
        said.append(line)
        if wanted in line:
            return said
    raise AssertionError(f"it never said {wanted!r}: {said}")


def get(url: str) -> Any:  # noqa: ANN401  (whatever JSON says)
    """Return the JSON under an address."""
    with urllib.request.urlopen(url, timeout=WAIT_S) as answer:  # noqa: S310
        return json.loads(answer.read())


def server_words(folder: Path, dashboard_port: int) -> list[str]:
    config = folder / "broker.conf"
    config.write_text(SMALL, encoding="utf-8")
    return [
        "server", "--data", str(folder / "data"), "--namesrv-port", "0", "--bind", "127.0.0.1",
        "--port", str(ports.free_broker_port()), "--dashboard-port", str(dashboard_port),
        "-c", str(config),
    ]  # fmt: skip


def test_a_server_has_a_dashboard_and_shows_its_password_once(tmp_path: Path) -> None:
    words = server_words(tmp_path, ports.free_port())
    for is_first in (True, False):
        with process(*words) as (running, _):
            said = lines_until(running, "the dashboard is ready")
            url = said[-1].split()[-1]
            told = get(f"{url}/api/me")
            assert (told["user"], told["login"]) == (None, True)
            with pytest.raises(urllib.error.HTTPError, match="401"):
                get(f"{url}/api/topics")
            if is_first:
                password = lines_until(running, "shown this once")[-1]
                assert re.search(r"log in as admin with the password \S{23} ", password)
        assert running.returncode == 0
    files = {path.name: path.stat().st_mode & 0o777 for path in tmp_path.glob("data/dashboard/*")}
    assert files["accounts.json"] == 0o600


def test_a_taken_port_is_said_and_the_server_goes_on(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        words = server_words(tmp_path, taken.getsockname()[1])
        with process(*words) as (running, _):
            said = lines_until(running, "no dashboard")
            assert "is ready: name server" in said[0]
            assert "--dashboard-port chooses another port" in said[-1]
            assert running.poll() is None
        assert running.returncode == 0


def test_a_dashboard_alone_that_cannot_listen_says_so(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = str(taken.getsockname()[1])
        words = ["dashboard", "-n", "127.0.0.1:1", "--data", str(tmp_path), "--port", port]
        with process(*words) as (running, _):
            assert running.stdout is not None
            said = running.stdout.read()
        assert running.returncode == 1
        assert said.count("\n") == 1
        assert f"the dashboard's 127.0.0.1:{port}" in said


def test_without_the_extra_a_server_says_how_to_get_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(command, "is_installed", lambda: False)
    said: list[str] = []

    async def run() -> None:
        beside = command.Beside(DashboardSettings("127.0.0.1:1", tmp_path), said.append)
        beside.begin()
        await asyncio.sleep(0)
        await beside.stop()

    dashboards.apart(run())
    assert said == ["no dashboard: the dashboard needs `pip install 'gantrymq[dashboard]'`"]
    assert command.main(["-n", "127.0.0.1:1"]) == 1
    assert "pip install 'gantrymq[dashboard]'" in capsys.readouterr().err


@pytest.mark.parametrize(
    "words",
    [
        ["--no-login", "--bind", "0.0.0.0"],  # noqa: S104
        ["--tls-key", "key.pem"],
        ["--user", "anna"],
        ["-n", "nonsense"],
    ],
)
def test_options_that_do_not_go_together(
    words: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert command.main([*words, "--data", str(tmp_path)]) == 2
    assert capsys.readouterr().err.count("\n") == 1


def test_a_broker_that_is_silent_is_named_and_the_rest_is_shown(
    server: Running, tmp_path: Path
) -> None:
    config = tmp_path / "broker.conf"
    config.write_text(
        f"{SMALL}brokerName=broker-b\nbrokerIP1=127.0.0.1\nbindAddress=127.0.0.1\n"
        f"listenPort={ports.free_broker_port()}\nstorePathRootDir={tmp_path / 'store'}\n",
        encoding="utf-8",
    )
    with (
        process("broker", "-n", server.name_server, "-c", str(config)) as (broker, _),
        dashboards.dashboard(tmp_path, server.name_server, "--no-login") as running,
    ):
        lines_until(broker, "is ready")
        deadline = time.monotonic() + WAIT_S
        while len(get(f"{running.url}/api/brokers")["rows"]) < 2:
            assert time.monotonic() < deadline
            time.sleep(0.1)
        whole = get(f"{running.url}/api/groups")
        assert (whole["problemCount"], whole["problems"]) == (0, [])
        time.sleep(3.2)  # what was kept of it is forgotten
        broker.send_signal(signal.SIGSTOP)
        for path, rows in (("groups", 1), ("brokers", 2), ("configuration", 100)):
            part = get(f"{running.url}/api/{path}")
            assert any("broker-b" in each for each in part["problems"]), path
            assert len(part["rows"]) >= rows, path
