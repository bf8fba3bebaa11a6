"""5.x: how replication stands (907), epochs and in-sync sets (1001 to 1008), cold reads (2003)."""

from collections.abc import Mapping
from typing import Final

from gantrymq.model.widths import Int32
from gantrymq.wire.bodies.codec import JsonBody
from gantrymq.wire.bodies.route import BrokerMembers
from gantrymq.wire.bodies.schema import Body


class HaConnection(Body, frozen=True, kw_only=True):
    """A slave as its master sees it."""

    addr: str = ""
    slave_ack_offset: int = 0
    diff: int = 0
    in_sync: bool = False
    transferred_byte_in_second: int = 0
    transfer_from_where: int = 0


class HaClient(Body, frozen=True, kw_only=True):
    """A slave as it sees itself."""

    master_addr: str | None = None
    transferred_byte_in_second: int = 0
    max_offset: int = 0
    last_read_timestamp: int = 0
    last_write_timestamp: int = 0
    master_flush_offset: int = 0
    activated: bool | None = None


class HaStatus(Body, frozen=True, kw_only=True):
    """A broker's side of replication (907)."""

    master: bool = False
    master_commit_log_max_offset: int = 0
    in_sync_slave_nums: Int32 = 0
    ha_connection_info: tuple[HaConnection, ...] = ()
    ha_client_runtime_info: HaClient | None = None


class EpochEntry(Body, frozen=True, kw_only=True):
    """Where a master's reign begins in the log."""

    epoch: Int32 = 0
    start_offset: int = 0
    end_offset: int = 2**63 - 1


class EpochCache(Body, frozen=True, kw_only=True):
    """All epochs of a broker (1007)."""

    cluster_name: str = ""
    broker_name: str = ""
    broker_id: int = 0
    epoch_list: tuple[EpochEntry, ...] = ()
    max_offset: int = 0


class SyncStateSet(Body, frozen=True, kw_only=True):
    """The brokers that have everything that was acknowledged (1001, 1003, 1004, 1008)."""

    sync_state_set: tuple[int, ...] | None = None
    sync_state_set_epoch: Int32 = 0


class ElectedMaster(Body, frozen=True, kw_only=True):
    """The members and the in-sync set after an election (1002)."""

    broker_member_group: BrokerMembers | None = None
    sync_state_set: tuple[int, ...] | None = None


class Replica(Body, frozen=True, kw_only=True):
    """A member of a broker group."""

    broker_name: str = ""
    broker_id: int | None = None
    broker_address: str = ""
    alive: bool | None = None


class Replicas(Body, frozen=True, kw_only=True):
    """A broker group as the controller knows it."""

    master_broker_id: int | None = None
    master_address: str | None = None
    master_epoch: Int32 | None = None
    sync_state_set_epoch: Int32 | None = None
    in_sync_replicas: tuple[Replica, ...] | None = None
    not_in_sync_replicas: tuple[Replica, ...] | None = None


class ReplicasTable(Body, frozen=True, kw_only=True):
    """Broker groups by name (1006)."""

    replicas_info_table: Mapping[str, Replicas] = {}


class ColdReads(Body, frozen=True, kw_only=True):
    """Bytes that a group read from disk lately."""

    cold_acc: int = 0
    last_cold_read_time_mills: int = 0
    create_time_mills: int = 0


class ColdReadControl(Body, frozen=True, kw_only=True):
    """Limits on reading from disk, by group (2003)."""

    runtime_table: Mapping[str, ColdReads] = {}
    config_table: Mapping[str, int] = {}
    cg_cold_read_threshold: int = 0
    global_cold_read_threshold: int = 0
    global_acc: int = 0


HA_STATUS: Final = JsonBody(HaStatus)
EPOCH_CACHE: Final = JsonBody(EpochCache)
SYNC_STATE_SET: Final = JsonBody(SyncStateSet)
ELECTED_MASTER: Final = JsonBody(ElectedMaster)
REPLICAS_TABLE: Final = JsonBody(ReplicasTable)
COLD_READ_CONTROL: Final = JsonBody(ColdReadControl)
BROKER_NAMES: Final = JsonBody(tuple[str, ...])
"""The question of 1006."""
