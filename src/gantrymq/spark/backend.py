"""What a planner asks of a store or of brokers: which queues, which offsets, which times.

The two modes answer the same questions, and everything above this line does not know which it has.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, NamedTuple, Protocol

from gantrymq.errors import InvalidValue
from gantrymq.model.names import is_system_topic
from gantrymq.spark.offsets import Offsets, parse

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Mapping

    from gantrymq.spark.options import SourceOptions
    from gantrymq.spark.slices import Queue, Slice, Span


class Bounds(NamedTuple):
    """The offsets that a queue has: messages from `least` to before `most`."""

    least: int
    most: int


class Backend(Protocol):
    """Answers for the queues that the options name. Owned by one thread."""

    def bounds(self, *, missing_ok: bool = False) -> dict[Queue, Bounds]:
        """Return all queues that are to be read, as they are now.

        With `missing_ok` topics and queues that do not exist are left out.

        Raises:
            GantryError: a topic does not exist, or nobody can be asked.
        """
        ...

    def stored_at(self, queue: Queue, offset: int) -> int | None:
        """Return when the first message at or behind an offset was stored; None without one."""
        ...

    def rows_within(self, queue: Queue, span: Span, bytes_max: int) -> int:
        """Return how many messages from the begin of a range have so many bytes together."""
        ...

    def record_bytes(self, queue: Queue, span: Span) -> int:
        """Return about how many bytes a message of a range has."""
        ...

    def committed(self, group: str, queues: Collection[Queue]) -> Offsets:
        """Return what a group has committed, for those queues for which it has."""
        ...

    def slices(self, parts: Iterable[tuple[Queue, Span]]) -> list[Slice]:
        """Return parts of queues as tasks get them."""
        ...

    def close(self) -> None:
        """Let go of files and connections."""
        ...


class Choice:
    """Which topics and queues the options ask for."""

    def __init__(self, options: SourceOptions) -> None:
        self.topics = options.topics
        self._pattern = re.compile(options.topic_pattern) if options.topic_pattern else None
        self.queues = frozenset(parse_queues(options.queues)) if options.queues else None
        if self.queues is not None:
            self.topics = tuple(sorted({queue.topic for queue in self.queues}))

    @property
    def has_pattern(self) -> bool:
        """Tell whether topics are chosen by their names."""
        return self._pattern is not None

    def matching(self, names: Iterable[str]) -> list[str]:
        """Return the topics of a list that the pattern matches.

        Topics of the system never do; retry and dead letter topics only if the pattern begins
        with a `%`, as their names do.
        """
        if self._pattern is None:
            return []
        with_percent = self._pattern.pattern.startswith("%")
        return sorted(
            name
            for name in names
            if self._pattern.fullmatch(name)
            and not is_system_topic(name)
            and (with_percent or not name.startswith("%"))
        )

    def chosen(
        self, found: Mapping[Queue, Bounds], *, missing_ok: bool = False
    ) -> dict[Queue, Bounds]:
        """Return the queues that are asked for among those of the topics.

        Raises:
            InvalidValue: one does not exist.
        """
        if self.queues is None:
            return dict(found)
        missing = sorted(self.queues.difference(found))
        if missing and not missing_ok:
            there = ", ".join(map(str, sorted(found))) or "none"
            listed = ", ".join(map(str, missing))
            raise InvalidValue(f"queues names {listed}, which do not exist: there are {there}")
        return {queue: bounds for queue, bounds in found.items() if queue in self.queues}


def parse_queues(text: str) -> list[Queue]:
    """Read the option `queues`: `{"TopicA": {"broker-a": [0, 1]}}`.

    Raises:
        InvalidValue: it is not that.
    """
    import json  # noqa: PLC0415 - rarely needed, and workers start often

    try:
        told = json.loads(text)
        numbered = {
            topic: {broker: {str(one): 0 for one in ids} for broker, ids in brokers.items()}
            for topic, brokers in told.items()
        }
    except (ValueError, AttributeError, TypeError):
        raise InvalidValue(
            f'queues is {text[:100]!r}: give JSON such as {{"TopicA": {{"broker-a": [0, 1]}}}}'
        ) from None
    return list(parse(json.dumps(numbered), "queues"))


def open_backend(options: SourceOptions) -> Backend:
    """Return what answers for the mode that the options say."""
    if options.reads_broker:
        from gantrymq.spark.broker_backend import BrokerBackend  # noqa: PLC0415

        return BrokerBackend(options)
    from gantrymq.spark.store_backend import StoreBackend  # noqa: PLC0415

    return StoreBackend(options)
