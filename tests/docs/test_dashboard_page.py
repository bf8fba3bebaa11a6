"""The page on the dashboard is run: servers until they are ready, commands to their end."""

from __future__ import annotations

import contextlib
import io
import os
import shlex
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from gantrymq.cli.dashboard import parser
from gantrymq.cli.main import main
from gantrymq.cli.serve import server_parser
from support import gantry, markdown, ports

if TYPE_CHECKING:
    import pytest

ROOT = Path(__file__).parents[2]
PAGE = ROOT / "docs" / "dashboard.md"


def start_and_stop(words: list[str], name_server: str) -> str:
    """Run a dashboard until it says that it is ready; return what it said."""
    given = [name_server if word == "127.0.0.1:9876" else word for word in words]
    if "--port" in given:
        given[given.index("--port") + 1] = "0"
    else:
        given += ["--port", str(ports.free_port())]
    environment = {**os.environ, "PYTHONPATH": str(ROOT / "src"), "PYTHONUNBUFFERED": "1"}
    with subprocess.Popen(
        [sys.executable, "-m", *given],
        env=environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
    ) as process:  # fmt: skip
        assert process.stdout is not None
        said = process.stdout.readline()
        process.terminate()
        said += process.stdout.read()
        process.wait(gantry.STOP_SECONDS_MAX)
    assert process.returncode == 0, said
    return said


def test_the_page_runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    blocks = markdown.blocks(PAGE.read_text(encoding="utf-8"))
    lines = [line for block in blocks if block.kind == "shell" for line in block.text.splitlines()]
    assert len(lines) >= 7
    monkeypatch.chdir(tmp_path)
    for name in ("anna", "ben"):
        Path(f"{name}.txt").write_text(f"the password of {name}\n", encoding="utf-8")
    told = {}
    with gantry.server(tmp_path / "server", {}) as server:
        for line in lines:
            words = shlex.split(line)
            if words[2] == "user":
                out = io.StringIO()
                with contextlib.redirect_stdout(out):
                    assert main(words[1:]) == 0, line
                told[line] = out.getvalue()
            else:
                told[line] = start_and_stop(words, server.name_server)
                assert told[line].startswith("the dashboard is ready: http://127.0.0.1:"), line
    passwords = [line for line in told if "shown this once" in told[line]]
    assert [line.split(" --")[0] for line in passwords] == [
        lines[0], "gantrymq dashboard user set carl"
    ]  # fmt: skip
    listed = told["gantrymq dashboard user list"].split()
    assert listed == ["admin", "admin", "anna", "admin", "ben", "operator", "carl", "viewer"]


def test_every_option_that_the_page_names_is_one() -> None:
    text = PAGE.read_text(encoding="utf-8")
    known = parser().format_help() + server_parser().format_help() + "--role"
    named = {word.strip("`(),.:;") for word in text.split() if word.strip("`(").startswith("--")}
    assert len(named) > 10
    assert {name for name in named if name not in known} == set()
