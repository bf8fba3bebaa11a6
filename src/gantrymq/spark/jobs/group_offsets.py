"""What consumer groups have committed, from the files that a broker saves."""

from __future__ import annotations

from pathlib import Path
from typing import Final, NamedTuple

from gantrymq.model.names import is_system_topic
from gantrymq.wire.bodies.offsets import CONSUMER_OFFSETS

OFFSETS_FILE: Final = Path("config", "consumerOffset.json")


class GroupOffset(NamedTuple):
    """How far a group is in a queue of a store."""

    group: str
    topic: str
    queue_id: int
    offset: int


def saved_offsets(root: Path, groups: tuple[str, ...] = ()) -> list[GroupOffset]:
    """Return what is saved in a store, of all groups or of some, without the system's own.

    Raises:
        GantryError: the file cannot be understood.
    """
    path = root / OFFSETS_FILE
    if not path.exists():
        return []
    table = CONSUMER_OFFSETS.decode(path.read_bytes()).offset_table
    found = []
    for name, queues in table.items():
        topic, _at, group = name.partition("@")
        if is_system_topic(topic) or group.startswith("CID_RMQ_SYS_"):
            continue
        if groups and group not in groups:
            continue
        found += [
            GroupOffset(group, topic, queue_id, offset) for queue_id, offset in queues.items()
        ]
    return sorted(found)
