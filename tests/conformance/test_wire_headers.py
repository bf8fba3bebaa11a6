"""Every frame of the golden conversations through the codec: headers and their schemas."""

from __future__ import annotations

import random
import re
from collections import defaultdict
from functools import cache
from typing import TYPE_CHECKING, Final, cast

import msgspec
import pytest

from gantrymq.errors import ProtocolError
from gantrymq.kernel import kernel
from gantrymq.limits import FRAME_BYTES_MAX
from gantrymq.wire.codes import LanguageCode, RequestCode
from gantrymq.wire.command import BINARY_HEADER, Command
from gantrymq.wire.fields import Header, Int32
from gantrymq.wire.frame import FrameParser, encode_frame
from gantrymq.wire.header_codec import widen_code
from gantrymq.wire.headers.envelope import COMMON_FIELDS
from gantrymq.wire.headers.pull import PullMessageRequest
from gantrymq.wire.headers.send import SendMessageRequest, SendMessageV2Request
from gantrymq.wire.registry import HEADERS
from support.golden import FRAMES, WIRE_FILES, Entry, exchanges, wire_entries, wire_id

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from pathlib import Path

every_file = pytest.mark.parametrize("path", WIRE_FILES, ids=wire_id)

BOOLEAN_TEXTS: Final = frozenset({"true", "false", "0", "1"})
WRITTEN_AS_DIGITS: Final = {
    "SendMessageRequest.batch": "the C++ client writes 0 and 1, which Java reads as false",
    "SendMessageRequest.unitMode": "the same",
}
"""Booleans that were not recorded as `true` and `false` alone. No other text may change."""
LOOKS_LIKE_ANOTHER: Final = {
    "SendMessageResponse.TRACE_ON": "a property, so a text; only `true` was recorded",
}
"""Fields whose recorded texts look like another type than theirs."""


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


def check_schema(schema: type[Header], fields: Mapping[str, str], where: str) -> None:
    """Decode, encode, and find every field that the schema knows, in canonical form."""
    header = schema.decode(fields)
    written = header.encode()
    canonical = {name: fields[name] for name in schema.wire_names() if name in fields}
    for name, text in canonical.items():
        if f"{schema.__name__}.{name}" in WRITTEN_AS_DIGITS and text.lower() in BOOLEAN_TEXTS:
            canonical[name] = written[name]
    assert written == canonical, where
    assert schema.decode(written) == header, where


def known_headers(path: Path) -> Iterator[tuple[type[Header], dict[str, str], str]]:
    """Yield every header of a file that its schema must hold in full: schema, fields, place."""
    for request_entry, response_entry in exchanges(wire_entries(path)):
        where = f"line {request_entry.line}"
        schemas = HEADERS[RequestCode(widen_code(request_entry.code))]
        assert schemas.request is not None, where
        assert schemas.response is not None, where
        yield schemas.request, decoded(request_entry).fields, where
        if response_entry is not None:
            response = decoded(response_entry)
            assert response.fields.keys() <= set(schemas.response.wire_names()), where
            if response.code in schemas.full_on:
                yield schemas.response, response.fields, where


@every_file
def test_schemas_cover_every_field(path: Path) -> None:
    for schema, fields, where in known_headers(path):
        check_schema(schema, fields, where)
        assert fields.keys() <= COMMON_FIELDS | set(schema.wire_names()), where


@cache
def recorded_headers() -> dict[type[Header], list[dict[str, str]]]:
    """Return every header that was recorded for a schema, each once."""
    found: dict[type[Header], dict[tuple[tuple[str, str], ...], dict[str, str]]] = defaultdict(dict)
    for path in WIRE_FILES:
        for schema, fields, _where in known_headers(path):
            found[schema][tuple(sorted(fields.items()))] = fields
    return {schema: list(headers.values()) for schema, headers in found.items()}


def apparent_kind(texts: set[str]) -> type:
    """Return the type that all these recorded texts seem to have."""
    words = {text.lower() for text in texts}
    if words <= BOOLEAN_TEXTS and not words <= {"0", "1"}:
        return bool
    return int if all(re.fullmatch(r"-?[0-9]+", text) for text in texts) else str


def plain_kind(kind: object) -> type:
    """Return the Python type of a declared one: `int` for `Int32 | None`."""
    if kind in {bool, bool | None}:
        return bool
    return str if kind in {str, str | None} else int


def mistyped(schema: type[Header], headers: list[dict[str, str]]) -> list[str]:
    """Name the fields that are declared as something else than what was recorded."""
    wrong: list[str] = []
    for field in msgspec.structs.fields(schema):
        name = field.encode_name
        texts = {header[name] for header in headers if name in header}
        place = f"{schema.__name__}.{name}"
        if texts and place not in LOOKS_LIKE_ANOTHER:
            declared, recorded = plain_kind(field.type), apparent_kind(texts)
            if declared is not recorded:
                wrong.append(f"{place}: {declared}, recorded as {recorded}")
    return wrong


def test_declared_types_are_those_recorded() -> None:
    headers = recorded_headers()
    assert [wrong for schema in headers for wrong in mistyped(schema, headers[schema])] == []


def redeclared(schema: type[Header], attribute: str, wire_name: str, kind: object) -> type[Header]:
    """Return a schema in which one field has another type."""
    field = (attribute, kind, msgspec.field(name=wire_name, default=None))
    name = schema.__name__
    wrong = msgspec.defstruct(name, [field], bases=(schema,), frozen=True, kw_only=True)
    return cast("type[Header]", wrong)


def is_caught(schema: type[Header], headers: list[dict[str, str]]) -> bool:
    """Say whether one of the tests above would fail with this schema."""
    try:
        for header in headers:
            check_schema(schema, header, "")
    except (AssertionError, ProtocolError):
        return True
    return mistyped(schema, headers) != []


@pytest.mark.parametrize("kind", [bool, Int32, str], ids=["bool", "int", "str"])
def test_a_wrong_type_is_noticed(kind: type) -> None:
    """Declare each recorded field as what it is not; the golden data must say so every time."""
    tried = 0
    unnoticed: list[str] = []
    for schema, headers in recorded_headers().items():
        assert not is_caught(schema, headers)
        recorded = {name for header in headers for name in header}
        for field in msgspec.structs.fields(schema):
            name = field.encode_name
            if name not in recorded or plain_kind(field.type) is plain_kind(kind):
                continue
            tried += 1
            if not is_caught(redeclared(schema, field.name, name, kind), headers):
                unnoticed.append(f"{schema.__name__}.{name}")
    assert tried > 90
    assert unnoticed == (list(LOOKS_LIKE_ANOTHER) if kind is bool else [])


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
