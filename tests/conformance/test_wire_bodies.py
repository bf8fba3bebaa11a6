"""Every body that Apache RocketMQ and its clients were seen to send has a type that keeps it all.

For each recorded frame with a body the codec is looked up in `BODIES`; what it decodes is encoded
and parsed again, and must hold the keys and values of the original, each of the same type, and no
others. The tables below are the only exceptions, each with its reason: other forms that clients
write (`in_our_form`), keys that no type holds (`IGNORED`), keys that this side adds (`ADDED`).
"""

from __future__ import annotations

import re
import tarfile
from collections.abc import Mapping
from typing import TYPE_CHECKING, Final

import pytest

from gantrymq.model.group import ConsumeFromWhere, ConsumeType, MessageModel
from gantrymq.wire import fastjson
from gantrymq.wire.bodies import BODIES, CONFIG_FILES, RAW, RECORDS, JsonBody
from gantrymq.wire.bodies.offsets import TimerCheckpointBody
from gantrymq.wire.bodies.registration import REGISTRATION
from gantrymq.wire.bodies.settings import SettingsBody
from support.golden import STORE, STORE_LABELS, WIRE_FILES, exchanges, wire_entries, wire_id

if TYPE_CHECKING:
    from enum import IntEnum
    from pathlib import Path

    from gantrymq.wire.bodies.codec import Codec
    from support.golden import Entry

ENUM_FIELDS: Final[dict[str, type[IntEnum]]] = {
    "consumeType": ConsumeType,
    "messageModel": MessageModel,
    "consumeFromWhere": ConsumeFromWhere,
}
"""C++ sends ordinals where names are written here."""
SET_FIELDS: Final = frozenset({"codeSet", "tagsSet"})
"""Java writes sets in any order."""
NUMBER_FIELDS: Final = frozenset({"subVersion", "codeSet"})
"""C++ writes the first as a text, Go the numbers in the second."""
IGNORED: Final = {
    "body.consumerDataSet[0].subscriptionData: lost": "pyrocketmq's slip for subscriptionDataSet;"
    " Apache ignores it too, and the client sends its subscription with every pull",
}
"""Keys that no type holds."""
ONLY_IF_TRUE: Final = {
    "enableActingMaster": "pyrocketmq reads routes as Python literals and fails on false",
}
"""Keys that are not written back when they are false."""
OF_5_X: Final = "5.x has it and 4.9 has not; with this value it says what its absence says"
OF_JAVA: Final = "Java has it; clients that leave it out mean this value, which Java fills in"
ADDED: Final[dict[str, tuple[object, str]]] = {
    "attributes": ({}, OF_5_X),
    "consumeMessageOrderly": (False, OF_5_X),
    "consumeTimeoutMinute": (15, OF_5_X),
    "groupRetryPolicy": ({"type": "CUSTOMIZED"}, OF_5_X),
    "groupSysFlag": (0, OF_5_X),
    "heartbeatFingerprint": (0, OF_5_X),
    "onlyThisBroker": (False, OF_5_X),
    "pullOffset": (0, OF_5_X),
    "stateVersion": (0, OF_5_X),
    "withoutSub": (False, OF_5_X),
    "classFilterMode": (False, OF_JAVA),
    "codeSet": ([], OF_JAVA),
    "consumerDataSet": ([], OF_JAVA),
    "expressionType": ("TAG", OF_JAVA),
    "producerDataSet": ([], OF_JAVA),
    "subscriptionDataSet": ([], OF_JAVA),
    "tagsSet": ([], OF_JAVA),
    "unitMode": (False, OF_JAVA),
}
"""Keys that are written although the original lacks them, and the one value they may have."""


def body_of(entry: Entry) -> bytes:
    """Return the body of a frame without the code under test."""
    header = int.from_bytes(entry.frame[5:8])
    return entry.frame[8 + header :]


def tree(value: object, field: str = "") -> object:
    """Return a parsed body as dicts, lists and scalars, sets in one order."""
    if isinstance(value, fastjson.ObjectKeyed):
        return {str(tree(key)): tree(item) for key, item in value.pairs}
    if isinstance(value, dict):
        return {key: tree(item, key) for key, item in value.items()}
    if isinstance(value, list):
        items = [tree(item) for item in value]
        return sorted(items, key=str) if field in SET_FIELDS else items
    return value


