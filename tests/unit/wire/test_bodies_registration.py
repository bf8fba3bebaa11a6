"""The three forms of a registration, and what is refused of the compressed one."""

from __future__ import annotations

import struct
import time
import zlib
from typing import Final

import pytest

from gantrymq.errors import ProtocolError
from gantrymq.limits import DECOMPRESSED_BODY_BYTES_MAX
from gantrymq.model.offsets import DataVersion
from gantrymq.model.route import QueueMapping
from gantrymq.model.topic import FilterType, Perm, TopicConfig
from gantrymq.wire.bodies.registration import REGISTRATION, Registration
from gantrymq.wire.bodies.topic import TopicTable

TOPICS: Final = {
    "a": TopicConfig("a", 4, 8, Perm(7), attributes={"+message.type": "NORMAL"}),
    "b": TopicConfig("b", 1, 1, Perm(4), FilterType.MULTI_TAG),
}
VERSION: Final = DataVersion(0, 1794778414615, 2)
PLAIN: Final = Registration(
    topic_config_serialize_wrapper=TopicTable(data_version=VERSION, topic_config_table=TOPICS),
    filter_server_list=("192.0.2.1:1",),
)


def sized(*parts: bytes) -> bytes:
    """Put its length in front of each part."""
    return b"".join(struct.pack(">i", len(part)) + part for part in parts)


def counted(count: int) -> bytes:
    """Return a count."""
    return struct.pack(">i", count)


def stream(*lines: bytes, tail: bytes = b"") -> bytes:
    """Return the compressed form with these topic lines, as 4.9 makes it."""
    head = sized(b'{"counter":2,"timestamp":1794778414615}') + counted(len(lines))
    return zlib.compress(head + sized(*lines, b"[]") + tail)


def test_the_plain_form() -> None:
    body = REGISTRATION.encode(PLAIN)
    assert body.startswith(b'{"filterServerList":["192.0.2.1:1"],"topicConfigSerializeWrapper":{')
    assert REGISTRATION.decode(body) == PLAIN


def test_the_inner_table_alone_from_before_3_0_11() -> None:
    body = b'{"dataVersion":{"counter":1},"topicConfigTable":{"t":{"topicName":"t"}}}'
    table = REGISTRATION.decode(body).topic_config_serialize_wrapper
    assert table.data_version.counter == 1
    assert table.topic_config_table == {"t": TopicConfig("t")}


@pytest.mark.parametrize("with_mappings", [True, False])
def test_the_compressed_form(*, with_mappings: bool) -> None:
    mappings = {"s": QueueMapping("s", total_queues=8, broker_name="b", current_ids={0: 1})}
    value = Registration(
        topic_config_serialize_wrapper=TopicTable(
            data_version=VERSION,
            topic_config_table=TOPICS,
            topic_queue_mapping_info_map=mappings if with_mappings else None,
        ),
        filter_server_list=("192.0.2.1:1",),
    )
    body = REGISTRATION.encode_compressed(value, with_mappings=with_mappings)
    assert body[0] == 0x78
    assert REGISTRATION.decode(body) == value


def test_a_line_of_4_9_has_five_parts() -> None:
    table = REGISTRATION.decode(stream(b"t 4 8 6 SINGLE_TAG")).topic_config_serialize_wrapper
    assert table.topic_config_table == {"t": TopicConfig("t", 4, 8)}
    assert table.data_version == VERSION
    assert table.topic_queue_mapping_info_map is None


def test_attributes_with_blanks_or_without_sense() -> None:
    body = stream(b't 4 8 6 SINGLE_TAG {"a":"b c"}', b"u 4 8 6 SINGLE_TAG {oops", tail=counted(0))
    table = REGISTRATION.decode(body).topic_config_serialize_wrapper
    assert table.topic_config_table["t"].attributes == {"a": "b c"}
    assert table.topic_config_table["u"].attributes == {}
    assert table.topic_queue_mapping_info_map == {}


@pytest.mark.parametrize(
    "line",
    [
        b"",
        b"t",
        b"t 4 8 6",
        b"t x 8 6 SINGLE_TAG",
        b"t 4 8 6 NO_TAG",
        b"t 4 8 16 SINGLE_TAG",
        b"t -1 8 6 SINGLE_TAG",
        b"t 99999999999 8 6 SINGLE_TAG",
        b"t " + b"9" * 5000 + b" 8 6 SINGLE_TAG",
        b"\xff 4 8 6 SINGLE_TAG",
    ],
)
def test_a_line_that_is_no_topic(line: bytes) -> None:
    with pytest.raises(ProtocolError) as caught:
        REGISTRATION.decode(stream(b"ok 4 8 6 SINGLE_TAG", line))
    assert caught.value.field.startswith("body.topicConfigTable[1]")


@pytest.mark.parametrize(
    ("data", "field"),
    [
        (b"", "body.dataVersion"),
        (counted(-1), "body.dataVersion"),
        (counted(2**31 - 1), "body.dataVersion"),
        (sized(b"[]"), "body.dataVersion"),
        (sized(b"{}"), "body.topicConfigTable"),
        (sized(b"{}") + counted(1), "body.topicConfigTable"),
        (sized(b"{}") + counted(2**31 - 1) + b"x" * 100, "body.topicConfigTable"),
        (sized(b"{}") + counted(0), "body.filterServerList"),
        (sized(b"{}") + counted(0) + sized(b"{}"), "body.filterServerList"),
        (sized(b"{}") + counted(0) + sized(b"[]") + b"\0", "body.topicQueueMappingInfoMap"),
        (
            sized(b"{}") + counted(0) + sized(b"[]") + counted(1) + sized(b"[]"),
            "body.topicQueueMappingInfoMap[0]",
        ),
    ],
)
def test_a_stream_that_does_not_add_up(data: bytes, field: str) -> None:
    with pytest.raises(ProtocolError) as caught:
        REGISTRATION.decode(zlib.compress(data))
    assert caught.value.field == field


def test_every_cut_of_the_stream_is_refused() -> None:
    body = REGISTRATION.encode_compressed(PLAIN)
    for end in range(len(body)):
        with pytest.raises(ProtocolError):
            REGISTRATION.decode(body[:end])


def test_bytes_that_only_begin_like_zlib() -> None:
    with pytest.raises(ProtocolError, match="is not zlib"):
        REGISTRATION.decode(b"x is not zlib")


def test_a_bomb_is_refused_before_it_unfolds() -> None:
    packer = zlib.compressobj(9)
    block = bytes(1024 * 1024)
    rounds = DECOMPRESSED_BODY_BYTES_MAX // len(block) + 1
    body = b"".join(packer.compress(block) for _ in range(rounds)) + packer.flush()
    assert len(body) < 1024 * 1024
    begun = time.process_time()
    with pytest.raises(ProtocolError, match="when decompressed"):
        REGISTRATION.decode(body)
    assert time.process_time() - begun < 5
