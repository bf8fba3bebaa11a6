"""Messages, hosts and ids as values."""

from __future__ import annotations

from typing import Final

import pytest

from gantrymq.errors import InvalidValue
from gantrymq.model.message import Host, Message, OffsetId, StoredMessage
from gantrymq.model.queue import LogOffset, QueueId, QueueOffset

HOST: Final = Host("127.0.0.2", 21911)


def test_offset_ids_of_both_families() -> None:
    four = OffsetId(HOST, LogOffset(265))
    assert four.text == "7F000002000055970000000000000109"
    assert OffsetId.parse(four.text.lower()) == four
    six = OffsetId(Host("fd00::2", 10911), LogOffset(2**63 - 1))
    assert len(six.text) == 56
    assert OffsetId.parse(six.text) == six


@pytest.mark.parametrize(
    "text",
    [
        "",
        "7F00",
        "G" * 32,
        " " * 32,
        "7F 00 00 02 00 00 55 97 00 00 00",
        "0" * 30,
        "7F00000200005597" + "F" * 16,
        "C00002023B774E0E2F2A4CB04A190022",
        "\u0660" * 32,
    ],
)
def test_other_texts_are_no_offset_ids(text: str) -> None:
    with pytest.raises(InvalidValue):
        OffsetId.parse(text)


@pytest.mark.parametrize(("address", "port"), [("localhost", 1), ("", 1), ("192.0.2.1", 65536)])
def test_a_host_is_an_address_and_a_port(address: str, port: int) -> None:
    with pytest.raises(InvalidValue):
        Host(address, port)


def test_host_forms() -> None:
    assert HOST.text == "127.0.0.2:21911"
    assert HOST.packed == b"\x7f\x00\x00\x02"


def test_a_message_with_everything() -> None:
    message = Message(
        topic="t",
        body=b"",
        tags="TagA",
        keys=("k1", "k2"),
        properties={"p": "值"},
        flag=-1,
        delay_level=3,
        sharding_key="s",
    )
    assert message.wait_stored
    assert message == Message(
        topic="t",
        body=b"",
        tags="TagA",
        keys=("k1", "k2"),
        properties={"p": "值"},
        flag=-1,
        delay_level=3,
        sharding_key="s",
    )


def test_what_cannot_be_read_back_is_refused() -> None:
    with pytest.raises(InvalidValue, match="topic"):
        Message(topic="a b", body=b"")
    with pytest.raises(InvalidValue, match="flag"):
        Message(topic="t", body=b"", flag=2**31)
    with pytest.raises(InvalidValue, match="delay level"):
        Message(topic="t", body=b"", delay_level=-1)
    for key in ("", "a b", "a\u3000b"):
        with pytest.raises(InvalidValue, match="key"):
            Message(topic="t", body=b"", keys=(key,))
    for pair in (("", "v"), ("n", "")):
        with pytest.raises(InvalidValue, match="empty"):
            Message(topic="t", body=b"", properties=dict([pair]))
    for bad in ("a\x01", "\x02"):
        with pytest.raises(InvalidValue, match="control characters"):
            Message(topic="t", body=b"", tags=bad)
        with pytest.raises(InvalidValue, match="control characters"):
            Message(topic="t", body=b"", properties={"n": bad})


def test_a_stored_message_has_the_clients_id_or_the_brokers() -> None:
    stored = StoredMessage(
        topic="t",
        body=b"x",
        queue_id=QueueId(0),
        queue_offset=QueueOffset(4),
        log_offset=LogOffset(265),
        born_time_ms=1,
        born_host=Host("127.0.0.1", 5),
        store_time_ms=2,
        store_host=HOST,
    )
    assert stored.message_id == stored.offset_id.text == "7F000002000055970000000000000109"
    named = StoredMessage(
        topic="t",
        body=b"x",
        queue_id=QueueId(0),
        queue_offset=QueueOffset(4),
        log_offset=LogOffset(265),
        born_time_ms=1,
        born_host=Host("127.0.0.1", 5),
        store_time_ms=2,
        store_host=HOST,
        unique_id="C000",
    )
    assert named.message_id == "C000"
