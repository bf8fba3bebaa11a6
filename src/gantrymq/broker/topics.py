"""The topics of a broker: which there are, how they come to be, and `topics.json`.

The rules are those of Apache's `TopicConfigManager`. Some topics exist from the start; a send may
create one after a template, if the template has the inherit bit; a group gets its retry and
dead-letter topics on demand. Whatever changes moves the data version, by which name servers and
slaves see that they have to look again, and is told to `changed` or `removed`.

Owned by one task (the event loop).
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from types import MappingProxyType
from typing import TYPE_CHECKING, ClassVar, Final, NamedTuple

import msgspec

from gantrymq.broker.attributes import TOPIC_ATTRIBUTES, changed_attributes
from gantrymq.broker.saved_state import SavedState
from gantrymq.broker.topics_file import read_topics
from gantrymq.errors import InvalidValue
from gantrymq.limits import TOPICS_MAX
from gantrymq.model import names
from gantrymq.model.offsets import DataVersion
from gantrymq.model.topic import (
    DEFAULT_QUEUES,
    READ_WRITE,
    UNIT_FLAG,
    Perm,
    TopicConfig,
)
from gantrymq.wire.bodies.encoded_topics import EncodedTopics
from gantrymq.wire.bodies.topic import TopicTable

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping

    from gantrymq.clock import Clock

_BENCHMARK_QUEUES: Final = 1024
_DELAY_LEVELS: Final = 18
_AUTO_QUEUES: Final = 8
_REVIVE_QUEUES: Final = 8


class BrokerNames(NamedTuple):
    """What a broker is called."""

    cluster: str
    broker_name: str
    region: str = "DefaultRegion"


@dataclass(frozen=True, slots=True, kw_only=True)
class TopicSettings:
    """What a broker makes of topics; the defaults are Apache's."""

    auto_create: bool = True
    """A send to an unknown topic may create it: `autoCreateTopicEnable`."""
    auto_queues: int = _AUTO_QUEUES
    """Queues of the template: `defaultTopicQueueNums`."""
    trace_topic: str | None = None
    """The topic that clients trace to; None: it is not made here."""
    cluster_topic: bool = True
    """The topic named after the cluster can be read and written: `clusterTopicEnable`."""
    broker_topic: bool = True
    """The one named after the broker likewise: `brokerTopicEnable`."""
    delay_queues: int = _DELAY_LEVELS
    """Queues of the schedule topic; Apache has 18 however many levels are set."""
    revive_queues: int = _REVIVE_QUEUES
    """Queues of the log of pop: `reviveQueueNum`."""
    timers: bool = True
    """Whether there are 5.x timers: `timerWheelEnable`."""
    journal: bool = False
    """Whether changes of the tables are kept in the log."""


