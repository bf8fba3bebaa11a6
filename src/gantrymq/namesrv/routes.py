"""The routing table: clusters, broker groups, topics, and who is alive. Pure: no clock, no socket.

    groups   broker name -> Group      its members by id, the names of its topics
    live     (cluster, address) -> Member     the same members, found by what they call themselves
    topics   topic -> TopicEntry       its queues by broker name

Four things hold between any two calls: a member is in `live` and in one group; a group has a
member; a topic has queues; and a broker name is in a topic's queues if and only if the topic is in
the group's `topics`. So a dead broker costs as much as it has topics, not as much as there are.

The rules are those of Apache's `RouteInfoManager`, release 5.5, which 4.9 agrees with where it has
the case. Where Apache leaves something behind, this table does not: the live record of a broker
that lost its id to another address, a second broker name for one address, an empty group after a
refused registration, the queue mappings of a group that is gone.

Times are monotonic seconds that the caller gives. One event loop owns a table.
"""

from __future__ import annotations

from collections import deque
from typing import TYPE_CHECKING, Final

from gantrymq.errors import shown
from gantrymq.limits import NAMESRV_BROKERS_MAX, NAMESRV_ROUTES_MAX
from gantrymq.model.route import MASTER_ID, QueueData, TopicRoute
from gantrymq.namesrv.members import (
    Announcement,
    Group,
    LowestChanged,
    Member,
    Place,
    Registered,
    TopicEntry,
)
from gantrymq.namesrv.topics import TopicRoutes, admitted, is_topic
from gantrymq.wire.response_errors import SystemFailure

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from gantrymq.model.offsets import DataVersion
    from gantrymq.model.topic import TopicConfig

_CHANGES_KEPT: Final = 256


