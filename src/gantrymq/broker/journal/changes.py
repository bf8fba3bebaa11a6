"""One record of the journal: what has changed in the tables since the record before it.

The body is JSON. Tables in it look as they do in Apache's own requests and files, with nothing but
the entries that have changed; what is gone is named. Whoever applies the records of a journal one
after the other gets the tables, whatever he began with for the keys that they name.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

import msgspec

from gantrymq.broker.offset_table import LONG_MAX, LONG_MIN
from gantrymq.errors import GantryError, InvalidValue
from gantrymq.wire.bodies.assignment import (
    REQUEST_MODE_TABLE,
    RequestModeSetting,
    RequestModeTable,
)
from gantrymq.wire.bodies.group import GROUP_TABLE, GroupTable
from gantrymq.wire.bodies.topic import TOPIC_TABLE, TopicTable

if TYPE_CHECKING:
    from collections.abc import Iterator

    from gantrymq.model.group import SubscriptionGroup
    from gantrymq.model.topic import TopicConfig

FORMAT: Final = 1
"""Of the body. A reader passes over records of a format that it does not know."""
RECORD_BYTES: Final = 256 << 10
"""About as much is put into one record."""
_QUEUE_BYTES: Final = 24


@dataclass(slots=True)
class Changes:
    """Entries of the tables as they are now; None where there is none any more."""

    topics: dict[str, TopicConfig | None] = field(default_factory=dict)
    groups: dict[str, tuple[SubscriptionGroup, dict[str, int]] | None] = field(default_factory=dict)
    """With what is forbidden to the group, by topic."""
    offsets: dict[str, dict[int, int] | None] = field(default_factory=dict)
    """By `topic@group` the queues that have changed."""
    delays: dict[int, int] = field(default_factory=dict)
    modes: dict[tuple[str, str], RequestModeSetting | None] = field(default_factory=dict)
    """By topic and group."""

    def __bool__(self) -> bool:
        """Tell whether there is any."""
        return bool(self.topics or self.groups or self.offsets or self.delays or self.modes)


class _Record(msgspec.Struct, omit_defaults=True, kw_only=True):
    format: int
    topics: msgspec.Raw = msgspec.Raw()
    goneTopics: list[str] = []
    groups: msgspec.Raw = msgspec.Raw()
    goneGroups: list[str] = []
    offsets: dict[str, dict[int, int]] = {}
    goneOffsets: list[str] = []
    delays: dict[int, int] = {}
    modes: msgspec.Raw = msgspec.Raw()
    goneModes: list[tuple[str, str]] = []


class _Any(msgspec.Struct):
    format: int = 0


_READ: Final = msgspec.json.Decoder(_Record)
_READ_FORMAT: Final = msgspec.json.Decoder(_Any)


def encode(changes: Changes) -> bytes:
    """Return the body of a record."""
    record = _Record(format=FORMAT)
    topics = {name: topic for name, topic in changes.topics.items() if topic is not None}
    if topics:
        record.topics = msgspec.Raw(TOPIC_TABLE.encode(TopicTable(topic_config_table=topics)))
    record.goneTopics = [name for name, topic in changes.topics.items() if topic is None]
    groups = {name: one for name, one in changes.groups.items() if one is not None}
    if groups:
        table = GroupTable(
            subscription_group_table={name: one[0] for name, one in groups.items()},
            forbidden_table={name: one[1] for name, one in groups.items() if one[1]},
        )
        record.groups = msgspec.Raw(GROUP_TABLE.encode(table))
    record.goneGroups = [name for name, one in changes.groups.items() if one is None]
    record.offsets = {key: one for key, one in changes.offsets.items() if one is not None}
    record.goneOffsets = [key for key, one in changes.offsets.items() if one is None]
    record.delays = changes.delays
    modes: dict[str, dict[str, RequestModeSetting]] = {}
    for (topic, group), mode in changes.modes.items():
        if mode is not None:
            modes.setdefault(topic, {})[group] = mode
    if modes:
        encoded = REQUEST_MODE_TABLE.encode(RequestModeTable(message_request_mode_map=modes))
        record.modes = msgspec.Raw(encoded)
    record.goneModes = [key for key, mode in changes.modes.items() if mode is None]
    return msgspec.json.encode(record)


def decode(body: bytes) -> Changes | None:
    """Read the body of a record; None if its format is of a later release.

    Raises:
        InvalidValue: it is none.
    """
    try:
        if _READ_FORMAT.decode(body).format != FORMAT:
            return None
        record = _READ.decode(body)
        return _changes_of(record)
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError, GantryError) as error:
        raise InvalidValue(f"it is no record of changes: {error}") from None


def _changes_of(record: _Record) -> Changes:
    changes = Changes()
    if bytes(record.topics):
        changes.topics.update(TOPIC_TABLE.decode(bytes(record.topics)).topic_config_table)
    changes.topics.update(dict.fromkeys(record.goneTopics))
    if bytes(record.groups):
        table = GROUP_TABLE.decode(bytes(record.groups))
        forbidden = table.forbidden_table or {}
        for name, group in table.subscription_group_table.items():
            changes.groups[name] = group, dict(forbidden.get(name, {}))
    changes.groups.update(dict.fromkeys(record.goneGroups))
    for key, queues in record.offsets.items():
        if not all(LONG_MIN <= offset <= LONG_MAX for offset in queues.values()):
            raise InvalidValue(f"{key} has an offset of more than 64 bits")
        changes.offsets[key] = queues
    changes.offsets.update(dict.fromkeys(record.goneOffsets))
    changes.delays = record.delays
    if bytes(record.modes):
        modes = REQUEST_MODE_TABLE.decode(bytes(record.modes)).message_request_mode_map
        for topic, groups in modes.items():
            changes.modes.update({(topic, group): mode for group, mode in groups.items()})
    changes.modes.update(dict.fromkeys(record.goneModes))
    return changes


def split_offsets(offsets: dict[str, dict[int, int] | None]) -> Iterator[Changes]:
    """Yield changes of offsets in parts of about `RECORD_BYTES` each."""
    part, size = Changes(), 0
    for key, queues in offsets.items():
        part.offsets[key] = queues
        size += len(key) + _QUEUE_BYTES * (1 + len(queues or ()))
        if size >= RECORD_BYTES:
            yield part
            part, size = Changes(), 0
    if part:
        yield part
