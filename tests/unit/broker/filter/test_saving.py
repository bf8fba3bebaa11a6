"""SQL92 filters of groups over a restart: config/consumerFilter.json as an Apache broker has it."""

from __future__ import annotations

import json
from typing import Any

import pytest

from gantrymq.model.group import Subscription
from gantrymq.store.errors import StoreDamaged
from gantrymq.wire.bodies.heartbeat import HEARTBEAT
from support.broker_rig import BrokerRig, pull
from support.client_peers import FakePeer, consumer, heartbeat
from support.remoting import split_records
from support.samples import json_request

BY_GROUP: dict[str, Any] = {"sysFlag": "0", "subscription": None, "subVersion": "5"}
DAY_S = 86_400


def sql(expression: str = "a = 1", version: int = 5) -> Subscription:
    return Subscription(topic="T", expression=expression, version=version, expression_type="SQL92")


def beat(rig: BrokerRig, number: int, *subscriptions: Subscription) -> FakePeer:
    peer = FakePeer(number)
    body = HEARTBEAT.encode(heartbeat(f"client-{number}", consumer("group", *subscriptions)))
    assert rig.ask(json_request(34, {}, body), peer).code == 0
    return peer


def saved(rig: BrokerRig) -> dict[str, Any]:
    path = rig.broker.store_settings.paths.config / "consumerFilter.json"
    found = json.loads(rig.disk.read(path))
    return dict(found["filterDataByTopic"])


def rig_with_filter() -> tuple[BrokerRig, FakePeer]:
    rig = BrokerRig(property_filter=True)
    peer = beat(rig, 5, sql())
    rig.settle(11)
    return rig, peer


def test_a_filter_is_in_the_file_and_back_after_a_kill() -> None:
    rig, _peer = rig_with_filter()
    one = saved(rig)["T"]["groupFilterData"]["group"]
    assert (one["expression"], one["expressionType"], one["clientVersion"]) == (
        "a = 1",
        "SQL92",
        5,
    )
    born = one["bornTime"]
    again = rig.again()
    found = again.broker.tables.filters.get("T", "group")
    assert found is not None
    assert (found.born_ms, found.is_dead) == (born, True), "gone until a heartbeat says otherwise"
    beat(again, 6, sql())
    again.store_some(b"one", i="a\x011")
    again.store_some(b"two", i="a\x012")
    answer = again.ask(pull(**BY_GROUP))
    assert len(split_records(answer.body)) == 1
    found = again.broker.tables.filters.get("T", "group")
    assert found is not None
    assert (found.born_ms, found.is_dead) == (born, False)


def test_a_pull_that_brings_its_expression_needs_no_group_after_a_restart() -> None:
    rig, _peer = rig_with_filter()
    rig.store_some(b"one", i="a\x011")
    rig.store_some(b"two", i="a\x012")
    again = rig.again()
    own: dict[str, Any] = {"expressionType": "SQL92", "subscription": "a = 2"}
    (record,) = split_records(again.ask(pull(**own)).body)
    assert b"two" in record
    assert again.ask(pull(**BY_GROUP)).code == 24, "nobody of the group is here, as with Apache"


@pytest.mark.parametrize("how", ["closed", "left", "silent"])
def test_the_last_member_takes_its_filter_along(how: str) -> None:
    rig, peer = rig_with_filter()
    other = beat(rig, 6, sql())
    rig.service.closed(other)
    found = rig.broker.tables.filters.get("T", "group")
    assert found is not None
    assert not found.is_dead, "one is left"
    if how == "closed":
        rig.service.closed(peer)
    elif how == "left":
        fields = {"clientID": "client-5", "consumerGroup": "group"}
        assert rig.ask(json_request(35, fields), peer).code == 0
    else:
        rig.settle(131)
    rig.settle(11)
    assert saved(rig)["T"]["groupFilterData"]["group"]["dead"] is True
    rig.settle(DAY_S + 60)
    rig.settle(11)
    assert saved(rig) == {}, "a day later it is forgotten"


def test_a_file_that_is_none_stops_the_start() -> None:
    rig, _peer = rig_with_filter()
    path = rig.broker.store_settings.paths.config / "consumerFilter.json"
    disk = rig.disk.kill()
    disk.place(path, b"not json")
    rig.again(disk)  # its backup is there from the first save on
    disk = rig.disk.kill()
    disk.place(path, b"not json")
    disk.place(path.with_name(f"{path.name}.bak"), b"nor this")
    with pytest.raises(StoreDamaged, match="consumerFilter"):
        rig.again(disk)
