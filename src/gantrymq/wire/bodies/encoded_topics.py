"""Tables of topics as JSON, with every topic encoded once; see `encoded_table`."""

from __future__ import annotations

from gantrymq.model.topic import TopicConfig
from gantrymq.wire.bodies.encoded_table import EncodedTable
from gantrymq.wire.bodies.topic import TOPIC_TABLE, TopicTable


class EncodedTopics(EncodedTable[TopicTable, TopicConfig]):
    """Remembers what topics look like as JSON."""

    def __init__(self) -> None:
        super().__init__(TOPIC_TABLE.encode, TopicTable(), "topic_config_table", "topicConfigTable")
