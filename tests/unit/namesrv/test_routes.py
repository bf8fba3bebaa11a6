from __future__ import annotations

import pytest

from gantrymq.model.offsets import DataVersion
from gantrymq.model.route import QueueData, QueueMapping
from gantrymq.model.topic import READ_WRITE, Perm, TopicConfig
from gantrymq.namesrv.members import Announcement, Place, Registered
from gantrymq.namesrv.routes import RouteTable
from gantrymq.wire.response_errors import SystemFailure
from support.namesrv import CLUSTER, MASTER, SLAVE, announcement

OTHER = "10.0.0.3:10911"


@pytest.fixture
def table() -> RouteTable:
    return RouteTable()


def addresses(table: RouteTable, topic: str = "A") -> dict[str, dict[int, str]] | None:
    """Return who has a topic, or None if nobody has."""
    route = table.route_of(topic)
    return None if route is None else {b.name: dict(b.addresses) for b in route.brokers}


def perm(table: RouteTable, topic: str = "A") -> Perm:
    route = table.route_of(topic)
    assert route is not None
    return route.queues[0].perm


def test_a_route_has_the_master_its_slaves_and_every_group(table: RouteTable) -> None:
    table.register(announcement(), 1, 0.0)
    table.register(announcement(SLAVE, broker_id=1), 2, 0.0)
    table.register(announcement(OTHER, name="broker-b", having=("A", "C")), 3, 0.0)

    route = table.route_of("A")

    assert route is not None
    assert route.queues == (
        QueueData("broker-a", 4, 4, READ_WRITE),
        QueueData("broker-b", 4, 4, READ_WRITE),
    )
    assert [broker.cluster for broker in route.brokers] == [CLUSTER, CLUSTER]
    assert addresses(table) == {"broker-a": {0: MASTER, 1: SLAVE}, "broker-b": {0: OTHER}}
    assert addresses(table, "C") == {"broker-b": {0: OTHER}}
    assert addresses(table, "Absent") is None
    assert table.route_count == 4


def test_a_slave_is_told_its_master_and_a_master_nothing(table: RouteTable) -> None:
    assert table.register(announcement(SLAVE, broker_id=1), 2, 0.0) == Registered()
    assert table.register(announcement(), 1, 0.0) == Registered()
    assert table.register(announcement(SLAVE, broker_id=1), 2, 1.0) == Registered(
        MASTER, "10.0.0.1:10912"
    )


def test_topics_of_an_old_slave_do_not_count(table: RouteTable) -> None:
    table.register(announcement(SLAVE, broker_id=1), 2, 0.0)
    assert table.route_of("A") is None

    table.register(announcement(having=("A", "Z")), 1, 0.0)
    table.register(announcement(SLAVE, broker_id=1, version=9, having=("A", "B")), 2, 0.0)
    assert table.route_of("B") is None


def test_topics_of_the_lowest_slave_count_since_5_0(table: RouteTable) -> None:
    table.register(announcement(SLAVE, broker_id=1, acting_master=False), 2, 0.0)
    table.register(announcement(OTHER, broker_id=2, acting_master=False, having=("B", "C")), 3, 0.0)

    assert addresses(table) == {"broker-a": {1: SLAVE, 2: OTHER}}
    assert perm(table) == READ_WRITE
    assert table.route_of("C") is None


def test_a_slave_that_may_act_as_master_takes_no_writes(table: RouteTable) -> None:
    table.register(announcement(SLAVE, broker_id=1, acting_master=True), 2, 0.0)
    assert perm(table) == Perm.READ

    table.register(announcement(acting_master=True), 1, 0.0)
    assert perm(table) == READ_WRITE


