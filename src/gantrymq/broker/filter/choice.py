"""Which messages of a queue a reader gets, as the store's reader asks (`store.get.Filter`).

The queue entry is asked first, the message itself only when that cannot tell. Held pulls are asked
with what dispatch knows (`by_dispatch`, `by_properties`), before anything is read. The rules are
those of ExpressionMessageFilter.java and ExpressionForRetryMessageFilter.java.

A choice never changes, so that a thread may ask it. What reads the extension for it is called on
that thread too.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, Protocol, TypeAlias

from gantrymq.broker.filter.bloom import is_marked
from gantrymq.broker.filter.group_filter import is_tag_type
from gantrymq.errors import RecordError
from gantrymq.kernel import EXT_ADDRESS_MAX, kernel
from gantrymq.model.group import SUBSCRIBE_ALL
from gantrymq.model.names import group_of, is_retry_topic
from gantrymq.wire.properties import RETRY_TOPIC, decode_properties
from gantrymq.wire.tags import TagFilter

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from gantrymq.broker.filter.bloom import BloomFilter
    from gantrymq.broker.filter.group_filter import GroupFilter
    from gantrymq.broker.filter.table import FilterTable
    from gantrymq.kernel import QueueUnit
    from gantrymq.model.group import Subscription
    from gantrymq.store.consume_queue_ext import ExtUnit

    ReadExtension: TypeAlias = Callable[[int], ExtUnit | None]
    """`ConsumeQueueExt.read` of the queue that is read."""

_LOW_32: Final = 0xFFFFFFFF


class Choice(Protocol):
    """What the store asks, and what held pulls ask."""

    def by_unit(self, unit: QueueUnit) -> bool:
        """Look at a queue entry; True when only the message itself can tell."""
        ...

    def by_record(self, record: memoryview) -> bool:
        """Look at the message."""
        ...

    def by_dispatch(self, tags_code: int | None, ext: ExtUnit | None) -> bool:
        """Look at what the entry and the extension say; None where they say nothing."""
        ...

    def by_properties(self, properties: Mapping[str, str]) -> bool:
        """Look at the message's properties."""
        ...


def choice_for(
    subscription: Subscription | None,
    group_filter: GroupFilter | None,
    table: FilterTable,
    *,
    read_extension: ReadExtension | None = None,
    retry_filtered: bool = False,
) -> Choice | None:
    """Return what chooses the messages of a subscription; None if it wants all.

    `group_filter` is the SQL92 filter that the pull brings or the table has. `retry_filtered` is
    `filterSupportRetry`: messages of a retry topic are filtered as on the topic they come from.

    Raises:
        InvalidValue: a tag expression that names no tag.
    """
    if subscription is None or subscription.class_filter:
        return None
    if not is_tag_type(subscription.expression_type):
        if retry_filtered and is_retry_topic(subscription.topic):
            by_topic = table.of_group(group_of(subscription.topic) or "")
            return RetryChoice(group_filter, table.bloom, read_extension, by_topic)
        return SqlChoice(group_filter, table.bloom, read_extension)
    if subscription.expression == SUBSCRIBE_ALL:
        return None
    # Some clients send no hashes.
    hashes = subscription.tag_codes or TagFilter.parse(subscription.expression).hashes
    return TagChoice(frozenset(hashes), read_extension) if hashes else None


class _ByUnit:
    """Resolves the address that an entry may hold in place of a tags code."""

    __slots__ = ("_read_extension",)

    def __init__(self, read_extension: ReadExtension | None) -> None:
        self._read_extension = read_extension

    def _resolve(self, tags_code: int) -> tuple[int | None, ExtUnit | None]:
        if tags_code > EXT_ADDRESS_MAX:
            return tags_code, None
        ext = None if self._read_extension is None else self._read_extension(tags_code)
        return (None, None) if ext is None else (ext.tags_code, ext)


