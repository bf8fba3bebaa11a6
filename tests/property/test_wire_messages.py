"""Properties, batches, ids, tags, compressed bodies and records: both ways, and any bytes."""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeVar

import msgspec
from hypothesis import given
from hypothesis import strategies as st

from gantrymq.errors import InvalidValue, ProtocolError, RecordError
from gantrymq.model.message import Host, StoredMessage
from gantrymq.model.queue import LogOffset, QueueId, QueueOffset
from gantrymq.wire.batch import BatchMessage, decode_batch, encode_batch
from gantrymq.wire.compression import compress, decompress
from gantrymq.wire.hosts import decode_host, encode_host, parse_host
from gantrymq.wire.message_id import OffsetId, UniqueKey, offset_id_text
from gantrymq.wire.properties import decode_properties, encode_properties
from gantrymq.wire.record import decode_records, encode_message
from gantrymq.wire.sysflag import (
    Compression,
    TransactionType,
    compression,
    transaction_type,
    with_compression,
    with_transaction_type,
)
from gantrymq.wire.tags import TagFilter, tag_hash

if TYPE_CHECKING:
    import ipaddress
    from collections.abc import Callable

int32 = st.integers(-(2**31), 2**31 - 1)
int64 = st.integers(-(2**63), 2**63 - 1)
offsets = st.integers(0, 2**63 - 1)
word = st.text(
    st.characters(exclude_categories=["Cs"], exclude_characters="\x01\x02"), min_size=1, max_size=15
)
properties = st.dictionaries(word, word, max_size=6)
hosts = st.builds(Host, st.ip_addresses().map(str), st.integers(0, 65535))


Result = TypeVar("Result")


def attempt(call: Callable[[], Result]) -> Result | ProtocolError:
    """Return what a call returns, or the one error that it may raise."""
    try:
        return call()
    except ProtocolError as error:
        return error


@given(properties)
def test_properties(given_properties: dict[str, str]) -> None:
    encoded = encode_properties(given_properties)
    assert decode_properties(encoded) == given_properties
    assert decode_properties(encoded + b"\x02") == given_properties
    assert decode_properties(encoded.decode()) == given_properties


@given(st.binary(max_size=100))
def test_any_property_string(data: bytes) -> None:
    found = decode_properties(data)
    assert all(name and value and "\x01" not in name for name, value in found.items())
    expected: dict[str, str] = {}
    for entry in data.decode(errors="replace").split("\x02"):
        at = entry.find("\x01")
        if 0 < at < len(entry) - 1:
            expected[entry[:at]] = entry[at + 1 :]
    assert found == expected


messages = st.builds(BatchMessage, int32, st.binary(max_size=30), st.binary(max_size=30))


@given(st.lists(messages, min_size=1, max_size=6))
def test_batch(batch: list[BatchMessage]) -> None:
    assert decode_batch(encode_batch(batch)) == batch


@given(st.lists(messages, min_size=1, max_size=4), st.integers(0, 2**16), st.integers(0, 255))
def test_damaged_batch(batch: list[BatchMessage], place: int, byte: int) -> None:
    body = bytearray(encode_batch(batch))
    body[place % len(body)] = byte
    found = attempt(lambda: decode_batch(bytes(body)))
    if isinstance(found, ProtocolError):
        assert isinstance(found, RecordError)
        assert found.field.startswith("batch[")
    else:
        assert len(encode_batch(found)) == len(body)


@given(hosts)
def test_hosts(host: Host) -> None:
    assert decode_host(encode_host(host), "x") == host
    assert parse_host(host.text) == host


@given(hosts, offsets)
def test_offset_ids(host: Host, offset: int) -> None:
    text = offset_id_text(encode_host(host), offset)
    assert OffsetId.parse(text) == OffsetId(host, LogOffset(offset))
    assert OffsetId(host, LogOffset(offset)).text == text


