"""The section on users is run: its commands, its file, and a server that takes them."""

from __future__ import annotations

import contextlib
import io
import os
import re
import shlex
import subprocess
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING

from gantrymq.cli.main import main
from gantrymq.security import user_file
from support import gantry, markdown
from support.issuing import Issuer

if TYPE_CHECKING:
    import pytest

ROOT = Path(__file__).parents[2]
PAGE = ROOT / "docs" / "security.md"
RELOAD_S_MAX = 20.0


def blocks_under(head: str) -> list[markdown.Block]:
    """Return the blocks between a head and the next one."""
    text = PAGE.read_text(encoding="utf-8").partition(f"\n{head}\n")[2]
    return list(markdown.blocks(re.split(r"^##+ ", text, maxsplit=1, flags=re.MULTILINE)[0]))


def run(line: str) -> tuple[int, str]:
    out = io.StringIO()
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(out):
        status = main(shlex.split(line)[1:])
    return status, out.getvalue()


def secrets_of(lines: list[str]) -> dict[str, str]:
    """Run commands, and return the secrets that they showed."""
    found = {}
    for line in lines:
        status, said = run(line)
        assert status == 0, f"{line}: {said}"
        if shown := re.search(r"secret (\S+) \(shown this once\)", said):
            found[line.split()[3]] = shown[1]
    return found


def test_the_section_runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    blocks = blocks_under("## Users")
    first, second = [block.text.splitlines() for block in blocks if block.kind == "shell"]
    (written,) = [block.text for block in blocks if block.kind == "toml"]
    monkeypatch.chdir(tmp_path)
    secrets = secrets_of(first)
    users = tmp_path / "users.toml"

    def create(topic: str, user: str) -> int:
        keys = f"--access-key {user} --secret-key {secrets[user]}"
        return run(f"gantrymq topic create {topic} --queues 4 {keys}")[0]

    with gantry.server(tmp_path, {"aclEnable": "true"}) as server:
        monkeypatch.setenv("NAMESRV_ADDR", server.name_server)
        assert create("Orders", "shop-admin") == 0
        assert create("Orders", "orders") == 1
        users.write_text(users.read_text() + written, encoding="utf-8")
        secrets |= secrets_of(second)
        begun = time.monotonic()
        while create("OrdersOfMay", "nadia") != 0:
            assert time.monotonic() - begun < RELOAD_S_MAX
            time.sleep(0.2)
        assert create("Payments", "nadia") == 1
        (again,) = blocks_under("### Another key")
        key = (tmp_path / "users.key").read_bytes()
        assert secrets_of(again.text.splitlines()) == {}
        assert (tmp_path / "users.key").read_bytes() != key
        assert create("OrdersOfJune", "nadia") == 0
    seen = server.log.read_text(encoding="utf-8") + users.read_text(encoding="utf-8")
    assert "the file of users has changed" in seen
    assert not [name for name, secret in secrets.items() if secret in seen]
    assert secrets.keys() == {"shop-admin", "orders", "billing", "nadia"}


def test_the_part_on_quotas_is_a_file() -> None:
    (written,) = [block.text for block in blocks_under("### Quotas of users")]
    users = user_file.built_users(user_file.read(written.encode()), None)
    assert users["importer"].quota == {
        "send_bytes": 50_000_000, "send_requests": 2_000, "read_bytes": 20_000_000,
        "connections": 50,
    }  # fmt: skip


def test_the_part_on_certificates_runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    blocks = {block.kind: block.text for block in blocks_under("### Certificates as users")}
    issuer = Issuer(tmp_path / "pki")
    for name in ("clients.pem", "servers.pem"):
        (tmp_path / name).write_bytes(issuer.path.read_bytes())
    issuer.issue("server", for_server=True).rename(tmp_path / "server.pem")
    issuer.issue("any", dns=["mailer.example.com"]).rename(tmp_path / "mailer.pem")
    monkeypatch.chdir(tmp_path)
    secrets_of(["gantrymq user add shop-admin --role admin", *blocks["shell"].splitlines()])
    settings = dict(line.split("=", 1) for line in blocks["properties"].splitlines())
    with gantry.server(tmp_path, settings | {"aclEnable": "true"}) as server:
        program = blocks["python"].replace("127.0.0.1:9876", server.name_server)

        def told() -> subprocess.CompletedProcess[str]:
            return subprocess.run(
                [sys.executable, "-c", program],
                env={**os.environ, "PYTHONPATH": str(ROOT / "src")},
                capture_output=True, text=True, check=False, timeout=60,
            )  # fmt: skip

        assert told().stdout == "SEND_OK\n"
        issuer.issue("mailer").rename(tmp_path / "mailer.pem")  # its names are others
        refused = told()
        assert refused.returncode == 1
        assert "SEND_OK" not in refused.stdout
