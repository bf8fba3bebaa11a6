"""Replication inside a broker group (5.x)."""

from gantrymq.wire.fields import Header, Int64


class ExchangeHaInfo(Header, frozen=True, kw_only=True):
    """EXCHANGE_BROKER_HA_INFO, both ways; empty when a slave asks its master."""

    master_ha_address: str | None = None
    master_flush_offset: Int64 | None = None
    master_address: str | None = None


class ResetMasterFlushOffsetRequest(Header, frozen=True, kw_only=True):
    """RESET_MASTER_FLUSH_OFFSET."""

    master_flush_offset: Int64


class NotifyMinBrokerIdChangeRequest(Header, frozen=True, kw_only=True):
    """NOTIFY_MIN_BROKER_ID_CHANGE."""

    min_broker_id: Int64 | None = None
    broker_name: str | None = None
    min_broker_addr: str | None = None
    offline_broker_addr: str | None = None
    ha_broker_addr: str | None = None
