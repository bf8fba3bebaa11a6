"""What is looked at in a scrape, as the process hands it over; asked for anew each time.

A broker with failover is closed and opened again when its role changes, so nobody keeps these.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from gantrymq.broker.broker import Broker
    from gantrymq.cluster.failover import Failover
    from gantrymq.cluster.in_sync import InSyncSet
    from gantrymq.cluster.replication import Replication
    from gantrymq.namesrv.handlers import NameServer
    from gantrymq.transport.table import ConnectionTable


class FailoverParts(NamedTuple):
    """A broker's seat in a group with automatic failover."""

    seat: Failover
    epoch: int
    in_sync: InSyncSet | None


class BrokerParts(NamedTuple):
    """A broker that runs."""

    broker: Broker
    replication: Replication
    connections: ConnectionTable | None
    name_servers: tuple[str, ...]
    known_to: frozenset[str]
    failover: FailoverParts | None = None


class NamesrvParts(NamedTuple):
    """A name server that runs."""

    name_server: NameServer
    connections: ConnectionTable | None
