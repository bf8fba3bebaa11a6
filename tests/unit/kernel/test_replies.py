"""Replies to sends and pulls, as they stand on the wire."""

from __future__ import annotations

import json
import struct
from typing import TYPE_CHECKING

import pytest

from gantrymq.errors import InvalidValue
from support.samples import whole

if TYPE_CHECKING:
    from gantrymq.kernel.interface import Kernel

IDS = b"7F00000100002A9F00000000000003E8"


def entry(key: bytes, value: bytes) -> bytes:
    return struct.pack(">h", len(key)) + key + struct.pack(">i", len(value)) + value


def test_a_json_send_reply(kernel: Kernel) -> None:
    reply = kernel.encode_send_reply(7, 0, 407, 3, 12, IDS, b"DefaultRegion", True)
    header = (
        b'{"code":0,"extFields":{"msgId":"7F00000100002A9F00000000000003E8","queueId":"3",'
        b'"queueOffset":"12","TRACE_ON":"true","MSG_REGION":"DefaultRegion"},"flag":1,'
        b'"language":"PYTHON","opaque":7,"serializeTypeCurrentRPC":"JSON","version":407}'
    )
    assert reply == struct.pack(">ii", 4 + len(header), len(header)) + header
    assert json.loads(header)["extFields"]["queueId"] == "3"


def test_a_binary_send_reply(kernel: Kernel) -> None:
    reply = kernel.encode_send_reply(7, 1, 407, 3, 12, IDS, b"DefaultRegion", False)
    ext = (
        entry(b"msgId", IDS)
        + entry(b"queueId", b"3")
        + entry(b"queueOffset", b"12")
        + entry(b"TRACE_ON", b"false")
        + entry(b"MSG_REGION", b"DefaultRegion")
    )
    header = struct.pack(">hbhiiii", 0, 3, 407, 7, 1, 0, len(ext)) + ext
    assert reply == struct.pack(">iI", 4 + len(header), 1 << 24 | len(header)) + header


def test_a_json_pull_reply(kernel: Kernel) -> None:
    reply = kernel.encode_pull_reply(7, 0, 407, 0, b"FOUND", 0, 13, 1, 20, 1000)
    header = (
        b'{"code":0,"extFields":{"suggestWhichBrokerId":"0","nextBeginOffset":"13","minOffset":"1",'
        b'"maxOffset":"20"},"flag":1,"language":"PYTHON","opaque":7,"remark":"FOUND",'
        b'"serializeTypeCurrentRPC":"JSON","version":407}'
    )
    assert reply == struct.pack(">ii", 4 + len(header) + 1000, len(header)) + header


def test_a_json_pull_reply_without_remark(kernel: Kernel) -> None:
    reply = kernel.encode_pull_reply(-7, 0, -1, 19, b"", -1, -(2**63), 2**63 - 1, 0, 0)
    decoded = json.loads(reply[whole(reply).header :])
    assert (decoded["code"], decoded["opaque"], decoded["version"]) == (19, -7, -1)
    assert decoded["extFields"]["nextBeginOffset"] == str(-(2**63))
    assert "remark" not in decoded


def test_a_binary_pull_reply(kernel: Kernel) -> None:
    reply = kernel.encode_pull_reply(7, 1, 407, 21, b"MOVED", 1, 13, 1, 20, 5)
    ext = (
        entry(b"suggestWhichBrokerId", b"1")
        + entry(b"nextBeginOffset", b"13")
        + entry(b"minOffset", b"1")
        + entry(b"maxOffset", b"20")
    )
    header = (
        struct.pack(">hbhiii", 21, 3, 407, 7, 1, 5) + b"MOVED" + struct.pack(">i", len(ext)) + ext
    )
    assert reply == struct.pack(">iI", 4 + len(header) + 5, 1 << 24 | len(header)) + header


def test_a_binary_header_has_16_bits_for_code_and_version(kernel: Kernel) -> None:
    reply = kernel.encode_pull_reply(7, 1, 65536 + 5, 200050, b"", 0, 0, 0, 0, 0)
    assert struct.unpack_from(">hbh", reply, 8) == (3442, 3, 5)


def test_an_empty_region_is_not_written_in_binary(kernel: Kernel) -> None:
    assert b"MSG_REGION" not in kernel.encode_send_reply(7, 1, 407, 3, 12, IDS, b"", True)
    assert b'"MSG_REGION":""' in kernel.encode_send_reply(7, 0, 407, 3, 12, IDS, b"", True)


