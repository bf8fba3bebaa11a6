"""Tables of topics whose topics are encoded once: the same bytes as ever, and less work."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

import msgspec
from hypothesis import given
from hypothesis import strategies as st

from gantrymq.model.offsets import DataVersion
from gantrymq.model.topic import TopicConfig
from gantrymq.wire.bodies import encoded_topics
from gantrymq.wire.bodies.encoded_topics import EncodedTopics
from gantrymq.wire.bodies.registration import REGISTRATION, Registration
from gantrymq.wire.bodies.topic import TOPIC_TABLE, TopicTable

if TYPE_CHECKING:
    import pytest

NAMES = st.text(st.characters(exclude_categories=("C", "Z")), min_size=1, max_size=20)
TOPICS = st.dictionaries(
    NAMES, st.tuples(st.integers(0, 9), st.dictionaries(NAMES, NAMES, max_size=2)), max_size=5
)


def table_of(topics: dict[str, tuple[int, dict[str, str]]], counter: int) -> TopicTable:
    return TopicTable(
        data_version=DataVersion(timestamp_ms=7, counter=counter),
        topic_config_table={
            name: TopicConfig(name, queues, queues, attributes=attributes)
            for name, (queues, attributes) in topics.items()
        },
    )


def registration(table: TopicTable) -> bytes:
    return REGISTRATION.encode(Registration(topic_config_serialize_wrapper=table))


@given(st.lists(TOPICS, max_size=6))
def test_the_bytes_are_those_of_the_plain_codec(tables: list[object]) -> None:
    encoded = EncodedTopics()
    for counter, topics in enumerate(tables):
        table = table_of(topics, counter)  # type: ignore[arg-type]
        assert encoded.encode(table) == TOPIC_TABLE.encode(table)
        assert b"".join(encoded.pieces(table, registration)) == registration(table)
        assert len(encoded) <= max(2 * len(table.topic_config_table), 0)


def test_a_name_that_looks_like_the_place_of_the_topics_is_only_a_name() -> None:
    table = table_of({'x"topicConfigTable":{}': (1, {"a": '"topicConfigTable":{}'})}, 1)
    assert EncodedTopics().encode(table) == TOPIC_TABLE.encode(table)


def test_only_what_changed_is_encoded_again(monkeypatch: pytest.MonkeyPatch) -> None:
    table = table_of({f"T{number}": (4, {}) for number in range(500)}, 1)
    topics: list[str] = []

    def counted(real: object, one: TopicTable) -> bytes:
        topics.extend(one.topic_config_table)
        return real(one)  # type: ignore[operator,no-any-return]

    codec = type("Codec", (), {"encode": staticmethod(partial(counted, TOPIC_TABLE.encode))})
    monkeypatch.setattr(encoded_topics, "TOPIC_TABLE", codec)
    encoded = EncodedTopics()
    encoded.encode(table)
    assert len(topics) == 500
    topics.clear()
    changed = {
        **table.topic_config_table,
        "T7": TopicConfig("T7", 9, 9),
        "New": TopicConfig("New"),
    }
    again = msgspec.structs.replace(table, topic_config_table=changed)
    assert encoded.encode(again) == TOPIC_TABLE.encode(again)
    assert sorted(topics) == ["New", "T7"]
