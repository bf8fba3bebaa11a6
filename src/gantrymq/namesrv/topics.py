"""The topic side of the routing table: which broker groups have which queues of a topic.

Owned by `routes.RouteTable`, which says when; this part says how, and counts.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

from gantrymq.model.names import is_path_safe
from gantrymq.model.route import QueueData, QueueMapping
from gantrymq.model.topic import READ_WRITE, Perm, TopicConfig
from gantrymq.namesrv.members import Group, TopicEntry
from gantrymq.wire.response_errors import SystemFailure

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Mapping

_PLAIN: Final = re.compile(r"[%|a-zA-Z0-9_+-]{1,255}")
"""Nearly every topic; the rest is looked at by `is_path_safe`, which takes ten times as long."""
_NOT_WRITE: Final = ~Perm.WRITE


class TopicRoutes:
    """The queues of every topic by broker group."""

    def __init__(self, routes_max: int) -> None:
        self.entries: dict[str, TopicEntry] = {}
        self.count = 0
        """Pairs of topic and broker group."""
        self._routes_max = routes_max

    def check_room(self, fresh: int) -> None:
        """Refuse more routes than there may be.

        Raises:
            SystemFailure: so many more do not fit.
        """
        if self.count + fresh > self._routes_max:
            raise SystemFailure(
                f"this name server has {self.count} routes and takes {self._routes_max}: "
                f"{fresh} more do not fit; delete topics, or use another name server"
            )

    def put_all(
        self, group: Group, topics: Mapping[str, TopicConfig], *, changed: bool, read_only: bool
    ) -> None:
        """Take the settings of topics; with the version known already, only what is missing."""
        name = group.name
        for topic, config in topics.items():
            if not changed and topic in group.topics:
                continue
            perm = config.perm & _NOT_WRITE if read_only else config.perm
            data = QueueData(
                name, config.read_queues, config.write_queues, perm, config.system_flags
            )
            self.put(group, topic, data)

    def put(self, group: Group, topic: str, data: QueueData) -> None:
        """Put one group's queues into a topic."""
        entry = self.entries.get(topic)
        if entry is None:
            entry = self.entries[topic] = TopicEntry()
        old = entry.queues.get(group.name)
        if old is None:
            self.count += 1
            group.topics.add(topic)
        if old != data:
            entry.queues[group.name] = data
            entry.answers.clear()

    def put_mappings(self, group: Group, mappings: Mapping[str, QueueMapping]) -> None:
        """Take the mappings of static topics that the group has, if they are its own."""
        for topic, mapping in mappings.items():
            if topic in group.topics and mapping.broker_name in {"", group.name}:
                entry = self.entries[topic]
                entry.mappings[group.name] = mapping
                entry.answers.clear()

    def set_writable(self, group: Group, *, writable: bool) -> int:
        """Give or take the write permission of all of a group's topics; return how many it has."""
        for topic in group.topics:
            entry = self.entries[topic]
            old = entry.queues[group.name]
            perm = READ_WRITE if writable else old.perm & _NOT_WRITE
            entry.queues[group.name] = QueueData(
                group.name, old.read_queues, old.write_queues, perm, old.system_flags
            )
            entry.answers.clear()
        return len(group.topics)

    def remove(self, group: Group, topics: Iterable[str]) -> None:
        """Take topics from a group, and those that nobody has any more from the table."""
        for topic in topics:
            if topic not in group.topics:
                continue
            group.topics.discard(topic)
            self.count -= 1
            entry = self.entries[topic]
            del entry.queues[group.name]
            entry.mappings.pop(group.name, None)
            entry.answers.clear()
            if not entry.queues:
                del self.entries[topic]

    def forget_answers(self, topics: Iterable[str]) -> None:
        """Drop the encoded answers about topics."""
        for topic in topics:
            if topic in self.entries:
                self.entries[topic].answers.clear()


def admitted(
    topics: Mapping[str, TopicConfig], known: Collection[str]
) -> Mapping[str, TopicConfig]:
    """Return the topics without those whose names nobody could use or see.

    Apache makes retry topics of group names it never looked at: one such name must not keep a
    broker with all its other topics out of the routes.
    """
    strange = {topic for topic in topics if topic not in known and not is_topic(topic)}
    if not strange:
        return topics
    return {topic: config for topic, config in topics.items() if topic not in strange}


def is_topic(name: str) -> bool:
    """Say whether a name can be a topic's, chosen by a user or made by a broker."""
    return _PLAIN.fullmatch(name) is not None or is_path_safe(name)
