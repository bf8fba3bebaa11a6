"""The answers to sends, as a client gets them."""

from __future__ import annotations

import json
import struct
from typing import TYPE_CHECKING

import pytest

from gantrymq.errors import InvalidValue
from gantrymq.kernel.values import SendAnswer
from gantrymq.limits import FRAME_BYTES_MAX

if TYPE_CHECKING:
    from gantrymq.kernel.interface import Kernel

LEAST = -(2**31)
ID = "7F00000100002A9F00000000000003E8"
PLAIN = {"msgId": ID, "queueId": "3", "queueOffset": "12"}
ANSWER = SendAnswer(7, 3, 12, ID, None, None, True)


def framed(serialize_type: int, header: bytes, body: bytes = b"") -> bytes:
    """Return a whole frame."""
    total = 4 + len(header) + len(body)
    return struct.pack(">iI", total, serialize_type << 24 | len(header)) + header + body


def in_json(fields: dict[str, str] | None = None, **members: object) -> bytes:
    """Return the frame of an answer as fastjson writes it."""
    header = {
        "code": 0,
        "extFields": PLAIN if fields is None else fields,
        "flag": 1,
        "language": "JAVA",
        "opaque": 7,
        "serializeTypeCurrentRPC": "JSON",
        "version": 513,
        **members,
    }
    return framed(0, json.dumps(header, separators=(",", ":"), ensure_ascii=False).encode())


def in_binary(
    fields: dict[str, str] | list[tuple[str, str]] | None = None,
    *,
    code: int = 0,
    flag: int = 1,
    remark: bytes = b"",
) -> bytes:
    """Return the frame of an answer with a binary header."""
    given = PLAIN if fields is None else fields
    pairs = given.items() if isinstance(given, dict) else given
    ext = b"".join(
        struct.pack(">h", len(name.encode()))
        + name.encode()
        + struct.pack(">i", len(value.encode()))
        + value.encode()
        for name, value in pairs
    )
    fixed = struct.pack(">hbhiii", code, 0, 407, 7, flag, len(remark))
    return framed(1, fixed + remark + struct.pack(">i", len(ext)) + ext)


def split(kernel: Kernel, data: bytes) -> tuple[list[SendAnswer], int]:
    """Return what the kernel finds in all of the data."""
    return kernel.split_send_replies(data, 0, len(data), FRAME_BYTES_MAX, LEAST)


@pytest.mark.parametrize("make", [in_json, in_binary])
def test_plain_answers_in_a_row(kernel: Kernel, make: object) -> None:
    assert callable(make)
    full = {**PLAIN, "transactionId": "AB", "MSG_REGION": "DefaultRegion", "TRACE_ON": "false"}
    data = make() + make(full) + make()
    found, behind = split(kernel, data)
    assert behind == len(data)
    assert found == [ANSWER, SendAnswer(7, 3, 12, ID, "AB", "DefaultRegion", False), ANSWER]
    assert type(found[0]) is SendAnswer


@pytest.mark.parametrize("serialize_type", [0, 1])
def test_our_own_brokers_answers(kernel: Kernel, serialize_type: int) -> None:
    frame = kernel.encode_send_reply(
        -5, serialize_type, 407, 2, 2**62, ID.encode(), b"DefaultRegion", True
    )
    found, behind = split(kernel, frame + frame[:-1])
    assert found == [SendAnswer(-5, 2, 2**62, ID, None, "DefaultRegion", True)]
    assert behind == len(frame)


@pytest.mark.parametrize(
    "other",
    [
        in_json(code=2),
        in_json(flag=0),
        in_json(flag=3),
        in_json(remark="text"),
        in_json(remark=None),
        in_json(opaque="7"),
        in_json(opaque=2**31),
        in_json(version=2**31),
        in_json(language=0),
        in_json(strange=1),
        in_json(extFields=None),
        in_json({}),
        in_json({**PLAIN, "recallHandle": "x"}),
        in_json({**PLAIN, "transactionId": ""}),
        in_json({**PLAIN, "queueId": "x"}),
        in_json({**PLAIN, "queueId": str(2**31)}),
        in_json({**PLAIN, "queueOffset": str(2**63)}),
        in_json({**PLAIN, "MSG_REGION": "Zürich"}),
        in_json({**PLAIN, "MSG_REGION": 'a"b'}),
        in_json({"msgId": ID, "queueId": "3"}),
        framed(0, b"{}"),
        framed(0, b""),
        framed(0, b"{"),
        framed(0, in_json()[8:-1]),
        framed(0, in_json()[8:] + b" "),
        framed(0, in_json()[8:].replace(b":0,", b": 0,")),
        framed(0, in_json()[8:].replace(b'"flag":1', b'"flag":1,"flag":1')),
        framed(0, in_json()[8:].replace(b'"12"}', b'"12",}')),
        framed(0, in_json()[8:].replace(b'"12"}', b'"12","msgId":"A"}')),
        framed(0, in_json()[8:], b"body"),
        in_binary(code=2),
        in_binary(flag=0),
        in_binary(remark=b"text"),
        in_binary({}),
        in_binary({**PLAIN, "recallHandle": "x"}),
        in_binary({**PLAIN, "MSG_REGION": "Zürich"}),
        in_binary({**PLAIN, "MSG_REGION": ""}),
        in_binary([*PLAIN.items(), ("msgId", "A")]),
        framed(1, in_binary()[8:-1]),
        framed(1, in_binary()[8:] + b"x"),
        framed(1, b""),
        framed(1, in_binary()[8:], b"body"),
        framed(2, in_json()[8:]),
        struct.pack(">ii", -1, 0),
        struct.pack(">ii", 8, 100),
    ],
)
def test_the_walk_ends_before_anything_else(kernel: Kernel, other: bytes) -> None:
    first = in_binary()
    assert split(kernel, other) == ([], 0)
    found, behind = split(kernel, first + other + first)
    assert (found, behind) == ([ANSWER], len(first))


def test_a_range_of_a_buffer(kernel: Kernel) -> None:
    frame = in_json()
    data = bytearray(b"xx" + frame + b"yy")
    assert kernel.split_send_replies(data, 2, 2 + len(frame), FRAME_BYTES_MAX, 0)[0] == [ANSWER]
    for end in range(2, 2 + len(frame)):
        assert kernel.split_send_replies(data, 2, end, FRAME_BYTES_MAX, 0) == ([], 2)
    with pytest.raises(InvalidValue, match="do not lie within"):
        kernel.split_send_replies(data, 0, len(data) + 1, FRAME_BYTES_MAX, 0)
    with pytest.raises(InvalidValue, match="frame_bytes_max"):
        kernel.split_send_replies(data, 0, 0, 7, 0)


@pytest.mark.parametrize("make", [in_json, in_binary])
def test_an_answer_that_was_not_asked_for_in_haste(kernel: Kernel, make: object) -> None:
    assert callable(make)
    data = make()
    assert kernel.split_send_replies(data, 0, len(data), FRAME_BYTES_MAX, 7) == (
        [ANSWER],
        len(data),
    )
    assert kernel.split_send_replies(data, 0, len(data), FRAME_BYTES_MAX, 8) == ([], 0)