@given(
    st.ip_addresses(),
    st.integers(0, 2**16 - 1),
    st.integers(0, 2**32 - 1),
    st.integers(0, 2**32 - 1),
    st.integers(0, 2**16 - 1),
)
def test_unique_keys(
    address: ipaddress.IPv4Address | ipaddress.IPv6Address, pid: int, process: int, at: int, no: int
) -> None:
    key = UniqueKey(str(address), pid, process, at, no)
    assert UniqueKey.parse(key.text) == UniqueKey.parse(key.text.lower()) == key


@given(st.text(max_size=60) | st.binary(min_size=14, max_size=18).map(bytes.hex))
def test_any_unique_key(text: str) -> None:
    try:
        key = UniqueKey.parse(text)
    except InvalidValue:
        return
    assert key.text == text.upper()


@given(st.binary(max_size=3000), st.sampled_from(Compression), st.integers(0, 4000))
def test_compression(body: bytes, kind: Compression, bytes_max: int) -> None:
    packed = compress(body, kind)
    try:
        assert decompress(packed, kind, bytes_max) == body
    except ProtocolError:
        assert len(body) > bytes_max


@given(st.binary(max_size=300), st.sampled_from(Compression))
def test_any_bytes_are_decompressed_or_refused(body: bytes, kind: Compression) -> None:
    found = attempt(lambda: decompress(body, kind, 10_000))
    assert found.field == "body" if isinstance(found, ProtocolError) else len(found) <= 10_000


@given(
    st.binary(max_size=500),
    st.sampled_from(Compression),
    st.integers(0, 2**16),
    st.integers(0, 255),
)
def test_damaged_compression(body: bytes, kind: Compression, place: int, byte: int) -> None:
    packed = bytearray(compress(body, kind))
    packed[place % len(packed)] = byte
    found = attempt(lambda: decompress(bytes(packed), kind, 10_000))
    assert found.field == "body" if isinstance(found, ProtocolError) else len(found) <= 10_000


@given(int32, st.sampled_from(Compression), st.sampled_from(TransactionType))
def test_flags(flags: int, kind: Compression, transaction: TransactionType) -> None:
    changed = with_transaction_type(with_compression(flags, kind), transaction)
    assert compression(changed) is kind
    assert transaction_type(changed) is transaction
    assert changed & ~0x70D == flags & ~0x70D
    assert -(2**31) <= changed < 2**31


tag_words = st.text(st.characters(min_codepoint=33, exclude_categories=["Cs"]), min_size=1).filter(
    lambda tag: "|" not in tag and tag != "*"
)


@given(st.sets(tag_words, min_size=1, max_size=5))
def test_tag_expressions(tags: set[str]) -> None:
    found = TagFilter.parse(" || ".join(tags))
    assert found.tags == tags
    assert all(found.matches(tag) and found.matches_hash(tag_hash(tag)) for tag in tags)


stored = st.builds(
    StoredMessage,
    topic=word,
    body=st.binary(max_size=50),
    queue_id=int32.map(QueueId),
    queue_offset=int64.map(QueueOffset),
    log_offset=offsets.map(LogOffset),
    born_time_ms=int64,
    born_host=hosts,
    store_time_ms=int64,
    store_host=hosts,
    properties=properties,
    flag=int32,
    system_flags=int32,
    reconsume_times=int32,
    prepared_offset=int64,
)


@given(stored)
def test_records(message: StoredMessage) -> None:
    (record,) = decode_records(encode_message(message), verify_crc=True)
    found = record.to_message()
    assert found.system_flags & ~0x30 == message.system_flags & ~0x30
    assert found == msgspec.structs.replace(
        message,
        tags=message.properties.get("TAGS"),
        keys=found.keys,
        unique_id=message.properties.get("UNIQ_KEY"),
        system_flags=found.system_flags,
        body_crc=found.body_crc,
        stored_bytes=found.stored_bytes,
    )
