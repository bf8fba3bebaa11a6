"""Groups over the wire: made, changed, deleted with all they own, forbidden, listed."""

from __future__ import annotations

import pytest

from gantrymq.broker.admin import groups
from gantrymq.model.group import SubscriptionGroup
from gantrymq.model.queue import MessageQueue, QueueId
from gantrymq.wire.bodies.assignment import RequestModeSetting
from gantrymq.wire.bodies.group import (
    GROUP_CONFIG,
    GROUP_CONFIG_LIST,
    GROUP_FORBIDDEN,
    GROUP_LIST,
    GROUP_SUBSCRIPTION,
    GROUP_TABLE,
    GroupConfigList,
)
from gantrymq.wire.bodies.topic import TOPIC_LIST
from gantrymq.wire.codes import RequestCode
from support.admin_world import ADDRESS, AskedPeer, World
from support.client_peers import consumer, heartbeat, subscription


def test_a_group_is_made_changed_and_saved() -> None:
    world = World()
    for times in (3, 5):
        group = SubscriptionGroup("G", retry_times_max=times)
        body = GROUP_CONFIG.encode(group)
        assert world.ask(RequestCode.UPDATE_AND_CREATE_SUBSCRIPTIONGROUP, body=body).code == 0
        assert world.tables.groups.find("G") == group
        assert not world.tables.groups.is_dirty
    assert world.again().tables.groups.find("G") == group


@pytest.mark.parametrize(
    ("body", "code"),
    [
        (b'{"groupName":"a b"}', 29),
        (b'{"groupName":""}', 29),
        (b'{"groupName":"G","retryQueueNums":70000}', 1),
        (b'{"groupName":"G","attributes":{"+nothing":"1"}}', 29),
        (b"{}", 1),
        (b"", 1),
        (b"not json", 1),
    ],
)
def test_a_group_that_cannot_be_is_refused(body: bytes, code: int) -> None:
    world = World()
    before = dict(world.tables.groups.all())
    reply = world.ask(RequestCode.UPDATE_AND_CREATE_SUBSCRIPTIONGROUP, body=body)
    assert (reply.code, bool(reply.remark)) == (code, True)
    assert world.tables.groups.all() == before


def test_several_groups_are_made_or_none(monkeypatch: pytest.MonkeyPatch) -> None:
    world = World()
    code = RequestCode.UPDATE_AND_CREATE_SUBSCRIPTIONGROUP_LIST

    def ask(*names: str) -> int:
        listed = tuple(SubscriptionGroup(name) for name in names)
        body = GROUP_CONFIG_LIST.encode(GroupConfigList(group_config_list=listed))
        return world.ask(code, body=body).code

    assert ask("A", "B") == 0
    assert ask("C", "d e") == 29
    monkeypatch.setattr(groups, "GROUPS_AT_ONCE_MAX", 1)
    assert ask("E", "F") == 29
    assert set("ABCEF") & world.tables.groups.all().keys() == {"A", "B"}


@pytest.mark.parametrize("flag", ["cleanOffset", "removeOffset"])
def test_a_deleted_group_leaves_nothing(flag: str) -> None:
    world = World()
    world.group("G")
    world.commit("G", "T", 0, 2)
    queue = MessageQueue("T", "broker-a", QueueId(0))
    world.tables.locks.lock("G", "me", [queue])
    world.tables.modes.put(RequestModeSetting(topic="T", consumer_group="G"))
    world.tables.groups.forbid("G", "T", forbidden=True)
    world.broker.counting.broker.got("G", "T", 0, 3, 30)
    fields = {"groupName": "G", flag: "true"}
    assert world.ask(RequestCode.DELETE_SUBSCRIPTIONGROUP, fields).code == 0
    assert world.tables.groups.find("G") is None
    assert world.tables.groups.forbidden == {}
    assert world.tables.locks.holder("G", queue) is None
    assert world.tables.modes.find("T", "G") is None
    assert world.broker.counting.broker.view("GROUP_GET_NUMS", "T@G") is None
    after = world.again()
    assert after.tables.groups.find("G") is None
    assert after.tables.offsets.topics_of("G") == frozenset()


