"""HTTPS of the dashboard, by hand: which versions of TLS it speaks."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

import pytest

from gantrymq.dashboard.serving import DashboardServer
from gantrymq.dashboard.settings import DashboardSettings
from support.issuing import Issuer, hello_of

if TYPE_CHECKING:
    from pathlib import Path


@pytest.mark.parametrize(("version", "speaks"), [("0301", False), ("0302", False), ("0303", True)])
def test_nothing_below_tls_1_2_is_spoken(tmp_path: Path, version: str, *, speaks: bool) -> None:
    own = Issuer(tmp_path / "pki").issue("dashboard", for_server=True)

    async def main() -> bytes:
        settings = DashboardSettings(
            namesrv="127.0.0.1:1", data=tmp_path / "data", port=0, login=False,
            certificate=own, key=own,
        )  # fmt: skip
        server = DashboardServer(settings)
        await server.start()
        try:
            reader, writer = await asyncio.open_connection("127.0.0.1", server.port)
            writer.write(hello_of(bytes.fromhex(version)))
            answer = await asyncio.wait_for(reader.read(64), 10)
            writer.close()
        finally:
            await server.stop()
        return answer

    answer = asyncio.run(main())
    assert answer.startswith(b"\x16") is speaks
