"""What a client knows about one topic: its queues, and where their brokers are."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from gantrymq.client.errors import NoRoute, NoRouteCause
from gantrymq.limits import QUEUES_MAX
from gantrymq.model.queue import MessageQueue, QueueId
from gantrymq.model.route import MASTER_ID
from gantrymq.model.topic import Perm

if TYPE_CHECKING:
    from collections.abc import Mapping

    from gantrymq.model.route import BrokerData, QueueData, TopicRoute

TEMPLATE_QUEUES: Final = 4
"""Queues that a topic gets on each broker when a send makes it; brokers may give it fewer."""


class Route:
    """The queues of a topic and the addresses of its brokers; never changed once made."""

    __slots__ = ("brokers", "data", "is_template", "read_queues", "topic", "write_queues")

    def __init__(self, topic: str, data: TopicRoute, *, is_template: bool = False) -> None:
        """Read what a name server said; a template's queues are those the topic will have."""
        self.topic = topic
        self.data = data
        self.is_template = is_template
        """Whether the topic does not exist yet: brokers make it with the first send."""
        self.brokers: Mapping[str, BrokerData] = {broker.name: broker for broker in data.brokers}
        """By name."""
        self.read_queues: tuple[MessageQueue, ...] = tuple(
            queue
            for told in sorted(data.queues, key=_broker_name)
            if int(told.perm) & _READ
            for queue in self._queues(told.broker_name, self._count(told.read_queues))
        )
        """Those that may be read, in Java's order."""
        self.write_queues = self._write_queues()
        """Those that may be written, and whose broker has a master, in Java's order."""

    def _count(self, told: int) -> int:
        return min(told, TEMPLATE_QUEUES) if self.is_template else told

    def _queues(self, broker_name: str, count: int) -> list[MessageQueue]:
        return [MessageQueue(self.topic, broker_name, QueueId(each)) for each in range(count)]

    def _write_queues(self) -> tuple[MessageQueue, ...]:
        found: list[MessageQueue] = []
        if self.data.order_conf:
            for part in self.data.order_conf.split(";"):
                name, _colon, digits = part.strip().partition(":")
                if digits.isascii() and digits.isdecimal() and self.address(name) is not None:
                    found += self._queues(name, min(int(digits[:6]), QUEUES_MAX))
            return tuple(found)
        for told in sorted(self.data.queues, key=_broker_name):
            if int(told.perm) & _WRITE and self.address(told.broker_name) is not None:
                # A topic that is not there yet gets as many queues to write as it has to read.
                count = told.read_queues if self.is_template else told.write_queues
                found += self._queues(told.broker_name, self._count(count))
        return tuple(found)

    def address(self, broker_name: str, broker_id: int = MASTER_ID) -> str | None:
        """Return where one broker of a group is, the master unless another is asked for."""
        broker = self.brokers.get(broker_name)
        return None if broker is None else broker.addresses.get(broker_id)

    def any_address(self, broker_name: str) -> str | None:
        """Return where a broker of the group is: the master if it is there, else a slave."""
        broker = self.brokers.get(broker_name)
        if broker is None or not broker.addresses:
            return None
        return broker.addresses[min(broker.addresses)]

    def same_as(self, other: Route | None) -> bool:
        """Tell whether nothing has changed between two."""
        return (
            other is not None and self.is_template == other.is_template and self.data == other.data
        )

    def check_writable(self) -> None:
        """Refuse a route that has nothing to write to.

        Raises:
            NoRoute: it says whether permission is missing, or the masters are.
        """
        if self.write_queues:
            return
        allowed = [told for told in self.data.queues if int(told.perm) & _WRITE]
        if not allowed:
            told_of = ", ".join(sorted(told.broker_name for told in self.data.queues)) or "none"
            raise NoRoute(
                self.topic,
                NoRouteCause.NOT_WRITABLE,
                f"no broker lets it be written (brokers: {told_of}): give the topic write"
                " permission, or add the broker's write permission again",
            )
        listed = "; ".join(
            f"{told.broker_name}: {dict(self._addresses(told.broker_name)) or 'no address'}"
            for told in allowed
        )
        raise NoRoute(
            self.topic,
            NoRouteCause.NO_MASTER,
            f"its brokers have no master at the moment ({listed}): wait for one, or start it",
        )

    def _addresses(self, broker_name: str) -> Mapping[int, str]:
        broker = self.brokers.get(broker_name)
        return {} if broker is None else broker.addresses


_READ: Final = int(Perm.READ)
_WRITE: Final = int(Perm.WRITE)


def _broker_name(told: QueueData) -> str:
    return told.broker_name
