"""Every frame of the golden conversations through the codec: headers and their schemas."""

from __future__ import annotations

import random
from typing import TYPE_CHECKING

import pytest

from gantrymq.kernel import kernel
from gantrymq.limits import FRAME_BYTES_MAX
from gantrymq.wire.codes import LanguageCode, RequestCode
from gantrymq.wire.command import BINARY_HEADER, Command
from gantrymq.wire.frame import FrameParser, encode_frame
from gantrymq.wire.header_codec import widen_code
from gantrymq.wire.headers.envelope import COMMON_FIELDS
from gantrymq.wire.headers.pull import PullMessageRequest
from gantrymq.wire.headers.send import SendMessageRequest, SendMessageV2Request
from gantrymq.wire.registry import HEADERS
from support.golden import WIRE_FILES, Entry, exchanges, wire_entries, wire_id

if TYPE_CHECKING:
    from pathlib import Path

    from gantrymq.wire.fields import Header

every_file = pytest.mark.parametrize("path", WIRE_FILES, ids=wire_id)

FRAMES = 7000
"""What tests/golden/wire holds; a file that is not read must not go unnoticed."""


def decoded(entry: Entry) -> Command:
    parser = FrameParser()
    commands = parser.feed(entry.frame)
    assert parser.error is None
    assert parser.kept_bytes == 0
    (command,) = commands
    return command


def recorded_fields(entry: Entry) -> dict[str, str]:
    """Return the recorder's ext fields by the rules for reading them."""
    fields = entry.header.get("extFields") or {}
    assert isinstance(fields, dict)
    texts: dict[str, str] = {}
    for name, value in fields.items():
        if value is None or (value == "" and entry.serializer == "ROCKETMQ"):
            continue  # null, which a binary header writes as an empty text
        texts[name] = str(value).lower() if isinstance(value, bool) else str(value)
    return texts


def recorded_language(entry: Entry) -> object:
    language = entry.header["language"]
    return LanguageCode[language] if isinstance(language, str) else language


def recorded_remark(entry: Entry) -> object:
    remark = entry.header.get("remark")
    return remark or None if entry.serializer == "ROCKETMQ" else remark


def test_every_frame_is_there() -> None:
    assert sum(len(wire_entries(path)) for path in WIRE_FILES) == FRAMES


@every_file
def test_decode(path: Path) -> None:
    for entry in wire_entries(path):
        command = decoded(entry)
        where = f"line {entry.line}"
        assert command.code == entry.code == entry.header["code"], where
        assert command.opaque == entry.opaque == entry.header["opaque"], where
        assert command.flag == entry.header["flag"], where
        assert command.is_oneway == entry.oneway, where
        assert command.is_response != entry.is_request, where
        assert command.version == entry.header["version"], where
        assert command.language == recorded_language(entry), where
        assert command.remark == recorded_remark(entry), where
        assert command.fields == recorded_fields(entry), where
        assert len(command.body) == entry.body_bytes, where
        assert (command.serialize_type == BINARY_HEADER) == (entry.serializer == "ROCKETMQ"), where


@every_file
def test_encode_again(path: Path) -> None:
    for entry in wire_entries(path):
        command = decoded(entry)
        frame = encode_frame(command)
        if command.serialize_type == BINARY_HEADER:
            assert frame == entry.frame, f"line {entry.line}"
        assert FrameParser().feed(frame) == [command], f"line {entry.line}"


@every_file
def test_any_cut_gives_the_same_commands(path: Path) -> None:
    """Feed each conversation whole, byte by byte and in random pieces."""
    entries = wire_entries(path)
    stream = b"".join(entry.frame for entry in entries)
    expected = [decoded(entry) for entry in entries]
    assert FrameParser().feed(stream) == expected
    random_cuts = random.Random(len(stream))
    pieces = {
        "bytes": [stream[at : at + 1] for at in range(len(stream))],
        "pieces": [],
    }
    position = 0
    while position < len(stream):
        size = random_cuts.choice((1, 3, 4, 7, 8, 100, 1000, 5000))
        pieces["pieces"].append(stream[position : position + size])
        position += size
    for chunks in pieces.values():
        parser = FrameParser()
        assert [command for chunk in chunks for command in parser.feed(chunk)] == expected
        assert parser.error is None
        assert parser.kept_bytes == 0


