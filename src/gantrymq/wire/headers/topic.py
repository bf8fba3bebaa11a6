"""Topics of a broker."""

from gantrymq.wire.fields import Header, Int32, Int64


class CreateTopicRequest(Header, frozen=True, kw_only=True):
    """UPDATE_AND_CREATE_TOPIC and UPDATE_AND_CREATE_STATIC_TOPIC."""

    topic: str
    default_topic: str
    read_queue_nums: Int32
    write_queue_nums: Int32
    perm: Int32
    topic_filter_type: str
    order: bool
    topic_sys_flag: Int32 | None = None
    attributes: str | None = None
    """`+key=value,-key` (5.x)."""
    force: bool | None = None


class GetAllTopicConfigRequest(Header, frozen=True, kw_only=True):
    """GET_ALL_TOPIC_CONFIG; the fields page through many topics (5.5)."""

    topic_seq: Int32 | None = None
    data_version: str | None = None
    max_topic_num: Int32 | None = None


class GetAllTopicConfigResponse(Header, frozen=True, kw_only=True):
    """How many there are; absent when all of them are here."""

    total_topic_num: Int32 | None = None


class GetTopicConfigRequest(Header, frozen=True, kw_only=True):
    """GET_TOPIC_CONFIG."""

    topic: str
    lo: bool | None = None


class CheckRocksDbProgressRequest(Header, frozen=True, kw_only=True):
    """CHECK_ROCKSDB_CQ_WRITE_PROGRESS."""

    topic: str
    check_store_time: Int64 | None = None
