"""A broker among others: its slaves or its master, etcd, name servers, connections."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from gantrymq.metrics.parts import BrokerParts, FailoverParts, NamesrvParts
    from gantrymq.metrics.sheet import Page
    from gantrymq.transport.table import ConnectionTable


def fill_cluster(page: Page, parts: BrokerParts) -> None:
    """Write how a broker stands with the others."""
    page.put("gantrymq_is_master", not parts.broker.is_slave)
    _replication(page, parts)
    if parts.failover is not None:
        _failover(page, parts.failover)
    page.put("gantrymq_name_servers", len(parts.name_servers), "configured")
    page.put("gantrymq_name_servers", len(parts.known_to), "known")
    fill_connections(page, parts.connections)


def _replication(page: Page, parts: BrokerParts) -> None:
    client = parts.replication.client
    if client is not None:
        page.put("gantrymq_replication_connected", client.is_connected)
        page.put("gantrymq_replication_level", client.is_level)
        return
    slaves = parts.replication.status().ha_connection_info
    page.put("gantrymq_replication_slaves", len(slaves))
    for slave in slaves:
        page.put("gantrymq_replication_lag_bytes", max(0, slave.diff), slave.addr)
        page.put("gantrymq_replication_in_sync", slave.in_sync, slave.addr)


def _failover(page: Page, failover: FailoverParts) -> None:
    page.put("gantrymq_etcd_reachable", failover.seat.trouble is None)
    page.put("gantrymq_etcd_troubles_total", failover.seat.troubles)
    page.put("gantrymq_etcd_lease_held", failover.seat.holds_lease())
    page.put("gantrymq_failover_epoch", failover.epoch)
    if failover.in_sync is not None:
        page.put("gantrymq_in_sync_members", len(failover.in_sync.state.in_sync))


def fill_name_server(page: Page, parts: NamesrvParts) -> None:
    """Write what a name server knows."""
    table = parts.name_server.table
    page.put("gantrymq_namesrv_broker_groups", len(table.groups))
    brokers = sum(len(group.members) for group in table.groups.values())
    page.put("gantrymq_namesrv_brokers", brokers)
    page.put("gantrymq_namesrv_topics", len(table.topics))
    fill_connections(page, parts.connections)


def fill_connections(page: Page, connections: ConnectionTable | None) -> None:
    """Write how many connections there are, and what they hold."""
    if connections is not None:
        page.put("gantrymq_open_connections", len(connections.connections))
        page.put("gantrymq_buffered_bytes", connections.buffered_bytes)
        page.put("gantrymq_slow_connections", connections.slow_connections)
        page.put("gantrymq_busy_answers_total", connections.busy_answers)
        for cause, count in connections.admission.refused.items():
            page.put("gantrymq_connections_refused_total", count, cause)
        for cause, count in connections.closed.items():
            page.put("gantrymq_connections_closed_total", count, cause)
