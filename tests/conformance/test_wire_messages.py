"""Stored messages, batches, properties and ids of the golden data through their typed forms."""

from __future__ import annotations

import hashlib
from typing import TYPE_CHECKING

import msgspec
import pytest

from gantrymq.errors import InvalidValue
from gantrymq.wire.batch import decode_batch, encode_batch
from gantrymq.wire.codes import RequestCode, ResponseCode
from gantrymq.wire.frame import FrameParser
from gantrymq.wire.headers.send import SendMessageRequest, SendMessageV2Request
from gantrymq.wire.hosts import parse_host
from gantrymq.wire.message_id import OffsetId, UniqueKey
from gantrymq.wire.properties import UNIQ_KEY, decode_properties, encode_properties
from gantrymq.wire.record import MessageRecord, decode_record, decode_records, encode_message
from gantrymq.wire.tags import tag_hash
from support.golden import (
    STORE_LABELS,
    WIRE_FILES,
    commit_log,
    exchanges,
    stored_messages,
    wire_entries,
)

if TYPE_CHECKING:
    from collections.abc import Iterator

    from gantrymq.model.message import StoredMessage
    from gantrymq.wire.command import Command

LONG_SENDS = {RequestCode.SEND_MESSAGE, RequestCode.SEND_REPLY_MESSAGE}
SHORT_SENDS = {
    RequestCode.SEND_MESSAGE_V2,
    RequestCode.SEND_BATCH_MESSAGE,
    RequestCode.SEND_REPLY_MESSAGE_V2,
}


def recorded(record: MessageRecord, message: StoredMessage) -> dict[str, object]:
    """Say of a record what the golden data says of a message."""
    said: dict[str, object] = {
        "topic": message.topic,
        "queueId": message.queue_id,
        "queueOffset": message.queue_offset,
        "commitLogOffset": message.log_offset,
        "storeSize": message.stored_bytes,
        "msgId": message.offset_id.text,
        "uniqKey": message.unique_id,
        "tags": message.tags,
        "keys": record.properties.get("KEYS"),
        "properties": message.properties,
        "bodyCRC": message.body_crc,
        "storedBodyLen": len(message.body),
        "storedBodySha256": hashlib.sha256(message.body).hexdigest(),
        "sysFlag": message.system_flags,
        "flag": message.flag,
        "bornTimestamp": message.born_time_ms,
        "bornHost": message.born_host,
        "storeTimestamp": message.store_time_ms,
        "storeHost": message.store_host,
        "reconsumeTimes": message.reconsume_times,
        "preparedTransactionOffset": message.prepared_offset,
    }
    if record.plain_body() != record.body:
        said["bodyLen"] = len(record.plain_body())
        said["bodySha256"] = hashlib.sha256(record.plain_body()).hexdigest()
    return said


@pytest.mark.parametrize("label", STORE_LABELS)
def test_typed_records(label: str) -> None:
    files = commit_log(label)
    file_bytes = max(len(content) for content in files.values())
    for line in stored_messages(label):
        offset = line["commitLogOffset"]
        assert isinstance(offset, int)
        content = files[offset // file_bytes * file_bytes]
        start = offset % file_bytes
        record, behind = decode_record(content, start, len(content), verify_crc=True)
        message = record.to_message()
        digest = hashlib.sha256(content[start:behind]).hexdigest()
        assert digest == line.pop("recordSha256")
        line.pop("magic")
        expected = {
            key: parse_host(str(value)) if key in {"bornHost", "storeHost"} else value
            for key, value in line.items()
        }
        for name in ("tags", "keys", "uniqKey"):
            expected.setdefault(name, None)
        assert recorded(record, message) == expected
        assert record.offset_id == message.offset_id.text
        (again,) = decode_records(encode_message(message), verify_crc=True)
        # Apache's own property string may end with a separator, or name a property twice.
        assert again.stored_bytes <= record.stored_bytes
        resized = msgspec.structs.replace(message, stored_bytes=again.stored_bytes)
        assert again.to_message() == resized


def sends() -> Iterator[tuple[Command, SendMessageRequest]]:
    for path in WIRE_FILES:
        for entry in wire_entries(path):
            if not entry.is_request:
                continue
            if entry.code in LONG_SENDS:
                (command,) = FrameParser().feed(entry.frame)
                yield command, SendMessageRequest.decode(command.fields)
            elif entry.code in SHORT_SENDS:
                (command,) = FrameParser().feed(entry.frame)
                yield command, SendMessageV2Request.decode(command.fields).long_form()


def test_properties_of_sends() -> None:
    seen = 0
    for _command, header in sends():
        text = header.properties or ""
        assert encode_properties(decode_properties(text)) == text.removesuffix("\x02").encode()
        assert decode_properties(text.encode()) == decode_properties(text)
        seen += 1
    assert seen == 278


def test_batch_bodies() -> None:
    batches = 0
    for command, header in sends():
        if not header.batch:
            continue
        messages = decode_batch(command.body)
        assert messages
        assert encode_batch(messages) == command.body
        batches += 1
    assert batches > 0


def test_unique_keys_of_sends() -> None:
    """The Java and Go keys have the layout; those of C++ do at least have the length."""
    seen = 0
    for _command, header in sends():
        key = decode_properties(header.properties or "").get(UNIQ_KEY)
        if key is not None:
            assert UniqueKey.parse(key).text == key.upper()
            seen += 1
    assert seen > 200


def test_ids_in_send_responses() -> None:
    seen = 0
    for path in WIRE_FILES:
        for request, answer in exchanges(wire_entries(path)):
            if answer is None or request.code not in LONG_SENDS | SHORT_SENDS:
                continue
            (response,) = FrameParser().feed(answer.frame)
            for text in response.fields.get("msgId", "").split(","):
                try:
                    offset_id = OffsetId.parse(text)
                except InvalidValue:
                    assert response.code != ResponseCode.SUCCESS or text == "0"
                    continue
                assert offset_id.text == text
                seen += 1
    assert seen > 200


def test_records_in_pulled_bodies() -> None:
    pulled = 0
    for path in WIRE_FILES:
        for request, answer in exchanges(wire_entries(path)):
            codes = {
                RequestCode.PULL_MESSAGE,
                RequestCode.LITE_PULL_MESSAGE,
                RequestCode.POP_MESSAGE,
            }
            if request.code not in codes or answer is None or answer.code != 0:
                continue
            (response,) = FrameParser().feed(answer.frame)
            records = decode_records(response.body, verify_crc=True)
            assert records
            for record in records:
                assert record.topic
                assert record.plain_body()
                assert record.store_host.address.startswith("127.")
                assert tag_hash(record.tags) == 0 or record.tags
            pulled += len(records)
    assert pulled > 200
