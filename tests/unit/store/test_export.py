"""The export says of every message what its record says, field by field and byte by byte."""

from __future__ import annotations

import zlib
from hashlib import sha256
from typing import TYPE_CHECKING

import msgspec
import pytest

from gantrymq.errors import InvalidValue, ProtocolError
from gantrymq.kernel import kernel
from gantrymq.store import export
from gantrymq.store.columns import integers, slices, texts
from gantrymq.store.export import export_blocks, export_lines
from gantrymq.store.put import NewMessage
from gantrymq.store.reader import StoreReader
from gantrymq.store.status import PutStatus
from gantrymq.testing.clock import VirtualClock
from gantrymq.wire.sysflag import SystemFlag
from support.every_kind import make_store, write
from support.small_stores import COUNT, HOST, small_store, written_store

if TYPE_CHECKING:
    from pathlib import Path

    from gantrymq.wire.record import MessageRecord

ODD_TEXTS = (
    "plain",
    'quote " and \\',
    "tab\there",
    "blank last ",
    "Grüße 你好 \U0001f680",
    "\x7f/</",
)


def said_of(record: MessageRecord) -> dict[str, object]:
    """Return what a line has to say, from the record alone."""
    raw, properties = record.raw, record.properties
    size = record.stored_bytes
    encoded = bytearray(size + 8)
    kernel.encode_record(encoded, 0, len(encoded), raw)
    line: dict[str, object] = {
        "topic": record.topic,
        "queueId": raw.queue_id,
        "queueOffset": raw.queue_offset,
        "commitLogOffset": raw.log_offset,
        "storeSize": size,
        "magic": encoded[4:8].hex(),
        "msgId": record.offset_id,
        "uniqKey": record.unique_key,
        "tags": record.tags,
        "keys": properties.get("KEYS"),
        "properties": dict(sorted(properties.items())),
        "bodyCRC": record.body_crc,
        "storedBodyLen": len(raw.body),
        "storedBodySha256": sha256(raw.body).hexdigest(),
    }
    if raw.sys_flag & SystemFlag.COMPRESSED.value:
        try:
            body = record.plain_body()
            line |= {"bodyLen": len(body), "bodySha256": sha256(body).hexdigest()}
        except ProtocolError:
            pass
    return line | {
        "sysFlag": raw.sys_flag,
        "flag": raw.flag,
        "bornTimestamp": raw.born_timestamp,
        "bornHost": host_text(raw.born_host),
        "storeTimestamp": raw.store_timestamp,
        "storeHost": host_text(raw.store_host),
        "reconsumeTimes": raw.reconsume_times,
        "preparedTransactionOffset": raw.prepared_offset,
        "recordSha256": sha256(encoded[:size]).hexdigest(),
    }


def host_text(host: bytes) -> str:
    """Return a host as Java prints it: an IPv6 address in eight groups, without brackets."""
    address, port = host[:-4], int.from_bytes(host[-4:], signed=True)
    if len(address) == 4:
        return f"{'.'.join(map(str, address))}:{port}"
    groups = (f"{int.from_bytes(address[at : at + 2]):x}" for at in range(0, 16, 2))
    return f"{':'.join(groups)}:{port}"


def served(reader: StoreReader) -> list[bytes]:
    """Return the lines that the queues' messages make, in the order of the log."""
    records = [
        record
        for queue in reader.queues()
        for record in reader.messages(queue.topic, queue.queue_id)
    ]
    records.sort(key=lambda record: record.log_offset)
    return [msgspec.json.encode(said_of(record)) for record in records]


@pytest.mark.parametrize("portion", [1, 7, 1024])
def test_every_kind_of_message(
    portion: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(export, "RECORDS_MAX", portion)
    clock = VirtualClock()
    store = make_store(tmp_path / "store", clock)
    store.open(1)
    write(store, clock)
    assert store.close()
    with StoreReader.open(tmp_path / "store") as reader:
        expected = served(reader)
        assert list(export_lines(reader)) == expected
        assert b"".join(export_blocks(reader)) == b"".join(line + b"\n" for line in expected)
    assert any(b'"bodyLen"' in line for line in expected)
    assert any(b'"bornHost":"fd00:0:' in line for line in expected)


def test_texts_that_json_must_escape(tmp_path: Path) -> None:
    clock = VirtualClock()
    store = small_store(tmp_path / "store", clock)
    store.open(1)
    for number, text in enumerate(ODD_TEXTS):
        properties = {"TAGS": text, "KEYS": text, "zz": text, "AA": text, text: "name"}
        message = NewMessage("Odd", number % 2, text.encode(), properties, clock.now_ms(), HOST)
        assert store.put([message]).status is PutStatus.PUT_OK
    assert store.close()
    with StoreReader.open(tmp_path / "store") as reader:
        expected = served(reader)
        assert list(export_lines(reader)) == expected
    assert [msgspec.json.decode(line)["tags"] for line in expected] == list(ODD_TEXTS)


def test_bodies_that_are_not_what_their_flag_says(tmp_path: Path) -> None:
    clock = VirtualClock()
    store = small_store(tmp_path / "store", clock)
    store.open(1)
    flag = SystemFlag.COMPRESSED.value
    for body in (zlib.compress(b"a" * 1000), b"not compressed"):
        message = NewMessage("T", 0, body, {}, clock.now_ms(), HOST, sys_flag=flag)
        assert store.put([message]).status is PutStatus.PUT_OK
    assert store.close()
    with StoreReader.open(tmp_path / "store") as reader:
        first, second = map(msgspec.json.decode, export_lines(reader))
    assert (first["bodyLen"], first["bodySha256"]) == (1000, sha256(b"a" * 1000).hexdigest())
    assert "bodyLen" not in second
    assert second["storedBodyLen"] == 14


def test_what_no_queue_leads_to_is_left_out(tmp_path: Path) -> None:
    root = tmp_path / "store"
    written_store(root)
    (root / "consumequeue" / "Beta").rename(tmp_path / "away")
    with StoreReader.open(root) as reader:
        lines = list(export_lines(reader))
        # Recovery dispatches what stands behind the queues' end, so the last one may be back.
        assert lines == served(reader)
    topics = [msgspec.json.decode(line)["topic"] for line in lines]
    assert topics.count("Alpha") == COUNT * 2 // 3
    assert topics.count("Beta") <= 1


def test_only_numbers_are_read_as_such(tmp_path: Path) -> None:
    written_store(tmp_path / "store", 3)
    with StoreReader.open(tmp_path / "store") as reader:
        (span,) = reader.spans()
        rows = kernel.scan_columns(
            span.buffer, 0, span.end, 0, True, ("topic", "body", "flag"), (), 10, 1 << 20
        )
        assert texts(rows, "topic") == ["Alpha", "Alpha", "Beta"]
        assert slices(rows, "body") == [b"body 0", b"body 1", b"body 2"]
        assert list(integers(rows, "flag")) == [0, 0, 0]
        with pytest.raises(InvalidValue, match="topic holds no numbers"):
            integers(rows, "topic")
