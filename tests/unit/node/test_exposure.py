"""Which addresses a server takes without access control, and which it tells others."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

import pytest

from gantrymq.cli.shards import shard_properties
from gantrymq.node import broker_node as broker_node_module
from gantrymq.node.config import (
    is_bound_by_default,
    read_broker_config,
    read_namesrv_settings,
)
from gantrymq.node.exposure import reach_line, refuse_exposed, refuse_unreachable
from gantrymq.node.namesrv_node import NamesrvNode
from gantrymq.store.settings import InvalidSettings
from support.nodes import broker_node

if TYPE_CHECKING:
    from pathlib import Path

    from gantrymq.broker.settings import BrokerSettings

INSECURE = {"insecure": "true"}
PROTECTED = {"aclEnable": "true"}
OTHERS = ["0.0.0.0", "::", "[::]", "192.0.2.7", "2001:db8::1", "broker.example", "128.0.0.1"]  # noqa: S104
OWN = ["127.0.0.1", "127.0.0.2", "::1", "[::1]", "localhost"]


def broker(folder: Path, **properties: str) -> BrokerSettings:
    return read_broker_config(properties, folder).broker


@pytest.mark.parametrize(
    ("said", "listens"),
    [
        ({}, "127.0.0.1"),
        ({"bindAddress": ""}, "127.0.0.1"),
        (INSECURE, "0.0.0.0"),  # noqa: S104
        (PROTECTED, "0.0.0.0"),  # noqa: S104
        (INSECURE | {"bindAddress": "192.0.2.7"}, "192.0.2.7"),
        (PROTECTED | {"bindAddress": "127.0.0.1"}, "127.0.0.1"),
    ],
)
def test_where_a_server_listens(tmp_path: Path, said: dict[str, str], listens: str) -> None:
    found = read_broker_config(said, tmp_path)
    assert found.broker.bind_address == listens
    assert found.properties()["bindAddress"] == listens
    if said.get("bindAddress") != "":  # which a name server takes for a slip
        assert read_namesrv_settings(said).bind_address == listens


@pytest.mark.parametrize("address", OTHERS)
def test_other_machines_come_in_with_accounts_or_with_a_word(tmp_path: Path, address: str) -> None:
    told = {"bindAddress": address}
    for settings in (broker(tmp_path, **told), read_namesrv_settings(told)):
        with pytest.raises(InvalidSettings, match="bindAddress is ") as refused:
            refuse_exposed(settings)
        for way in ("aclEnable=true", "--insecure", "insecure=true", "docs/security.md"):
            assert way in str(refused.value)
    for more in (INSECURE, PROTECTED):
        refuse_exposed(broker(tmp_path, **told, **more))
        refuse_exposed(read_namesrv_settings(told | more))


@pytest.mark.parametrize("address", OTHERS)
def test_metrics_are_a_port_as_well(tmp_path: Path, address: str) -> None:
    told = {"metricsBindAddress": address, "metricsPort": "0"}
    for settings in (broker(tmp_path, **told), read_namesrv_settings(told)):
        with pytest.raises(InvalidSettings, match="metricsBindAddress is "):
            refuse_exposed(settings)
    refuse_exposed(broker(tmp_path, **told | {"metricsPort": "-1"}))
    refuse_exposed(broker(tmp_path, **told, **INSECURE))
    refuse_exposed(read_namesrv_settings(told | PROTECTED))


@pytest.mark.parametrize("address", OWN)
def test_this_machine_needs_no_word(tmp_path: Path, address: str) -> None:
    told = {"bindAddress": address, "metricsBindAddress": address, "metricsPort": "0"}
    for settings in (broker(tmp_path, **told), read_namesrv_settings(told)):
        refuse_exposed(settings)
        assert settings.bind_address == settings.metrics_bind_address == address
        assert reach_line(settings, is_bound_by_default=False) == ""


@pytest.mark.parametrize("bind", ["", *OWN])
@pytest.mark.parametrize("name", ["brokerIP1", "brokerIP2"])
def test_nobody_is_told_an_address_that_is_not_listened_at(
    tmp_path: Path, name: str, bind: str
) -> None:
    told = {"bindAddress": bind, name: "192.0.2.7"}
    for more in ({}, PROTECTED if bind else {}):  # what is bound by hand stays where it is
        with pytest.raises(InvalidSettings, match=f"{name} is 192.0.2.7") as refused:
            refuse_unreachable(broker(tmp_path, **told, **more))
        assert "aclEnable=true" in str(refused.value)
        assert "--insecure" in str(refused.value)
    refuse_unreachable(broker(tmp_path, **{name: "192.0.2.7"}, **INSECURE))
    refuse_unreachable(broker(tmp_path, **{name: "127.0.0.1"}, bindAddress=bind))


@pytest.mark.parametrize(
    "far",
    [
        {"namesrvAddr": "192.0.2.1:9876"},
        {"namesrvAddr": "127.0.0.1:9876;names.example:9876"},
        {"failoverEtcd": "192.0.2.1:2379", "failoverId": "1"},
    ],
)
def test_a_far_name_server_is_not_told_of_a_loopback_address(
    tmp_path: Path, far: dict[str, str]
) -> None:
    """Every machine has its own 127.0.0.1: clients would send to another broker than they think."""

    def check(more: dict[str, str]) -> None:
        properties = far | more
        refuse_unreachable(
            broker(tmp_path, **properties), is_bound_by_default=is_bound_by_default(properties)
        )

    with pytest.raises(InvalidSettings, match="on another machine"):
        check({})
    for more in (INSECURE, PROTECTED, {"bindAddress": "127.0.0.1"}):
        check(more)
    near = {name: "127.0.0.1:9876" if "Addr" in name else value for name, value in far.items()}
    if "failoverEtcd" not in near:
        refuse_unreachable(broker(tmp_path, **near), is_bound_by_default=True)


@pytest.mark.parametrize("said", [{}, INSECURE, PROTECTED, INSECURE | {"brokerIP1": "192.0.2.7"}])
def test_shards_are_reached_as_their_parent_would_be(tmp_path: Path, said: dict[str, str]) -> None:
    parent = read_broker_config(said, tmp_path)
    for number in range(2):
        properties = shard_properties(parent, said, number)
        shard = read_broker_config(properties, tmp_path).broker
        refuse_exposed(shard)
        refuse_unreachable(shard, is_bound_by_default=is_bound_by_default(properties))
        assert shard.bind_address == parent.broker.bind_address
        assert (shard.insecure, shard.acl) == (parent.broker.insecure, parent.broker.acl)


@pytest.mark.parametrize(
    ("said", "words"),
    [
        ({}, "for this machine alone"),
        ({"bindAddress": "127.0.0.1"}, ""),
        (INSECURE, "without access control"),
        (PROTECTED, ""),
    ],
)
def test_whoever_starts_it_is_told_once(tmp_path: Path, said: dict[str, str], words: str) -> None:
    is_default = is_bound_by_default(said)
    for settings in (broker(tmp_path, **said), read_namesrv_settings(said)):
        line = reach_line(settings, is_bound_by_default=is_default)
        assert words in line
        assert bool(words) is bool(line)
        assert "\n" not in line


def test_servers_inside_of_other_programs_refuse_as_well(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def elsewhere(_host: str) -> str:
        return "192.0.2.9"

    async def main() -> None:
        with pytest.raises(InvalidSettings, match="nobody checks who asks"):
            await broker_node(tmp_path / "a", bindAddress="0.0.0.0").start()  # noqa: S104
        with pytest.raises(InvalidSettings, match="brokerIP1 is 192"):
            await broker_node(tmp_path / "b", brokerIP1="192.0.2.9").start()
        told = {"bindAddress": "0.0.0.0", "kvConfigPath": str(tmp_path / "c" / "kv.json")}  # noqa: S104
        with pytest.raises(InvalidSettings, match="nobody checks who asks"):
            await NamesrvNode(read_namesrv_settings(told)).start()
        monkeypatch.setattr(broker_node_module, "resolved", elsewhere)
        with pytest.raises(InvalidSettings, match=r"mq.example \(192.0.2.9\)"):
            await broker_node(tmp_path / "d", brokerIP1="mq.example").start()

    asyncio.run(main())
    assert list(tmp_path.iterdir()) == []