def test_offsets_stay_unless_they_are_to_go() -> None:
    world = World()
    world.group("G")
    world.commit("G", "T", 0, 2)
    assert world.ask(RequestCode.DELETE_SUBSCRIPTIONGROUP, {"groupName": "G"}).code == 0
    assert world.tables.offsets.find("G", "T", 0) == 2
    assert world.ask(RequestCode.DELETE_SUBSCRIPTIONGROUP, {"groupName": "Nope"}).code == 0
    assert world.ask(RequestCode.DELETE_SUBSCRIPTIONGROUP).code == 1


def test_all_groups_come_in_pages_or_at_once() -> None:
    world = World()
    world.group("G")
    world.tables.groups.forbid("G", "T", forbidden=True)
    reply = world.ask(RequestCode.GET_ALL_SUBSCRIPTIONGROUP_CONFIG)
    table = GROUP_TABLE.decode(reply.body)
    assert table.subscription_group_table == world.tables.groups.all()
    assert table.forbidden_table == {"G": {"T": 4}}
    assert reply.fields == {"totalGroupNum": str(len(world.tables.groups.all()))}
    first = world.ask(RequestCode.GET_ALL_SUBSCRIPTIONGROUP_CONFIG, {"maxGroupNum": "1"})
    page = GROUP_TABLE.decode(first.body)
    assert len(page.subscription_group_table) == 1
    assert page.forbidden_table == {}


def test_one_group_is_shown() -> None:
    world = World()
    world.group("G")
    reply = world.ask(RequestCode.GET_SUBSCRIPTIONGROUP_CONFIG, {"group": "G"})
    assert GROUP_CONFIG.decode(reply.body) == SubscriptionGroup("G")
    assert world.ask(RequestCode.GET_SUBSCRIPTIONGROUP_CONFIG, {"group": "Nope"}).code == 26


def test_reading_is_forbidden_and_allowed_again() -> None:
    world = World()
    world.group("G")
    code = RequestCode.UPDATE_AND_GET_GROUP_FORBIDDEN

    def readable(**more: str) -> bool | None:
        reply = world.ask(code, {"group": "G", "topic": "T"} | more)
        return GROUP_FORBIDDEN.decode(reply.body).readable

    assert readable() is True
    assert readable(readable="false") is False
    assert readable() is False
    assert readable(readable="true") is True
    unknown = {"group": "Nope", "topic": "T", "readable": "false"}
    assert world.ask(code, unknown).code == 26


def test_readers_are_who_is_online_and_who_has_offsets() -> None:
    world = World()
    world.commit("Offline", "T", 0, 1)
    world.join(heartbeat("c1", consumer("Online", subscription("T"))), AskedPeer(2))
    reply = world.ask(RequestCode.QUERY_TOPIC_CONSUME_BY_WHO, {"topic": "T"})
    assert GROUP_LIST.decode(reply.body).group_list == ("Offline", "Online")
    none = world.ask(RequestCode.QUERY_TOPIC_CONSUME_BY_WHO, {"topic": "Nope"})
    assert GROUP_LIST.decode(none.body).group_list == ()


def test_topics_and_subscriptions_of_a_group() -> None:
    world = World()
    world.commit("G", "B", 0, 1)
    world.commit("G", "A", 0, 1)
    reply = world.ask(RequestCode.QUERY_TOPICS_BY_CONSUMER, {"group": "G"})
    listed = TOPIC_LIST.decode(reply.body)
    assert (listed.topic_list, listed.broker_addr) == (("A", "B"), ADDRESS)
    world.join(heartbeat("c1", consumer("G", subscription("A", "x||y"))), AskedPeer(2))
    code = RequestCode.QUERY_SUBSCRIPTION_BY_CONSUMER
    found = GROUP_SUBSCRIPTION.decode(world.ask(code, {"group": "G", "topic": "A"}).body)
    assert found.subscription_data is not None
    assert found.subscription_data.expression == "x||y"
    none = GROUP_SUBSCRIPTION.decode(world.ask(code, {"group": "G", "topic": "B"}).body)
    assert none.subscription_data is None
