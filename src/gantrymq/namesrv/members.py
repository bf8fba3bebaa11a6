"""The records that a routing table is made of. Owned and changed by `routes.RouteTable` alone."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final, NamedTuple

from gantrymq.model.offsets import DataVersion
from gantrymq.model.route import MASTER_ID, BrokerData, QueueData, QueueMapping

if TYPE_CHECKING:
    from collections.abc import Mapping

    from gantrymq.model.topic import TopicConfig

BROKER_TIMEOUT_S: Final = 120.0
"""Silence after which a broker is dead, unless it asked for another time."""


UNVERSIONED: Final = DataVersion()


class Place(NamedTuple):
    """What identifies a broker process: two clusters may use the same private addresses."""

    cluster: str
    address: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Announcement:
    """What a broker says of itself when it registers."""

    cluster: str
    name: str
    """Of the broker group."""
    broker_id: int
    address: str
    ha_address: str = ""
    version: DataVersion = UNVERSIONED
    topics: Mapping[str, TopicConfig] = field(default_factory=dict)
    """All of them, or those that changed."""
    mappings: Mapping[str, QueueMapping] = field(default_factory=dict)
    filter_servers: tuple[str, ...] = ()
    timeout_s: float = BROKER_TIMEOUT_S
    acting_master: bool | None = None
    """Whether the lowest slave may stand in for the master; None from 4.9, which cannot."""
    zone: str | None = None
    fingerprint: object = None
    """Equal for an announcement that says the same; None if that is not known."""

    @property
    def place(self) -> Place:
        """Return what identifies the process."""
        return Place(self.cluster, self.address)


class Registered(NamedTuple):
    """What a slave wants to know: the master, if there is one."""

    master_address: str | None = None
    ha_address: str | None = None


class LowestChanged(NamedTuple):
    """The lowest broker id of a group is another now; 5.x brokers want to hear of it."""

    name: str
    broker_id: int
    address: str
    offline_address: str | None
    """Who left, if that is the reason."""
    ha_address: str | None
    """Of the one that came, if that is the reason."""
    tell: tuple[str, ...]
    """Addresses of the brokers to be told."""


@dataclass(slots=True, eq=False)
class Member:
    """One live broker."""

    group: Group
    broker_id: int
    place: Place
    ha_address: str
    version: DataVersion
    filter_servers: tuple[str, ...]
    timeout_s: float
    seen: float
    """Monotonic seconds of its last sign of life."""
    peer: int
    """Number of the connection that it registered by."""
    fingerprint: object

    @property
    def address(self) -> str:
        """Return where it listens, as it said."""
        return self.place.address


@dataclass(slots=True, eq=False)
class Group:
    """A master and its slaves under one name; it has one member at least."""

    name: str
    members: dict[int, Member] = field(default_factory=dict)
    topics: set[str] = field(default_factory=set)
    zone: str | None = None
    acting_master: bool = False
    answers: dict[str, bytes] = field(default_factory=dict)
    """The group as routes show it, encoded, by how the asker came in; emptied by every change."""

    @property
    def lowest(self) -> Member:
        """Return the master, or the slave that is next to it."""
        return self.members[min(self.members)]

    @property
    def clusters(self) -> set[str]:
        """Return the clusters that members say they are in: one, unless a file is wrong."""
        return {member.place.cluster for member in self.members.values()}

    @property
    def has_master(self) -> bool:
        """Say whether somebody takes writes; a DLedger broker without a role has the id -1."""
        return bool(self.members) and min(self.members) <= MASTER_ID

    def data(self) -> BrokerData:
        """Return the group as clients are told of it."""
        return BrokerData(
            self.lowest.place.cluster,
            self.name,
            {number: self.members[number].address for number in sorted(self.members)},
            self.zone,
            self.acting_master,
        )


@dataclass(slots=True, eq=False)
class TopicEntry:
    """A topic on all broker groups that have it."""

    queues: dict[str, QueueData] = field(default_factory=dict)
    """By broker group."""
    mappings: dict[str, QueueMapping] = field(default_factory=dict)
    """5.x static topics, by broker group."""
    answers: dict[str, bytes] = field(default_factory=dict)
    """What was answered about it, encoded, by how the asker came in; emptied by every change."""
