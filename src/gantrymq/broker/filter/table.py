"""All SQL92 filters of a broker: registered by heartbeats, kept in `config/consumerFilter.json`.

The rules are those of ConsumerFilterManager.java. A filter stays when its group goes, for a day: a
group that comes back with the same expression finds its bits already in the bitmaps. Owned by the
task that owns the broker's state; time comes in as an argument, and files are somebody else's.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from msgspec.structs import replace

from gantrymq.broker.filter.bloom import BloomBits, BloomFilter, bitmap_of
from gantrymq.broker.filter.compiled import compile_filter
from gantrymq.broker.filter.errors import FilterError
from gantrymq.broker.filter.group_filter import GroupFilter, build_filter, is_tag_type
from gantrymq.limits import FILTERS_REGISTERED_MAX
from gantrymq.model.group import SQL92_EXPRESSION
from gantrymq.wire.bodies.queues import (
    CONSUMER_FILTERS,
    BloomFilterData,
    ConsumerFilter,
    ConsumerFilters,
    TopicFilters,
)

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Iterator, Mapping

    from gantrymq.model.group import Subscription

KEPT_MS: Final = 24 * 3600 * 1000
"""Default of `filterDataCleanTimeSpan`."""
_DEAD_BEFORE_START_MS: Final = 30_000
"""How long before a start the groups of the last run count as gone."""


class FilterTable:
    """The filters by topic and group."""

    def __init__(self, bloom: BloomFilter | None = None, kept_ms: int = KEPT_MS) -> None:
        self.bloom = BloomFilter.for_consumers() if bloom is None else bloom
        self._kept_ms = kept_ms
        self._topics: dict[str, dict[str, GroupFilter]] = {}
        self._count = 0
        self.changes = 0
        """How often anything was changed, so that it is known whether the file is behind."""

    def __len__(self) -> int:
        """Return how many filters there are."""
        return self._count

    def __iter__(self) -> Iterator[GroupFilter]:
        """Go over all filters."""
        return (found for groups in self._topics.values() for found in groups.values())

    def get(self, topic: str, group: str) -> GroupFilter | None:
        """Return the filter of a group on a topic."""
        return self._topics.get(topic, {}).get(group)

    def of_topic(self, topic: str) -> Collection[GroupFilter]:
        """Return the filters on a topic, those of groups that are gone included."""
        return self._topics.get(topic, {}).values()

    def of_group(self, group: str) -> dict[str, GroupFilter]:
        """Return the filters of a group by topic, as they are now."""
        return {topic: groups[group] for topic, groups in self._topics.items() if group in groups}

    # -- groups come and go ----------------------------------------------------------------------

    def register(self, group: str, subscriptions: Iterable[Subscription], now_ms: int) -> bool:
        """Take what a heartbeat says of a group; tell whether anything is different now.

        An expression that is no filter is passed over: the group's pulls are told.
        """
        topics = set()
        changed = False
        for found in subscriptions:
            topics.add(found.topic)
            changed |= self.register_one(
                found.topic, group, found.expression, found.expression_type, found.version, now_ms
            )
        for known in self.of_group(group).values():
            if known.topic not in topics and not known.is_dead:
                self._put(replace(known, dead_ms=now_ms))
                changed = True
        return changed

    def register_one(
        self,
        topic: str,
        group: str,
        expression: str,
        expression_type: str | None,
        client_version: int,
        now_ms: int,
    ) -> bool:
        """Take one subscription; tell whether it counts.

        One of an older client, or of the same one again, does not, except that it brings a group
        back.
        """
        if expression_type is None or is_tag_type(expression_type) or not expression:
            return False
        old = self.get(topic, group)
        if old is not None and client_version <= old.client_version:
            is_back = client_version == old.client_version and old.is_dead
            if is_back:
                self._put(replace(old, dead_ms=0))
            return is_back
        bits = self.bloom.bits_of(group, topic)
        if old is not None and (old.expression, old.expression_type, old.bits) == (
            expression,
            expression_type,
            bits,
        ):
            dead_ms = 0 if old.is_dead else old.dead_ms
            self._put(replace(old, client_version=client_version, dead_ms=dead_ms))
            return True
        if old is None and self._count >= FILTERS_REGISTERED_MAX:
            return False
        try:
            new = build_filter(topic, group, expression, expression_type, client_version, now_ms)
        except FilterError:
            if old is not None:
                self._remove(old)
            return False
        self._put(replace(new, bits=bits))
        return True

    def unregister(self, group: str, now_ms: int) -> None:
        """Note that a group has gone."""
        for known in self.of_group(group).values():
            if not known.is_dead:
                self._put(replace(known, dead_ms=now_ms))

    def remove_topic(self, topic: str) -> None:
        """Forget all filters on a topic that was deleted."""
        for known in list(self.of_topic(topic)):
            self._remove(known)

    def remove_group(self, group: str) -> None:
        """Forget all filters of a group that was deleted."""
        for known in self.of_group(group).values():
            self._remove(known)

    def clean(self, now_ms: int) -> int:
        """Forget the filters of groups that went long ago; return how many."""
        old = [one for one in self if one.is_dead and now_ms - one.dead_ms >= self._kept_ms]
        for known in old:
            self._remove(known)
        return len(old)

    def _put(self, new: GroupFilter) -> None:
        groups = self._topics.setdefault(new.topic, {})
        self._count += new.group not in groups
        self.changes += 1
        groups[new.group] = new

    def _remove(self, old: GroupFilter) -> None:
        groups = self._topics[old.topic]
        del groups[old.group]
        self._count -= 1
        self.changes += 1
        if not groups:
            del self._topics[old.topic]

    # -- dispatch --------------------------------------------------------------------------------

    def bits_for(self, topic: str, properties: Mapping[str, str]) -> bytes | None:
        """Return the bitmap of a message for the extension; None if nobody filters its topic."""
        groups = self._topics.get(topic)
        if not groups:
            return None
        return bitmap_of(
            self.bloom.bit_count,
            (
                one.bits
                for one in groups.values()
                if one.bits is not None
                and one.compiled is not None
                and one.compiled.matches(properties)
            ),
        )

    # -- the file --------------------------------------------------------------------------------

    def to_json(self, now_ms: int) -> bytes:
        """Return the content of `consumerFilter.json`, without what went long ago."""
        return CONSUMER_FILTERS.encode(self.picture(now_ms))

    def picture(self, now_ms: int) -> ConsumerFilters:
        """Return the same as a value that does not change any more."""
        self.clean(now_ms)
        topics = {
            topic: TopicFilters(
                topic=topic, group_filter_data={name: _stored(one) for name, one in groups.items()}
            )
            for topic, groups in self._topics.items()
        }
        return ConsumerFilters(filter_data_by_topic=topics)

    @classmethod
    def from_json(
        cls, content: bytes, now_ms: int, bloom: BloomFilter | None = None, kept_ms: int = KEPT_MS
    ) -> FilterTable:
        """Return the filters of a file; see `load`.

        Raises:
            ContentError: it is not such a file; names the place.
        """
        table = cls(bloom, kept_ms)
        table.load(content, now_ms)
        return table

    def load(self, content: bytes, now_ms: int) -> None:
        """Take over the filters of a file.

        All groups count as gone until they say otherwise. If the bits of one of them belong to
        other bitmaps, nothing in the file is of use, and the table is empty. Nothing is taken
        beyond the bound on filters.

        Raises:
            ContentError: it is not such a file; names the place.
        """
        stored = CONSUMER_FILTERS.decode(content)
        loaded = [
            _loaded(topic, group, one, now_ms)
            for topic, groups in stored.filter_data_by_topic.items()
            for group, one in groups.group_filter_data.items()
        ]
        self._topics.clear()
        self._count = 0
        if all(self.bloom.owns(one.bits) for one in loaded):
            for one in loaded[:FILTERS_REGISTERED_MAX]:
                self._put(one)


def _stored(one: GroupFilter) -> ConsumerFilter:
    bits = one.bits
    return ConsumerFilter(
        consumer_group=one.group,
        topic=one.topic,
        expression=one.expression,
        expression_type=one.expression_type,
        born_time=one.born_ms,
        dead_time=one.dead_ms,
        dead=one.is_dead,
        client_version=one.client_version,
        bloom_filter_data=(
            None
            if bits is None
            else BloomFilterData(bit_num=bits.bit_count, bit_pos=bits.positions)
        ),
    )


def _loaded(topic: str, group: str, one: ConsumerFilter, now_ms: int) -> GroupFilter:
    compiled = None
    if one.expression_type == SQL92_EXPRESSION:
        try:
            compiled = compile_filter(one.expression)
        except FilterError:
            # As in Apache it lets all pass until the group registers it again.
            compiled = None
    data = one.bloom_filter_data
    dead_ms = one.dead_time or max(now_ms - _DEAD_BEFORE_START_MS, one.born_time)
    return GroupFilter(
        group,
        topic,
        one.expression,
        one.expression_type,
        one.client_version,
        one.born_time,
        dead_ms,
        None if data is None else BloomBits(data.bit_num, data.bit_pos),
        compiled,
    )