@pytest.mark.parametrize(("acting_master", "left"), [(True, Perm.READ), (False, READ_WRITE)])
def test_a_group_that_lost_its_master(table: RouteTable, acting_master: bool, left: Perm) -> None:
    table.register(announcement(acting_master=acting_master), 1, 0.0)
    table.register(announcement(SLAVE, broker_id=1, acting_master=acting_master), 2, 0.0)

    table.peer_closed(1)

    assert addresses(table) == {"broker-a": {1: SLAVE}}
    assert perm(table) == left


def test_the_master_comes_back_with_the_same_version_and_is_writable(table: RouteTable) -> None:
    table.register(announcement(acting_master=True), 1, 0.0)
    table.register(announcement(SLAVE, broker_id=1, acting_master=True), 2, 0.0)
    table.peer_closed(1)

    table.register(announcement(acting_master=True), 3, 1.0)

    assert addresses(table) == {"broker-a": {0: MASTER, 1: SLAVE}}
    assert perm(table) == READ_WRITE


def test_a_known_version_adds_only_what_is_missing(table: RouteTable) -> None:
    table.register(announcement(), 1, 0.0)

    table.register(announcement(having=("A", "B", "C"), perm=Perm.READ), 1, 1.0)

    assert perm(table, "A") == READ_WRITE
    assert perm(table, "C") == Perm.READ


def test_a_new_version_changes_what_it_names_and_keeps_the_rest(table: RouteTable) -> None:
    table.register(announcement(), 1, 0.0)

    table.register(announcement(having=("A",), perm=Perm.READ, version=2), 1, 1.0)

    assert perm(table, "A") == Perm.READ
    assert perm(table, "B") == READ_WRITE
    assert table.version_of(Place(CLUSTER, MASTER)) == DataVersion(0, 1_700_000_000_000, 2)


def test_missing_topics_are_dropped_if_asked(table: RouteTable) -> None:
    table.register(announcement(), 1, 0.0)
    table.register(announcement(having=("B", "C"), version=2), 1, 1.0, drop_missing=True)

    assert sorted(table.topics) == ["B", "C"]


def test_a_single_topic_before_the_first_registration_is_refused(table: RouteTable) -> None:
    with pytest.raises(SystemFailure, match="register all its topics"):
        table.register(announcement(having=("A",)), 1, 0.0)

    assert not table.groups
    assert not table.has_peer(1)


def test_a_role_switch_leaves_one_id_for_an_address(table: RouteTable) -> None:
    table.register(announcement(SLAVE, broker_id=1), 2, 0.0)
    table.register(announcement(SLAVE, broker_id=0), 2, 1.0)

    assert addresses(table) == {"broker-a": {0: SLAVE}}


def test_an_id_goes_to_the_newer_address(table: RouteTable) -> None:
    table.register(announcement(state_version=3), 1, 0.0)

    table.register(announcement(OTHER, state_version=3), 2, 1.0)

    assert addresses(table) == {"broker-a": {0: OTHER}}
    assert table.member(Place(CLUSTER, MASTER)) is None
    table.peer_closed(1)
    assert addresses(table) == {"broker-a": {0: OTHER}}


def test_an_older_state_is_ignored_and_its_address_forgotten(table: RouteTable) -> None:
    table.register(announcement(state_version=3), 1, 0.0)
    table.register(announcement(OTHER, broker_id=1, state_version=2), 2, 0.0)

    answer = table.register(announcement(OTHER, state_version=2, having=("Z", "Y")), 2, 1.0)

    assert answer == Registered()
    assert addresses(table) == {"broker-a": {0: MASTER}}
    assert table.route_of("Z") is None
    assert table.version_of(Place(CLUSTER, OTHER)) is None


def test_an_address_has_one_name(table: RouteTable) -> None:
    table.register(announcement(), 1, 0.0)
    table.register(announcement(name="broker-b"), 1, 1.0)

    assert addresses(table) == {"broker-b": {0: MASTER}}
    table.peer_closed(1)
    assert not table.groups
    assert not table.topics


