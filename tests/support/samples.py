"""Frames, records and batches made by hand, for the tests of the kernel and of what stands on it.

Nothing here uses the code under test: a layout is written down a second time on purpose.
"""

from __future__ import annotations

import json
import struct
import zlib
from typing import TYPE_CHECKING

from gantrymq.kernel.values import Frame, Record

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from gantrymq.kernel.interface import Kernel
    from gantrymq.kernel.lanes import SendLane

# Section 3.8 of the store's fact sheet, byte for byte as Apache 4.9.7 writes it.
GOLDEN_RECORD_BYTES = bytes.fromhex(
    "0000007ADAA320A73610A6860000000300000000000000000000000700000000000003E8000000000000018BCFE56800"
    "0A000001000030390000018BCFE5687B7F00000100002A9F0000000000000000000000000000000568656C6C6F09546F"
    "706963546573740011544147530154616741024B455953014B31"
)
GOLDEN_RECORD = Record(
    queue_id=3,
    flag=0,
    queue_offset=7,
    log_offset=1000,
    sys_flag=0,
    born_timestamp=1700000000000,
    born_host=bytes([10, 0, 0, 1]) + struct.pack(">i", 12345),
    store_timestamp=1700000000123,
    store_host=bytes([127, 0, 0, 1]) + struct.pack(">i", 10911),
    reconsume_times=0,
    prepared_offset=0,
    body=b"hello",
    topic=b"TopicTest",
    properties=b"TAGS\x01TagA\x02KEYS\x01K1",
)
IPV6_HOST = bytes.fromhex("FD000000000000000000000000000002") + struct.pack(">i", 20911)


def record_on_disk(record: Record, *, crc: int | None = None, version: int = 0) -> bytes:
    """Return a record as it is stored, also one that the kernel would refuse to write."""
    long_topic = version == 2 or (version == 0 and len(record.topic) > 127)
    tail = (
        struct.pack(">q", record.born_timestamp)
        + record.born_host
        + struct.pack(">q", record.store_timestamp)
        + record.store_host
        + struct.pack(">iq", record.reconsume_times, record.prepared_offset)
        + struct.pack(">i", len(record.body))
        + record.body
        + struct.pack(">H" if long_topic else ">B", len(record.topic))
        + record.topic
        + struct.pack(">H", len(record.properties))
        + record.properties
    )
    head = struct.pack(
        ">IIiiqqi",
        0xDAA320AB if long_topic else 0xDAA320A7,
        zlib.crc32(record.body) & 0x7FFFFFFF if crc is None else crc,
        record.queue_id,
        record.flag,
        record.queue_offset,
        record.log_offset,
        record.sys_flag,
    )
    return struct.pack(">i", 4 + len(head) + len(tail)) + head + tail


def log_of(records: Sequence[Record], log_base: int = 0) -> bytes:
    """Return records one behind the other, each told where it stands."""
    log = b""
    for record in records:
        log += record_on_disk(record._replace(log_offset=log_base + len(log)))
    return log


def blank_on_disk(size: int) -> bytes:
    """Return the filler of `size` bytes that ends a file."""
    return struct.pack(">iI", size, 0xCBD43194) + bytes(size - 8)


def properties(pairs: Mapping[str, str]) -> bytes:
    """Return a property string without a separator at its end."""
    return "\x02".join(f"{name}\x01{value}" for name, value in pairs.items()).encode()


# -- frames --------------------------------------------------------------------------------------


def frame(header: bytes, body: bytes = b"", serialize_type: int = 0) -> bytes:
    """Return a whole frame."""
    word = serialize_type << 24 | len(header)
    return struct.pack(">iI", 4 + len(header) + len(body), word) + header + body


def whole(raw: bytes) -> Frame:
    """Return where the parts of a lone frame lie."""
    header_bytes = int.from_bytes(raw[5:8])
    return Frame(0, 8, 8 + header_bytes, len(raw), raw[4])


