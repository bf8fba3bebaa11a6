"""Topics: their settings as tables and lists, and the queue mappings of 5.x static topics.

Names are what the peer says: whoever makes files or routes of them asks `model.names` first.
"""

from collections.abc import Mapping
from typing import Final

from gantrymq.model.offsets import DataVersion
from gantrymq.model.route import QueueMapping
from gantrymq.model.topic import TopicConfig
from gantrymq.model.widths import Int32
from gantrymq.wire.bodies.codec import JsonBody
from gantrymq.wire.bodies.schema import Body


class TopicList(Body, frozen=True, kw_only=True):
    """Names of topics, and the address of any broker that has them."""

    topic_list: tuple[str, ...] = ()
    broker_addr: str | None = None


class QueueMappingItem(Body, frozen=True, kw_only=True):
    """5.x static topics: one stretch of a logical queue, on the broker that holds it."""

    gen: Int32 = 0
    queue_id: Int32 = 0
    bname: str = ""
    logic_offset: int = 0
    start_offset: int = 0
    end_offset: int = -1
    time_of_start: int = -1
    time_of_end: int = -1


class QueueMappingDetail(QueueMapping, frozen=True):
    """5.x static topics: a mapping with the history of the queues that the broker hosts."""

    hosted_queues: Mapping[Int32, tuple[QueueMappingItem, ...]] = {}


class TopicTable(Body, frozen=True, kw_only=True):
    """All topics of a broker: `topics.json`, the answer to 21, the inside of a registration."""

    data_version: DataVersion = DataVersion()
    topic_config_table: Mapping[str, TopicConfig] = {}
    mapping_data_version: DataVersion | None = None
    topic_queue_mapping_info_map: Mapping[str, QueueMapping] | None = None
    topic_queue_mapping_detail_map: Mapping[str, QueueMappingDetail] | None = None


class TopicConfigList(Body, frozen=True, kw_only=True):
    """Topics to be created or changed together (18)."""

    topic_config_list: tuple[TopicConfig, ...] = ()


class MappedTopicConfig(TopicConfig, frozen=True):
    """A topic's settings with its queue mapping, if it is a static topic (351)."""

    mapping_detail: QueueMappingDetail | None = None


class QueueMappingTable(Body, frozen=True, kw_only=True):
    """5.x `topicQueueMapping.json`."""

    data_version: DataVersion = DataVersion()
    topic_queue_mapping_info_map: Mapping[str, QueueMappingDetail] = {}


TOPIC_LIST: Final = JsonBody(TopicList)
TOPIC_TABLE: Final = JsonBody(TopicTable)
TOPIC_CONFIG_LIST: Final = JsonBody(TopicConfigList)
MAPPED_TOPIC_CONFIG: Final = JsonBody(MappedTopicConfig)
QUEUE_MAPPING_DETAIL: Final = JsonBody(QueueMappingDetail)
QUEUE_MAPPING_TABLE: Final = JsonBody(QueueMappingTable)
DATA_VERSION: Final = JsonBody(DataVersion)
