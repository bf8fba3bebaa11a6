"""Golden stores on a simulated disk, and stores built there from a golden commit log alone."""

from __future__ import annotations

import struct
from pathlib import Path
from typing import TYPE_CHECKING

from gantrymq.kernel import QueueRun, kernel
from gantrymq.store.index import Index
from gantrymq.store.queue_table import QueueTable
from gantrymq.testing.clock import VirtualClock
from gantrymq.testing.disk import SimulatedFiles
from support.stores import EXT_FILE_BYTES

if TYPE_CHECKING:
    from collections.abc import Iterator

    from gantrymq.kernel import Dispatch
    from support.stores import GoldenStore

ROOT = Path("/store")
QUEUE_FILE_BYTES = 1000
SLOTS = 200
ENTRIES_MAX = 800
KEY = struct.Struct(">iqq")


def golden_disk(store: GoldenStore, *directories: str) -> SimulatedFiles:
    """Return a disk with the files of some directories of a golden store."""
    disk = SimulatedFiles()
    for name, data in store.files.items():
        if name.partition("/")[0] in directories:
            disk.make_directory((ROOT / name).parent)
            disk.write_at(ROOT / name, 0, data, len(data))
    return disk


def queue_table(disk: SimulatedFiles, *, ext: bool = False) -> QueueTable:
    """Return the queues of a store with the golden stores' settings."""
    return QueueTable(ROOT, QUEUE_FILE_BYTES, disk, EXT_FILE_BYTES if ext else None)


def index(disk: SimulatedFiles) -> Index:
    """Return the index of a store with the golden stores' settings."""
    return Index(ROOT, SLOTS, ENTRIES_MAX, disk, VirtualClock())


def flush(table: QueueTable, disk: SimulatedFiles) -> None:
    """Write everything out and force it."""
    work = table.begin_flush(thorough=True)
    work.perform(disk)
    table.end_flush(work)


def dispatches(store: GoldenStore) -> Iterator[Dispatch]:
    """Yield what the kernel makes of the log, file by file, up to its end."""
    for base, raw in store.log_files():
        if base < store.end:
            end = min(len(raw), store.end - base)
            yield kernel.dispatch_records(raw, 0, end, base, True, 10**9, store.delays_ms)


def runs(store: GoldenStore) -> Iterator[QueueRun]:
    """Yield the runs of units that the log makes; none of the topic that was deleted."""
    for found in dispatches(store):
        yield from (run for run in found.runs if run.topic != b"DeletedTopic")


def keys_as_apache(store: GoldenStore) -> bytes:
    """Return the index keys in the order the store's own broker inserted them.

    Apache 5.5.0 adds `topic#T#tag` for each tag, behind the record's own keys.
    """
    keys = b"".join(found.keys for found in dispatches(store))
    if "5.5.0" not in store.label:
        return keys
    parts = [KEY.unpack_from(keys, at) for at in range(0, len(keys), KEY.size)]
    for log_offset, _raw, record in store.records(kernel):
        tags = [part[5:] for part in record.properties.split(b"\x02") if part[:5] == b"TAGS\x01"]
        if tags and tags[-1]:
            key_hash = abs(kernel.string_hash(record.topic + b"#T#" + tags[-1]))
            parts.append((key_hash, log_offset, record.store_timestamp))
    # The sort is stable, so a record's tag stays behind its keys.
    return b"".join(KEY.pack(*part) for part in sorted(parts, key=lambda part: part[1]))