class TagChoice(_ByUnit):
    """Lets through whose tag has one of some hashes; the client compares the text."""

    __slots__ = ("_hashes",)

    def __init__(self, hashes: frozenset[int], read_extension: ReadExtension | None) -> None:
        super().__init__(read_extension)
        self._hashes = hashes

    @property
    def hashes(self) -> frozenset[int]:
        """Return the hashes that it lets through."""
        return self._hashes

    def by_unit(self, unit: QueueUnit) -> bool:
        """Compare the low 32 bits of the tags code."""
        tags_code = unit.tags_code
        if tags_code > EXT_ADDRESS_MAX:
            return self._has(tags_code)
        return self.by_dispatch(*self._resolve(tags_code))

    def by_dispatch(self, tags_code: int | None, ext: ExtUnit | None) -> bool:
        """Compare the low 32 bits; let through what is not known."""
        del ext
        return tags_code is None or self._has(tags_code)

    def _has(self, tags_code: int) -> bool:
        low = tags_code & _LOW_32
        return (low - 2**32 if low >= 2**31 else low) in self._hashes

    def by_record(self, record: memoryview) -> bool:
        """Have nothing to add to the hash."""
        del record
        return True

    def by_properties(self, properties: Mapping[str, str]) -> bool:
        """Have nothing to add to the hash."""
        del properties
        return True


class SqlChoice(_ByUnit):
    """Lets through for which an expression is true; a bitmap may tell before the message is read.

    Without a filter, or with one that could not be compiled, everything passes: the caller has
    refused such a pull, or wants it so.
    """

    __slots__ = ("_bits", "_filter")

    def __init__(
        self,
        group_filter: GroupFilter | None,
        bloom: BloomFilter,
        read_extension: ReadExtension | None,
    ) -> None:
        super().__init__(read_extension)
        self._filter = group_filter
        self._bits = None
        if (
            group_filter is not None
            and group_filter.compiled is not None
            and bloom.owns(group_filter.bits)
        ):
            self._bits = group_filter.bits

    def by_unit(self, unit: QueueUnit) -> bool:
        """Look for the group's bits in the extension."""
        return self._bits is None or self.by_dispatch(*self._resolve(unit.tags_code))

    def by_dispatch(self, tags_code: int | None, ext: ExtUnit | None) -> bool:
        """Look for the group's bits, if the bitmap was made when the filter was known."""
        del tags_code
        bits, known = self._bits, self._filter
        if bits is None or known is None or ext is None or not known.knows(ext.store_timestamp):
            return True
        return len(ext.bitmap) * 8 != bits.bit_count or is_marked(ext.bitmap, bits)

    def by_record(self, record: memoryview) -> bool:
        """Evaluate the expression."""
        return self._filter_passes_all() or self.by_properties(_properties_of(record))

    def by_properties(self, properties: Mapping[str, str]) -> bool:
        """Evaluate the expression."""
        return _passes(self._filter, properties)

    def _filter_passes_all(self) -> bool:
        return self._filter is None or self._filter.compiled is None


class RetryChoice(SqlChoice):
    """On a retry topic: filters each message as on the topic it comes from."""

    __slots__ = ("_by_topic",)

    def __init__(
        self,
        group_filter: GroupFilter | None,
        bloom: BloomFilter,
        read_extension: ReadExtension | None,
        by_topic: Mapping[str, GroupFilter],
    ) -> None:
        super().__init__(group_filter, bloom, read_extension)
        self._by_topic = by_topic

    def by_properties(self, properties: Mapping[str, str]) -> bool:
        """Evaluate the expression that the group has for the first topic; without one, pass."""
        return _passes(self._by_topic.get(properties.get(RETRY_TOPIC, "")), properties)

    def _filter_passes_all(self) -> bool:
        return False


def _passes(group_filter: GroupFilter | None, properties: Mapping[str, str]) -> bool:
    if group_filter is None or group_filter.compiled is None:
        return True
    return group_filter.compiled.matches(properties)


def _properties_of(record: memoryview) -> dict[str, str]:
    """Return a message's properties; none for one that cannot be read, as in Apache."""
    try:
        raw, _ = kernel.decode_record(record, 0, len(record), False)
        return decode_properties(raw.properties)
    except RecordError:
        return {}
