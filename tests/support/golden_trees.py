"""Golden stores unpacked on the disk, with the times of their files, and what is known of them."""

from __future__ import annotations

import hashlib
import tarfile
from typing import TYPE_CHECKING

import msgspec

from gantrymq.store.files import OsFiles
from gantrymq.store.message_store import Identity, MessageStore, Workers
from gantrymq.store.shape import settings_of
from gantrymq.store.worker import InlineWorker
from gantrymq.testing.clock import VirtualClock
from support.golden import STORE

if TYPE_CHECKING:
    from pathlib import Path

NOW_MS = 1_794_800_000_000
"""November 2026, some hours after the stores were written."""
STORE_HOST = bytes([127, 0, 0, 1]) + (20911).to_bytes(4)


class Queue(msgspec.Struct, rename="camel"):
    """Offsets that Apache's broker answers."""

    topic: str
    queue_id: int
    min_offset: int
    max_offset: int
    messages: int
    earliest_msg_store_time: int | None = None


class Search(msgspec.Struct, rename="camel"):
    """Pairs of a timestamp and the offset answered."""

    topic: str
    queue_id: int
    lower: list[tuple[int, int]]
    upper: list[tuple[int, int]] = []


class Query(msgspec.Struct, rename="camel"):
    """A query by key and its hits, in the order answered."""

    topic: str
    key: str
    unique: bool
    max_num: int
    code: int
    hits: list[tuple[str, int, int, int]] = []
    index_last_update_timestamp: str = "0"
    index_last_update_phyoffset: str = "0"


class View(msgspec.Struct, rename="camel"):
    """A message by its log offset."""

    msg_id: str
    offset: int
    code: int
    record_sha256: str = ""


class Unit(msgspec.Struct, rename="camel"):
    """A queue entry."""

    physic_offset: int
    physic_size: int
    tags_code: int


class Answer(msgspec.Struct, rename="camel"):
    """What QUERY_CONSUME_QUEUE answers."""

    queue_data: list[Unit]
    min_queue_index: int
    max_queue_index: int


class Sample(msgspec.Struct, rename="camel"):
    """Entries of a queue."""

    topic: str
    queue_id: int
    answer: Answer


class Recovered(msgspec.Struct, rename="camel"):
    """What Apache's recovery came to."""

    end_of_last_readable_record: int
    max_offsets: dict[str, int]


class KnownWrong(msgspec.Struct, rename="camel"):
    """A queue of which Apache gives a wrong answer."""

    queue: str
    correct_max_offset: int


class Manifest(msgspec.Struct, rename="camel"):
    """What an Apache broker says of a store."""

    end_of_last_readable_record: int
    message_count: int
    abort_file_present: bool
    queues: list[Queue]
    search_offset: list[Search]
    query_message: list[Query]
    view_message: list[View]
    consume_queue_samples: list[Sample]
    recovered: Recovered | None = None
    known_wrong: list[KnownWrong] = []
    damage: list[str] = []

    def max_offsets(self) -> dict[tuple[str, int], tuple[int, int]]:
        """Return min and max offset of every queue, as they should be."""
        right = {wrong.queue: wrong.correct_max_offset for wrong in self.known_wrong}
        return {
            (queue.topic, queue.queue_id): (
                queue.min_offset,
                right.get(f"{queue.topic}@{queue.queue_id}", queue.max_offset),
            )
            for queue in self.queues
        }


def manifest(label: str) -> Manifest:
    """Return what is known of a golden store."""
    return msgspec.json.decode((STORE / label / "manifest.json").read_bytes(), type=Manifest)


def configuration(label: str) -> Path:
    """Return the settings that made it."""
    return STORE / label / "broker.conf"


def unpacked(label: str, folder: Path) -> Path:
    """Unpack a golden store, times of files included; return its root directory."""
    with tarfile.open(STORE / label / "store.tar.gz") as archive:
        archive.extractall(folder, filter="data")
    return folder / "store"


def tree_digest(root: Path) -> dict[str, tuple[int, str]]:
    """Return time and content of every file, and the directories, below a root."""
    found = {}
    for path in sorted(root.rglob("*")):
        content = hashlib.sha256(path.read_bytes()).hexdigest() if path.is_file() else "directory"
        found[str(path.relative_to(root))] = path.stat().st_mtime_ns, content
    return found


def data_digest(root: Path) -> dict[str, str]:
    """Return the content of the files that hold messages, and what is built from them."""
    kinds = ("commitlog", "consumequeue", "consumequeue_ext", "index")
    return {
        name: content
        for name, (_time, content) in tree_digest(root).items()
        if name.partition("/")[0] in kinds
    }


def message_store(root: Path, config: Path | None) -> MessageStore:
    """Return a store over a directory, on the machine's disk, not opened yet."""
    inline = InlineWorker()
    return MessageStore(
        settings_of(root, OsFiles(), config),
        Identity(STORE_HOST),
        files=OsFiles(),
        clock=VirtualClock(NOW_MS),
        workers=Workers.made(lambda _name: inline),
    )