def test_two_clusters_may_use_the_same_address(table: RouteTable) -> None:
    table.register(announcement(), 1, 0.0)
    table.register(announcement(name="broker-b", cluster="Other"), 2, 0.0)

    assert addresses(table) == {"broker-a": {0: MASTER}, "broker-b": {0: MASTER}}


def test_a_group_that_moves_to_another_cluster(table: RouteTable) -> None:
    table.register(announcement(), 1, 0.0)
    table.register(announcement(cluster="Other"), 1, 1.0)

    assert table.groups["broker-a"].clusters == {"Other"}
    assert table.member(Place(CLUSTER, MASTER)) is None


def test_unregistering(table: RouteTable) -> None:
    table.register(announcement(), 1, 0.0)
    table.register(announcement(SLAVE, broker_id=1), 2, 0.0)

    assert not table.unregister(Place(CLUSTER, OTHER), "broker-a")
    assert not table.unregister(Place(CLUSTER, MASTER), "broker-x")
    assert table.unregister(Place(CLUSTER, MASTER), "broker-a")
    assert addresses(table) == {"broker-a": {1: SLAVE}}
    assert table.unregister(Place(CLUSTER, SLAVE), "broker-a")
    assert not table.topics
    assert not table.groups
    assert table.route_count == 0


def test_a_closed_connection_takes_only_its_own_brokers(table: RouteTable) -> None:
    table.register(announcement(), 1, 0.0)
    table.register(announcement(OTHER, name="broker-b"), 1, 0.0)
    table.register(announcement(SLAVE, name="broker-c"), 2, 0.0)

    table.peer_closed(1)

    assert addresses(table) == {"broker-c": {0: SLAVE}}
    assert table.peer_closed(1) == []


def test_a_broker_that_came_back_survives_its_old_connection(table: RouteTable) -> None:
    table.register(announcement(), 1, 0.0)
    table.register(announcement(), 2, 1.0)

    table.peer_closed(1)

    assert addresses(table) == {"broker-a": {0: MASTER}}
    assert not table.has_peer(1)


def test_silence(table: RouteTable) -> None:
    table.register(announcement(), 1, 0.0)
    table.register(announcement(SLAVE, broker_id=1, timeout_s=10.0), 2, 0.0)

    assert table.expire(10.0) == []
    assert [member.address for member in table.expire(10.5)] == [SLAVE]
    assert table.heartbeat(Place(CLUSTER, MASTER), 60.0)
    assert not table.heartbeat(Place(CLUSTER, SLAVE), 60.0)
    assert table.expire(180.0) == []
    assert [member.address for member in table.expire(180.1)] == [MASTER]
    assert table.route_of("A") is None


def test_deleting_a_topic(table: RouteTable) -> None:
    table.register(announcement(), 1, 0.0)
    table.register(announcement(OTHER, name="broker-b", cluster="Other"), 2, 0.0)

    table.delete_topic("A", "Nowhere")
    assert addresses(table) == {"broker-a": {0: MASTER}, "broker-b": {0: OTHER}}
    table.delete_topic("A", "Other")
    assert addresses(table) == {"broker-a": {0: MASTER}}
    table.delete_topic("A", CLUSTER)
    assert addresses(table) is None
    table.delete_topic("B")
    assert not table.topics
    table.delete_topic("B")

    table.register(announcement(), 1, 1.0)
    assert addresses(table) == {"broker-a": {0: MASTER}}


def test_write_permission(table: RouteTable) -> None:
    table.register(announcement(perm=READ_WRITE | Perm.INHERIT), 1, 0.0)
    table.register(announcement(OTHER, name="broker-b"), 2, 0.0)

    assert table.set_writable("broker-a", writable=False) == 2
    assert perm(table) == Perm.READ | Perm.INHERIT
    table.register(announcement(perm=READ_WRITE | Perm.INHERIT), 1, 1.0)
    assert perm(table) == Perm.READ | Perm.INHERIT
    assert table.set_writable("broker-a", writable=True) == 2
    assert perm(table) == READ_WRITE
    table.register(announcement(perm=Perm.READ, version=2), 1, 2.0)
    assert perm(table) == Perm.READ
    assert table.set_writable("broker-x", writable=False) == 0