def in_our_form(value: object, field: str = "") -> object:
    """Return a recorded tree with the forms that others write turned into ours, and nothing else.

    What this side writes never goes through here.
    """
    if isinstance(value, dict):
        return {
            key: in_our_form(item, key)
            for key, item in value.items()
            if item is not None and not (key in ONLY_IF_TRUE and item is False)
        }
    if isinstance(value, list):
        return [in_our_form(item, field) for item in value]
    if field in ENUM_FIELDS and type(value) is int:
        return ENUM_FIELDS[field](value).name
    if field in NUMBER_FIELDS and isinstance(value, str) and re.fullmatch(r"-?[0-9]+", value):
        return int(value)
    return value


def differences(original: object, written: object, path: str = "body") -> list[str]:
    """Name every place where two trees differ, in keys, types or values: `1` is not `True`."""
    if isinstance(original, dict) and isinstance(written, dict):
        lost = [f"{path}.{key}: lost" for key in original if key not in written]
        added = [
            f"{path}.{key}: added with {item!r}"
            for key, item in written.items()
            if key not in original and not is_added(key, item)
        ]
        inside = (
            differences(original[key], written[key], f"{path}.{key}")
            for key in original
            if key in written
        )
        return lost + added + [place for places in inside for place in places]
    if isinstance(original, list) and isinstance(written, list) and len(original) == len(written):
        return [
            place
            for index, (item, other) in enumerate(zip(original, written, strict=True))
            for place in differences(item, other, f"{path}[{index}]")
        ]
    if type(original) is type(written) and original == written:
        return []
    return [f"{path}: {original!r} became {written!r}"]


def is_added(key: str, value: object) -> bool:
    """Say whether this side may write a key that the original lacks, with this value."""
    if key not in ADDED:
        return False
    allowed, _reason = ADDED[key]
    return type(value) is type(allowed) and value == allowed


def json_differences(body: bytes, written: bytes) -> list[str]:
    """Name every place where a body was not kept as it must be."""
    original = in_our_form(tree(fastjson.parse(body)))
    found = differences(original, tree(fastjson.parse(written)))
    return [place for place in found if place not in IGNORED]


def check(codec: Codec[object], body: bytes) -> None:
    """Decode, encode, and compare with what was there."""
    value = codec.decode(body)
    written = codec.encode(value)
    assert codec.decode(written) == value
    if isinstance(codec, JsonBody):
        assert json_differences(body, written) == []
        assert codec.encode(codec.decode(written)) == written
    elif isinstance(value, Mapping):
        # 4.9 writes its settings in the order of a hash table.
        assert sorted(written.splitlines()) == sorted(body.splitlines())
    else:
        assert written == body


@pytest.mark.parametrize("path", WIRE_FILES, ids=wire_id)
def test_every_recorded_body_has_a_type_and_keeps_its_keys(path: Path) -> None:
    for request, answer in exchanges(wire_entries(path)):
        bodies = BODIES.get(request.code)
        for entry, codec in (
            (request, bodies and bodies.request),
            (answer, bodies and bodies.response),
        ):
            if entry is None or not (body := body_of(entry)):
                continue
            assert codec is not None, f"line {entry.line}: code {request.code} has no such body"
            check(codec, body)


def test_every_answer_belongs_to_a_recorded_request() -> None:
    for path in WIRE_FILES:
        entries = wire_entries(path)
        answers = sum(not entry.is_request for entry in entries)
        assert answers == sum(answer is not None for _, answer in exchanges(entries))


def test_refused_answers_have_no_body() -> None:
    for path in WIRE_FILES:
        for entry in wire_entries(path):
            if not entry.is_request and entry.code != 0:
                assert body_of(entry) == b""


def test_every_kind_of_body_was_recorded() -> None:
    kinds = {
        type(codec)
        for path in WIRE_FILES
        for request, answer in exchanges(wire_entries(path))
        for entry, codec in (
            (request, BODIES[request.code].request if request.code in BODIES else None),
            (answer, BODIES[request.code].response if request.code in BODIES else None),
        )
        if entry is not None and body_of(entry)
    }
    assert {JsonBody, type(RAW), type(RECORDS), SettingsBody, TimerCheckpointBody} <= kinds


def test_a_recorded_registration_survives_compression() -> None:
    bodies = [
        body_of(request)
        for path in WIRE_FILES
        if path.parent.name == "broker-namesrv"
        for request, _ in exchanges(wire_entries(path))
        if request.code == 103
    ]
    assert bodies
    for body in bodies:
        value = REGISTRATION.decode(body)
        again = REGISTRATION.decode(REGISTRATION.encode_compressed(value))
        table = value.topic_config_serialize_wrapper
        other = again.topic_config_serialize_wrapper
        assert other.data_version == table.data_version
        # The compressed form has no room for `order` and system flags; no recorded topic has any.
        assert other.topic_config_table == table.topic_config_table


