"""Java clients that are told to speak TLS (`tls.enable`, `useTLS`), at a server that wants it."""

from __future__ import annotations

import socket
from contextlib import ExitStack
from typing import TYPE_CHECKING, Final

from interop.peers.clients import had
from interop.peers.scenarios import SETTINGS, World, texts
from support import gantry, peers

if TYPE_CHECKING:
    from pathlib import Path

VERSIONS: Final = ("4.9.7", "5.5.0")
USE_TLS: Final = "-Dtls.enable=true"
PLAIN_FRAME: Final = bytes([0, 0, 0, 8, 0, 0, 0, 4]) + b"null"


def test_both_releases_meet_over_tls_and_plain_text_is_turned_away(tmp_path: Path) -> None:
    commands = [
        had(f"java-{one}", lambda one=one: peers.java(one, USE_TLS))  # type: ignore[misc]
        for one in VERSIONS
    ]
    with ExitStack() as stack:
        server = stack.enter_context(
            gantry.server(tmp_path / "server", {**SETTINGS, "tls.server.mode": "enforcing"})
        )
        worlds = []
        for place, command in enumerate(commands):
            peer = peers.running(command, server.name_server, tmp_path / str(place))
            name = f"tls-{place}"
            worlds.append(World(stack.enter_context(peer), server.name_server, server.port, name))
        bodies = [texts(20, version) for version in VERSIONS]
        for world, own in zip(worlds, bodies, strict=True):
            world.send("TlsTopic", [{"body": body} for body in own])
        for world in worlds:
            world.all_of(world.consumer("TlsTopic", **{"from": "first"}), [*bodies[0], *bodies[1]])
        for port in (server.port, int(server.name_server.rpartition(":")[2])):
            with socket.create_connection(("127.0.0.1", port), timeout=10) as plain:
                plain.sendall(PLAIN_FRAME)
                assert closed(plain), "it does not speak TLS"


def closed(plain: socket.socket) -> bool:
    """Wait for the other end; tell whether it closed without a word."""
    try:
        return plain.recv(1) == b""
    except ConnectionResetError:
        return True
