from __future__ import annotations

import pytest

from gantrymq.model.topic import Perm
from gantrymq.namesrv.answers import RouteAnswers, with_acting_masters
from gantrymq.namesrv.kv import ORDER_NAMESPACE, KvTables
from gantrymq.namesrv.members import Announcement
from gantrymq.namesrv.reach import Reach
from gantrymq.namesrv.routes import RouteTable
from gantrymq.namesrv.settings import NamesrvSettings
from gantrymq.wire.bodies.route import TOPIC_ROUTE
from support.namesrv import CLUSTER, MASTER, SLAVE, announcement, topics

LISTENER = "127.0.0.1:9876"


class Rig:
    """A table with two groups, and who answers from it."""

    def __init__(self, settings: NamesrvSettings | None = None) -> None:
        self.table = RouteTable()
        self.reach = Reach()
        self.kv = KvTables(lambda _content: None)
        self.answers = RouteAnswers(self.table, self.kv, self.reach, settings or NamesrvSettings())
        self.table.register(announcement(acting_master=True), 1, 0.0)
        self.table.register(announcement(SLAVE, broker_id=1, acting_master=True), 2, 0.0)
        self.table.register(announcement("10.0.0.3:10911", name="broker-b", perm=Perm.READ), 3, 0.0)

    def answer(self, topic: str = "A") -> bytes:
        found = self.answers.route(topic, LISTENER)
        assert found is not None
        return found


def test_the_parts_make_the_same_bytes_as_the_whole() -> None:
    rig = Rig()
    route = rig.table.route_of("A")
    assert route is not None
    assert rig.answer() == TOPIC_ROUTE.encode(route)
    assert b'"enableActingMaster":true' in rig.answer()


def test_a_changed_group_is_encoded_anew() -> None:
    rig = Rig()
    before = rig.answer("A"), rig.answer("B")
    rig.table.peer_closed(2)
    for topic, old in zip("AB", before, strict=True):
        assert SLAVE.encode() in old
        assert SLAVE.encode() not in rig.answer(topic)


def test_what_has_more_in_it_is_told_whole() -> None:
    rig = Rig(NamesrvSettings(order_in_routes=True))
    rig.kv.put(ORDER_NAMESPACE, "A", "broker-a:4")
    said = Announcement(
        cluster=CLUSTER,
        name="broker-c",
        broker_id=0,
        address="10.0.0.4:10911",
        topics=topics("F", "G"),
        filter_servers=("10.0.0.4:30000",),
    )
    rig.table.register(said, 4, 0.0)

    assert b'"orderTopicConf":"broker-a:4"' in rig.answer("A")
    assert b"orderTopicConf" not in rig.answer("B")
    assert b'"filterServerTable":{"10.0.0.4:10911":["10.0.0.4:30000"]}' in rig.answer("F")


@pytest.mark.parametrize("switched_on", [True, False])
def test_settings_are_followed_at_once(switched_on: bool) -> None:
    rig = Rig(NamesrvSettings(acting_masters=not switched_on))
    rig.table.peer_closed(1)
    rig.answer()
    rig.answers.use(NamesrvSettings(acting_masters=switched_on))
    shown = b'{"0":"%b"}' if switched_on else b'{"1":"%b"}'
    assert shown % SLAVE.encode() in rig.answer()


def test_an_acting_master_needs_a_group_that_allows_it_and_cannot_be_written() -> None:
    rig = Rig()
    route = rig.table.route_of("A")
    assert route is not None
    assert with_acting_masters(route) == route
    rig.table.peer_closed(1)
    alone = rig.table.route_of("A")
    assert alone is not None
    assert with_acting_masters(alone).brokers[0].addresses == {0: SLAVE}
    rig.table.set_writable("broker-a", writable=True)
    writable = rig.table.route_of("A")
    assert writable is not None
    assert with_acting_masters(writable) == writable


def test_an_address_that_is_followed_stays_so_after_a_change() -> None:
    rig = Rig()
    rig.reach.follow_listener(MASTER)
    assert b'"0":"127.0.0.1:10911"' in rig.answer()
    rig.table.peer_closed(2)
    assert b'{"0":"127.0.0.1:10911"}' in rig.answer()
