"""What the first page promises about the server: it is started, and its commands are run on it."""

from __future__ import annotations

import os
import shlex
import subprocess
import sys
import time
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from support import markdown, ports

if TYPE_CHECKING:
    from collections.abc import Iterator

ROOT = Path(__file__).parents[2]
README = ROOT / "README.md"
READY_SECONDS_MAX = 90
COMMAND_SECONDS_MAX = 100
STOP_SECONDS_MAX = 90


def commands() -> list[str]:
    """Return the lines of the page's `shell` blocks: the server first, then what is said to it."""
    blocks = markdown.blocks(README.read_text(encoding="utf-8"))
    return [line for block in blocks if block.kind == "shell" for line in block.text.splitlines()]


def program(line: str) -> list[str]:
    """Return the command of a line, run by this Python."""
    name, *arguments = shlex.split(line)
    assert name == "gantrymq"
    return [sys.executable, "-m", "gantrymq", *arguments]


@contextmanager
def server(line: str, folder: Path) -> Iterator[str]:
    """Run the server of the page, at free ports; give its name server's address."""
    places = ["--namesrv-port", str(ports.free_port()), "--port", str(ports.free_broker_port())]
    said = folder / "said"
    with said.open("wb") as output:
        process = subprocess.Popen(
            [*program(line), *places, "--bind", "127.0.0.1"],
            cwd=folder,
            env={**os.environ, "PYTHONPATH": str(ROOT / "src")},
            stdout=output,
            stderr=subprocess.STDOUT,
        )
    try:
        deadline = time.monotonic() + READY_SECONDS_MAX
        while " is ready: " not in said.read_text() and time.monotonic() < deadline:
            assert process.poll() is None, said.read_text()
            time.sleep(0.02)
        yield f"127.0.0.1:{places[1]}"
        process.terminate()
        assert process.wait(STOP_SECONDS_MAX) == 0, said.read_text()
    finally:
        if process.poll() is None:
            process.kill()
        process.wait()


def test_the_quick_start_works(tmp_path: Path) -> None:
    first, *others = commands()
    assert first == "gantrymq server"
    on_line = [line for line in others if line.startswith("gantrymq bench ")]
    offline = [line for line in others if line.startswith("gantrymq store ")]
    assert len(on_line) >= 3
    assert len(offline) >= 2
    assert on_line + offline == others
    with server(first, tmp_path) as address:
        for line in on_line:
            check_runs(line, tmp_path, address)
    for line in offline:
        check_runs(line, tmp_path, "")


def check_runs(line: str, folder: Path, address: str) -> None:
    """Run a command of the page; it must go well and say something."""
    done = subprocess.run(
        program(line),
        cwd=folder,
        env={**os.environ, "PYTHONPATH": str(ROOT / "src"), "NAMESRV_ADDR": address},
        capture_output=True,
        text=True,
        check=False,
        timeout=COMMAND_SECONDS_MAX,
    )
    assert (done.returncode, done.stderr) == (0, ""), line
    assert done.stdout, line
