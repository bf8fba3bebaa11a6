"""Who is connected: producers and consumers by group, kept alive by heartbeats.

The rules are those of Apache's `ConsumerManager`, `ProducerManager` and `ClientManageProcessor`,
with two differences. A group's subscriptions are the union of its members', the newest version of
each, so that members that differ do not take each other's topics away with every heartbeat
(`subscriptions` names the difference). And members that have gone silent are told about like those
that left, so that the others share out their queues at once.

A client is known by its connection: what it said is forgotten when that closes, when it says so, or
when it has been silent for two minutes. Nothing is kept of a group without members.

Owned by one task (the event loop).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from gantrymq.broker.client_records import (
    ClientPeer,
    Connection,
    ConsumerGroupState,
    GroupChange,
    Member,
    check_heartbeat,
    subscription_bytes,
)
from gantrymq.broker.subscriptions import Mismatch, SubscriptionWatch
from gantrymq.model.group import MessageModel

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

    from gantrymq.clock import Clock
    from gantrymq.model.group import Subscription
    from gantrymq.wire.bodies.heartbeat import ConsumerData, Heartbeat
    from gantrymq.wire.peer import Peer

__all__ = ["ClientPeer", "Clients", "ConsumerGroupState", "GroupChange", "Member"]

TIMEOUT_MS: Final = 120_000
SCAN_INTERVAL_MS: Final = 10_000
"""How often `expire` is to be called."""


class Clients:
    """The producers and consumers of one broker."""

    def __init__(
        self,
        clock: Clock,
        timeout_ms: int = TIMEOUT_MS,
        *,
        notifies: Callable[[str], bool] = lambda _group: True,
        mismatch_changed: Callable[[Mismatch], None] = lambda _mismatch: None,
    ) -> None:
        """`notifies` says whether a group's settings want its members told of changes."""
        self._clock = clock
        self.timeout_s = timeout_ms / 1000
        """How long a client may be silent; a test that moves the clock sets it."""
        self._notifies = notifies
        self._watch = SubscriptionWatch(mismatch_changed)
        self._connections: dict[int, Connection] = {}
        self._consumers: dict[str, ConsumerGroupState] = {}
        self._producers: dict[str, dict[int, ClientPeer]] = {}
        self._by_client: dict[str, dict[int, Connection]] = {}
        self._by_topic: dict[str, set[str]] = {}
        self._turn = 0
        self.subscription_changes = 0
        """Goes up whenever what some group takes may be another than before."""

    # -- asking ---------------------------------------------------------------------------------

    def members(self, group: str) -> list[Member]:
        """Return the members of a consumer group, first come first."""
        state = self._consumers.get(group)
        return [] if state is None else list(state.members.values())

    def member(self, group: str, client_id: str) -> Member | None:
        """Return a member; of several connections, the one heard of last."""
        found = [member for member in self.members(group) if member.client_id == client_id]
        return max(found, key=lambda member: member.seen, default=None)

    def told_of_changes(self, group: str) -> list[Peer]:
        """Return the members that must be told (40) when a group has changed."""
        state = self._consumers.get(group)
        if state is None or not self._is_told(state):
            return []
        return [member.peer for member in state.members.values()]

    def consumer(self, group: str) -> ConsumerGroupState | None:
        """Return a consumer group that has members. Not to be changed."""
        return self._consumers.get(group)

    def subscription(self, group: str, topic: str) -> Subscription | None:
        """Return what a group takes from a topic: the newest that a member said."""
        state = self._consumers.get(group)
        return None if state is None else state.subscriptions.get(topic)

    def consumer_groups(self) -> list[str]:
        """Return every consumer group that has members."""
        return list(self._consumers)

    def groups_subscribed_to(self, topic: str) -> frozenset[str]:
        """Return the groups with a member that subscribes to a topic."""
        return frozenset(self._by_topic.get(topic, ()))

    def producers(self, group: str) -> list[ClientPeer]:
        """Return the producers of a group, first come first."""
        return list(self._producers.get(group, {}).values())

    def all_producer_groups(self) -> list[str]:
        """Return every producer group that somebody is in."""
        return list(self._producers)

    def any_producer(self, group: str) -> Peer | None:
        """Return an open connection to a producer of a group, another one each time."""
        found = [each.peer for each in self._producers.get(group, {}).values() if each.peer.is_open]
        if not found:
            return None
        self._turn += 1
        return found[self._turn % len(found)]

    def peer_of_client(self, client_id: str) -> Peer | None:
        """Return an open connection of a client: the one that was introduced last."""
        for connection in reversed(self._by_client.get(client_id, {}).values()):
            if connection.peer.is_open:
                return connection.peer
        return None

    def wants_full_heartbeat(self, peer: Peer) -> bool:
        """Say whether a peer's last heartbeat should be followed by one with subscriptions.

        It is what IS_SUB_CHANGE answers: true after a classic heartbeat, after one with another
        fingerprint than the subscriptions that are known, and after one without subscriptions from
        a member whose are not known, as when this broker was restarted.
        """
        connection = self._connections.get(peer.number)
        return connection is None or connection.wants_full

    def mismatches(self) -> list[Mismatch]:
        """Return every group whose members subscribe differently."""
        return self._watch.mismatches()

    @property
    def connection_count(self) -> int:
        """Return how many connections are known to be clients."""
        return len(self._connections)

    # -- coming ---------------------------------------------------------------------------------

    def heartbeat(
        self, data: Heartbeat, peer: Peer, *, language: int | str, version: int
    ) -> list[GroupChange]:
        """Take what a client says of itself; return what changed for which groups.

        Groups that do not exist and may not be made are to be left out of it before. What comes
        from a connection that is closed already is nobody's: nothing would ever forget it.

        Raises:
            InvalidValue: a name or a list is too long; then nothing has changed.
        """
        check_heartbeat(data, self._connections.get(peer.number))
        if not peer.is_open:
            return []
        changes = self._introduce(data.client_id, peer)
        connection = self._connections[peer.number]
        connection.wants_full = data.heartbeat_fingerprint == 0
        seen_ms, seen = self._clock.now_ms(), self._clock.monotonic()
        for consumer in data.consumer_data_set:
            told = Member(data.client_id, peer, language, version, seen_ms, seen)
            change = self._heard_consumer(connection, consumer, told, data)
            if change is not None:
                changes.append(change)
        for producer in data.producer_data_set:
            connection.producer_groups.add(producer.group_name)
            self._producers.setdefault(producer.group_name, {})[peer.number] = ClientPeer(
                data.client_id, peer, language, version, seen_ms, seen
            )
        if not connection.consumer_groups and not connection.producer_groups:
            self._forget(connection)
        return changes

    def _introduce(self, client_id: str, peer: Peer) -> list[GroupChange]:
        """Note who is at the other end; one that has become another client has left before."""
        changes: list[GroupChange] = []
        known = self._connections.get(peer.number)
        if known is not None and known.client_id != client_id:
            changes = self.peer_closed(peer)
            known = None
        if known is None:
            known = self._connections[peer.number] = Connection(peer, client_id)
            self._by_client.setdefault(client_id, {})[peer.number] = known
        return changes

    def _heard_consumer(
        self, connection: Connection, consumer: ConsumerData, told: Member, data: Heartbeat
    ) -> GroupChange | None:
        """Take what a client says of one group that it is a member of."""
        name, number = consumer.group_name, connection.peer.number
        state = self._consumers.get(name)
        if state is None:
            state = self._consumers[name] = ConsumerGroupState(name)
        state.consume_type = consumer.consume_type
        state.message_model = consumer.message_model
        state.consume_from_where = consumer.consume_from_where
        known = state.members.get(number)
        if known is not None:
            told.subscriptions = known.subscriptions
            told.fingerprint = known.fingerprint
        state.members[number] = told
        connection.consumer_groups.setdefault(name, 0)
        fingerprint, topics_changed = data.heartbeat_fingerprint, False
        if fingerprint and told.fingerprint not in {None, fingerprint}:
            connection.wants_full = True
        if not (fingerprint and data.without_sub):
            topics_changed = self._subscribe(state, told, consumer)
            told.fingerprint = fingerprint
            connection.consumer_groups[name] = subscription_bytes(consumer)
        elif told.fingerprint is None:
            connection.wants_full = True
        if known is not None and not topics_changed:
            return None
        joined = (told.client_id,) if known is None else ()
        return self._change(state, joined=joined, topics_changed=topics_changed)

    def _subscribe(self, state: ConsumerGroupState, member: Member, consumer: ConsumerData) -> bool:
        """Take a member's subscriptions; True if the group has other topics than before."""
        said = {each.topic: each for each in consumer.subscription_data_set}
        before = member.subscriptions
        if member.fingerprint is not None and said == before:
            return False
        member.subscriptions = said
        self.subscription_changes += 1
        self._watch.note(state.name, member.peer.number, member.client_id, said.values())
        changed = False
        for topic, subscription in said.items():
            newest = state.subscriptions.get(topic)
            if newest is None:
                state.subscriptions[topic] = subscription
                self._by_topic.setdefault(topic, set()).add(state.name)
                changed = True
            elif subscription.version > newest.version:
                state.subscriptions[topic] = subscription
            elif newest is before.get(topic):
                state.settle(topic)
        return self._unsubscribe(state, before, before.keys() - said.keys()) or changed

    # -- going ----------------------------------------------------------------------------------

    def unregister(
        self, client_id: str, producer_group: str | None, consumer_group: str | None, peer: Peer
    ) -> list[GroupChange]:
        """Take a client out of groups; None and an empty text are none.

        As with Apache, its connection says which client it is, whatever id it gives.
        """
        connection = self._connections.get(peer.number)
        if connection is None:
            return []
        if producer_group:
            self._drop_producer(connection, producer_group)
        change = self._drop_member(connection, consumer_group) if consumer_group else None
        if not connection.consumer_groups and not connection.producer_groups:
            self._forget(connection)
        return [] if change is None else [change]

    def peer_closed(self, peer: Peer) -> list[GroupChange]:
        """Forget whoever was at the other end of a connection."""
        connection = self._connections.get(peer.number)
        if connection is None:
            return []
        for group in list(connection.producer_groups):
            self._drop_producer(connection, group)
        found = [self._drop_member(connection, group) for group in list(connection.consumer_groups)]
        self._forget(connection)
        return [change for change in found if change is not None]

    def expire(self) -> list[GroupChange]:
        """Forget clients that have been silent for too long, and close what they left open.

        A group that a client no longer speaks of is forgotten as well; its connection stays.
        """
        changes: list[GroupChange] = []
        oldest = self._clock.monotonic() - self.timeout_s
        for number, connection in list(self._connections.items()):
            for group in list(connection.producer_groups):
                if self._producers[group][number].seen < oldest:
                    self._drop_producer(connection, group)
            for group in list(connection.consumer_groups):
                if self._consumers[group].members[number].seen < oldest:
                    change = self._drop_member(connection, group)
                    if change is not None:
                        changes.append(change)
            if not connection.consumer_groups and not connection.producer_groups:
                self._forget(connection)
                connection.peer.close("no heartbeat for too long")
        return changes

    def _drop_producer(self, connection: Connection, group: str) -> None:
        if group not in connection.producer_groups:
            return
        connection.producer_groups.discard(group)
        producers = self._producers[group]
        del producers[connection.peer.number]
        if not producers:
            del self._producers[group]

    def _drop_member(self, connection: Connection, group: str) -> GroupChange | None:
        """Take a member out of a group; None if it is not in it."""
        if group not in connection.consumer_groups:
            return None
        del connection.consumer_groups[group]
        state = self._consumers[group]
        member = state.members.pop(connection.peer.number)
        self.subscription_changes += 1
        self._watch.forget(group, connection.peer.number)
        topics_changed = self._unsubscribe(state, member.subscriptions, member.subscriptions.keys())
        if not state.members:
            del self._consumers[group]
        return self._change(state, left=(member.client_id,), topics_changed=topics_changed)

    def _unsubscribe(
        self,
        state: ConsumerGroupState,
        before: Mapping[str, Subscription],
        topics: Iterable[str],
    ) -> bool:
        """Find who is left for topics that a member no longer takes; True if some have nobody.

        The group's subscription is always some member's own: if it is not this one's, its owner is
        still there.
        """
        changed = False
        for topic in topics:
            if state.subscriptions[topic] is before[topic] and state.settle(topic):
                changed = True
                groups = self._by_topic[topic]
                groups.discard(state.name)
                if not groups:
                    del self._by_topic[topic]
        return changed

    def _forget(self, connection: Connection) -> None:
        del self._connections[connection.peer.number]
        connections = self._by_client[connection.client_id]
        del connections[connection.peer.number]
        if not connections:
            del self._by_client[connection.client_id]

    def _change(
        self,
        state: ConsumerGroupState,
        *,
        joined: tuple[str, ...] = (),
        left: tuple[str, ...] = (),
        topics_changed: bool,
    ) -> GroupChange:
        return GroupChange(
            state.name,
            bool(state.members) and self._is_told(state),
            joined,
            left,
            topics_changed,
            not state.members,
        )

    def _is_told(self, state: ConsumerGroupState) -> bool:
        broadcasts = state.message_model is MessageModel.BROADCASTING
        return not broadcasts and self._notifies(state.name)
