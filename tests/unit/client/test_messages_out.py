"""What a message becomes before it is sent: properties, batches, queues, frames."""

from __future__ import annotations

import random
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

import pytest

from gantrymq.client.batches import batches_of
from gantrymq.client.faults import Faults, left_alone_s
from gantrymq.client.namespace import Namespace
from gantrymq.client.outgoing import (
    RESERVED,
    check_body,
    compressed,
    deliver_ms,
    make_message,
    property_text,
)
from gantrymq.client.recalling import broker_of
from gantrymq.client.selection import at_random, by_key, chosen, queue_number
from gantrymq.client.settings import Credentials
from gantrymq.errors import InvalidValue
from gantrymq.model.message import Message
from gantrymq.model.queue import MessageQueue, QueueId
from gantrymq.testing.clock import VirtualClock
from gantrymq.wire.batch import decode_batch
from gantrymq.wire.command import BINARY_HEADER, JSON_HEADER
from gantrymq.wire.compression import plain_body
from gantrymq.wire.frame import FrameParser
from gantrymq.wire.properties import decode_properties
from gantrymq.wire.send_frame import JsonSendFrame, SendFrame
from gantrymq.wire.signing import signed_fields
from gantrymq.wire.sysflag import Compression

if TYPE_CHECKING:
    from support.transport import Run

QUEUES = tuple(MessageQueue("T", "broker-a", QueueId(number)) for number in range(8))
FIELDS = {"a": "group", "b": "T", "c": "TBW102", "d": "4", "e": "2", "f": "0", "h": "0", "k": "no"}


def test_properties_of_a_message() -> None:
    message = Message(
        topic="T",
        body=b"x",
        tags="red",
        keys=("k1", "k2"),
        properties={"colour": "grün"},
        delay_level=3,
        sharding_key="s",
        wait_stored=False,
    )
    text = property_text(message, "ID", "ns", {"TRAN_MSG": "true"})
    assert decode_properties(text) == {
        "UNIQ_KEY": "ID",
        "TAGS": "red",
        "KEYS": "k1 k2",
        "WAIT": "false",
        "DELAY": "3",
        "__SHARDINGKEY": "s",
        "INSTANCE_ID": "ns",
        "colour": "grün",
        "TRAN_MSG": "true",
    }
    assert property_text(Message(topic="T", body=b"x"), "ID", "", {}) == b"UNIQ_KEY\x01ID"


@pytest.mark.parametrize("name", ["UNIQ_KEY", "KEYS", "TAGS", "DELAY", "TRAN_MSG", "CLUSTER"])
def test_properties_that_are_the_systems_own(name: str) -> None:
    assert name in RESERVED
    message = Message(topic="T", body=b"x", properties={name: "v"})
    with pytest.raises(InvalidValue, match=f"property '{name}' is the system's own: use"):
        property_text(message, "ID", "", {})


def test_properties_that_are_too_large() -> None:
    message = Message(topic="T", body=b"x", properties={"p": "v" * 33_000})
    with pytest.raises(InvalidValue, match="at most 32767 can be stored"):
        property_text(message, "ID", "", {})
    with pytest.raises(InvalidValue, match="not Unicode"):
        property_text(Message(topic="T", body=b"x", tags="\ud800"), "ID", "", {})


@pytest.mark.parametrize(
    ("body", "said"),
    [
        ("text", r"give bytes, for example text.encode\(\)"),
        (None, "give bytes"),
        (b"", "body is empty"),
        (bytes(101), "101 bytes: at most 100 can be sent"),
    ],
)
def test_bodies_that_cannot_be(body: Any, said: str) -> None:  # noqa: ANN401
    with pytest.raises(InvalidValue, match=said):
        check_body(body, 100)


def test_bodies_of_other_kinds() -> None:
    assert check_body(bytearray(b"x"), 100) == b"x"
    assert check_body(memoryview(b"xyz")[1:], 100) == b"yz"


def test_times_of_delivery() -> None:
    assert deliver_ms(None) is None
    assert deliver_ms(5) == 5
    assert deliver_ms(datetime(2026, 1, 1, tzinfo=UTC)) == 1_767_225_600_000
    with pytest.raises(InvalidValue, match="no time zone"):
        deliver_ms(datetime(2026, 1, 1))  # noqa: DTZ001  (that is the point)
    with pytest.raises(InvalidValue, match="give a datetime"):
        deliver_ms(-1)
    message = make_message("T", b"x", "", "one", None, 0, 7)
    assert (message.tags, message.keys, message.deliver_at_ms) == (None, ("one",), 7)


def test_compression_that_does_not_pay(run: Run) -> None:
    noise = random.Random(1).randbytes(5000)
    assert run(compressed(noise, Compression.ZLIB)) == (noise, 0)
    for kind in Compression:
        for size in (5000, 500_000):
            packed, flags = run(compressed(b"ab" * size, kind))
            assert len(packed) < size
            assert plain_body(packed, flags) == b"ab" * size


