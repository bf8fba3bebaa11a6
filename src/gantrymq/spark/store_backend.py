"""Store directories as a planner sees them: queues and offsets out of files, no broker asked."""

from __future__ import annotations

import struct
from pathlib import Path
from typing import TYPE_CHECKING, Final

from gantrymq.client.namespace import Namespace
from gantrymq.errors import InvalidValue
from gantrymq.kernel import UNIT_BYTES
from gantrymq.spark.backend import Bounds, Choice
from gantrymq.spark.slices import Queue, Slice, Span
from gantrymq.store.snapshot import open_snapshot
from gantrymq.wire.bodies.offsets import CONSUMER_OFFSETS
from gantrymq.wire.bodies.topic import TOPIC_TABLE

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable

    from gantrymq.spark.offsets import Offsets
    from gantrymq.spark.options import SourceOptions, StorePath
    from gantrymq.store.snapshot import Snapshot

_UNIT: Final = struct.Struct(">qiq")
_PRE_BLANK: Final = 0x7FFFFFFF
_SAMPLES: Final = 64
_CHUNK_UNITS: Final = 16384
_SYS_FLAG, _BORN_V6 = 36, 0x10
_STORED_V4, _STORED_V6 = 56, 68
"""Where a record has its store time, by the kind of its born host."""