def test_one_topic_is_registered_alone(table: RouteTable) -> None:
    table.register(announcement(), 1, 0.0)
    table.register_topic("New", [QueueData("broker-a", 1, 2, READ_WRITE)])

    route = table.route_of("New")
    assert route is not None
    assert route.queues == (QueueData("broker-a", 1, 2, READ_WRITE),)
    with pytest.raises(SystemFailure, match="'broker-x' has not registered"):
        table.register_topic("More", [QueueData("broker-a"), QueueData("broker-x")])
    assert table.route_of("More") is None
    with pytest.raises(SystemFailure, match="cannot be the name"):
        table.register_topic("a/b", [QueueData("broker-a")])


def test_a_name_that_nobody_can_see_does_not_keep_the_broker_out(table: RouteTable) -> None:
    names = ("%RETRY%group+topic", "with blank", "a/../b", "x\u200b", "")
    table.register(announcement(having=names), 1, 0.0)

    assert sorted(table.topics) == ["%RETRY%group+topic", "with blank"]


def test_static_topics(table: RouteTable) -> None:
    own = QueueMapping("A", total_queues=2, broker_name="broker-a", current_ids={0: 0})
    said = announcement()
    said = Announcement(
        cluster=said.cluster,
        name=said.name,
        broker_id=0,
        address=said.address,
        version=said.version,
        topics=said.topics,
        mappings={
            "A": own,
            "B": QueueMapping("B", broker_name="broker-x"),
            "Absent": QueueMapping("Absent", broker_name="broker-a"),
        },
    )
    table.register(said, 1, 0.0)

    route = table.route_of("A")
    assert route is not None
    assert route.mappings == {"broker-a": own}
    other = table.route_of("B")
    assert other is not None
    assert other.mappings is None
    table.peer_closed(1)
    table.register(announcement(), 2, 0.0)
    again = table.route_of("A")
    assert again is not None
    assert again.mappings is None


def test_the_table_has_bounds() -> None:
    table = RouteTable(brokers_max=2, routes_max=5)
    table.register(announcement(), 1, 0.0)
    table.register(announcement(OTHER, name="broker-b"), 2, 0.0)

    with pytest.raises(SystemFailure, match="has 2 brokers, and takes no more"):
        table.register(announcement(SLAVE, broker_id=1), 3, 0.0)
    with pytest.raises(SystemFailure, match="2 more do not fit"):
        table.register(announcement(having=("A", "C", "D"), version=2), 1, 0.0)
    assert table.route_of("C") is None
    table.register(announcement(having=("A", "B", "C"), version=2), 1, 0.0)
    with pytest.raises(SystemFailure, match="1 more do not fit"):
        table.register_topic("New", [QueueData("broker-a")])


class TestRepeated:
    """The same announcement again, told by its fingerprint."""

    def test_it_shows_that_the_broker_lives(self, table: RouteTable) -> None:
        table.register(announcement(fingerprint="t"), 1, 0.0)

        assert table.repeat(Place(CLUSTER, MASTER), "t", 2, 100.0) == Registered()

        assert table.expire(200.0) == []
        table.peer_closed(1)
        assert addresses(table) == {"broker-a": {0: MASTER}}
        table.peer_closed(2)
        assert addresses(table) is None

    def test_a_slave_is_told_its_master(self, table: RouteTable) -> None:
        table.register(announcement(), 1, 0.0)
        table.register(announcement(SLAVE, broker_id=1, fingerprint="t"), 2, 0.0)
        registered = table.repeat(Place(CLUSTER, SLAVE), "t", 2, 1.0)
        assert registered == Registered(MASTER, "10.0.0.1:10912")

    @pytest.mark.parametrize(
        "spoil",
        [
            lambda table: table.delete_topic("A"),
            lambda table: table.register(announcement(SLAVE, broker_id=1), 2, 0.0),
            lambda table: table.register_topic("N", [QueueData("broker-a", 1, 1, READ_WRITE)]),
            lambda table: table.peer_closed(1),
            lambda table: table.register(announcement(version=2, fingerprint="u"), 1, 0.0),
        ],
        ids=["topic deleted", "slave came", "topic came", "gone", "said something else"],
    )
    def test_it_is_read_again_when_the_table_differs(
        self, table: RouteTable, spoil: object
    ) -> None:
        assert callable(spoil)
        table.register(announcement(fingerprint="t"), 1, 0.0)
        spoil(table)
        assert table.repeat(Place(CLUSTER, MASTER), "t", 1, 1.0) is None

    def test_none_is_never_equal(self, table: RouteTable) -> None:
        table.register(announcement(), 1, 0.0)
        assert table.repeat(Place(CLUSTER, MASTER), None, 1, 1.0) is None


