"""Java clients with Apache's hook for access control, at a server that checks every request."""

from __future__ import annotations

from contextlib import ExitStack
from typing import TYPE_CHECKING, Final

import pytest

from interop.peers.clients import had
from interop.peers.scenarios import SETTINGS, World, texts
from support import gantry, peers
from support.accounts import write_accounts

if TYPE_CHECKING:
    from pathlib import Path

VERSIONS: Final = ("4.9.7", "5.5.0")
ACCOUNTS: Final = """\
accounts:
  - accessKey: java-client
    secretKey: secret-of-java
    topicPerms:
      - SignedTopic=PUB|SUB
    defaultGroupPerm: SUB
"""


@pytest.mark.parametrize("version", VERSIONS)
def test_a_signed_client_works_and_one_with_another_secret_does_not(
    tmp_path: Path, version: str
) -> None:
    key = "-DaccessKey=java-client"
    right = had(f"java-{version}", lambda: peers.java(version, key, "-DsecretKey=secret-of-java"))
    wrong = had(f"java-{version}", lambda: peers.java(version, key, "-DsecretKey=wrong-secret"))
    work = tmp_path / "server"
    work.mkdir()
    write_accounts(work, ACCOUNTS)
    with ExitStack() as stack:
        server = stack.enter_context(gantry.server(work, {**SETTINGS, "aclEnable": "true"}))
        worlds = []
        for place, command in enumerate((right, wrong)):
            peer = peers.running(command, server.name_server, tmp_path / str(place))
            world = World(
                stack.enter_context(peer), server.name_server, server.port, f"acl-{place}"
            )
            worlds.append(world)
        bodies = texts(20, version)
        worlds[0].send("SignedTopic", [{"body": body} for body in bodies])
        worlds[0].all_of(worlds[0].consumer("SignedTopic", **{"from": "first"}), bodies)
        for world, topic in ((worlds[0], "OtherTopic"), (worlds[1], "SignedTopic")):
            with pytest.raises(peers.PeerError):
                world.send(topic, [{"body": "refused"}])