class Topics(SavedState):
    """The topics of one broker."""

    file_name: ClassVar[str] = "topics.json"
    is_journaled: ClassVar[bool] = True

    def __init__(
        self,
        identity: BrokerNames,
        settings: TopicSettings,
        clock: Clock,
        changed: Callable[[TopicConfig], None],
        removed: Callable[[str], None],
    ) -> None:
        super().__init__()
        self._identity = identity
        self._settings = settings
        self._clock = clock
        self._changed = changed
        self._removed = removed
        self._table = {topic.name: topic for topic in _system_topics(identity, settings)}
        self._view = MappingProxyType(self._table)
        self._version = DataVersion(timestamp_ms=clock.now_ms())
        self.encoded = EncodedTopics()
        """How the topics look in a body or in the file."""
        self.left_out: tuple[str, ...] = ()
        """Topics of the last file or master's table that cannot be here: no directory can have
        their name, or they have too many queues."""
        self.is_loaded = False
        """Whether there was a file."""
        extra = {f"{names.SYSTEM_TOPIC_PREFIX}TRACE_DATA_{identity.region}"}
        if settings.trace_topic is not None:
            extra.add(settings.trace_topic)
        self._system = names.system_topics(identity.cluster, identity.broker_name) | extra

    # -- asking ---------------------------------------------------------------------------------

    @property
    def data_version(self) -> DataVersion:
        """Return the version that peers compare."""
        return self._version

    def find(self, name: str) -> TopicConfig | None:
        """Return a topic's settings."""
        return self._table.get(name)

    def all(self) -> Mapping[str, TopicConfig]:
        """Return every topic by name: a view, which changes with the table."""
        return self._view

    def table(self) -> TopicTable:
        """Return the table as a body or a file holds it."""
        return TopicTable(data_version=self._version, topic_config_table=dict(self._table))

    def is_order(self, name: str) -> bool:
        """Say whether a topic is ordered across a broker's absence."""
        topic = self._table.get(name)
        return topic is not None and topic.order

    def system_names(self) -> frozenset[str]:
        """Return every topic that this broker reserves, whether it exists or not."""
        return self._system

    def is_system(self, name: str) -> bool:
        """Say whether a topic is reserved."""
        return name in self._system or name.startswith(names.SYSTEM_TOPIC_PREFIX)

    def may_send(self, name: str) -> bool:
        """Say whether clients may send to a topic at all."""
        return names.may_send_to(name)

    # -- changing -------------------------------------------------------------------------------

    def put(self, config: TopicConfig) -> None:
        """Create a topic or change it, with the settings as they are.

        Raises:
            InvalidValue: the name cannot be a directory, or there are too many topics.
        """
        self._place(config)
        self._bump()
        self._changed(config)

    def change(self, config: TopicConfig) -> TopicConfig:
        """Create a topic or change it as a request says, and return what became of it.

        The request's attributes are changes (`attributes.parse_changes`) to those that are there.

        Raises:
            InvalidValue: as `put`, and for a change of attributes that cannot be.
        """
        current = self._table.get(config.name)
        attributes = changed_attributes(
            TOPIC_ATTRIBUTES, None if current is None else current.attributes, config.attributes
        )
        result = msgspec.structs.replace(config, attributes=attributes)
        self.put(result)
        return result

    def remove(self, name: str) -> bool:
        """Delete a topic's settings; False if there are none."""
        if self._table.pop(name, None) is None:
            return False
        self._bump()
        self._removed(name)
        return True

    def create_on_send(
        self, topic: str, default_topic: str, queues: int, *, unit: bool
    ) -> TopicConfig | None:
        """Return the topic of a send, created after a template if need be; None if it may not be.

        It has as many queues as the client asks for, at most those of the template, at least one.

        Raises:
            InvalidValue: as `put`.
        """
        existing = self._table.get(topic)
        if existing is not None:
            return existing
        template = self._table.get(default_topic)
        if template is None or Perm.INHERIT not in template.perm:
            return None
        if default_topic == names.TEMPLATE_TOPIC and not self._settings.auto_create:
            return None
        count = max(1, min(queues, template.write_queues))
        created = TopicConfig(
            name=topic,
            read_queues=count,
            write_queues=count,
            perm=template.perm & ~Perm.INHERIT,
            filter_type=template.filter_type,
            system_flags=UNIT_FLAG if unit else 0,
        )
        self.put(created)
        return created

    def create_for_group(
        self,
        topic: str,
        queues: int,
        perm: Perm = READ_WRITE,
        system_flags: int = 0,
        *,
        order: bool | None = None,
    ) -> TopicConfig:
        """Return a group's retry or dead-letter topic, created if need be.

        `order` is set on one that exists, too, unless it is None.

        Raises:
            InvalidValue: as `put`; a group's name is what its members say.
        """
        existing = self._table.get(topic)
        if existing is None:
            config = TopicConfig(topic, queues, queues, perm, system_flags=system_flags)
            config = msgspec.structs.replace(config, order=bool(order))
        elif order is None or existing.order == order:
            return existing
        else:
            config = msgspec.structs.replace(existing, order=order)
        self.put(config)
        return config

    def set_order(self, order_names: Iterable[str]) -> None:
        """Mark the topics that a name server has an order setting for; it never takes it back."""
        marked = [
            msgspec.structs.replace(topic, order=True)
            for name in order_names
            if (topic := self._table.get(name)) is not None and not topic.order
        ]
        if not marked:
            return
        self._table.update((topic.name, topic) for topic in marked)
        self._bump()
        for topic in marked:
            self._changed(topic)

    def touch(self) -> None:
        """Move the data version although no topic changed, as a change of permission does."""
        self._bump()

    def adopt(self, table: TopicTable) -> None:
        """Become what a master's table says, version and all; tells what changed.

        Raises:
            InvalidValue: it is too long.
        """
        fresh, self.left_out = _checked(table)
        gone = self._table.keys() - fresh.keys()
        changed = [topic for name, topic in fresh.items() if self._table.get(name) != topic]
        self._table.clear()
        self._table.update(fresh)
        self._version = table.data_version
        self._changes += 1
        for name in gone:
            self._removed(name)
        for topic in changed:
            self._changed(topic)

    def _place(self, config: TopicConfig) -> None:
        if config.name not in self._table:
            names.check_path_safe(config.name)
            if len(self._table) >= TOPICS_MAX:
                raise InvalidValue(
                    f"topic {config.name!r} cannot be created: this broker has {TOPICS_MAX} "
                    "topics, which is the most; delete some"
                )
        self._table[config.name] = config

    def _bump(self) -> None:
        self._version = self._version.next(self._clock.now_ms())
        self._changes += 1

    # -- the file -------------------------------------------------------------------------------

    def snapshot(self) -> Callable[[], bytes]:
        """Take a picture; what has not changed since the last one is encoded already."""
        return partial(b"".join, self.encoded.pieces(self.table()))

    def load(self, content: bytes) -> None:
        """Put the topics of a file over those that exist from the start.

        Raises:
            ContentError: it is not `topics.json`.
            InvalidValue: there are too many topics in it.
        """
        table, huge = read_topics(content, self.file_name)
        fresh, unsafe = _checked(table)
        self.left_out = (*unsafe, *huge)
        template = fresh.get(names.TEMPLATE_TOPIC)
        if template is not None and not self._settings.auto_create:
            fresh[template.name] = msgspec.structs.replace(template, perm=READ_WRITE)
        self._table.update(fresh)
        self._version = table.data_version
        self.is_loaded = True


