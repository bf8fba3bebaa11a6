"""Every hot request that a real client was recorded with, through both kernels."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from gantrymq.kernel.values import Frame, PullRequest, SendRequest
from gantrymq.limits import FRAME_BYTES_MAX
from support.golden import WIRE_FILES, Entry, wire_entries, wire_id
from support.samples import LONG_NAMES

if TYPE_CHECKING:
    from pathlib import Path

    from gantrymq.kernel.interface import Kernel

HOT = {10, 11, 310, 320}
PULL_FIELDS = {
    "consumerGroup", "topic", "queueId", "queueOffset", "maxMsgNums", "sysFlag", "commitOffset",
    "suspendTimeoutMillis", "subscription", "subVersion", "expressionType", "maxMsgBytes", "bname",
}  # fmt: skip


def as_text(value: object) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)


def ext_fields(entry: Entry) -> dict[str, str]:
    fields = entry.header["extFields"]
    assert isinstance(fields, dict)
    return {str(name): as_text(value) for name, value in fields.items() if value is not None}


def number(fields: dict[str, str], name: str, default: int | None = None) -> int | None:
    return int(fields[name]) if name in fields else default


def expected_send(entry: Entry, place: Frame) -> SendRequest:
    fields = ext_fields(entry)
    names = LONG_NAMES if entry.code == 10 else {name: name for name in LONG_NAMES}
    short = {letter: fields[name] for letter, name in names.items() if name in fields}
    version = entry.header.get("version")
    assert isinstance(version, int)
    return SendRequest(
        entry.code,
        version,
        entry.opaque,
        entry.oneway,
        place.serialize_type,
        short["a"],
        short["b"],
        short["c"],
        int(short["d"]),
        int(short["e"]),
        int(short["f"]),
        int(short["g"]),
        int(short["h"]),
        short.get("i", "").encode(),
        int(short.get("j", "0")),
        short.get("k", "").lower() == "true",
        number(short, "l"),
        short.get("m", "").lower() == "true",
        short.get("n"),
        not fields.keys() <= set(names.values()),
        place.body,
        place.end,
    )


def expected_pull(entry: Entry, place: Frame) -> PullRequest:
    fields = ext_fields(entry)
    version = entry.header.get("version")
    assert isinstance(version, int)
    return PullRequest(
        version,
        entry.opaque,
        entry.oneway,
        place.serialize_type,
        fields["consumerGroup"],
        fields["topic"],
        int(fields["queueId"]),
        int(fields["queueOffset"]),
        int(fields["maxMsgNums"]),
        int(fields["sysFlag"]),
        int(fields["commitOffset"]),
        int(fields["suspendTimeoutMillis"]),
        fields.get("subscription"),
        int(fields["subVersion"]),
        fields.get("expressionType"),
        number(fields, "maxMsgBytes"),
        fields.get("bname"),
        not fields.keys() <= PULL_FIELDS,
    )


def expected(entry: Entry, place: Frame) -> SendRequest | PullRequest | None:
    if not entry.is_request or entry.code not in HOT:
        return None
    return expected_pull(entry, place) if entry.code == 11 else expected_send(entry, place)


@pytest.mark.parametrize("path", WIRE_FILES, ids=wire_id)
def test_every_frame_of_a_conversation(kernel: Kernel, path: Path) -> None:
    for entry in wire_entries(path):
        frames, end = kernel.split_frames(entry.frame, 0, len(entry.frame), FRAME_BYTES_MAX)
        (place,) = frames
        assert end == len(entry.frame)
        assert place.end - place.body == entry.body_bytes
        assert place.serialize_type == (1 if entry.serializer == "ROCKETMQ" else 0)
        assert kernel.decode_request(entry.frame, place) == expected(entry, place)


def test_conversations_split_as_streams_do(kernel: Kernel) -> None:
    for path in WIRE_FILES:
        frames = [entry.frame for entry in wire_entries(path)]
        stream = b"".join(frames)
        found, end = kernel.split_frames(stream, 0, len(stream), FRAME_BYTES_MAX)
        assert [stream[place.start : place.end] for place in found] == frames
        assert end == len(stream)


def test_the_recordings_hold_hot_requests() -> None:
    codes = [entry.code for path in WIRE_FILES for entry in wire_entries(path) if entry.is_request]
    assert all(codes.count(code) >= 5 for code in HOT)