class TestAnswersAreDropped:
    """What was kept about a topic goes when the topic or one of its groups changes."""

    @pytest.fixture(autouse=True)
    def _filled(self, table: RouteTable) -> None:
        table.register(announcement(), 1, 0.0)
        table.register(announcement(OTHER, name="broker-b", having=("C", "D")), 2, 0.0)
        for entry in table.topics.values():
            entry.answers["x"] = b"y"

    @staticmethod
    def kept(table: RouteTable) -> str:
        return "".join(sorted(topic for topic, entry in table.topics.items() if entry.answers))

    def test_not_by_a_repetition(self, table: RouteTable) -> None:
        table.register(announcement(), 1, 1.0)
        table.register(announcement(), 3, 1.0)
        assert self.kept(table) == "ABCD"

    def test_by_a_slave(self, table: RouteTable) -> None:
        table.register(announcement(SLAVE, broker_id=1), 3, 1.0)
        assert self.kept(table) == "CD"

    def test_by_a_changed_topic(self, table: RouteTable) -> None:
        table.register(announcement(having=("A",), perm=Perm.READ, version=2), 1, 1.0)
        assert self.kept(table) == "BCD"

    def test_by_a_topic_on_one_more_group(self, table: RouteTable) -> None:
        table.register(announcement(having=("A", "C"), version=2), 1, 1.0)
        assert self.kept(table) == "ABD"

    def test_by_permissions(self, table: RouteTable) -> None:
        table.set_writable("broker-b", writable=False)
        assert self.kept(table) == "AB"

    def test_by_order_of_somebody(self, table: RouteTable) -> None:
        table.forget_answers("A")
        table.forget_answers("Absent")
        assert self.kept(table) == "BCD"
        table.forget_answers()
        assert self.kept(table) == ""


def test_the_lowest_id_changes(table: RouteTable) -> None:
    table.register(announcement(SLAVE, broker_id=1, acting_master=True), 2, 0.0)
    assert not table.lowest_changes
    table.register(announcement(acting_master=True), 1, 0.0)
    (came,) = table.lowest_changes
    assert came == ("broker-a", 0, MASTER, None, "10.0.0.1:10912", (SLAVE,))
    table.lowest_changes.clear()

    table.peer_closed(1)
    (left,) = table.lowest_changes
    assert left == ("broker-a", 1, SLAVE, MASTER, None, (SLAVE,))


def test_a_topic_keeps_the_flags_it_was_announced_with(table: RouteTable) -> None:
    said = Announcement(
        cluster=CLUSTER,
        name="broker-a",
        broker_id=0,
        address=MASTER,
        topics={"A": TopicConfig("A", 3, 5, Perm.READ, system_flags=3), "B": TopicConfig("B")},
    )
    table.register(said, 1, 0.0)
    route = table.route_of("A")
    assert route is not None
    assert route.queues == (QueueData("broker-a", 3, 5, Perm.READ, 3),)
