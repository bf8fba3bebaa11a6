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
from typing import Final, cast

from gantrymq.errors import ContentError, InvalidValue
from gantrymq.limits import REGISTRATION_BYTES_MAX, REGISTRATION_TOPICS_MAX
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
_SHOWN: Final = 40
"""Characters of a bad value that an error repeats."""


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
            return _CompressedReader(
                decompress(body, Compression.ZLIB, REGISTRATION_BYTES_MAX)
            ).read()
        raw = fastjson.parse(body)
        if isinstance(raw, dict) and "topicConfigTable" in raw:
            table = cast("TopicTable", read(TopicTable, raw, "body"))
            return Registration(topic_config_serialize_wrapper=table)
        return cast("Registration", read(Registration, raw, "body"))

    def encode_compressed(self, value: Registration, *, with_mappings: bool = True) -> bytes:
        """Return the compressed form; name servers before 5.0 skip the mappings unread.

        Raises:
            InvalidValue: a topic's name has a blank in it, or is not Unicode.
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
    if " " in topic.name:
        raise InvalidValue(f"topic {topic.name[:_SHOWN]!r}: a blank would end it on its line")
    numbers = f"{topic.read_queues} {topic.write_queues} {int(topic.perm)}"
    attributes = fastjson.encode(topic.attributes).decode()
    text = f"{topic.name} {numbers} {topic.filter_type.name} {attributes}"
    try:
        return text.encode()
    except UnicodeEncodeError as error:
        raise InvalidValue(f"topic {topic.name[:_SHOWN]!r} is not Unicode: {error}") from None


class _CompressedReader:
    """Walks the inflated form once."""

    __slots__ = ("_at", "_data")

    def __init__(self, data: bytes) -> None:
        self._data = data
        self._at = 0

    def read(self) -> Registration:
        """Return what it holds; what is behind it is ignored, as in Java."""
        version = _VERSION.decode(self._part("body.dataVersion"))
        topics: dict[str, TopicConfig] = {}
        for index in range(self._items("body.topicConfigTable")):
            field = f"body.topicConfigTable[{index}]"
            topic = _read_topic(self._part(field), field)
            topics[topic.name] = topic
        filters = _FILTERS.decode(self._part("body.filterServerList"))
        mappings = self._mappings() if self._at < len(self._data) else None
        table = TopicTable(
            data_version=version,
            topic_config_table=topics,
            topic_queue_mapping_info_map=mappings,
        )
        return Registration(topic_config_serialize_wrapper=table, filter_server_list=filters)

    def _mappings(self) -> dict[str, QueueMapping]:
        """Return the part that 5.x adds."""
        field = "body.topicQueueMappingInfoMap"
        count = self._items(field)
        mappings = [_MAPPING.decode(self._part(f"{field}[{index}]")) for index in range(count)]
        return {mapping.topic: mapping for mapping in mappings}

    def _count(self, field: str) -> int:
        """Return a number that cannot be more than the bytes that are left."""
        left = len(self._data) - self._at - _COUNT.size
        if left < 0:
            raise ContentError(field, "the data ends before its length")
        (count,) = _COUNT.unpack_from(self._data, self._at)
        if not 0 <= count <= left:
            raise ContentError(field, f"a length of {count} with {left} bytes left")
        self._at += _COUNT.size
        return int(count)

    def _items(self, field: str) -> int:
        """Return how many parts follow."""
        count = self._count(field)
        if count > REGISTRATION_TOPICS_MAX:
            raise ContentError(
                field, f"{count} entries; at most {REGISTRATION_TOPICS_MAX} are taken"
            )
        return count

    def _part(self, field: str) -> bytes:
        """Return the next sized part."""
        end = self._count(field) + self._at
        part = self._data[self._at : end]
        self._at = end
        return part


def _read_topic(line: bytes, field: str) -> TopicConfig:
    """Read a topic's settings from one line."""
    try:
        name, *numbers, filter_type, attributes = (line.decode() + " ").split(" ", 5)
        read_queues, write_queues, perm = (_number(number) for number in numbers)
        return TopicConfig(
            name=name,
            read_queues=read_queues,
            write_queues=write_queues,
            perm=cast("Perm", read(Perm, perm, f"{field}.perm")),
            filter_type=FilterType[filter_type],
            attributes=_read_attributes(attributes),
        )
    except (ValueError, KeyError) as error:
        raise ContentError(field, f"not a topic line: {error}") from None


def _number(text: str) -> int:
    """Read a number as Java does: ASCII digits, no underscores."""
    number = parse_integer(text, 32)
    if number is None:
        raise ValueError(f"{text[:_SHOWN]!r} is not a number")
    return number


def _read_attributes(text: str) -> Mapping[str, str]:
    """Read the sixth part of a topic's line; what is no JSON counts as none, as in Java."""
    if not text or text.isspace():
        return {}
    try:
        return cast("Mapping[str, str]", read(Mapping[str, str], fastjson.parse(text.encode()), ""))
    except ContentError:
        return {}


_VERSION: Final = JsonBody(DataVersion, "body.dataVersion")
_FILTERS: Final = JsonBody(tuple[str, ...], "body.filterServerList")
_MAPPING: Final = JsonBody(QueueMapping, "body.topicQueueMappingInfoMap")
REGISTRATION: Final = RegistrationBody(Registration)
