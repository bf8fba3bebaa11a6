from __future__ import annotations

import msgspec
import pytest

from gantrymq.errors import InvalidValue, RecordError
from gantrymq.model.message import Host, StoredMessage
from gantrymq.model.queue import LogOffset, QueueId, QueueOffset
from gantrymq.wire.compression import compress
from gantrymq.wire.record import decode_record, decode_records, encode_message
from gantrymq.wire.sysflag import Compression, TransactionType

MESSAGE = StoredMessage(
    topic="Orders",
    body=b"body",
    queue_id=QueueId(3),
    queue_offset=QueueOffset(12),
    log_offset=LogOffset(4096),
    born_time_ms=1_794_777_881_330,
    born_host=Host("::1", 38126),
    store_time_ms=1_794_777_882_531,
    store_host=Host("127.0.0.1", 20911),
    properties={"TAGS": "a", "KEYS": "k1  k2", "UNIQ_KEY": "U"},
    tags="a",
    keys=("k1", "k2"),
    unique_id="U",
    flag=7,
    system_flags=0x10 | TransactionType.COMMIT,
    body_crc=2052471692,
    reconsume_times=1,
    prepared_offset=2,
    broker_name="broker-a",
)
ENCODED = encode_message(MESSAGE)


def changed(**values: object) -> StoredMessage:
    return msgspec.structs.replace(MESSAGE, **values)


def test_both_ways() -> None:
    record, behind = decode_record(ENCODED, 0, len(ENCODED), verify_crc=True)
    assert behind == len(ENCODED) == record.stored_bytes
    crc, size = record.body_crc, record.stored_bytes
    assert record.to_message("broker-a") == changed(body_crc=crc, stored_bytes=size)
    assert record.transaction_type is TransactionType.COMMIT
    assert record.offset_id == "7F000001000051AF0000000000001000"
    assert record.properties is record.properties
    assert record.born_host.address == "::1"


def test_several() -> None:
    second = encode_message(changed(queue_offset=13, properties={}, body=b""))
    records = decode_records(ENCODED + second)
    assert [record.queue_offset for record in records] == [12, 13]
    assert (records[1].tags, records[1].keys, records[1].unique_key) == (None, (), None)
    assert decode_records(b"") == []


def test_host_bits_follow_the_hosts() -> None:
    flags = 0x10 | 0x20 | 0x300 | 1
    plain = changed(born_host=Host("10.0.0.1", 1), system_flags=flags)
    assert decode_records(encode_message(plain))[0].raw.sys_flag == 0x301
    both = changed(store_host=Host("fd00::2", 1), system_flags=0)
    record = decode_records(encode_message(both))[0]
    assert record.raw.sys_flag == 0x30
    assert record.store_host == Host("fd00::2", 1)


def test_plain_body() -> None:
    packed = compress(b"long " * 100, Compression.LZ4)
    record = decode_records(encode_message(changed(body=packed, system_flags=257)))[0]
    assert record.body == packed
    assert record.plain_body() == b"long " * 100


def test_long_topic() -> None:
    topic = "%RETRY%" + "g" * 200
    assert decode_records(encode_message(changed(topic=topic)))[0].topic == topic


@pytest.mark.parametrize("size", range(1, len(ENCODED)))
def test_truncation_at_every_byte(size: int) -> None:
    with pytest.raises(RecordError) as caught:
        decode_records(ENCODED[:size])
    assert caught.value.field.startswith("record.")


def test_wrong_body() -> None:
    at = ENCODED.index(b"body")
    broken = ENCODED[:at] + b"bodx" + ENCODED[at + 4 :]
    assert decode_records(broken)[0].body == b"bodx"
    with pytest.raises(RecordError) as caught:
        decode_records(broken, verify_crc=True)
    assert caught.value.field == "record.bodyCrc"


def test_a_port_that_is_none() -> None:
    host = (38126).to_bytes(4)
    at = ENCODED.index(host)
    record = decode_records(ENCODED[:at] + b"\xff" * 4 + ENCODED[at + 4 :])[0]
    with pytest.raises(RecordError) as caught:
        _ = record.born_host
    assert caught.value.field == "record.bornHost"


@pytest.mark.parametrize(
    "message",
    [
        changed(topic=""),
        changed(topic="\ud800"),
        changed(flag=2**31),
        changed(properties={"a": ""}),
    ],
    ids=["no topic", "surrogate", "flag", "properties"],
)
def test_what_is_not_written(message: StoredMessage) -> None:
    with pytest.raises(InvalidValue):
        encode_message(message)
