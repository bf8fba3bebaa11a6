"""The routing table against a model that is a list of brokers, whatever happens in whatever order.

The model keeps every live broker with the topics it announced, and computes the route anew for each
question; the table keeps indexes. Roles, versions and permissions have tests of their own: here all
brokers are masters or 4.9 slaves of one state version, and every announcement is a full one.
"""

from __future__ import annotations

from dataclasses import dataclass

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule

from gantrymq.model.offsets import DataVersion
from gantrymq.namesrv.members import Announcement, Place
from gantrymq.namesrv.routes import RouteTable
from support.namesrv import topics

CLUSTERS = st.sampled_from(["c1", "c2"])
NAMES = st.sampled_from(["a", "b", "c"])
IDS = st.integers(0, 2)
ADDRESSES = st.sampled_from([f"10.0.0.{n}:10911" for n in range(1, 6)])
TOPIC_NAMES = ["t1", "t2", "t3", "t4"]
TOPICS = st.sets(st.sampled_from(TOPIC_NAMES), min_size=2)
PEERS = st.integers(1, 4)
TIMEOUTS = st.sampled_from([10.0, 120.0])


@dataclass
class Live:
    """A broker that the model believes in."""

    name: str
    number: int
    place: Place
    peer: int
    seen: float
    timeout_s: float


class Routes(RuleBasedStateMachine):
    """Brokers come, repeat themselves, go, fall silent."""

    def __init__(self) -> None:
        super().__init__()
        self.table = RouteTable()
        self.now = 0.0
        self.version = 0
        self.live: list[Live] = []
        self.topics: dict[str, set[str]] = {}
        """Broker name to topics: what masters announced, while anybody of the group is there."""

    def _keep(self, live: list[Live]) -> None:
        self.live = live
        names = {broker.name for broker in live}
        self.topics = {name: kept for name, kept in self.topics.items() if name in names}

    @rule(
        cluster=CLUSTERS,
        name=NAMES,
        number=IDS,
        address=ADDRESSES,
        having=TOPICS,
        peer=PEERS,
        timeout_s=TIMEOUTS,
    )
    def register(
        self,
        cluster: str,
        name: str,
        number: int,
        address: str,
        having: set[str],
        peer: int,
        timeout_s: float,
    ) -> None:
        self.version += 1
        place = Place(cluster, address)
        said = Announcement(
            cluster=cluster,
            name=name,
            broker_id=number,
            address=address,
            version=DataVersion(0, 0, self.version),
            topics=topics(*having),
            timeout_s=timeout_s,
            fingerprint=self.version,
        )
        answer = self.table.register(said, peer, self.now)
        # The same process elsewhere goes, and with it a group that has nobody else; in its own
        # group it changes places, and the group stays.
        self._keep([b for b in self.live if b.place != place or b.name == name])
        others = [
            b
            for b in self.live
            if b.name != name or (b.place.address != address and b.number != number)
        ]
        self.live = [*others, Live(name, number, place, peer, self.now, timeout_s)]
        if number == 0:
            self.topics.setdefault(name, set()).update(having)
        masters = [b.place.address for b in self.live if b.name == name and b.number == 0]
        assert answer.master_address == (masters[0] if masters and number else None)

    @rule(cluster=CLUSTERS, address=ADDRESSES, peer=PEERS)
    def repeat(self, cluster: str, address: str, peer: int) -> None:
        place = Place(cluster, address)
        member = self.table.member(place)
        known = [b for b in self.live if b.place == place]
        assert (member is not None) == bool(known)
        if member is None or member.fingerprint is None:
            assert self.table.repeat(place, member and member.fingerprint, peer, self.now) is None
            return
        assert self.table.repeat(place, member.fingerprint, peer, self.now) is not None
        known[0].peer, known[0].seen = peer, self.now

    @rule(cluster=CLUSTERS, address=ADDRESSES)
    def heartbeat(self, cluster: str, address: str) -> None:
        known = [b for b in self.live if b.place == Place(cluster, address)]
        assert self.table.heartbeat(Place(cluster, address), self.now) == bool(known)
        for broker in known:
            broker.seen = self.now

    @rule(cluster=CLUSTERS, name=NAMES, address=ADDRESSES)
    def unregister(self, cluster: str, name: str, address: str) -> None:
        gone = [b for b in self.live if b.name == name and b.place.address == address]
        assert self.table.unregister(Place(cluster, address), name) == bool(gone)
        self._keep([b for b in self.live if b not in gone])

    @rule(peer=PEERS)
    def close(self, peer: int) -> None:
        gone = {b.place for b in self.live if b.peer == peer}
        assert set(self.table.peer_closed(peer)) == gone
        self._keep([b for b in self.live if b.peer != peer])

    @rule(seconds=st.sampled_from([1.0, 9.0, 30.0, 121.0]))
    def wait(self, seconds: float) -> None:
        self.now += seconds
        late = {b.place for b in self.live if b.seen + b.timeout_s < self.now}
        assert {member.place for member in self.table.expire(self.now)} == late
        self._keep([b for b in self.live if b.place not in late])

    @rule(topic=st.sampled_from(TOPIC_NAMES), cluster=st.none() | CLUSTERS)
    def delete(self, topic: str, cluster: str | None) -> None:
        self.table.delete_topic(topic, cluster)
        for name, kept in self.topics.items():
            clusters = {b.place.cluster for b in self.live if b.name == name}
            if cluster is None or cluster in clusters:
                kept.discard(topic)

    @rule(name=NAMES, writable=st.booleans())
    def permit(self, name: str, writable: bool) -> None:
        count = len(self.topics.get(name, ()))
        assert self.table.set_writable(name, writable=writable) == count

    @invariant()
    def routes_agree(self) -> None:
        for topic in TOPIC_NAMES:
            names = sorted(name for name, kept in self.topics.items() if topic in kept)
            route = self.table.route_of(topic)
            if not names:
                assert route is None
                continue
            assert route is not None
            assert [data.broker_name for data in route.queues] == names
            assert {b.name: dict(b.addresses) for b in route.brokers} == {
                name: {b.number: b.place.address for b in self.live if b.name == name}
                for name in names
            }

    @invariant()
    def nothing_is_left_behind(self) -> None:
        table = self.table
        assert set(table.groups) == {b.name for b in self.live}
        assert table.route_count == sum(len(kept) for kept in self.topics.values())
        assert set(table.topics) == set().union(*self.topics.values())
        for peer in range(1, 5):
            assert table.has_peer(peer) == any(b.peer == peer for b in self.live)


Routes.TestCase.settings = settings(stateful_step_count=40)
TestRoutes = Routes.TestCase
