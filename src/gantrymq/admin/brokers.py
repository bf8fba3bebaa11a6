"""Brokers and name servers: figures, settings, upkeep."""

from __future__ import annotations

from typing import TYPE_CHECKING

from gantrymq.wire.bodies.queues import QUEUE_ENTRIES
from gantrymq.wire.bodies.replication import COLD_READ_CONTROL, HA_STATUS
from gantrymq.wire.bodies.route import KV_TABLE
from gantrymq.wire.bodies.settings import SETTINGS
from gantrymq.wire.bodies.stats import BROKER_CONSUME_STATS, BROKER_STATS
from gantrymq.wire.bodies.topic import TOPIC_LIST
from gantrymq.wire.codes import RequestCode
from gantrymq.wire.headers.namesrv import (
    GetKvConfigResponse,
    KvConfigRequest,
    KvNamespaceRequest,
    PutKvConfigRequest,
)
from gantrymq.wire.headers.query import (
    GetBrokerConsumeStatsRequest,
    QueryConsumeQueueRequest,
    ViewBrokerStatsRequest,
)
from gantrymq.wire.headers.targets import BrokerNameRequest
from gantrymq.wire.response_errors import SystemFailure

if TYPE_CHECKING:
    from collections.abc import Mapping

    from gantrymq.admin.session import Gathered, Session
    from gantrymq.wire.bodies.queues import QueueEntries
    from gantrymq.wire.bodies.replication import ColdReadControl, HaStatus
    from gantrymq.wire.bodies.stats import BrokerConsumeStats, BrokerStats
    from gantrymq.wire.command import Command

ORDER_NAMESPACE = "ORDER_TOPIC_CONFIG"


async def runtime_info(session: Session, address: str) -> dict[str, str]:
    """Return a broker's figures by name."""
    answered = await session.remote.call(address, RequestCode.GET_BROKER_RUNTIME_INFO)
    return dict(KV_TABLE.decode(answered.body).table)


async def broker_settings(session: Session, address: str) -> dict[str, str]:
    """Return a broker's settings."""
    answered = await session.remote.call(address, RequestCode.GET_BROKER_CONFIG)
    return dict(SETTINGS.decode(answered.body))


async def change_broker(session: Session, address: str, settings: Mapping[str, str]) -> None:
    """Change settings of a broker while it runs."""
    body = SETTINGS.encode(settings)
    await session.remote.call(address, RequestCode.UPDATE_BROKER_CONFIG, None, body)


async def consume_stats_of(
    session: Session, address: str, *, order: bool = False, timeout_s: float = 50.0
) -> BrokerConsumeStats:
    """Return how far every group of a broker is behind."""
    answered = await session.remote.call(
        address,
        RequestCode.GET_BROKER_CONSUME_STATS,
        GetBrokerConsumeStatsRequest(is_order=order),
        timeout_s=timeout_s,
    )
    return BROKER_CONSUME_STATS.decode(answered.body)


async def counter(session: Session, address: str, name: str, key: str) -> BrokerStats | None:
    """Return one of a broker's counters; None if it has counted nothing under that key."""
    try:
        answered = await session.remote.call(
            address,
            RequestCode.VIEW_BROKER_STATS_DATA,
            ViewBrokerStatsRequest(stats_name=name, stats_key=key),
        )
    except SystemFailure:
        return None
    return BROKER_STATS.decode(answered.body)


async def system_topics_of(session: Session, address: str) -> frozenset[str]:
    """Return the topics that a broker keeps for itself."""
    answered = await session.remote.call(address, RequestCode.GET_SYSTEM_TOPIC_LIST_FROM_BROKER)
    return frozenset(TOPIC_LIST.decode(answered.body).topic_list)


async def do(session: Session, address: str, code: RequestCode) -> None:
    """Have a broker do what needs no further word: clean, delete what is expired."""
    await session.remote.call(address, code, timeout_s=60.0)


async def queue_entries(
    session: Session, address: str, header: QueryConsumeQueueRequest
) -> QueueEntries:
    """Return units of a consume queue."""
    answered = await session.remote.call(address, RequestCode.QUERY_CONSUME_QUEUE, header)
    return QUEUE_ENTRIES.decode(answered.body)


async def ha_status(session: Session, address: str) -> HaStatus:
    """Return a broker's side of replication (5.x and ours)."""
    answered = await session.remote.call(address, RequestCode.GET_BROKER_HA_STATUS)
    return HA_STATUS.decode(answered.body)


async def cold_reads(session: Session, address: str) -> ColdReadControl:
    """Return what limits reads from disk (5.x)."""
    answered = await session.remote.call(address, RequestCode.GET_COLD_DATA_FLOW_CTR_INFO)
    return COLD_READ_CONTROL.decode(answered.body)


# -- name servers ----------------------------------------------------------------------------------


async def name_server_settings(session: Session) -> Gathered[str, Command]:
    """Return the answers of all name servers; `settings_in` reads them."""
    return await session.tell_name_servers(RequestCode.GET_NAMESRV_CONFIG)


def settings_in(reply: Command) -> dict[str, str]:
    """Return the settings of an answer."""
    return dict(SETTINGS.decode(reply.body))


async def change_name_servers(
    session: Session, settings: Mapping[str, str]
) -> Gathered[str, Command]:
    """Change settings of all name servers."""
    body = SETTINGS.encode(settings)
    return await session.tell_name_servers(RequestCode.UPDATE_NAMESRV_CONFIG, None, body)


async def put_value(
    session: Session, namespace: str, key: str, value: str
) -> Gathered[str, Command]:
    """Set a value on every name server."""
    header = PutKvConfigRequest(namespace=namespace, key=key, value=value)
    return await session.tell_name_servers(RequestCode.PUT_KV_CONFIG, header)


async def value_of(session: Session, namespace: str, key: str) -> str:
    """Return a value.

    Raises:
        QueryNotFound: there is none.
    """
    reply = await session.ask_name_server(
        RequestCode.GET_KV_CONFIG, KvConfigRequest(namespace=namespace, key=key)
    )
    return GetKvConfigResponse.decode(reply.fields).value or ""


async def values_of(session: Session, namespace: str) -> dict[str, str]:
    """Return all values of a namespace.

    Raises:
        QueryNotFound: there is no such namespace.
    """
    reply = await session.ask_name_server(
        RequestCode.GET_KVLIST_BY_NAMESPACE, KvNamespaceRequest(namespace=namespace)
    )
    return dict(KV_TABLE.decode(reply.body).table)


async def delete_value(session: Session, namespace: str, key: str) -> Gathered[str, Command]:
    """Delete a value on every name server."""
    header = KvConfigRequest(namespace=namespace, key=key)
    return await session.tell_name_servers(RequestCode.DELETE_KV_CONFIG, header)


async def change_write_permission(
    session: Session, broker_name: str, *, allowed: bool
) -> Gathered[str, Command]:
    """Let clients write to a broker's topics, or let them not, on every name server."""
    code = (
        RequestCode.ADD_WRITE_PERM_OF_BROKER if allowed else RequestCode.WIPE_WRITE_PERM_OF_BROKER
    )
    return await session.tell_name_servers(code, BrokerNameRequest(broker_name=broker_name))