@pytest.mark.parametrize("label", STORE_LABELS)
def test_every_recorded_config_file_has_a_type_and_keeps_its_keys(label: str) -> None:
    with tarfile.open(STORE / label / "store.tar.gz") as archive:
        files = [item for item in archive if item.isfile() and "/config/" in item.name]
        assert files
        for item in files:
            name = item.name.removeprefix("store/config/").removesuffix(".bak")
            content = archive.extractfile(item)
            assert content is not None
            data = content.read()
            codec = CONFIG_FILES[name]
            if name == "timercheck":
                assert codec.encode(codec.decode(data)) == data[:56]
            else:
                check(codec, data)


@pytest.mark.parametrize(
    ("original", "written", "what"),
    [
        (b'{"a":1}', b'{"a":true}', "body.a: 1 became True"),
        (b'{"a":false}', b'{"a":0}', "body.a: False became 0"),
        (b'{"a":5}', b'{"a":5.0}', "body.a: 5 became 5.0"),
        (b'{"a":5}', b'{"a":"5"}', "body.a: 5 became '5'"),
        (b'{"a":"5"}', b'{"a":5}', "body.a: '5' became 5"),
        (b'{"a":[1,2]}', b'{"a":[1]}', "body.a: [1, 2] became [1]"),
        (b'{"a":[1,2]}', b'{"a":[2,1]}', "body.a[0]: 1 became 2"),
        (b'{"a":{"b":1}}', b'{"a":{}}', "body.a.b: lost"),
        (b'{"a":{}}', b'{"a":{"b":1}}', "body.a.b: added with 1"),
        (b"{}", b'{"unitMode":true}', "body.unitMode: added with True"),
        (b"{}", b'{"unitMode":0}', "body.unitMode: added with 0"),
        (b"{}", b'{"stateVersion":false}', "body.stateVersion: added with False"),
        (b"{}", b'{"enableActingMaster":false}', "body.enableActingMaster: added with False"),
        (b'{"consumeType":1}', b'{"consumeType":1}', "'CONSUME_PASSIVELY' became 1"),
        (b'{"subVersion":7}', b'{"subVersion":"7"}', "body.subVersion: 7 became '7'"),
        (b'{"subVersion":true}', b'{"subVersion":1}', "body.subVersion: True became 1"),
        (b'{"codeSet":["7"]}', b'{"codeSet":["7"]}', "body.codeSet[0]: 7 became '7'"),
        (b'{"tagsSet":["7"]}', b'{"tagsSet":[7]}', "body.tagsSet[0]: '7' became 7"),
        (b'{{"q":1}:5}', b'{{"q":"1"}:5}', "lost"),
        (b'{{"q":1}:5}', b'{{"q":1}:5.0}', "5 became 5.0"),
    ],
)
def test_a_difference_is_noticed(original: bytes, written: bytes, what: str) -> None:
    found = json_differences(original, written)
    assert found
    assert found[0].endswith(what)


@pytest.mark.parametrize(
    ("original", "written"),
    [
        (b'{"a":null,"b":1}', b'{"b":1}'),
        (b"{0:1}", b'{"0":1}'),
        (b'{"consumeType":1}', b'{"consumeType":"CONSUME_PASSIVELY"}'),
        (b'{"codeSet":["7",5]}', b'{"codeSet":[5,7]}'),
        (b'{"enableActingMaster":false}', b"{}"),
        (b"{}", b'{"unitMode":false,"stateVersion":0}'),
    ],
)
def test_what_is_allowed_is_not(original: bytes, written: bytes) -> None:
    assert json_differences(original, written) == []


def added_keys(original: object, written: object) -> set[str]:
    """Return the names of all keys that only the second tree has."""
    if isinstance(original, dict) and isinstance(written, dict):
        added = {key for key in written if key not in original}
        return added.union(*(added_keys(original[key], written.get(key)) for key in original))
    if isinstance(original, list) and isinstance(written, list):
        return set().union(*map(added_keys, original, written))
    return set()


def test_every_exception_is_needed() -> None:
    """An entry that nothing uses any more would let a mistake through."""
    bodies = {
        (request.code, codec, body_of(entry))
        for path in WIRE_FILES
        for request, answer in exchanges(wire_entries(path))
        if request.code in BODIES
        for entry, codec in (
            (request, BODIES[request.code].request),
            (answer, BODIES[request.code].response),
        )
        if entry is not None and isinstance(codec, JsonBody) and body_of(entry)
    }
    used: set[str] = set()
    for _code, codec, body in bodies:
        written = codec.encode(codec.decode(body))
        original = in_our_form(tree(fastjson.parse(body)))
        used |= added_keys(original, tree(fastjson.parse(written)))
    assert used == ADDED.keys()
