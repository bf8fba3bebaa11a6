"""Topics, groups, queues, routes and versions as values."""

from __future__ import annotations

import pickle

import pytest

from gantrymq.errors import InvalidValue
from gantrymq.model.group import RETRY_DELAYS_MS, RetryPolicyType, Subscription, SubscriptionGroup
from gantrymq.model.offsets import DataVersion, OffsetKey
from gantrymq.model.queue import MessageQueue, QueueId
from gantrymq.model.route import BrokerData, QueueData, TopicRoute
from gantrymq.model.topic import READ_WRITE, FilterType, Perm, TopicConfig


@pytest.mark.parametrize(
    ("perm", "text"),
    [(0, "---"), (1, "--X"), (2, "-W-"), (4, "R--"), (6, "RW-"), (7, "RWX"), (14, "RW-")],
)
def test_permissions_as_mqadmin_prints_them(perm: int, text: str) -> None:
    assert Perm(perm).text == text


@pytest.mark.parametrize(
    ("text", "perm"),
    [("6", 6), ("RW-", 6), ("rw-", 6), ("---", 0), ("0", 0), ("R-X", 5)],
)
def test_permissions_are_read(text: str, perm: int) -> None:
    assert Perm.parse(text) == perm


@pytest.mark.parametrize("text", ["", "8", "-1", "RW", "W--", "66", "\u096c"])
def test_other_permissions_are_refused(text: str) -> None:
    with pytest.raises(InvalidValue, match="0 to 7"):
        Perm.parse(text)


def test_a_topic_has_the_defaults_of_rocketmq() -> None:
    topic = TopicConfig("t")
    assert (topic.read_queues, topic.write_queues, topic.perm) == (16, 16, READ_WRITE)
    assert (topic.filter_type, topic.system_flags, topic.order) == (FilterType.SINGLE_TAG, 0, False)
    assert topic.readable
    assert topic.writable
    assert not TopicConfig("t", perm=Perm.READ).writable
    assert not TopicConfig("t", perm=Perm.WRITE).readable


@pytest.mark.parametrize("count", [-1, 65537])
def test_a_topic_cannot_have_any_number_of_queues(count: int) -> None:
    with pytest.raises(InvalidValue, match=f"{count} read queues"):
        TopicConfig("t", read_queues=count)
    with pytest.raises(InvalidValue, match=f"{count} write queues"):
        TopicConfig("t", write_queues=count)


def test_a_group_has_the_defaults_of_rocketmq() -> None:
    group = SubscriptionGroup("g")
    assert group.consume_enabled
    assert (group.retry_queues, group.retry_times_max, group.slow_reader_broker_id) == (1, 16, 1)
    assert group.retry_policy.type is RetryPolicyType.CUSTOMIZED
    assert (len(RETRY_DELAYS_MS), RETRY_DELAYS_MS[0], RETRY_DELAYS_MS[-1]) == (18, 1000, 7_200_000)
    with pytest.raises(InvalidValue, match="retry queues"):
        SubscriptionGroup("g", retry_queues=65537)


def test_a_subscription_takes_everything_by_default() -> None:
    subscription = Subscription("t")
    assert (subscription.expression, subscription.expression_type) == ("*", "TAG")


def test_queues_are_ordered_by_topic_broker_and_number() -> None:
    queues = [
        MessageQueue("t", "b", QueueId(10)),
        MessageQueue("t", "a", QueueId(3)),
        MessageQueue("s", "z", QueueId(9)),
        MessageQueue("t", "b", QueueId(9)),
    ]
    assert [str(queue) for queue in sorted(queues)] == ["s@z:9", "t@a:3", "t@b:9", "t@b:10"]
    assert len({*queues, queues[0]}) == 4


def test_values_are_frozen_and_cross_processes() -> None:
    topic = TopicConfig("t")
    with pytest.raises(AttributeError):
        topic.name = "u"  # type: ignore[misc]  # this is the test
    assert pickle.loads(pickle.dumps(topic)) == topic  # noqa: S301  # its own bytes


def test_a_version_grows_with_each_change() -> None:
    first = DataVersion()
    second = first.next(5)
    assert second == DataVersion(0, 5, 1)
    assert second.next(4, state_version=1) == DataVersion(1, 4, 2)
    assert second.next(4, state_version=1) > second


def test_offset_keys() -> None:
    assert OffsetKey("%RETRY%g", "g").text == "%RETRY%g@g"
    assert OffsetKey.parse("t@g") == ("t", "g")
    for text in ("", "t", "@g", "t@", "t@g@h"):
        with pytest.raises(InvalidValue, match="topic@group"):
            OffsetKey.parse(text)


def test_a_route_knows_its_master() -> None:
    route = TopicRoute(
        queues=(QueueData("a", 4, 4, READ_WRITE),),
        brokers=(BrokerData("c", "a", {0: "192.0.2.1:10911"}), BrokerData("c", "b", {1: "x:1"})),
    )
    assert [broker.master for broker in route.brokers] == ["192.0.2.1:10911", None]
