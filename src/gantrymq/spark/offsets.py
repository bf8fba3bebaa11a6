"""Offsets of many queues as the JSON that Spark keeps in its checkpoints.

    {"v": 1, "q": {"TopicA": {"broker-a": {"0": 123, "1": 456}}}}

An offset is that of the next message to read: ends are exclusive, and what is committed for a group
is the same number. Spark compares these as text, so keys are always in order. Both modes write the
same, and a query that was started in one goes on in the other.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, Final, TypeAlias

from gantrymq.errors import InvalidValue, shown
from gantrymq.spark.slices import Queue

if TYPE_CHECKING:
    from collections.abc import Mapping

VERSION: Final = 1
Offsets: TypeAlias = dict[Queue, int]
OffsetJson: TypeAlias = dict[str, Any]
"""What Spark turns into text."""


def encode(offsets: Mapping[Queue, int]) -> OffsetJson:
    """Return offsets as Spark keeps them."""
    topics: dict[str, dict[str, dict[str, int]]] = {}
    for queue, offset in sorted(offsets.items()):
        brokers = topics.setdefault(queue.topic, {})
        brokers.setdefault(queue.broker, {})[str(queue.queue_id)] = offset
    return {"v": VERSION, "q": topics}


def decode(told: object) -> Offsets:
    """Read what Spark has kept.

    Raises:
        InvalidValue: it is of another version, or not of ours.
    """
    if not isinstance(told, dict) or told.get("v") != VERSION:
        version = told.get("v") if isinstance(told, dict) else None
        raise InvalidValue(
            f"the checkpoint holds offsets of version {version!r}, this gantrymq reads {VERSION}: "
            "go on with the version that wrote it, or begin with a new checkpoint"
        )
    return read_queues(told.get("q"), "the checkpoint")


def parse(text: str, name: str) -> Offsets:
    """Read an option: our JSON, or that of rocketmq-spark, which has topics at the top.

    Raises:
        InvalidValue: it is neither.
    """
    try:
        told = json.loads(text)
    except ValueError as error:
        raise InvalidValue(f"{name} is {shown(text)}: no JSON ({error})") from None
    if isinstance(told, dict) and set(told) == {"v", "q"}:
        return decode(told)
    return read_queues(told, name)


def read_queues(told: object, name: str) -> Offsets:
    """Read `{topic: {broker: {queue: number}}}`.

    Raises:
        InvalidValue: it is not that.
    """
    found: Offsets = {}
    try:
        for topic, brokers in _items(told):
            for broker, queues in _items(brokers):
                for queue_id, offset in _items(queues):
                    if isinstance(offset, bool) or not isinstance(offset, int):
                        raise TypeError(offset)  # noqa: TRY301 - answered below, as any other
                    found[Queue(topic, broker, int(queue_id))] = offset
    except (TypeError, ValueError):
        raise InvalidValue(
            f"{name} is {shown(json.dumps(told))}: give JSON such as "
            '{"TopicA": {"broker-a": {"0": 123}}}'
        ) from None
    return found


def _items(told: object) -> list[tuple[str, object]]:
    if not isinstance(told, dict):
        raise TypeError
    return list(told.items())