class StoreBackend:
    """Some stores, each one broker's."""

    def __init__(self, options: SourceOptions) -> None:
        self._choice = Choice(options)
        self._namespace = Namespace(options.connection.namespace)
        self._stores: dict[str, tuple[StorePath, Snapshot]] = {}
        self._places: dict[str, tuple[object, ...]] = {}
        for store in options.stores:
            self._open(store)

    def _open(self, store: StorePath) -> None:
        configuration = Path(store.configuration) if store.configuration else None
        self._places[store.broker] = _state(Path(store.path))
        self._stores[store.broker] = store, open_snapshot(Path(store.path), configuration)

    def _look_again(self) -> None:
        """Open stores again that a broker has been at since they were recovered here."""
        for broker, (store, snapshot) in list(self._stores.items()):
            if snapshot.is_recovered and self._places[broker] != _state(Path(store.path)):
                snapshot.close()
                self._open(store)

    def bounds(self, *, missing_ok: bool = False) -> dict[Queue, Bounds]:
        """Return all queues that are to be read, as they are now."""
        found: dict[Queue, Bounds] = {}
        there: set[str] = set()
        self._look_again()
        for broker, (store, snapshot) in self._stores.items():
            for topic, queues in _known_topics(Path(store.path)).items():
                # A queue has files only when it has had a message.
                there.add(topic)
                name = self._namespace.unwrap(topic)
                found.update({Queue(name, broker, one): Bounds(0, 0) for one in range(queues)})
            for topic, queue_id, least, most in snapshot.queues():
                there.add(topic)
                name = self._namespace.unwrap(topic)
                found[Queue(name, broker, queue_id)] = Bounds(least, most)
        names = {self._namespace.unwrap(topic) for topic in there}
        wanted = set(self._choice.matching(names)) if self._choice.has_pattern else None
        if wanted is None:
            wanted = set(self._choice.topics)
            missing = sorted(wanted - names)
            if missing and not missing_ok:
                paths = ", ".join(store.path for store, _ in self._stores.values())
                raise InvalidValue(
                    f"there is no topic {', '.join(missing)} in {paths}; "
                    f"there are {', '.join(sorted(names)[:30])}"
                )
        return self._choice.chosen(
            {queue: bounds for queue, bounds in found.items() if queue.topic in wanted},
            missing_ok=missing_ok,
        )

    def _unit(self, queue: Queue, offset: int) -> tuple[int, int] | None:
        """Return log offset and size of the first message at or behind an offset."""
        snapshot = self._stores[queue.broker][1]
        topic = self._namespace.wrap(queue.topic)
        while True:
            units = snapshot.units(topic, queue.queue_id, offset, _SAMPLES)
            if not units:
                return None
            for log_offset, size, _code in _UNIT.iter_unpack(_whole(units)):
                if size <= 0:
                    return None
                if size != _PRE_BLANK:
                    return log_offset, size
            offset += len(units) // UNIT_BYTES

    def stored_at(self, queue: Queue, offset: int) -> int | None:
        """Return when the first message at or behind an offset was stored; None without one."""
        unit = self._unit(queue, offset)
        span = None if unit is None else self._stores[queue.broker][1].span_at(unit[0])
        if unit is None or span is None:
            return None
        at = unit[0] - span.log_base
        sys_flag = int.from_bytes(span.buffer[at + _SYS_FLAG : at + _SYS_FLAG + 4])
        at += _STORED_V6 if sys_flag & _BORN_V6 else _STORED_V4
        return int.from_bytes(span.buffer[at : at + 8])

    def rows_within(self, queue: Queue, span: Span, bytes_max: int) -> int:
        """Return how many messages from the begin of a range have so many bytes together."""
        snapshot, offset, left = self._stores[queue.broker][1], span.begin, bytes_max
        topic = self._namespace.wrap(queue.topic)
        while offset < span.end:
            wanted = min(_CHUNK_UNITS, span.end - offset)
            units = snapshot.units(topic, queue.queue_id, offset, wanted)
            if not units:
                break
            for _log_offset, size, _code in _UNIT.iter_unpack(_whole(units)):
                left -= 0 if size == _PRE_BLANK else size
                if left < 0:
                    return offset - span.begin
                offset += 1
        return span.end - span.begin

    def record_bytes(self, queue: Queue, span: Span) -> int:
        """Return about how many bytes a message of a range has."""
        samples = [
            self._unit(queue, offset) for offset in (span.begin, (span.begin + span.end) // 2)
        ]
        sizes = [unit[1] for unit in samples if unit is not None]
        return sum(sizes) // len(sizes) if sizes else 1

    def committed(self, group: str, queues: Collection[Queue]) -> Offsets:
        """Return what a group has committed, going by the files that brokers save."""
        found: Offsets = {}
        full_group = self._namespace.wrap(group)
        for broker, (store, _snapshot) in self._stores.items():
            path = Path(store.path) / "config" / "consumerOffset.json"
            if not path.exists():
                continue
            table = CONSUMER_OFFSETS.decode(path.read_bytes()).offset_table
            for queue in queues:
                known = table.get(f"{self._namespace.wrap(queue.topic)}@{full_group}", {})
                for queue_id, offset in known.items():
                    if (broker, queue_id) == (queue.broker, queue.queue_id):
                        found[queue] = offset
        return found

    def slices(self, parts: Iterable[tuple[Queue, Span]]) -> list[Slice]:
        """Return parts of queues as tasks get them."""
        return [
            Slice(
                queue.topic,
                queue.broker,
                queue.queue_id,
                span.begin,
                span.end,
                self._namespace.wrap(queue.topic),
                self._stores[queue.broker][0].path,
                self._stores[queue.broker][1].is_recovered,
            )
            for queue, span in parts
        ]

    def close(self) -> None:
        """Let go of the files."""
        for _store, snapshot in self._stores.values():
            snapshot.close()
        self._stores.clear()


def _whole(units: bytes) -> bytes:
    return units[: len(units) // UNIT_BYTES * UNIT_BYTES]


def _known_topics(root: Path) -> dict[str, int]:
    """Return the topics that a broker has saved, with the number of queues that can be read."""
    path = root / "config" / "topics.json"
    if not path.exists():
        return {}
    table = TOPIC_TABLE.decode(path.read_bytes()).topic_config_table
    return {topic: config.read_queues for topic, config in table.items()}


def _state(root: Path) -> tuple[object, ...]:
    """Return what changes when a broker opens, closes or writes to a store."""
    names = sorted(path for path in (root / "commitlog").glob("*") if path.name.isdecimal())
    last = names[-1].stat() if names else None
    times = (last.st_mtime_ns, last.st_size) if last is not None else ()
    return (root / "abort").exists(), len(names), *times
