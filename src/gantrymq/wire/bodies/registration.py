"""A broker's registration with the name server (103), in its three forms.

Plain, since 3.0.11:  {"filterServerList":[],"topicConfigSerializeWrapper":{..TopicTable..}}
Older:                the inner table alone
Compressed:           one zlib stream of

    int32 n, n bytes      data version, JSON
    int32                 number of topics
    int32 n, n bytes      for each: `name readQueues writeQueues perm filterType [attributes]`
    int32 n, n bytes      filter servers, a JSON list
    int32                 number of queue mappings; this part since 5.0
    int32 n, n bytes      for each: JSON

The compressed form loses `order` and the topic's system flags. The header's `compressed` cannot be
trusted (5.x always says false), so the first byte decides: 0x78 begins a zlib stream and no JSON.
Apache's class is `RegisterBrokerBody`.

Names are what the peer says: whoever makes files or routes of them asks `model.names` first.
"""

import struct
import zlib
from collections.abc import Mapping
from itertools import count
from typing import Final, cast

import msgspec

from gantrymq.errors import ContentError, InvalidValue, shown
from gantrymq.limits import (
    REGISTRATION_BYTES_MAX,
    REGISTRATION_MAPPINGS_MAX,
    REGISTRATION_TOPICS_MAX,
)
from gantrymq.model.offsets import DataVersion
from gantrymq.model.route import QueueMapping
from gantrymq.model.topic import FilterType, Perm, TopicConfig
from gantrymq.wire import fastjson
from gantrymq.wire.bodies.codec import JsonBody
from gantrymq.wire.bodies.reading import read
from gantrymq.wire.bodies.schema import Body
from gantrymq.wire.bodies.topic import TopicTable
from gantrymq.wire.compression import decompress
from gantrymq.wire.integers import parse_integer
from gantrymq.wire.sysflag import Compression

_ZLIB_FIRST_BYTE: Final = 0x78
_COUNT: Final = struct.Struct(">i")
_VERSION_PLACE: Final = "body.dataVersion"
_TOPICS_PLACE: Final = "body.topicConfigTable"
_FILTERS_PLACE: Final = "body.filterServerList"
_MAPPINGS_PLACE: Final = "body.topicQueueMappingInfoMap"
_PERMS: Final[Mapping[int | None, Perm]] = {bits: Perm(bits) for bits in range(16)}
_FILTER_TYPES: Final = {kind.name: kind for kind in FilterType}


class Registration(Body, frozen=True, kw_only=True):
    """All topics of a broker."""

    topic_config_serialize_wrapper: TopicTable = TopicTable()
    filter_server_list: tuple[str, ...] = ()
    """Obsolete, always empty."""


class RegistrationBody(JsonBody[Registration]):
    """Reads all three forms; writes the plain one, or the compressed one when asked."""

    __slots__ = ()

    def decode(self, body: bytes) -> Registration:
        """Return the registration.

        Raises:
            ContentError: it is none of the forms; names the field.
        """
        if body[:1] == bytes([_ZLIB_FIRST_BYTE]):
            plain = decompress(body, Compression.ZLIB, REGISTRATION_BYTES_MAX)
            return _CompressedReader(plain).read()
        raw = fastjson.parse(body)
        if isinstance(raw, dict) and "topicConfigTable" in raw:
            table = cast("TopicTable", read(TopicTable, raw, "body"))
            return Registration(topic_config_serialize_wrapper=table)
        return cast("Registration", read(Registration, raw, "body"))

    def encode_compressed(self, value: Registration, *, with_mappings: bool = True) -> bytes:
        """Return the compressed form; name servers before 5.0 skip the mappings unread.

        Raises:
            InvalidValue: a topic's name is empty, has a blank in it, or is not Unicode.
        """
        table = value.topic_config_serialize_wrapper
        topics = table.topic_config_table.values()
        out = [_sized(_VERSION.encode(table.data_version)), _COUNT.pack(len(topics))]
        out.extend(_sized(_topic_line(topic)) for topic in topics)
        out.append(_sized(fastjson.encode(value.filter_server_list)))
        if with_mappings:
            mappings = (table.topic_queue_mapping_info_map or {}).values()
            out.append(_COUNT.pack(len(mappings)))
            out.extend(_sized(_MAPPING.encode(mapping)) for mapping in mappings)
        return zlib.compress(b"".join(out), 9)


def _sized(part: bytes) -> bytes:
    """Put a part's length in front of it."""
    return _COUNT.pack(len(part)) + part