def check_schema(schema: type[Header], fields: dict[str, str], where: str) -> None:
    """Decode, encode, and find every field that the schema knows, in canonical form."""
    header = schema.decode(fields)
    known = {name: fields[name] for name in schema.wire_names() if name in fields}
    canonical = {
        # Java writes booleans as `true` and `false`; the C++ client as `1` and `0`.
        name: text if header.encode()[name] not in {"true", "false"} else header.encode()[name]
        for name, text in known.items()
    }
    assert header.encode() == canonical, where
    assert schema.decode(header.encode()) == header, where


@every_file
def test_schemas_cover_every_field(path: Path) -> None:
    for request_entry, response_entry in exchanges(wire_entries(path)):
        where = f"line {request_entry.line}"
        schemas = HEADERS[RequestCode(widen_code(request_entry.code))]
        assert schemas.request is not None, where
        assert schemas.response is not None, where
        request = decoded(request_entry)
        check_schema(schemas.request, request.fields, where)
        strangers = request.fields.keys() - COMMON_FIELDS - set(schemas.request.wire_names())
        assert not strangers, where
        if response_entry is None:
            continue
        response = decoded(response_entry)
        assert response.fields.keys() <= set(schemas.response.wire_names()), where
        if response.code in schemas.full_on:
            check_schema(schemas.response, response.fields, where)


def hot_header(code: int, request: Command) -> dict[str, object]:
    """Return what the general codec makes of a hot request, under the kernel's names."""
    if code == RequestCode.PULL_MESSAGE:
        pull = PullMessageRequest.decode(request.fields)
        return {
            "consumer_group": pull.consumer_group,
            "topic": pull.topic,
            "queue_id": pull.queue_id,
            "queue_offset": pull.queue_offset,
            "max_messages": pull.max_msg_nums,
            "sys_flag": pull.sys_flag,
            "commit_offset": pull.commit_offset,
            "suspend_timeout_ms": pull.suspend_timeout_millis,
            "subscription": pull.subscription,
            "sub_version": pull.sub_version,
            "expression_type": pull.expression_type,
            "max_bytes": pull.max_msg_bytes,
        }
    if code == RequestCode.SEND_MESSAGE:
        send = SendMessageRequest.decode(request.fields)
    else:
        send = SendMessageV2Request.decode(request.fields).long_form()
    return {
        "code": code,
        "producer_group": send.producer_group,
        "topic": send.topic,
        "default_topic": send.default_topic,
        "default_topic_queues": send.default_topic_queue_nums,
        "queue_id": send.queue_id,
        "sys_flag": send.sys_flag,
        "born_timestamp": send.born_timestamp,
        "flag": send.flag,
        "properties": (send.properties or "").encode(),
        "reconsume_times": send.reconsume_times or 0,
        "unit_mode": bool(send.unit_mode),
        "max_reconsume_times": send.max_reconsume_times,
        "batch": bool(send.batch),
    }


@every_file
def test_the_kernel_reads_hot_requests_alike(path: Path) -> None:
    hot = {
        RequestCode.SEND_MESSAGE,
        RequestCode.SEND_MESSAGE_V2,
        RequestCode.SEND_BATCH_MESSAGE,
        RequestCode.PULL_MESSAGE,
    }
    for entry in wire_entries(path):
        if not entry.is_request or entry.code not in hot:
            continue
        (frame,), _end = kernel.split_frames(entry.frame, 0, len(entry.frame), FRAME_BYTES_MAX)
        found = kernel.decode_request(entry.frame, frame)
        assert found is not None, f"line {entry.line}"
        request = decoded(entry)
        expected = hot_header(entry.code, request)
        assert {name: getattr(found, name) for name in expected} == expected, f"line {entry.line}"
        assert (found.opaque, found.version) == (request.opaque, request.version)
        assert (found.oneway, found.serialize_type) == (request.is_oneway, request.serialize_type)


def test_every_answer_has_its_request() -> None:
    """Show that the test above leaves out no response."""
    for path in WIRE_FILES:
        entries = wire_entries(path)
        answers = sum(not entry.is_request for entry in entries)
        assert sum(answer is not None for _request, answer in exchanges(entries)) == answers