def test_keys_choose_as_java_does() -> None:
    # String.hashCode: "a" is 97, "polygenelubricants" is the least integer, "hello" 99162322.
    assert queue_number("a", 8) == 97 % 8
    assert queue_number("hello", 7) == 99_162_322 % 7
    assert queue_number("polygenelubricants", 7) == 2**31 % 7
    assert queue_number("order-1", 8) == queue_number("order-1", 8)
    message = Message(topic="T", body=b"x")
    assert by_key(QUEUES, message, "a") == QUEUES[1]
    assert at_random(QUEUES, message, None) in QUEUES
    assert chosen(by_key, QUEUES, message, "a") == QUEUES[1]
    with pytest.raises(InvalidValue, match="no queue of 'T'"):
        chosen(lambda *_: MessageQueue("U", "b", QueueId(0)), QUEUES, message, None)


def test_a_batch_is_split_where_it_must_be() -> None:
    messages = [Message(topic="T", body=bytes([number]) * 100) for number in range(1, 11)]
    ids = (f"ID{number:02}" for number in range(10))
    parts = batches_of(messages, lambda: next(ids), Namespace(""), 450)
    assert [len(part.message_id.split(",")) for part in parts] == [3, 3, 3, 1]
    assert all(len(part.body) <= 450 for part in parts)
    entries = [entry for part in parts for entry in decode_batch(part.body)]
    assert [entry.body for entry in entries] == [message.body for message in messages]
    assert decode_properties(entries[4].properties)["UNIQ_KEY"] == "ID04"


@pytest.mark.parametrize(
    ("messages", "said"),
    [
        ([], "give at least one"),
        ([Message(topic="T", body=b"x"), Message(topic="U", body=b"x")], "has one topic"),
        ([Message(topic="T", body=b"x", delay_level=1)], "has a delay"),
        ([Message(topic="T", body=b"x", deliver_at_ms=1)], "has a delay"),
        ([Message(topic="%RETRY%g", body=b"x")], "takes no batches"),
        ([Message(topic="T", body=bytes(999))], "at most 1000"),
        ([Message(topic="T", body=bytes(1001))], "at most 1000"),
        ([Message(topic="T", body=b"")], "body is empty"),
        (["T"], "give Messages"),
    ],
)
def test_batches_that_cannot_be(messages: Any, said: str) -> None:  # noqa: ANN401
    with pytest.raises(InvalidValue, match=said):
        batches_of(messages, lambda: "ID", Namespace(""), 1000)


def test_how_long_a_broker_is_left_alone() -> None:
    table = {0.0: 0, 0.549: 0, 0.55: 30, 0.999: 30, 1: 60, 2: 120, 3: 180, 14.9: 180, 15: 600}
    assert {took: left_alone_s(took) for took in table} == table
    clock = VirtualClock()
    faults = Faults(clock)
    faults.note("a", 0.6)
    assert not faults.is_usable("a")
    assert faults.is_usable("b")
    clock.jump(30)
    assert faults.is_usable("a")
    faults.note("a", 0.0, failed=True)
    clock.jump(179)
    assert not faults.is_usable("a")
    faults.note("a", 0.01)
    assert faults.is_usable("a")


def test_a_frame_from_a_template_is_the_one_that_the_codec_writes() -> None:
    frame = SendFrame(310, FIELDS).build(7, b"1700000000000", b"UNIQ_KEY\x01ID", b"body")
    plain = JsonSendFrame(310, FIELDS).build(7, b"1700000000000", b"UNIQ_KEY\x01ID", b"body")
    (binary,), (json,) = FrameParser().feed(frame), FrameParser().feed(plain)
    expected = {**FIELDS, "g": "1700000000000", "i": "UNIQ_KEY\x01ID"}
    for command, kind in ((binary, BINARY_HEADER), (json, JSON_HEADER)):
        assert (command.code, command.opaque, command.flag) == (310, 7, 0)
        assert command.serialize_type == kind
        assert command.fields == expected
        assert command.body == b"body"
    (oneway,) = FrameParser().feed(SendFrame(310, FIELDS).build(7, b"1", b"p", b"b", oneway=True))
    assert oneway.is_oneway
    with pytest.raises(InvalidValue, match="a frame of"):
        SendFrame(310, FIELDS).build(7, b"1", b"p", bytes(16 << 20))


def test_both_kinds_of_frames_are_signed_alike() -> None:
    credentials = Credentials("AK", "SK", "ST")
    fields = {**FIELDS, "AccessKey": "AK", "SecurityToken": "ST"}
    contents: list[bytes] = []

    def sign(content: bytes) -> str:
        contents.append(content)
        return "signed"

    frame = SendFrame(310, fields, sign).build(7, b"17", b"p\x01v", b"body")
    (command,) = FrameParser().feed(frame)
    assert command.fields.pop("Signature") == "signed"
    names = sorted(command.fields)
    assert contents == ["".join(command.fields[name] for name in names).encode() + b"body"]
    json = JsonSendFrame(310, FIELDS, lambda given, body: signed_fields(credentials, given, body))
    (command,) = FrameParser().feed(json.build(7, b"17", b"p\x01v", b"body"))
    assert command.fields["AccessKey"] == "AK"
    assert len(command.fields["Signature"]) == 28


def test_a_recall_handle() -> None:
    handle = "djEgdG9waWMgYnJva2VyLWEgMSBrZXk="  # v1 topic broker-a 1 key
    assert broker_of(handle) == broker_of(handle.rstrip("=")) == "broker-a"
    for wrong in ("", "x", "djE=", "ÄÖ"):
        with pytest.raises(InvalidValue, match="is none"):
            broker_of(wrong)
