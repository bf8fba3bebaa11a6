"""Clients that others wrote work with our server as they do with Apache's.

One test is one client with all its scenarios at once, because most of their time is waiting.
"""

from __future__ import annotations

import os
import traceback
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Final

import pytest

from interop.peers import scenarios
from interop.peers.clients import CLIENTS, command_of
from interop.peers.scenarios import SCENARIOS, World
from support import gantry, peers

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path

    from support.peers import Peer

CHOSEN: Final = [name for name in os.environ.get("GANTRYMQ_SCENARIOS", "").split(",") if name]


def failures(
    names: Iterable[str], peer: Peer, name_server: str, port: int, client: str
) -> dict[str, str]:
    """Run scenarios side by side; return what went wrong, by scenario."""

    def outcome(name: str) -> str:
        try:
            world = World(peer, name_server, port, f"{client.replace('.', '')}-{name}")
            SCENARIOS[name].run(world)
        except Exception as error:  # noqa: BLE001  (the others go on)
            places = traceback.extract_tb(error.__traceback__)[1:]
            where = ", ".join(f"{place.name} line {place.lineno}" for place in places)
            return f"{type(error).__name__}: {error} ({where})"
        return ""

    with ThreadPoolExecutor(len(SCENARIOS)) as threads:
        waiting = {name: threads.submit(outcome, name) for name in names}
        return {name: said for name, future in waiting.items() if (said := future.result())}


@pytest.mark.parametrize("client", CLIENTS)
def test_a_client_does_all_it_can(client: str, tmp_path: Path) -> None:
    command = command_of(client)
    abilities = CLIENTS[client].abilities | {""}
    names = [name for name, scenario in SCENARIOS.items() if scenario.needs in abilities]
    names = [name for name in names if not CHOSEN or name in CHOSEN]
    with (
        gantry.server(tmp_path / "server", scenarios.SETTINGS) as server,
        peers.running(command, server.name_server, tmp_path / client) as peer,
    ):
        failed = failures(names, peer, server.name_server, server.port, client)
        said = f"{peer.said()}\n-- server:\n{gantry.log_end(server.log)}" if failed else ""
    assert not failed, "\n\n".join(f"{name}: {why}" for name, why in failed.items()) + said
