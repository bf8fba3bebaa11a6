"""How `gantrymq bench` shows itself: a line on a terminal, none in a pipe, a table at the end."""

from __future__ import annotations

import io
import json
from array import array

import pytest

from gantrymq.cli import bench_commands
from gantrymq.cli.main import main
from gantrymq.client.load import LoadFailed, Measured
from gantrymq.client.load_run import Ran

Asked = list[tuple[str, dict[str, object]]]


class Terminal(io.StringIO):
    """A stream that says that somebody looks at it."""

    def isatty(self) -> bool:
        return True


def ran(refused: int = 0) -> Ran:
    measured = Measured(messages=3000, requests=3000, body_bytes=384_000, seconds=2.0)
    measured.times_us = array("I", range(1, 3001))
    for _ in range(refused):
        measured.refuse(2, "busy")
    return Ran(("10.0.0.1:10911", "10.0.0.2:10911"), {"sends": measured})


@pytest.fixture
def load(monkeypatch: pytest.MonkeyPatch) -> Asked:
    """Put a load in place that is over at once; return what it was asked for."""
    asked: Asked = []

    def run_send(address: str, progress: bench_commands._ProgressLine, **plan: object) -> Ran:
        asked.append((address, plan))
        progress(1.0, 1500)
        return ran()

    monkeypatch.setattr(bench_commands, "run_send", run_send)
    return asked


def test_a_pipe_gets_the_table_alone(
    load: Asked, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("NAMESRV_ADDR", raising=False)
    assert main(["bench", "send", "--seconds", "2", "--body", "128"]) == 0
    printed = capsys.readouterr()
    assert printed.err == ""
    assert "1,500 messages/s" in printed.out
    assert "p50 1501 us, p99 2971 us, p99.9 2998 us, slowest 3000 us" in printed.out
    assert [address for address, _ in load] == ["127.0.0.1:9876"]


def test_a_terminal_sees_how_it_goes(
    load: Asked, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    terminal = Terminal()
    monkeypatch.setattr("sys.stderr", terminal)
    assert main(["bench", "send", "--seconds", "2", "--against", "10.0.0.1:9876"]) == 0
    assert "send: 1 of 2 s, 1,500 messages, 1,500/s" in terminal.getvalue()
    assert terminal.getvalue().endswith("\r\x1b[K"), "the line is taken away in the end"
    assert "10.0.0.1:10911, 10.0.0.2:10911" in capsys.readouterr().out
    assert len(load) == 1


def test_json_has_what_the_table_has(load: Asked, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["bench", "send", "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert found["brokers"] == ["10.0.0.1:10911", "10.0.0.2:10911"]
    assert found["settings"]["in_flight"] == 64
    assert found["results"]["sends"]["messages_per_second"] == 1500
    assert found["results"]["sends"]["latency_us"]["p99"] == 2971
    assert len(load) == 1


def test_refused_requests_are_a_failure(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(bench_commands, "run_send", lambda *_, **__: ran(refused=7))
    assert main(["bench", "send"]) == 1
    assert "7, the first with code 2: busy" in capsys.readouterr().out


def test_a_load_that_cannot_be_brought_is_one_line(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def fail(*_: object, **__: object) -> Ran:
        raise LoadFailed("nobody\nthere")

    monkeypatch.setattr(bench_commands, "run_pull", fail)
    assert main(["bench", "pull"]) == 1
    assert capsys.readouterr() == ("", "gantrymq: nobody; there\n")


def test_the_address_comes_from_the_environment(
    load: Asked, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("NAMESRV_ADDR", "10.1.1.1:9876;10.1.1.2:9876")
    assert main(["bench", "send"]) == 0
    assert [address for address, _ in load] == ["10.1.1.1:9876"]
