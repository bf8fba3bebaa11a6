"""Answers with routes in them, encoded once and kept until something changes.

Clients poll: thousands of them ask twice a minute for the same few topics, and the table changes
when somebody makes a topic or a broker dies. The bytes are kept with the topic they are about,
which drops them when it or one of its broker groups changes; when something else changes that they
depend on (order configuration, settings, advertised addresses), whoever changes it drops them.

After a broker died, thousands of answers are made anew. Most are nothing but their groups and their
queues, so they are put together from parts that are encoded once for all topics.

There is one encoding. Java quotes the broker ids for clients since 4.9.4 and not for older ones,
but every known client reads them quoted.
"""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING, Final

import msgspec

from gantrymq.limits import NAMESRV_VIEWS_MAX
from gantrymq.model.route import MASTER_ID, BrokerData, QueueData, TopicRoute
from gantrymq.model.topic import Perm
from gantrymq.namesrv.kv import ORDER_NAMESPACE, KvTables
from gantrymq.wire.bodies.codec import JsonBody
from gantrymq.wire.bodies.route import TOPIC_ROUTE

if TYPE_CHECKING:
    from gantrymq.namesrv.members import Group, TopicEntry
    from gantrymq.namesrv.reach import Reach
    from gantrymq.namesrv.routes import RouteTable
    from gantrymq.namesrv.settings import NamesrvSettings

_MEMBERSHIP_PREFIX: Final = "rmq_sys_SYNC_BROKER_MEMBER_"
"""Brokers ask for the route of these topics to find each other: they want to see the truth."""
_QUEUES_KEPT: Final = 4096
_BROKER_DATA: Final = JsonBody(BrokerData)
_QUEUE_DATA: Final = JsonBody(QueueData)


class RouteAnswers:
    """Encodes routes as one client sees them. One event loop owns it."""

    def __init__(
        self, table: RouteTable, kv: KvTables, reach: Reach, settings: NamesrvSettings
    ) -> None:
        self._table = table
        self._kv = kv
        self._reach = reach
        self._settings = settings

    def use(self, settings: NamesrvSettings) -> None:
        """Follow other settings from now on."""
        self._settings = settings
        self._table.forget_answers()

    def route(self, topic: str, listener: str, zone: str | None = None) -> bytes | None:
        """Return the encoded route of a topic; None if nobody has it.

        A client that asks for its own zone gets the groups of that zone, and those without master.
        """
        entry = self._table.topics.get(topic)
        if entry is None:
            return None
        view = self._reach.view_of(listener)
        if zone:
            return TOPIC_ROUTE.encode(_in_zone(self._make(topic, view), zone))
        found = entry.answers.get(view)
        if found is None:
            found = self._join(topic, entry, view) or TOPIC_ROUTE.encode(self._make(topic, view))
            _keep(entry.answers, view, found)
        return found

    def _join(self, topic: str, entry: TopicEntry, view: str) -> bytes | None:
        """Return the encoded route made of encoded parts; None if there is more in it."""
        settings = self._settings
        ordered = settings.order_in_routes and self._kv.get(ORDER_NAMESPACE, topic) is not None
        if settings.acting_masters or ordered or entry.mappings:
            return None
        names = sorted(entry.queues)
        groups = [self._table.groups[name] for name in names]
        if any(m.filter_servers for group in groups for m in group.members.values()):
            return None
        brokers = b",".join([self._group(group, view) for group in groups])
        queues = b",".join([_encode_queues(entry.queues[name]) for name in names])
        return b'{"brokerDatas":[%b],"filterServerTable":{},"queueDatas":[%b]}' % (brokers, queues)

    def _group(self, group: Group, view: str) -> bytes:
        """Return a broker group as routes show it."""
        found = group.answers.get(view)
        if found is None:
            found = _BROKER_DATA.encode(self._reach.broker(group.data(), view))
            _keep(group.answers, view, found)
        return found

    def _make(self, topic: str, view: str) -> TopicRoute:
        """Return the route of a topic that is there."""
        route = self._table.route_of(topic) or TopicRoute()
        if self._settings.acting_masters and not topic.startswith(_MEMBERSHIP_PREFIX):
            route = with_acting_masters(route)
        order = self._kv.get(ORDER_NAMESPACE, topic) if self._settings.order_in_routes else None
        brokers = tuple([self._reach.broker(data, view) for data in route.brokers])
        return msgspec.structs.replace(route, brokers=brokers, order_conf=order)


def _keep(answers: dict[str, bytes], view: str, answer: bytes) -> None:
    """Keep an answer; there is room for as many as listeners that are really used."""
    if len(answers) >= NAMESRV_VIEWS_MAX:
        answers.clear()
    answers[view] = answer


@lru_cache(maxsize=_QUEUES_KEPT)
def _encode_queues(data: QueueData) -> bytes:
    """Return the queues of one topic on one group, which are the same for most topics."""
    return _QUEUE_DATA.encode(data)


def with_acting_masters(route: TopicRoute) -> TopicRoute:
    """Show the lowest slave as master where there is none, it may be, and nothing can be written.

    Clients lock queues and ask for offsets at id 0; the slave answers both for its master.
    """
    writable = {data.broker_name for data in route.queues if Perm.WRITE in data.perm}
    brokers = tuple(
        data if data.name in writable or not data.acting_master else _acting(data)
        for data in route.brokers
    )
    return msgspec.structs.replace(route, brokers=brokers)


def _acting(data: BrokerData) -> BrokerData:
    """Return a group whose lowest member is the master."""
    if MASTER_ID in data.addresses or not data.addresses:
        return data
    addresses = dict(data.addresses)
    acting = addresses.pop(min(addresses))
    return msgspec.structs.replace(data, addresses={MASTER_ID: acting, **addresses})


def _in_zone(route: TopicRoute, zone: str) -> TopicRoute:
    """Leave out the groups of other zones whose masters are there."""
    kept = [
        data
        for data in route.brokers
        if data.master is None or (data.zone or "").lower() == zone.lower()
    ]
    names = {data.name for data in kept}
    addresses = {address for data in kept for address in data.addresses.values()}
    return msgspec.structs.replace(
        route,
        brokers=tuple(kept),
        queues=tuple(data for data in route.queues if data.broker_name in names),
        filter_servers={a: s for a, s in route.filter_servers.items() if a in addresses},
    )
