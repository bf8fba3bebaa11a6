"""The page on commands is run: every block in order, against a server with a dead letter."""

from __future__ import annotations

import asyncio
import contextlib
import io
import shlex
from pathlib import Path
from typing import TYPE_CHECKING

from gantrymq.admin.sending import Copier
from gantrymq.admin.session import Session
from gantrymq.cli.main import main
from gantrymq.client.outgoing import Outgoing
from gantrymq.wire.properties import encode_properties
from support import gantry, markdown

if TYPE_CHECKING:
    import pytest

PAGE = Path(__file__).parents[2] / "docs" / "admin.md"


async def _die(name_server: str) -> None:
    """Put a dead letter where a broker would."""
    told = {"UNIQ_KEY": "one", "RETRY_TOPIC": "Orders", "TAGS": "new"}
    async with Session(name_server) as session, Copier(session) as copier:
        sending = copier._sending
        made = Outgoing("%DLQ%billing", "one", encode_properties(told), b"letter")
        await sending.send(made, None, sending.deadline(10))


def run(line: str) -> tuple[int, str]:
    name, *words = shlex.split(line)
    assert name == "gantrymq"
    out = io.StringIO()
    with contextlib.redirect_stdout(out):
        return main(words), out.getvalue()


def test_the_page_runs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    blocks = markdown.blocks(PAGE.read_text(encoding="utf-8"))
    lines = [line for block in blocks if block.kind == "shell" for line in block.text.splitlines()]
    assert len(lines) >= 25
    (file,) = [block.text for block in blocks if block.kind == "toml"]
    monkeypatch.chdir(tmp_path)
    Path("site.toml").write_text(file, encoding="utf-8")
    with gantry.server(tmp_path / "server", {"brokerName": "broker-a"}) as server:
        monkeypatch.setenv("NAMESRV_ADDR", server.name_server)
        for line in lines:
            if line == "gantrymq dlq list":
                assert run("gantrymq topic create %DLQ%billing --queues 1")[0] == 0
                asyncio.run(_die(server.name_server))
            status, said = run(line)
            assert (status, capsys.readouterr().err) == (0, ""), line
            assert said, line
    assert '"r":"sent"' in Path("billing.jsonl").read_text(encoding="utf-8")