OUT_OF_RANGE = "reply: a number is out of range"


@pytest.mark.parametrize("bad", [b'a"b', b"a\\b", b"\n", b"\x7f", "\u00e9".encode(), b"\0"])
@pytest.mark.parametrize("serialize_type", [0, 1])
def test_texts_must_need_no_escapes(kernel: Kernel, bad: bytes, serialize_type: int) -> None:
    said = "must be printable ASCII without quotes"
    with pytest.raises(InvalidValue) as ids:
        kernel.encode_send_reply(7, serialize_type, 407, 3, 12, bad, b"r", True)
    with pytest.raises(InvalidValue) as region:
        kernel.encode_send_reply(7, serialize_type, 407, 3, 12, IDS, bad, True)
    with pytest.raises(InvalidValue) as remark:
        kernel.encode_pull_reply(7, serialize_type, 407, 0, bad, 0, 0, 0, 0, 0)
    assert str(ids.value) == f"reply: message ids {said}"
    assert str(region.value) == f"reply: region {said}"
    assert str(remark.value) == f"reply: remark {said}"


@pytest.mark.parametrize("serialize_type", [2, -1, 256, 2**40])
def test_there_are_two_header_codecs(kernel: Kernel, serialize_type: int) -> None:
    message = f"reply: serialize type {serialize_type} is neither 0 nor 1"
    with pytest.raises(InvalidValue) as send:
        kernel.encode_send_reply(7, serialize_type, 407, 3, 12, IDS, b"r", True)
    with pytest.raises(InvalidValue) as pull:
        kernel.encode_pull_reply(7, serialize_type, 407, 0, b"", 0, 0, 0, 0, 0)
    assert (str(send.value), str(pull.value)) == (message, message)


@pytest.mark.parametrize(
    ("field", "bits"), [("opaque", 32), ("version", 32), ("queue_id", 32), ("queue_offset", 64)]
)
@pytest.mark.parametrize("serialize_type", [0, 1])
def test_numbers_of_a_send_reply_fit(
    kernel: Kernel, field: str, bits: int, serialize_type: int
) -> None:
    for value in (2 ** (bits - 1), -(2 ** (bits - 1)) - 1):
        numbers = {"opaque": 1, "version": 1, "queue_id": 1, "queue_offset": 1} | {field: value}
        with pytest.raises(InvalidValue) as caught:
            kernel.encode_send_reply(
                serialize_type=serialize_type,
                message_ids=IDS,
                region=b"r",
                trace_on=True,
                **numbers,
            )
        assert str(caught.value) == OUT_OF_RANGE


@pytest.mark.parametrize(
    ("place", "bits"), [(0, 32), (2, 32), (3, 32), (5, 64), (6, 64), (7, 64), (8, 64)]
)
def test_numbers_of_a_pull_reply_fit(kernel: Kernel, place: int, bits: int) -> None:
    for value in (2 ** (bits - 1), -(2 ** (bits - 1)) - 1):
        n = [7, 0, 407, 0, 0, 0, 13, 1, 20, 0]
        n[place] = value
        with pytest.raises(InvalidValue) as caught:
            kernel.encode_pull_reply(n[0], 0, n[2], n[3], b"", n[5], n[6], n[7], n[8], n[9])
        assert str(caught.value) == OUT_OF_RANGE


@pytest.mark.parametrize("serialize_type", [0, 1])
def test_the_body_fits_into_the_length(kernel: Kernel, serialize_type: int) -> None:
    empty = kernel.encode_pull_reply(7, serialize_type, 407, 0, b"", 0, 0, 0, 0, 0)
    most = 2**31 - 1 - (len(empty) - 4)
    full = kernel.encode_pull_reply(7, serialize_type, 407, 0, b"", 0, 0, 0, 0, most)
    assert struct.unpack_from(">i", full) == (2**31 - 1,)
    for body_bytes in (-1, most + 1, 2**31, 2**64):
        with pytest.raises(InvalidValue) as caught:
            kernel.encode_pull_reply(7, serialize_type, 407, 0, b"", 0, 0, 0, 0, body_bytes)
        assert str(caught.value) == OUT_OF_RANGE