def json_request(
    code: int, fields: Mapping[str, object], body: bytes = b"", *, opaque: int = 7, flag: int = 0
) -> bytes:
    """Return a request as a Java client sends it."""
    header = {
        "code": code, "extFields": fields, "flag": flag, "language": "JAVA", "opaque": opaque,
        "serializeTypeCurrentRPC": "JSON", "version": 399,
    }  # fmt: skip
    return frame(json.dumps(header, separators=(",", ":")).encode(), body)


def binary_header(
    code: int,
    fields: Sequence[tuple[bytes, bytes]],
    *,
    opaque: int = 7,
    flag: int = 0,
    remark: bytes = b"",
    version: int = 399,
) -> bytes:
    """Return the header of a client that speaks ROCKETMQ instead of JSON."""
    ext = b"".join(
        struct.pack(">h", len(key)) + key + struct.pack(">i", len(value)) + value
        for key, value in fields
    )
    head = struct.pack(">hbhii", code, 0, version, opaque, flag)
    return head + struct.pack(">i", len(remark)) + remark + struct.pack(">i", len(ext)) + ext


def binary_request(
    code: int, fields: Mapping[str, object], body: bytes = b"", *, opaque: int = 7, flag: int = 0
) -> bytes:
    """Return a whole request of such a client."""
    pairs = [(key.encode(), str(value).encode()) for key, value in fields.items()]
    return frame(binary_header(code, pairs, opaque=opaque, flag=flag), body, 1)


LONG_NAMES = dict(
    zip(
        "abcdefghijklmn",
        (
            "producerGroup", "topic", "defaultTopic", "defaultTopicQueueNums", "queueId", "sysFlag",
            "bornTimestamp", "flag", "properties", "reconsumeTimes", "unitMode",
            "maxReconsumeTimes", "batch", "bname",
        ),
        strict=True,
    )
)  # fmt: skip


def send_fields(**changes: object) -> dict[str, object]:
    """Return the fields of an ordinary send, by their one-letter names; None leaves one out."""
    fields: dict[str, object] = {
        "a": "group", "b": "TopicTest", "c": "TBW102", "d": "4", "e": "0", "f": "0",
        "g": "1700000000000", "h": "0", "i": "KEYS\x01k1\x02WAIT\x01true\x02TAGS\x01TagA", "j": "0",
        "k": "false", "l": "0", "m": "false",
    }  # fmt: skip
    fields |= changes
    return {name: value for name, value in fields.items() if value is not None}


def pull_fields(**changes: object) -> dict[str, object]:
    """Return the fields of an ordinary pull; None leaves one out."""
    fields: dict[str, object] = {
        "consumerGroup": "group", "topic": "TopicTest", "queueId": "1", "queueOffset": "12",
        "maxMsgNums": "32", "sysFlag": "6", "commitOffset": "11", "suspendTimeoutMillis": "15000",
        "subscription": "*", "subVersion": "5", "expressionType": "TAG",
    }  # fmt: skip
    fields |= changes
    return {name: value for name, value in fields.items() if value is not None}


def inner_message(
    body: bytes, own_properties: bytes = b"", *, flag: int = 0, magic: int = 0, crc: int = 0
) -> bytes:
    """Return one message of a batch body."""
    total = 22 + len(body) + len(own_properties)
    head = struct.pack(">iiiii", total, magic, crc, flag, len(body))
    return head + body + struct.pack(">h", len(own_properties)) + own_properties


STORE_HOST = bytes([127, 0, 0, 1]) + struct.pack(">i", 10911)
BORN_HOST = bytes([10, 0, 0, 1]) + struct.pack(">i", 12345)
BODY_MAX = 1000


def make_lane(kernel: Kernel, **changes: object) -> SendLane:
    """Return a send lane with the settings of most tests, and some changed."""
    settings: dict[str, object] = {
        "store_host": STORE_HOST,
        "cluster": b"DefaultCluster",
        "region": b"DefaultRegion",
        "trace_on": True,
        "version": 407,
        "body_bytes_max": BODY_MAX,
        "policy_names": [b"DELAY", b"TRAN_MSG"],
    } | changes
    return kernel.SendLane(**settings)  # type: ignore[arg-type]