def _checked(table: TopicTable) -> tuple[dict[str, TopicConfig], tuple[str, ...]]:
    """Return the topics of a file or of a peer by the names they will be found by, and the rest.

    The rest cannot be directories. Apache makes such retry topics out of groups that it never
    looked at, so they are no reason to refuse the others.
    """
    topics = table.topic_config_table
    if len(topics) > TOPICS_MAX:
        raise InvalidValue(f"a table of {len(topics)} topics: at most {TOPICS_MAX} are taken")
    fresh = {
        name: topic if topic.name == name else msgspec.structs.replace(topic, name=name)
        for name, topic in topics.items()
        if names.is_path_safe(name)
    }
    return fresh, tuple(sorted(topics.keys() - fresh.keys()))


def _system_topics(identity: BrokerNames, settings: TopicSettings) -> Iterator[TopicConfig]:
    """Yield what exists before anything is read, as on an Apache broker."""
    cluster, broker = identity.cluster, identity.broker_name
    yield _of(names.SELF_TEST_TOPIC)
    if settings.auto_create:
        yield _of(names.TEMPLATE_TOPIC, settings.auto_queues, READ_WRITE | Perm.INHERIT)
    yield _of(names.BENCHMARK_TOPIC, _BENCHMARK_QUEUES)
    yield _of(cluster, DEFAULT_QUEUES, _own_perm(settings.cluster_topic))
    yield _of(broker, 1, _own_perm(settings.broker_topic))
    yield _of(names.OFFSET_MOVED_TOPIC)
    yield _of(names.SCHEDULE_TOPIC, settings.delay_queues)
    if settings.trace_topic is not None:
        yield _of(settings.trace_topic)
    yield _of(names.reply_topic(cluster))
    yield _of(names.revive_topic(cluster), settings.revive_queues)
    yield _of(f"{names.SYSTEM_TOPIC_PREFIX}SYNC_BROKER_MEMBER_{broker}", 1, Perm.INHERIT)
    yield _of(names.HALF_TOPIC)
    yield _of(names.HALF_OP_TOPIC)
    yield _of(names.ROCKSDB_HALF_TOPIC)
    yield _of(names.ROCKSDB_HALF_OP_TOPIC)
    if settings.timers:
        yield _of(names.TIMER_TOPIC)
    if settings.journal:
        yield _of(names.JOURNAL_TOPIC, perm=Perm.READ)


def _own_perm(usable: bool) -> Perm:
    return READ_WRITE | Perm.INHERIT if usable else Perm.INHERIT


def _of(name: str, queues: int = 1, perm: Perm = READ_WRITE) -> TopicConfig:
    return TopicConfig(name, queues, queues, perm)
