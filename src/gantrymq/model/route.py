"""What the name server tells a client about a topic: on which brokers, with which queues."""

from collections.abc import Mapping
from typing import Final

import msgspec

from gantrymq.model.topic import Perm
from gantrymq.model.widths import Int32

MASTER_ID: Final = 0


class BrokerData(msgspec.Struct, frozen=True):
    """One broker group: a master (id 0) and its slaves under one name."""

    cluster: str
    name: str
    addresses: Mapping[int, str] = {}
    """Broker id to `host:port`."""
    zone: str | None = None
    acting_master: bool = False
    """5.x: the lowest slave may stand in for an absent master."""

    @property
    def master(self) -> str | None:
        """Return the address that takes writes, if the master is there."""
        return self.addresses.get(MASTER_ID)


class QueueData(msgspec.Struct, frozen=True):
    """How many queues a topic has on one broker group, and what may be done with them."""

    broker_name: str
    read_queues: Int32 = 0
    write_queues: Int32 = 0
    perm: Perm = Perm(0)
    system_flags: Int32 = 0


class QueueMapping(msgspec.Struct, frozen=True):
    """5.x static topics: which logical queues of a topic a broker group serves now."""

    topic: str = ""
    scope: str = "__global__"
    total_queues: Int32 = 0
    broker_name: str = ""
    epoch: int = 0
    dirty: bool = False
    current_ids: Mapping[Int32, Int32] = {}
    """Logical queue id to physical queue id."""


class TopicRoute(msgspec.Struct, frozen=True):
    """Everything a client needs to send to a topic and to pull from it."""

    queues: tuple[QueueData, ...] = ()
    brokers: tuple[BrokerData, ...] = ()
    order_conf: str | None = None
    """Ordered topics: `brokerA:4;brokerB:4` instead of `queues` for producers."""
    filter_servers: Mapping[str, tuple[str, ...]] = {}
    """Obsolete, always empty."""
    mappings: Mapping[str, QueueMapping] | None = None
    """5.x static topics, by broker name."""
