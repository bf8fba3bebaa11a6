"""The four hot requests: SEND_MESSAGE, SEND_MESSAGE_V2, SEND_BATCH_MESSAGE and PULL_MESSAGE.

A header is read twice over: first its form (JSON or binary) gives a `_Head`, in which every field
is text; then the fields of the request are taken out of it. Whatever is unusual on the way, good
or bad, ends the attempt: the general codec looks at it again and finds the right words.
"""

from __future__ import annotations

import json
import struct
from typing import TYPE_CHECKING, Final, NamedTuple, NoReturn

from gantrymq.kernel.reference.bounds import check_range
from gantrymq.kernel.reference.integers import parse_integer
from gantrymq.kernel.values import (
    BINARY_HEADER,
    JSON_HEADER,
    Frame,
    PullRequest,
    SendRequest,
)

if TYPE_CHECKING:
    from gantrymq.kernel.interface import Buffer

_SEND: Final = 10
_SEND_V2: Final = 310
_SEND_BATCH: Final = 320
_PULL: Final = 11

_RESPONSE_FLAG: Final = 1
_ONEWAY_FLAG: Final = 2

_SEND_FIELDS: Final = (
    "producerGroup", "topic", "defaultTopic", "defaultTopicQueueNums", "queueId", "sysFlag",
    "bornTimestamp", "flag", "properties", "reconsumeTimes", "unitMode", "maxReconsumeTimes",
    "batch", "bname",
)  # fmt: skip
_SEND_V2_FIELDS: Final = tuple("abcdefghijklmn")
"""The same fields in the same order."""
_PULL_FIELDS: Final = (
    "consumerGroup", "topic", "queueId", "queueOffset", "maxMsgNums", "sysFlag", "commitOffset",
    "suspendTimeoutMillis", "subscription", "subVersion", "expressionType", "maxMsgBytes", "bname",
)  # fmt: skip


class _UnusualError(ValueError):
    """The general codec must look at this header."""


class _Head(NamedTuple):
    """A header whose form has been understood."""

    code: int
    version: int
    opaque: int
    flag: int
    members: list[tuple[str, str | None]]
    """The ext fields as they came; None is null."""

    def fields(self) -> dict[str, str]:
        """Return the fields that are there: the last of a name counts, and a null is nothing."""
        return {name: text for name, text in dict(self.members).items() if text is not None}

    def has_beside(self, names: tuple[str, ...]) -> bool:
        """Tell whether any member has another name; a null there is unusual."""
        beside = [text for name, text in self.members if name not in names]
        if None in beside:
            raise _UnusualError("a null that no field of this request is")
        return bool(beside)


def decode_request(buffer: Buffer, frame: Frame) -> SendRequest | PullRequest | None:
    """Decode one of the four hot requests, or return None: the general codec must look at it."""
    check_range(buffer, frame.header, frame.body)
    check_range(buffer, frame.body, frame.end)
    raw = bytes(buffer[frame.header : frame.body])
    try:
        if frame.serialize_type == JSON_HEADER:
            head = _json_head(raw)
        elif frame.serialize_type == BINARY_HEADER:
            head = _binary_head(raw)
        else:
            return None
        return _request(head, frame)
    except (ValueError, RecursionError):
        # ValueError is the root of what json, UTF-8 and this module raise; RecursionError is
        # json's answer to arrays nested without end.
        return None


def _request(head: _Head, frame: Frame) -> SendRequest | PullRequest | None:
    if head.flag & _RESPONSE_FLAG:
        return None
    if head.code == _SEND:
        return _send_request(head, frame, _SEND_FIELDS)
    if head.code in {_SEND_V2, _SEND_BATCH}:
        return _send_request(head, frame, _SEND_V2_FIELDS)
    if head.code == _PULL:
        return _pull_request(head, frame)
    return None


def _send_request(head: _Head, frame: Frame, names: tuple[str, ...]) -> SendRequest:
    fields = head.fields()
    a, b, c, d, e, f, g, h, i, j, k, l, m, n = names  # noqa: E741 - their names on the wire
    return SendRequest(
        code=head.code,
        version=head.version,
        opaque=head.opaque,
        oneway=bool(head.flag & _ONEWAY_FLAG),
        serialize_type=frame.serialize_type,
        producer_group=_required(fields, a),
        topic=_required(fields, b),
        default_topic=_required(fields, c),
        default_topic_queues=_number(_required(fields, d), 32),
        queue_id=_number(_required(fields, e), 32),
        sys_flag=_number(_required(fields, f), 32),
        born_timestamp=_number(_required(fields, g), 64),
        flag=_number(_required(fields, h), 32),
        properties=fields.get(i, "").encode(),
        reconsume_times=_number(fields.get(j, "0"), 32),
        unit_mode=fields.get(k, "").lower() == "true",
        max_reconsume_times=_number(fields[l], 32) if l in fields else None,
        batch=fields.get(m, "").lower() == "true",
        broker_name=fields.get(n),
        extra_fields=head.has_beside(names),
        body_start=frame.body,
        body_end=frame.end,
    )


