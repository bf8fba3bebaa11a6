"""The controller, which elects masters (5.x).

The names are those of Apache's header classes in `remoting/protocol/header/controller`; no
traffic of a controller is in the golden data.
"""

from gantrymq.wire.fields import Header, Int32, Int64


class AlterSyncStateSetRequest(Header, frozen=True, kw_only=True):
    """CONTROLLER_ALTER_SYNC_STATE_SET."""

    broker_name: str | None = None
    master_broker_id: Int64 | None = None
    master_epoch: Int32 | None = None
    invoke_time: Int64 | None = None


class AlterSyncStateSetResponse(Header, frozen=True, kw_only=True):
    """The epoch of the new set."""

    new_sync_state_set_epoch: Int32 | None = None


class ElectMasterRequest(Header, frozen=True, kw_only=True):
    """CONTROLLER_ELECT_MASTER."""

    cluster_name: str
    broker_name: str
    broker_id: Int64
    designate_elect: bool
    invoke_time: Int64 | None = None


class MasterResponse(Header, frozen=True, kw_only=True):
    """CONTROLLER_ELECT_MASTER and CONTROLLER_GET_REPLICA_INFO: who is master."""

    master_broker_id: Int64 | None = None
    master_address: str | None = None
    master_epoch: Int32 | None = None
    sync_state_set_epoch: Int32 | None = None


class RegisterToControllerRequest(Header, frozen=True, kw_only=True):
    """CONTROLLER_REGISTER_BROKER."""

    cluster_name: str | None = None
    broker_name: str | None = None
    broker_id: Int64 | None = None
    broker_address: str | None = None
    invoke_time: Int64 | None = None


class RegisterToControllerResponse(Header, frozen=True, kw_only=True):
    """Who is master, for the one who registered."""

    cluster_name: str | None = None
    broker_name: str | None = None
    master_broker_id: Int64 | None = None
    master_address: str | None = None
    master_epoch: Int32 | None = None
    sync_state_set_epoch: Int32 | None = None


class ReplicaInfoRequest(Header, frozen=True, kw_only=True):
    """CONTROLLER_GET_REPLICA_INFO."""

    broker_name: str | None = None


class MetadataResponse(Header, frozen=True, kw_only=True):
    """CONTROLLER_GET_METADATA_INFO: who leads the controllers."""

    group: str | None = None
    controller_leader_id: str | None = None
    controller_leader_address: str | None = None
    is_leader: bool | None = None
    peers: str | None = None


class CleanBrokerDataRequest(Header, frozen=True, kw_only=True):
    """CLEAN_BROKER_DATA."""

    broker_name: str
    cluster_name: str | None = None
    broker_controller_ids_to_clean: str | None = None
    is_clean_living_broker: bool | None = None
    invoke_time: Int64 | None = None


class NextBrokerIdRequest(Header, frozen=True, kw_only=True):
    """CONTROLLER_GET_NEXT_BROKER_ID."""

    cluster_name: str | None = None
    broker_name: str | None = None


class NextBrokerIdResponse(Header, frozen=True, kw_only=True):
    """The next free id."""

    cluster_name: str | None = None
    broker_name: str | None = None
    next_broker_id: Int64 | None = None


class ApplyBrokerIdRequest(Header, frozen=True, kw_only=True):
    """CONTROLLER_APPLY_BROKER_ID."""

    cluster_name: str | None = None
    broker_name: str | None = None
    applied_broker_id: Int64 | None = None
    register_check_code: str | None = None


class ApplyBrokerIdResponse(Header, frozen=True, kw_only=True):
    """For whom the id is."""

    cluster_name: str | None = None
    broker_name: str | None = None


class NotifyRoleChangedRequest(Header, frozen=True, kw_only=True):
    """NOTIFY_BROKER_ROLE_CHANGED, from a controller to a broker."""

    master_address: str | None = None
    master_epoch: Int32 | None = None
    sync_state_set_epoch: Int32 | None = None
    master_broker_id: Int64 | None = None
