"""Clients that come, change and go in any order: what is left is what a plain list says is left."""

from __future__ import annotations

from typing import TYPE_CHECKING

from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule

from gantrymq.broker.clients import Clients
from gantrymq.testing.clock import VirtualClock
from support.client_peers import FakePeer, consumer, heartbeat, subscription

if TYPE_CHECKING:
    from gantrymq.model.group import Subscription

PEER = st.integers(0, 4)
GROUP = st.sampled_from(["g1", "g2", "g3"])
SUBSCRIPTIONS = st.dictionaries(
    st.sampled_from("ABC"), st.tuples(st.sampled_from(["*", "x", "y"]), st.integers(1, 5))
)
CONSUMERS = st.dictionaries(GROUP, SUBSCRIPTIONS, max_size=3)
TIMEOUT_S = 120


class ClientsMachine(RuleBasedStateMachine):
    """A broker's clients, and a dictionary of what they said last."""

    def __init__(self) -> None:
        super().__init__()
        self.clock = VirtualClock()
        self.clients = Clients(self.clock)
        self.peers = [FakePeer(number) for number in range(5)]
        self.ids: dict[int, str] = {}
        self.consuming: dict[tuple[int, str], tuple[float, dict[str, Subscription]]] = {}
        self.producing: dict[tuple[int, str], float] = {}

    @rule(number=PEER, client=st.sampled_from("uvw"), groups=CONSUMERS, producers=st.sets(GROUP))
    def beat(
        self,
        number: int,
        client: str,
        groups: dict[str, dict[str, tuple[str, int]]],
        producers: set[str],
    ) -> None:
        said = {
            group: {topic: subscription(topic, *how) for topic, how in topics.items()}
            for group, topics in groups.items()
        }
        if self.ids.get(number, client) != client:
            self.leave(number)
        changes = self.clients.heartbeat(
            heartbeat(
                client,
                *(consumer(group, *topics.values()) for group, topics in said.items()),
                producers=producers,
            ),
            self.peers[number],
            language=0,
            version=1,
        )
        now = self.clock.monotonic()
        joined = {group for group in said if (number, group) not in self.consuming}
        assert {change.group for change in changes if change.joined} == joined
        self.ids[number] = client
        self.consuming.update({(number, group): (now, topics) for group, topics in said.items()})
        self.producing.update({(number, group): now for group in producers})
        self.settle()

    @rule(number=PEER, group=GROUP)
    def unregister(self, number: int, group: str) -> None:
        changes = self.clients.unregister(
            self.ids.get(number, ""), group, group, self.peers[number]
        )
        assert len(changes) == ((number, group) in self.consuming)
        self.consuming.pop((number, group), None)
        self.producing.pop((number, group), None)
        self.settle()

    @rule(number=PEER)
    def close(self, number: int) -> None:
        self.clients.peer_closed(self.peers[number])
        self.leave(number)
        self.peers[number] = FakePeer(self.peers[number].number + 5)

    @rule(seconds=st.integers(1, 80))
    def wait(self, seconds: int) -> None:
        self.clock.jump(seconds)
        self.clients.expire()
        oldest = self.clock.monotonic() - TIMEOUT_S
        self.consuming = {key: said for key, said in self.consuming.items() if said[0] >= oldest}
        self.producing = {key: seen for key, seen in self.producing.items() if seen >= oldest}
        self.settle()
        for number, peer in enumerate(self.peers):
            if not peer.is_open:
                assert number not in self.ids
                self.peers[number] = FakePeer(peer.number + 5)

    def leave(self, number: int) -> None:
        self.consuming = {key: said for key, said in self.consuming.items() if key[0] != number}
        self.producing = {key: seen for key, seen in self.producing.items() if key[0] != number}
        self.settle()

    def settle(self) -> None:
        """Forget who is in no group."""
        there = {number for number, _ in (*self.consuming, *self.producing)}
        self.ids = {number: client for number, client in self.ids.items() if number in there}

    @invariant()
    def members_are_those_that_said_so(self) -> None:
        assert self.clients.connection_count == len(self.ids)
        for group in ("g1", "g2", "g3"):
            members = {number for number, has in self.consuming if has == group}
            found = {member.peer for member in self.clients.members(group)}
            assert found == {self.peers[number] for number in members}
            assert (group in self.clients.consumer_groups()) == bool(members)
            producers = {number for number, has in self.producing if has == group}
            assert {each.peer for each in self.clients.producers(group)} == {
                self.peers[number] for number in producers
            }

    @invariant()
    def a_group_has_the_newest_of_its_members_subscriptions(self) -> None:
        for topic in "ABC":
            reading = set()
            for group in ("g1", "g2", "g3"):
                said = [
                    topics[topic].version
                    for (_, has), (_, topics) in self.consuming.items()
                    if has == group and topic in topics
                ]
                found = self.clients.subscription(group, topic)
                assert (None if found is None else found.version) == max(said, default=None)
                if said:
                    reading.add(group)
            assert self.clients.groups_subscribed_to(topic) == reading

    @invariant()
    def every_difference_is_noticed(self) -> None:
        differing = set()
        for group in ("g1", "g2", "g3"):
            shapes = {
                frozenset((topic, each.expression) for topic, each in topics.items())
                for (_, has), (_, topics) in self.consuming.items()
                if has == group
            }
            if len(shapes) > 1:
                differing.add(group)
        assert {mismatch.group for mismatch in self.clients.mismatches()} == differing

    def teardown(self) -> None:
        for peer in self.peers:
            self.clients.peer_closed(peer)
        leftovers = {
            name: value
            for name, value in vars(self.clients).items()
            if isinstance(value, dict) and value
        }
        assert leftovers == {}
        assert len(self.clients._watch) == 0


TestClients = ClientsMachine.TestCase
