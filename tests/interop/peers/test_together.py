"""Clients in several languages at one server share one group."""

from __future__ import annotations

import time
from contextlib import ExitStack
from typing import TYPE_CHECKING, Final

import pytest

from interop.peers import scenarios
from interop.peers.clients import command_of
from interop.peers.scenarios import Sharing, World
from support import gantry, peers

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from pathlib import Path

REOWNED_SECONDS_MAX: Final = 60


@pytest.fixture
def stack() -> Iterator[ExitStack]:
    """Hold what runs until the test has ended."""
    with ExitStack() as held:
        yield held


def started(stack: ExitStack, work: Path, names: Iterable[str]) -> list[World]:
    """Start a server and clients; return a world for each client."""
    commands = [command_of(name) for name in names]
    server = stack.enter_context(gantry.server(work / "server", scenarios.SETTINGS))
    worlds = []
    for place, command in enumerate(commands):
        peer = peers.running(command, server.name_server, work / str(place))
        name = f"together-{place}"
        worlds.append(World(stack.enter_context(peer), server.name_server, server.port, name))
    return worlds


def test_members_in_several_languages_share_one_group(stack: ExitStack, tmp_path: Path) -> None:
    worlds = started(stack, tmp_path, ("java-4.9.7", "go", "node", "cpp"))
    sharing = Sharing(worlds[0], queues=8)
    for world in worlds:
        sharing.members.append(world.consumer(sharing.topic, sharing.group))
    sharing.settle()
    assert all(member.received() for member in sharing.members)


def test_the_queues_of_a_killed_member_go_to_the_others(stack: ExitStack, tmp_path: Path) -> None:
    worlds = started(stack, tmp_path, ("java-4.9.7", "java-4.9.7"))
    sharing = Sharing(worlds[0], queues=4)
    for world in worlds:  # messages flow until each that has come has its share
        sharing.members.append(world.consumer(sharing.topic, sharing.group))
        sharing.settle()
    start = time.monotonic()
    worlds[1].peer.end()
    sharing.gone.append(sharing.members.pop())
    sharing.settle()
    assert time.monotonic() - start <= REOWNED_SECONDS_MAX
    assert len(sharing.members) == 1