def _topic_line(topic: TopicConfig) -> bytes:
    """Return a topic's settings on one line."""
    if not topic.name or " " in topic.name:
        raise InvalidValue(f"topic {shown(topic.name)!r}: a blank would end it on its line")
    numbers = f"{topic.read_queues} {topic.write_queues} {int(topic.perm)}"
    attributes = fastjson.encode(topic.attributes).decode()
    text = f"{topic.name} {numbers} {topic.filter_type.name} {attributes}"
    try:
        return text.encode()
    except UnicodeEncodeError as error:
        raise InvalidValue(f"topic {shown(topic.name)!r} is not Unicode: {error}") from None


class _CompressedReader:
    """Walks the inflated form once."""

    __slots__ = ("_at", "_data")

    def __init__(self, data: bytes) -> None:
        self._data = data
        self._at = 0

    def read(self) -> Registration:
        """Return what it holds; what is behind it is ignored, as in Java."""
        version = _VERSION.decode(self._part(_VERSION_PLACE))
        lines = self._parts(_TOPICS_PLACE, REGISTRATION_TOPICS_MAX)
        topics = {topic.name: topic for topic in map(_read_topic, lines, count())}
        filters = _FILTERS.decode(self._part(_FILTERS_PLACE))
        mappings = self._mappings() if self._at < len(self._data) else None
        table = TopicTable(
            data_version=version,
            topic_config_table=topics,
            topic_queue_mapping_info_map=mappings,
        )
        return Registration(topic_config_serialize_wrapper=table, filter_server_list=filters)

    def _mappings(self) -> dict[str, QueueMapping]:
        """Return the part that 5.x adds.

        All of it is parsed as one list: the bounds of a JSON body hold for the whole.
        """
        parts = self._parts(_MAPPINGS_PLACE, REGISTRATION_MAPPINGS_MAX)
        mappings = _MAPPINGS.decode(b"[" + b",".join(parts) + b"]")
        if len(mappings) != len(parts):
            problem = f"{len(parts)} entries hold {len(mappings)} mappings"
            raise ContentError(_MAPPINGS_PLACE, problem)
        return {mapping.topic: mapping for mapping in mappings}

    def _count(self, field: str) -> int:
        """Return a number that cannot be more than the bytes that are left."""
        left = len(self._data) - self._at - _COUNT.size
        if left < 0:
            raise ContentError(field, "the data ends before its length")
        (found,) = _COUNT.unpack_from(self._data, self._at)
        if not 0 <= found <= left:
            raise ContentError(field, f"a length of {found} with {left} bytes left")
        self._at += _COUNT.size
        return int(found)

    def _part(self, field: str) -> bytes:
        """Return the next sized part."""
        end = self._count(field) + self._at
        part = self._data[self._at : end]
        self._at = end
        return part

    def _parts(self, field: str, parts_max: int) -> list[bytes]:
        """Return as many sized parts as the next number says."""
        found = self._count(field)
        if found > parts_max:
            raise ContentError(field, f"{found} entries; at most {parts_max} are taken")
        return [self._part(field) for _ in range(found)]


def _read_topic(line: bytes, index: int) -> TopicConfig:
    """Read a topic's settings from one line."""
    try:
        return _topic_of(line.decode() + " ")
    except KeyError as error:
        problem = f"{shown(str(error))} is no permission or filter type"
    except ValueError as error:
        problem = str(error)
    raise ContentError(f"{_TOPICS_PLACE}[{index}]", f"not a topic line: {problem}")


def _topic_of(text: str) -> TopicConfig:
    """Return the topic, or raise ValueError, or KeyError for a word that is not known."""
    name, *numbers, filter_type, attributes = text.split(" ", 5)
    read_queues, write_queues, perm = (parse_integer(number, 32) for number in numbers)
    if read_queues is None or write_queues is None:
        raise ValueError("a number of queues is not a 32-bit integer")
    return TopicConfig(
        name,
        read_queues,
        write_queues,
        _PERMS[perm],
        _FILTER_TYPES[filter_type],
        attributes=_read_attributes(attributes) if attributes else {},
    )


def _read_attributes(text: str) -> Mapping[str, str]:
    """Read the sixth part of a topic's line; what is no JSON counts as none, as in Java.

    Java writes strict JSON here. Reading anything else would take time for each of many lines.
    """
    try:
        tree: object = msgspec.json.decode(text)
        return cast("Mapping[str, str]", read(Mapping[str, str], tree, ""))
    except (msgspec.MsgspecError, RecursionError, ContentError):
        return {}


_VERSION: Final = JsonBody(DataVersion, _VERSION_PLACE)
_FILTERS: Final = JsonBody(tuple[str, ...], _FILTERS_PLACE)
_MAPPING: Final = JsonBody(QueueMapping, _MAPPINGS_PLACE)
_MAPPINGS: Final = JsonBody(tuple[QueueMapping, ...], _MAPPINGS_PLACE)
REGISTRATION: Final = RegistrationBody(Registration)
