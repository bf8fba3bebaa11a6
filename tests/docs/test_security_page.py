"""The page on access control is run: its files, its commands, its program, and a reload."""

from __future__ import annotations

import contextlib
import io
import os
import shlex
import subprocess
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING

from gantrymq.cli.main import main
from support import gantry, markdown

if TYPE_CHECKING:
    import pytest

ROOT = Path(__file__).parents[2]
PAGE = ROOT / "docs" / "security.md"
RELOAD_S_MAX = 20.0


def run(line: str) -> tuple[int, str]:
    out = io.StringIO()
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(out):
        status = main(shlex.split(line)[1:])
    return status, out.getvalue()


def test_the_page_runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    page = PAGE.read_text(encoding="utf-8").partition("\n## Users\n")[0]
    blocks = {block.kind: block.text for block in markdown.blocks(page)}
    settings = dict(line.split("=") for line in blocks["properties"].splitlines())
    accounts = tmp_path / "plain_acl.yml"
    accounts.write_text(blocks["yaml"], encoding="utf-8")
    accounts.chmod(0o600)
    with gantry.server(tmp_path, settings) as server:
        monkeypatch.setenv("NAMESRV_ADDR", server.name_server)
        lines = blocks["shell"].replace("127.0.0.1:9876", server.name_server).splitlines()
        for line in lines:
            status, said = run(line)
            assert status == 0, f"{line}: {said}"
        assert "audit-service" in said
        assert "secret-of" not in said
        program = blocks["python"].replace("127.0.0.1:9876", server.name_server)
        told = subprocess.run(
            [sys.executable, "-c", program],
            env={**os.environ, "PYTHONPATH": str(ROOT / "src")},
            capture_output=True, text=True, check=True, timeout=60,
        )  # fmt: skip
        assert told.stdout == blocks["text"]
        allowed = lines[0].replace("operator --", "operator2 --")
        assert run(allowed)[0] == 1
        changed = accounts.read_text(encoding="utf-8").replace("operator\n", "operator2\n")
        accounts.write_text(changed.replace("secret-of-operator2", "secret-of-operator"))
        begun = time.monotonic()
        while run(allowed)[0] != 0:
            assert time.monotonic() - begun < RELOAD_S_MAX
            time.sleep(0.2)
        assert run(lines[0])[0] == 1
    assert "secret-of" not in server.log.read_text(encoding="utf-8")
