"""Every body that Apache RocketMQ and its clients were seen to send has a type that keeps it all.

For each recorded frame with a body the codec is looked up in `BODIES`; what it decodes is encoded
and parsed again, and must hold every key and value of the original, in the forms that this side
writes. What is ignored on purpose is in `IGNORED`, with the reason.
"""

from __future__ import annotations

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
"""Java writes sets in any order, Go writes the numbers in them as texts."""
NUMBER_FIELDS: Final = frozenset({"subVersion"})
"""C++ writes these as texts."""
IGNORED: Final = {
    "body.consumerDataSet[0].subscriptionData": "pyrocketmq's slip for subscriptionDataSet; Apache "
    "ignores it too, and the client sends its subscription with every pull",
}
"""Keys that no type holds."""
ONLY_IF_TRUE: Final = {
    "enableActingMaster": "pyrocketmq reads routes as Python literals and fails on false",
}
"""Keys that are not written back when they are false."""


def body_of(entry: Entry) -> bytes:
    """Return the body of a frame without the code under test."""
    header = int.from_bytes(entry.frame[5:8])
    return entry.frame[8 + header :]


def normal(value: object, field: str = "") -> object:
    """Return a parsed body so that equal meanings are equal values."""
    if isinstance(value, fastjson.ObjectKeyed):
        return {str(normal(key)): normal(item) for key, item in value.pairs}
    if isinstance(value, dict):
        return {
            key: normal(item, key)
            for key, item in value.items()
            if item is not None and not (key in ONLY_IF_TRUE and item is False)
        }
    if field in ENUM_FIELDS and isinstance(value, int):
        return ENUM_FIELDS[field](value).name
    if isinstance(value, list):
        items = [normal(item) for item in value]
        return sorted(str(item) for item in items) if field in SET_FIELDS else items
    if field in NUMBER_FIELDS:
        return int(str(value))
    return value


def lost(original: object, kept: object, path: str = "body") -> list[str]:
    """Name every place where the second tree lacks something of the first."""
    if isinstance(original, dict) and isinstance(kept, dict):
        return [
            place
            for key, item in original.items()
            for place in (
                lost(item, kept[key], f"{path}.{key}") if key in kept else [f"{path}.{key}"]
            )
        ]
    if isinstance(original, list) and isinstance(kept, list) and len(original) == len(kept):
        return [
            place
            for index, (item, other) in enumerate(zip(original, kept, strict=True))
            for place in lost(item, other, f"{path}[{index}]")
        ]
    return [] if original == kept else [f"{path}: {original!r} became {kept!r}"]


def check(codec: Codec[object], body: bytes) -> None:
    """Decode, encode, and compare with what was there."""
    value = codec.decode(body)
    written = codec.encode(value)
    assert codec.decode(written) == value
    if isinstance(codec, JsonBody):
        missing = lost(normal(fastjson.parse(body)), normal(fastjson.parse(written)))
        assert [place for place in missing if place not in IGNORED] == []
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
