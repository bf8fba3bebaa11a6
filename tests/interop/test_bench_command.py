"""`gantrymq bench` as a user starts it, against our server and against Apache's broker."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec
import pytest

from support import apache, gantry

if TYPE_CHECKING:
    from collections.abc import Iterator

ROOT = Path(__file__).parents[2]
SECONDS_MAX = 60


class Figures(msgspec.Struct):
    """What one kind of request gave."""

    messages: int
    requests: int
    messages_per_second: float
    refused: int
    latency_us: dict[str, int]


class Output(msgspec.Struct):
    """What `--json` prints."""

    command: str
    brokers: list[str]
    settings: dict[str, object]
    results: dict[str, Figures]
    own_core_percent: int


def bench(*arguments: str) -> subprocess.CompletedProcess[str]:
    """Run the command in a process of its own."""
    return subprocess.run(
        [sys.executable, "-m", "gantrymq", "bench", *arguments],
        env={**os.environ, "PYTHONPATH": str(ROOT / "src")},
        capture_output=True,
        text=True,
        check=False,
        timeout=SECONDS_MAX,
    )


def result(*arguments: str) -> Output:
    """Run it; it must go well and say nothing on the other stream."""
    done = bench(*arguments, "--json")
    assert done.returncode == 0, done.stderr
    assert done.stderr == ""
    return msgspec.json.decode(done.stdout, type=Output)


SMALL = {"mappedFileSizeCommitLog": str(64 << 20), "maxHashSlotNum": "1000", "maxIndexNum": "4000"}


@pytest.fixture(scope="module")
def name_server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    with gantry.server(tmp_path_factory.mktemp("bench"), SMALL) as running:
        yield running.name_server


def check_loads(address: str) -> None:
    """Bring every load; what was sent is what is read."""
    sent = result("send", "--against", address, "--seconds", "0.5")
    batches = result("send", "--against", address, "--seconds", "0.3", "--batch", "8")
    figures = [one.results["sends"] for one in (sent, batches)]
    assert all(one.messages > 0 and one.refused == 0 for one in figures)
    assert figures[1].messages == 8 * figures[1].requests
    assert set(figures[0].latency_us) == {"p50", "p99", "p999", "max"}
    alone = result("latency", "--against", address, "--seconds", "0.5")
    sends, deliveries = alone.results["sends"], alone.results["deliveries"]
    assert sends.messages == deliveries.messages > 0
    assert sends.latency_us["p50"] > 0
    assert 0 < deliveries.latency_us["p50"] < 1_000_000
    pulled = result("pull", "--against", address)
    made = 3  # each of the three commands has made sure of its topic with one message
    total = figures[0].messages + figures[1].messages + sends.messages + made
    assert pulled.results["pulls"].messages == total


def test_against_our_name_server(name_server: str) -> None:
    check_loads(name_server)


@pytest.mark.tool("java")
@pytest.mark.tool("mvn")
def test_against_apache(tmp_path: Path) -> None:
    settings = {**SMALL, "storePathRootDir": str(tmp_path / "store"), "timerWheelEnable": "false"}
    with apache.broker("5.5.0", tmp_path, settings) as broker:
        # A cold JVM refuses what it cannot take in time; a small window it can.
        sent = result(
            "send", "--against", broker.address, "--seconds", "1", "--in-flight", "1",
            "--connections", "2", "--topic", "Calm",
        )  # fmt: skip
        assert sent.brokers == [broker.address]
        assert sent.results["sends"].messages > 0
        pulled = result("pull", "--against", broker.address, "--topic", "Calm")
        assert pulled.results["pulls"].messages == sent.results["sends"].messages + 1
        alone = result("latency", "--against", broker.address, "--seconds", "0.5")
        assert alone.results["deliveries"].messages > 0


def test_the_table_is_for_people(name_server: str) -> None:
    done = bench("send", "--against", name_server, "--seconds", "0.2", "--topic", "Other")
    assert done.returncode == 0
    assert done.stderr == "", "there is no terminal, so no progress"
    first, *rows = done.stdout.splitlines()
    assert first.startswith("send against 127.0.0.1:")
    assert [row.split()[0] for row in rows[:4]] == ["sends", "rate", "bytes", "latency"]


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("latency", "--against", "127.0.0.1:1"), "is a broker or name server running there?"),
        (("send", "--against", "nowhere"), "is not host:port"),
    ],
)
def test_nobody_there_is_one_line(arguments: tuple[str, ...], said: str) -> None:
    done = bench(*arguments)
    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr.count("\n") == 1
    assert said in done.stderr


def test_a_refused_topic_says_what_to_do(name_server: str) -> None:
    done = bench("send", "--against", name_server, "--topic", "bad topic")
    assert done.returncode == 1
    assert "choose another with --topic" in done.stderr
    assert done.stderr.count("\n") == 1


@pytest.mark.parametrize(
    "arguments",
    [("send", "--body", "0"), ("send", "--seconds", "x"), ("pull", "--count", "-1"), ("fly",)],
)
def test_bad_usage(arguments: tuple[str, ...]) -> None:
    done = bench(*arguments)
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.count("\n") == 1
    assert "--help" in done.stderr


@pytest.mark.parametrize("arguments", [(), ("--help",), ("send", "--help")])
def test_help_teaches(arguments: tuple[str, ...]) -> None:
    done = bench(*arguments)
    assert (done.returncode, done.stderr) == (0, "")
    assert "--against" in done.stdout