def _pull_request(head: _Head, frame: Frame) -> PullRequest:
    fields = head.fields()
    return PullRequest(
        version=head.version,
        opaque=head.opaque,
        oneway=bool(head.flag & _ONEWAY_FLAG),
        serialize_type=frame.serialize_type,
        consumer_group=_required(fields, "consumerGroup"),
        topic=_required(fields, "topic"),
        queue_id=_number(_required(fields, "queueId"), 32),
        queue_offset=_number(_required(fields, "queueOffset"), 64),
        max_messages=_number(_required(fields, "maxMsgNums"), 32),
        sys_flag=_number(_required(fields, "sysFlag"), 32),
        commit_offset=_number(_required(fields, "commitOffset"), 64),
        suspend_timeout_ms=_number(_required(fields, "suspendTimeoutMillis"), 64),
        subscription=fields.get("subscription"),
        sub_version=_number(_required(fields, "subVersion"), 64),
        expression_type=fields.get("expressionType"),
        max_bytes=_number(fields["maxMsgBytes"], 32) if "maxMsgBytes" in fields else None,
        broker_name=fields.get("bname"),
        extra_fields=head.has_beside(_PULL_FIELDS),
    )


def _required(fields: dict[str, str], name: str) -> str:
    if name not in fields:
        raise _UnusualError(name)
    return fields[name]


def _number(text: str, bits: int) -> int:
    value = parse_integer(text, bits)
    if value is None:
        raise _UnusualError(text)
    return value


# -- JSON headers ------------------------------------------------------------------------------


class _Integer(str):
    """The text of a JSON integer: what the field reads as, though it had no quotes."""

    __slots__ = ()


class _Object(NamedTuple):
    """A JSON object as its members came, so that a repeated key hides nothing from the checks."""

    members: list[tuple[str, object]]


def _json_integer(text: str) -> _Integer:
    """Read it and write it again, as Java does: `-0` is 0."""
    return _Integer(_number(text, 64))


def _refuse(text: str) -> NoReturn:
    raise _UnusualError(text)


def _json_head(raw: bytes) -> _Head:
    tree: object = json.loads(
        raw.decode(),
        object_pairs_hook=_Object,
        parse_int=_json_integer,
        parse_float=_refuse,
        parse_constant=_refuse,
    )
    if not isinstance(tree, _Object):
        raise _UnusualError("a header is an object")
    numbers: dict[str, int | None] = dict.fromkeys(("code", "version", "opaque", "flag"))
    members: list[tuple[str, str | None]] = []
    for name, value in tree.members:
        if name == "extFields":
            members = _ext_members(value)
            continue
        text = _text(value)
        _check_characters(name)
        if name in numbers:
            numbers[name] = None if text is None else _head_number(text)
    code, opaque = numbers["code"], numbers["opaque"]
    if code is None or opaque is None:
        raise _UnusualError("code and opaque must be there")
    return _Head(code, numbers["version"] or 0, opaque, numbers["flag"] or 0, members)


def _head_number(text: str) -> int:
    if not isinstance(text, _Integer):
        raise _UnusualError("the numbers of a header have no quotes")
    return _number(text, 32)


def _ext_members(value: object) -> list[tuple[str, str | None]]:
    if value is None:
        return []
    if not isinstance(value, _Object):
        raise _UnusualError("extFields is an object")
    for name, _value in value.members:
        _check_characters(name)
    if any(member is None for _name, member in value.members):
        raise _UnusualError("no client sends a null field")
    return [(name, _text(member)) for name, member in value.members]


def _text(value: object) -> str | None:
    """Return a plain JSON value as text; an array or object is none."""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, str):
        _check_characters(value)
        return value
    if value is None:
        return None
    raise _UnusualError("a value is not plain")


def _check_characters(text: str) -> None:
    """Raise UnicodeEncodeError, a ValueError, for a lone surrogate, which json lets pass."""
    text.encode()


# -- binary headers ----------------------------------------------------------------------------
#
#    i16 code | i8 language | i16 version | i32 opaque | i32 flag
#    i32 length, remark | i32 length, ext area: (i16 length, key, i32 length, value) ...


class _Area:
    """Bytes that are taken from the front, never beyond the end."""

    __slots__ = ("_at", "_raw")

    def __init__(self, raw: bytes) -> None:
        self._raw = raw
        self._at = 0

    def left(self) -> int:
        return len(self._raw) - self._at

    def take(self, count: int) -> bytes:
        if not 0 <= count <= self.left():
            raise _UnusualError("a length reaches beyond its area")
        self._at += count
        return self._raw[self._at - count : self._at]

    def number(self, form: str) -> int:
        value: int = struct.unpack(form, self.take(struct.calcsize(form)))[0]
        return value


def _binary_head(raw: bytes) -> _Head:
    area = _Area(raw)
    code = area.number(">h")
    area.take(1)  # the language matters to nobody here
    version, opaque, flag = area.number(">h"), area.number(">i"), area.number(">i")
    area.take(area.number(">i")).decode()
    ext = _Area(area.take(area.number(">i")))
    if area.left():
        raise _UnusualError("the header goes on behind its fields")
    members: list[tuple[str, str | None]] = []
    while ext.left():
        key = ext.take(ext.number(">h")).decode()
        if not key:
            raise _UnusualError("a key is empty")
        members.append((key, ext.take(ext.number(">i")).decode() or None))
    return _Head(code, version, opaque, flag, members)