class RouteTable:
    """Which broker groups there are, and what topics they have."""

    def __init__(
        self, *, brokers_max: int = NAMESRV_BROKERS_MAX, routes_max: int = NAMESRV_ROUTES_MAX
    ) -> None:
        self._groups: dict[str, Group] = {}
        self._live: dict[Place, Member] = {}
        self._by_peer: dict[int, set[Place]] = {}
        self._topics = TopicRoutes(routes_max)
        self._brokers_max = brokers_max
        self.lowest_changes: deque[LowestChanged] = deque(maxlen=_CHANGES_KEPT)
        """What 5.x brokers want to hear of; whoever does not tell them lets it fall off."""

    @property
    def groups(self) -> Mapping[str, Group]:
        """Return the broker groups by name; to be read only."""
        return self._groups

    @property
    def topics(self) -> Mapping[str, TopicEntry]:
        """Return the topics by name; to be read only, except for their `answers`."""
        return self._topics.entries

    @property
    def route_count(self) -> int:
        """Return how many pairs of topic and broker group there are."""
        return self._topics.count

    def member(self, place: Place) -> Member | None:
        """Return a live broker; to be read only."""
        return self._live.get(place)

    # Brokers come and stay

    def register(
        self, said: Announcement, peer: int, now: float, *, drop_missing: bool = False
    ) -> Registered:
        """Take a broker's announcement and return who its master is.

        With `drop_missing` topics that the announcement does not name are taken from the group.
        An announcement whose id another address holds with a higher state version changes nothing,
        and that is not an error: the broker learns its new role from elsewhere.

        Raises:
            SystemFailure: it is the first one of this id and names a single topic, which a broker
                does after it has registered; or the table is full. Nothing was changed.
        """
        group = self._groups.get(said.name)
        holder = group.members.get(said.broker_id) if group else None
        known = self._live.get(said.place)
        if holder is not None and _is_newer_elsewhere(holder, said):
            if known is not None:
                self._drop(known)
            return Registered()
        if holder is None and len(said.topics) == 1:
            raise SystemFailure(
                f"broker {shown(said.name)!r} id {said.broker_id} has not registered yet: "
                "register all its topics before a single one"
            )
        serves = _serves_topics(group, said)
        topics = admitted(said.topics, group.topics if group else ()) if serves else {}
        self._check_room(group, known, topics)
        changed = (
            holder is None
            or known is None
            or known.group is not group
            or known.version != said.version
        )
        group = self._admit(said, known, peer, now)
        if serves:
            if drop_missing and not said.mappings:
                self._topics.remove(group, group.topics - topics.keys())
            read_only = said.broker_id != MASTER_ID and group.acting_master
            self._topics.put_all(group, topics, changed=changed, read_only=read_only)
            if changed:
                self._topics.put_mappings(group, said.mappings)
        return _master_for(group, said.broker_id)

    def repeat(self, place: Place, fingerprint: object, peer: int, now: float) -> Registered | None:
        """Take an announcement that is known word for word; None if it has to be taken in full.

        A broker repeats itself twice a minute, and reading 10,000 topics takes 80 ms.
        """
        member = self._live.get(place)
        if member is None or member.fingerprint is None or member.fingerprint != fingerprint:
            return None
        member.seen = now
        if member.peer != peer:
            self._forget_peer(member)
            member.peer = peer
            self._by_peer.setdefault(peer, set()).add(place)
        return _master_for(member.group, member.broker_id)

    def heartbeat(self, place: Place, now: float) -> bool:
        """Note that a broker is alive; False if it is not known."""
        member = self._live.get(place)
        if member is None:
            return False
        member.seen = now
        return True

    def version_of(self, place: Place) -> DataVersion | None:
        """Return the version of the topics that a broker announced last."""
        member = self._live.get(place)
        return None if member is None else member.version

    # Brokers go

    def unregister(self, place: Place, name: str) -> bool:
        """Remove a broker that says farewell; False if there is none of that address and name."""
        group = self._groups.get(name)
        if group is None:
            return False
        gone = [member for member in group.members.values() if member.address == place.address]
        for member in gone:
            self._drop(member)
        return bool(gone)

    def peer_closed(self, peer: int) -> list[Place]:
        """Remove the brokers that registered by a connection which is no more."""
        return [self._drop(self._live[place]) for place in list(self._by_peer.get(peer, ()))]

    def expire(self, now: float) -> list[Member]:
        """Remove and return the brokers that have been silent for longer than they may."""
        late = [member for member in self._live.values() if member.seen + member.timeout_s < now]
        for member in late:
            self._drop(member)
        return late

    def has_peer(self, peer: int) -> bool:
        """Say whether a live broker registered by a connection."""
        return peer in self._by_peer

    # Topics

    def register_topic(self, topic: str, queues: Iterable[QueueData]) -> None:
        """Put one topic's queues on groups that are known.

        Raises:
            SystemFailure: a group is not known, the name is not a topic's, or the table is full.
                Nothing was changed.
        """
        given = {data.broker_name: data for data in queues}
        if not is_topic(topic):
            raise SystemFailure(f"{shown(topic)!r} cannot be the name of a topic")
        for name in given:
            if name not in self._groups:
                raise SystemFailure(
                    f"topic {shown(topic)!r}: broker {shown(name)!r} has not registered"
                )
        fresh = sum(1 for name in given if topic not in self._groups[name].topics)
        self._topics.check_room(fresh)
        for name, data in given.items():
            group = self._groups[name]
            self._topics.put(group, topic, data)
            _forget_fingerprints(group)

    def delete_topic(self, topic: str, cluster: str | None = None) -> None:
        """Remove a topic, or what one cluster has of it; a topic that is not there is no error."""
        entry = self._topics.entries.get(topic)
        if entry is None:
            return
        for name in list(entry.queues):
            group = self._groups[name]
            if cluster is None or cluster in group.clusters:
                self._topics.remove(group, {topic})
                _forget_fingerprints(group)

    def set_writable(self, name: str, *, writable: bool) -> int:
        """Take the write permission from a group's topics, or give it; return how many it has.

        Apache gives reading with writing and takes the right to inherit; so does this. What the
        broker announces with its next version holds again.
        """
        group = self._groups.get(name)
        if group is None:
            return 0
        return self._topics.set_writable(group, writable=writable)

    def route_of(self, topic: str) -> TopicRoute | None:
        """Return where a topic is; None if nobody has it."""
        entry = self._topics.entries.get(topic)
        if entry is None:
            return None
        names = sorted(entry.queues)
        groups = [self._groups[name] for name in names]
        return TopicRoute(
            tuple([entry.queues[name] for name in names]),
            tuple([group.data() for group in groups]),
            filter_servers={
                member.address: member.filter_servers
                for group in groups
                for member in group.members.values()
                if member.filter_servers
            },
            mappings=dict(entry.mappings) or None,
        )

    def forget_answers(self, topic: str | None = None) -> None:
        """Drop the encoded answers about one topic, or all: something beside the table changed."""
        if topic is not None:
            self._topics.forget_answers([topic])
            return
        self._topics.forget_answers(self.topics)
        for group in self._groups.values():
            group.answers.clear()

    # The parts of these

    def _check_room(
        self, group: Group | None, known: Member | None, topics: Mapping[str, TopicConfig]
    ) -> None:
        """Refuse what would not fit."""
        if known is None and len(self._live) >= self._brokers_max:
            raise SystemFailure(
                f"this name server has {len(self._live)} brokers, and takes no more"
            )
        known_topics = group.topics if group else ()
        self._topics.check_room(sum(1 for topic in topics if topic not in known_topics))

    def _admit(self, said: Announcement, known: Member | None, peer: int, now: float) -> Group:
        """Put a broker into its group under its id, and take it from wherever else it was."""
        if known is not None and known.group.name != said.name:
            self._drop(known)
        group = self._groups.get(said.name)
        if group is None:
            group = self._groups[said.name] = Group(said.name)
        before = _shown_of(group)
        lowest_before = min(group.members, default=None)
        for other in list(group.members.values()):
            if other.address == said.address or other.broker_id == said.broker_id:
                self._detach(other)
        group.zone, group.acting_master = said.zone, bool(said.acting_master)
        member = Member(
            group,
            said.broker_id,
            said.place,
            said.ha_address,
            said.version,
            said.filter_servers,
            said.timeout_s,
            now,
            peer,
            said.fingerprint,
        )
        group.members[said.broker_id] = self._live[said.place] = member
        self._by_peer.setdefault(peer, set()).add(said.place)
        if _shown_of(group) != before:
            self._group_changed(group)
            member.fingerprint = said.fingerprint
        if lowest_before is not None and said.broker_id < lowest_before:
            self._note_lowest(group, None, said.ha_address)
        return group

    def _drop(self, member: Member) -> Place:
        """Remove a broker, and its group with it if it was the last one."""
        group = member.group
        was_lowest = group.lowest is member
        self._detach(member)
        if not group.members:
            self._topics.remove(group, set(group.topics))
            del self._groups[group.name]
            return member.place
        self._group_changed(group)
        if group.acting_master and not group.has_master:
            self._topics.set_writable(group, writable=False)
        if was_lowest and group.acting_master:
            self._note_lowest(group, member.address, None)
        return member.place

    def _detach(self, member: Member) -> None:
        """Take a member out of its group and out of the indexes."""
        del member.group.members[member.broker_id]
        del self._live[member.place]
        self._forget_peer(member)

    def _forget_peer(self, member: Member) -> None:
        """Take a member from its connection."""
        places = self._by_peer[member.peer]
        places.discard(member.place)
        if not places:
            del self._by_peer[member.peer]

    def _group_changed(self, group: Group) -> None:
        """Drop what was answered about a group, and what its members need not say again."""
        group.answers.clear()
        self._topics.forget_answers(group.topics)
        _forget_fingerprints(group)

    def _note_lowest(self, group: Group, offline: str | None, ha_address: str | None) -> None:
        """Keep the change for those who tell the brokers: the others, or all if one has left."""
        lowest = group.lowest
        told = [
            member.address
            for member in group.members.values()
            if offline is not None or len(group.members) == 1 or member is not lowest
        ]
        self.lowest_changes.append(
            LowestChanged(
                group.name, lowest.broker_id, lowest.address, offline, ha_address, tuple(told)
            )
        )


def _is_newer_elsewhere(holder: Member, said: Announcement) -> bool:
    """Say whether another address has this id and knows of a later change of roles."""
    return (
        holder.address != said.address and holder.version.state_version > said.version.state_version
    )


def _serves_topics(group: Group | None, said: Announcement) -> bool:
    """Say whether a broker's topics count: the master's do, else those of the lowest 5.x slave."""
    if said.broker_id == MASTER_ID:
        return True
    if said.acting_master is None:
        return False
    others = group.members.values() if group else ()
    return all(
        said.broker_id <= other.broker_id for other in others if other.address != said.address
    )


def _master_for(group: Group, broker_id: int) -> Registered:
    """Return what a broker with this id is told about its master."""
    master = group.members.get(MASTER_ID)
    if broker_id == MASTER_ID or master is None:
        return Registered()
    return Registered(master.address, master.ha_address)


def _shown_of(group: Group) -> object:
    """Return all of a group that answers show."""
    members = {number: (m.place, m.filter_servers) for number, m in group.members.items()}
    return members, group.zone, group.acting_master


def _forget_fingerprints(group: Group) -> None:
    """Let every member say everything again: the table has less, or other things, than it said."""
    for member in group.members.values():
        member.fingerprint = None
