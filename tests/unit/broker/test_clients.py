"""Who is connected: heartbeats, members, what they subscribe to, and who is told of changes."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from gantrymq.broker import client_records
from gantrymq.broker.clients import Clients, GroupChange
from gantrymq.errors import InvalidValue
from gantrymq.limits import (
    CLIENT_GROUPS_MAX,
    CLIENT_ID_BYTES_MAX,
    MEMBER_SUBSCRIPTIONS_MAX,
    SUBSCRIPTION_CHARACTERS_MAX,
    SUBSCRIPTION_TAGS_MAX,
)
from gantrymq.model.group import ConsumeType, MessageModel, Subscription
from gantrymq.testing.clock import START_MS, VirtualClock
from gantrymq.wire.codes import LanguageCode
from support.client_peers import FakePeer, consumer, heartbeat, subscription

if TYPE_CHECKING:
    from gantrymq.broker.subscriptions import Mismatch
    from gantrymq.wire.bodies.heartbeat import Heartbeat


class World:
    """Clients and their connections."""

    def __init__(self, *, quiet: tuple[str, ...] = ()) -> None:
        self.clock = VirtualClock()
        self.mismatches: list[Mismatch] = []
        self.clients = Clients(
            self.clock,
            notifies=lambda group: group not in quiet,
            mismatch_changed=self.mismatches.append,
        )
        self.peers = [FakePeer(number) for number in range(1, 6)]

    def beat(self, peer: int, data: Heartbeat) -> list[GroupChange]:
        return self.clients.heartbeat(
            data, self.peers[peer], language=LanguageCode.JAVA, version=401
        )

    def is_empty(self) -> bool:
        clients = self.clients
        return not (
            clients.connection_count
            or clients.consumer_groups()
            or clients.all_producer_groups()
            or clients.mismatches()
        )


def test_a_heartbeat_makes_a_client_known() -> None:
    world = World()
    a = subscription("A", "x || y", 3)
    changes = world.beat(
        0,
        heartbeat(
            "c1", consumer("g", a, consume_type=ConsumeType.CONSUME_ACTIVELY), producers=["p", "q"]
        ),
    )
    peer = world.peers[0]
    assert changes == [GroupChange("g", True, joined=("c1",), topics_changed=True)]
    (member,) = world.clients.members("g")
    assert (member.client_id, member.peer, member.version) == ("c1", peer, 401)
    assert member.seen_ms == START_MS
    state = world.clients.consumer("g")
    assert state is not None
    assert state.consume_type is ConsumeType.CONSUME_ACTIVELY
    assert state.message_model is MessageModel.CLUSTERING
    assert world.clients.subscription("g", "A") == a
    assert world.clients.subscription("g", "B") is None
    assert world.clients.subscription("h", "A") is None
    assert world.clients.groups_subscribed_to("A") == {"g"}
    assert world.clients.all_producer_groups() == ["p", "q"]
    assert [producer.client_id for producer in world.clients.producers("q")] == ["c1"]
    assert world.clients.peer_of_client("c1") is peer
    assert world.clients.member("g", "c1") == member
    assert world.clients.member("g", "c2") is None


def test_saying_the_same_again_changes_nothing() -> None:
    world = World()
    data = heartbeat("c1", consumer("g", subscription("A")), producers=["p"])
    assert world.beat(0, data)
    world.clock.jump(30)
    assert world.beat(0, data) == []
    (member,) = world.clients.members("g")
    assert member.seen_ms == START_MS + 30_000


def test_all_members_are_told_of_a_new_one_and_of_one_that_left() -> None:
    world = World()
    data = consumer("g", subscription("A"))
    world.beat(0, heartbeat("c1", data))
    one, two = world.peers[:2]
    assert world.clients.told_of_changes("g") == [one]
    assert world.beat(1, heartbeat("c2", data)) == [GroupChange("g", True, joined=("c2",))]
    assert world.clients.told_of_changes("g") == [one, two]
    assert world.clients.unregister("c1", "", "g", one) == [GroupChange("g", True, left=("c1",))]
    assert world.clients.peer_closed(two) == [
        GroupChange("g", False, left=("c2",), topics_changed=True, is_gone=True)
    ]
    assert world.is_empty()


def test_nobody_is_told_in_broadcasting_or_where_the_group_does_not_want_it() -> None:
    world = World(quiet=("q",))
    loud = consumer("b", subscription("A"), model=MessageModel.BROADCASTING)
    changes = world.beat(0, heartbeat("c1", loud, consumer("q", subscription("A"))))
    assert [(change.group, change.notify) for change in changes] == [("b", False), ("q", False)]
    assert world.clients.told_of_changes("b") == world.clients.told_of_changes("q") == []
    assert [change.notify for change in world.clients.peer_closed(world.peers[0])] == [False, False]


def test_a_new_topic_is_a_change_and_a_new_expression_is_none() -> None:
    world = World()
    world.beat(0, heartbeat("c1", consumer("g", subscription("A"))))
    newer = subscription("A", "tag", 2)
    assert world.beat(0, heartbeat("c1", consumer("g", newer))) == []
    assert world.clients.subscription("g", "A") == newer
    (change,) = world.beat(0, heartbeat("c1", consumer("g", newer, subscription("B"))))
    assert change.topics_changed
    assert change.joined == ()
    (change,) = world.beat(0, heartbeat("c1", consumer("g", subscription("B"))))
    assert change.topics_changed
    assert world.clients.groups_subscribed_to("A") == frozenset()
    assert world.clients.groups_subscribed_to("B") == {"g"}


def test_an_older_subscription_does_not_replace_another_member_s() -> None:
    world = World()
    new, old = subscription("A", "new", 9), subscription("A", "old", 1)
    world.beat(0, heartbeat("c1", consumer("g", new)))
    world.beat(1, heartbeat("c2", consumer("g", old)))
    assert world.clients.subscription("g", "A") == new
    world.clients.peer_closed(world.peers[0])
    assert world.clients.subscription("g", "A") == old


def test_a_member_s_own_older_version_counts_when_it_is_all_there_is() -> None:
    world = World()
    world.beat(0, heartbeat("c1", consumer("g", subscription("A", "new", 9))))
    world.beat(0, heartbeat("c1", consumer("g", subscription("A", "restored", 2))))
    found = world.clients.subscription("g", "A")
    assert found is not None
    assert found.expression == "restored"


def test_members_that_differ_do_not_take_each_other_s_topics_away() -> None:
    world = World()
    first, second = consumer("g", subscription("A")), consumer("g", subscription("B"))
    world.beat(0, heartbeat("c1", first))
    world.beat(1, heartbeat("c2", second))
    assert world.beat(0, heartbeat("c1", first)) == []
    for topic in "AB":
        assert world.clients.subscription("g", topic) is not None
    (mismatch,) = world.clients.mismatches()
    assert mismatch.group == "g"
    assert [variant.client_ids for variant in mismatch.variants] == [("c1",), ("c2",)]
    assert len(world.mismatches) == 1
    world.clients.peer_closed(world.peers[1])
    assert world.clients.mismatches() == []
    assert world.clients.subscription("g", "B") is None
    assert len(world.mismatches) == 2


def test_a_silent_client_is_forgotten_and_its_connection_closed() -> None:
    world = World()
    data = consumer("g", subscription("A"))
    world.beat(0, heartbeat("c1", data, producers=["p"]))
    world.beat(1, heartbeat("c2", data))
    world.clock.jump(100)
    world.beat(1, heartbeat("c2", data))
    world.clock.jump(20)
    assert world.clients.expire() == []
    world.clock.jump(0.001)
    two = world.peers[1]
    assert world.clients.expire() == [GroupChange("g", True, left=("c1",))]
    assert not world.peers[0].is_open
    assert world.peers[0].closed_because
    assert two.is_open
    assert world.clients.producers("p") == []
    assert world.clients.peer_closed(world.peers[0]) == []


def test_a_group_that_is_no_longer_spoken_of_is_left_and_the_connection_stays() -> None:
    world = World()
    world.beat(0, heartbeat("c1", consumer("g", subscription("A")), producers=["p"]))
    world.clock.jump(100)
    world.beat(0, heartbeat("c1", producers=["p"]))
    world.clock.jump(50)
    assert [change.group for change in world.clients.expire()] == ["g"]
    assert world.peers[0].is_open
    assert world.clients.any_producer("p") is world.peers[0]


def test_the_wall_clock_has_no_say() -> None:
    world = World()
    world.beat(0, heartbeat("c1", producers=["p"]))
    world.clock.set_now_ms(START_MS + 10**9)
    assert world.clients.expire() == []
    assert world.clients.producers("p")


def test_producers_are_asked_in_turn_and_closed_ones_are_not() -> None:
    world = World()
    for number in range(3):
        world.beat(number, heartbeat(f"c{number}", producers=["p"]))
    asked = [world.clients.any_producer("p") for _ in range(6)]
    assert [asked.count(peer) for peer in world.peers[:3]] == [2, 2, 2]
    world.peers[0].is_open = False
    assert world.peers[0] not in [world.clients.any_producer("p") for _ in range(6)]
    assert world.clients.any_producer("nobody") is None


def test_a_client_with_two_connections_is_reached_over_the_later_one_that_is_open() -> None:
    world = World()
    for number in range(2):
        world.beat(number, heartbeat("c1", consumer("g", subscription("A")), producers=["p"]))
        world.clock.jump(1)
    assert world.clients.peer_of_client("c1") is world.peers[1]
    found = world.clients.member("g", "c1")
    assert found is not None
    assert found.peer is world.peers[1]
    world.peers[1].is_open = False
    assert world.clients.peer_of_client("c1") is world.peers[0]
    world.clients.peer_closed(world.peers[0])
    assert world.clients.peer_of_client("c1") is None
    world.clients.peer_closed(world.peers[1])
    assert world.is_empty()


def test_a_connection_that_becomes_another_client_has_left_before() -> None:
    world = World()
    data = consumer("g", subscription("A"))
    world.beat(0, heartbeat("c1", data, consumer("h", subscription("A"))))
    changes = world.beat(0, heartbeat("c2", data))
    assert [(change.group, change.left, change.joined) for change in changes] == [
        ("g", ("c1",), ()),
        ("h", ("c1",), ()),
        ("g", (), ("c2",)),
    ]
    assert world.clients.peer_of_client("c1") is None
    assert world.clients.consumer_groups() == ["g"]


def test_unregistering_what_is_not_there_is_nothing() -> None:
    world = World()
    assert world.clients.unregister("c1", "p", "g", world.peers[0]) == []
    world.beat(0, heartbeat("c1", producers=["p"]))
    assert world.clients.unregister("c1", None, "g", world.peers[0]) == []
    assert world.clients.unregister("c1", "other", None, world.peers[0]) == []
    assert world.clients.producers("p")
    world.clients.unregister("c1", "p", "", world.peers[0])
    assert world.is_empty()


def test_a_heartbeat_about_nothing_leaves_nothing() -> None:
    world = World()
    assert world.beat(0, heartbeat("c1")) == []
    assert world.is_empty()


def test_a_heartbeat_that_is_handled_after_its_connection_closed_leaves_nothing() -> None:
    world = World()
    world.peers[0].close("gone")
    assert world.clients.peer_closed(world.peers[0]) == []
    assert world.beat(0, heartbeat("c1", consumer("g", subscription("A")), producers=["p"])) == []
    assert world.is_empty()


# -- heartbeats of 5.x that leave the subscriptions out


def test_a_classic_heartbeat_is_always_followed_by_a_full_one() -> None:
    world = World()
    world.beat(0, heartbeat("c1", consumer("g", subscription("A"))))
    assert world.clients.wants_full_heartbeat(world.peers[0])
    assert world.clients.wants_full_heartbeat(world.peers[1])


def test_subscriptions_that_are_left_out_stay() -> None:
    world = World()
    world.beat(0, heartbeat("c1", consumer("g", subscription("A")), fingerprint=7))
    assert not world.clients.wants_full_heartbeat(world.peers[0])
    world.clock.jump(100)
    short = heartbeat("c1", consumer("g"), fingerprint=7, without_sub=True)
    assert world.beat(0, short) == []
    assert not world.clients.wants_full_heartbeat(world.peers[0])
    assert world.clients.subscription("g", "A") is not None
    world.clock.jump(100)
    assert world.clients.expire() == []


def test_another_fingerprint_asks_for_all_until_it_comes() -> None:
    world = World()
    world.beat(0, heartbeat("c1", consumer("g", subscription("A")), fingerprint=7))
    short = heartbeat("c1", consumer("g"), fingerprint=8, without_sub=True)
    for _ in range(2):
        world.beat(0, short)
        assert world.clients.wants_full_heartbeat(world.peers[0])
    world.beat(0, heartbeat("c1", consumer("g", subscription("B")), fingerprint=8))
    world.beat(0, short)
    assert not world.clients.wants_full_heartbeat(world.peers[0])
    assert world.clients.subscription("g", "A") is None
    assert world.clients.subscription("g", "B") is not None


def test_a_restarted_broker_asks_for_subscriptions_that_it_does_not_know() -> None:
    world = World()
    short = heartbeat("c1", consumer("g"), fingerprint=7, without_sub=True)
    (change,) = world.beat(0, short)
    assert change.joined == ("c1",)
    assert world.clients.wants_full_heartbeat(world.peers[0])
    assert world.clients.mismatches() == []
    (change,) = world.beat(0, heartbeat("c1", consumer("g", subscription("A")), fingerprint=7))
    assert change.topics_changed


# -- bounds


@pytest.mark.parametrize(
    "data",
    [
        heartbeat(""),
        heartbeat("c" * (CLIENT_ID_BYTES_MAX + 1), producers=["p"]),
        heartbeat("c\n", producers=["p"]),
        heartbeat("c", producers=[""]),
        heartbeat("c", producers=["p" * 300]),
        heartbeat("c", consumer("g" * 300)),
        heartbeat("c", consumer("g", subscription("T" * 300))),
        heartbeat("c", consumer("g", subscription(""))),
        heartbeat("c", consumer("g", subscription("T", "x" * (SUBSCRIPTION_CHARACTERS_MAX + 1)))),
        heartbeat("c", producers=[f"p{number}" for number in range(CLIENT_GROUPS_MAX + 1)]),
        heartbeat("c", *(consumer(f"g{number}") for number in range(CLIENT_GROUPS_MAX + 1))),
        heartbeat(
            "c",
            consumer("g", *(subscription(f"T{n}") for n in range(MEMBER_SUBSCRIPTIONS_MAX + 1))),
        ),
        heartbeat(
            "c",
            consumer(
                "g",
                Subscription("T", tag_codes=frozenset(range(SUBSCRIPTION_TAGS_MAX + 1))),
            ),
        ),
    ],
    ids=range(13),
)
def test_what_is_too_much_is_refused_and_changes_nothing(data: Heartbeat) -> None:
    world = World()
    world.beat(0, heartbeat("known", producers=["p"]))
    with pytest.raises(InvalidValue) as caught:
        world.beat(0, data)
    assert len(str(caught.value)) < 400
    assert world.clients.peer_of_client("known") is world.peers[0]
    assert world.clients.connection_count == 1


def test_many_small_heartbeats_are_no_way_around_the_bounds(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(client_records, "CLIENT_GROUPS_MAX", 3)
    world = World()
    for number in range(3):
        world.beat(0, heartbeat("c", consumer(f"g{number}"), producers=[f"p{number}"]))
    with pytest.raises(InvalidValue, match="4 consumer groups"):
        world.beat(0, heartbeat("c", consumer("g3")))
    with pytest.raises(InvalidValue, match="4 producer groups"):
        world.beat(0, heartbeat("c", producers=["p3"]))
    world.clients.unregister("c", "p0", "g0", world.peers[0])
    world.beat(0, heartbeat("c", consumer("g3"), producers=["p3"]))
    assert world.clients.consumer_groups() == ["g1", "g2", "g3"]


def test_the_subscriptions_of_one_connection_have_a_size(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(client_records, "CLIENT_SUBSCRIPTION_BYTES_MAX", 3000)
    world = World()
    world.beat(0, heartbeat("c", consumer("g1", subscription("A", "x" * 1500)), fingerprint=1))
    with pytest.raises(InvalidValue, match="at most 3000"):
        world.beat(0, heartbeat("c", consumer("g2", subscription("A", "x" * 1500))))
    world.beat(0, heartbeat("c", consumer("g1"), fingerprint=1, without_sub=True))
    with pytest.raises(InvalidValue, match="at most 3000"):
        world.beat(0, heartbeat("c", consumer("g2", subscription("A", "x" * 1500))))
    world.beat(0, heartbeat("c", consumer("g1", subscription("A"))))
    world.beat(0, heartbeat("c", consumer("g2", subscription("A", "x" * 1500))))
    assert world.clients.groups_subscribed_to("A") == {"g1", "g2"}
