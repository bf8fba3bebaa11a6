"""Settings and upkeep of a broker."""

from msgspec import field

from gantrymq.wire.fields import Header, Int64


class BrokerConfigResponse(Header, frozen=True, kw_only=True):
    """GET_BROKER_CONFIG: the data version of the settings as JSON."""

    version: str


class AddBrokerRequest(Header, frozen=True, kw_only=True):
    """ADD_BROKER."""

    config_path: str | None = None


class RemoveBrokerRequest(Header, frozen=True, kw_only=True):
    """REMOVE_BROKER."""

    broker_name: str
    broker_cluster_name: str
    broker_id: Int64


class ExportRocksDbConfigRequest(Header, frozen=True, kw_only=True):
    """EXPORT_ROCKSDB_CONFIG_TO_JSON."""

    config_type: str


class CommitLogReadModeRequest(Header, frozen=True, kw_only=True):
    """SET_COMMITLOG_READ_MODE."""

    mode: str | None = field(name="READ_AHEAD_MODE", default=None)


class SwitchTimerEngineRequest(Header, frozen=True, kw_only=True):
    """SWITCH_TIMER_ENGINE: `R` the RocksDB timeline, `F` the wheel in files."""

    engine_type: str = field(name="E_T")
