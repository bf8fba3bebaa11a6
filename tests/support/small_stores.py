"""Stores of our own, with files so small that a few messages fill several of every kind."""

from __future__ import annotations

import shutil
from typing import TYPE_CHECKING

from gantrymq.store.files import OsFiles
from gantrymq.store.message_store import Identity, MessageStore, Workers
from gantrymq.store.put import NewMessage
from gantrymq.store.settings import read_settings
from gantrymq.store.status import PutStatus
from gantrymq.store.worker import InlineWorker
from gantrymq.testing.clock import VirtualClock

if TYPE_CHECKING:
    from pathlib import Path

PROPERTIES = {
    "mappedFileSizeCommitLog": "8192",
    "mappedFileSizeConsumeQueue": "200",
    "maxHashSlotNum": "10",
    "maxIndexNum": "40",
}
HOST = bytes([10, 0, 0, 1, 0, 0, 48, 57])
PLACES = (("Alpha", 0), ("Alpha", 1), ("Beta", 0))
COUNT = 300


def small_store(root: Path, clock: VirtualClock, **more: str) -> MessageStore:
    """Return a store over a directory, not opened yet."""
    inline = InlineWorker()
    return MessageStore(
        read_settings(PROPERTIES | more | {"storePathRootDir": str(root)}),
        Identity(HOST),
        files=OsFiles(),
        clock=clock,
        workers=Workers.made(lambda _name: inline),
    )


def put(store: MessageStore, number: int, clock: VirtualClock) -> int:
    """Store message `number`, with a tag and two keys; return its log offset."""
    topic, queue_id = PLACES[number % len(PLACES)]
    properties = {"TAGS": f"tag{number % 4}", "KEYS": f"k{number} all", "UNIQ_KEY": f"U{number:04}"}
    message = NewMessage(topic, queue_id, b"body %d" % number, properties, clock.now_ms(), HOST)
    stored = store.put([message])
    assert stored.status is PutStatus.PUT_OK
    clock.jump(0.25)
    return stored.log_offset


def written_store(root: Path, count: int = COUNT, **more: str) -> list[int]:
    """Write a store of so many messages and stop it cleanly; return their log offsets."""
    clock = VirtualClock()
    store = small_store(root, clock, **more)
    store.open(1)
    offsets = [put(store, number, clock) for number in range(count)]
    assert store.close()
    return offsets


def crashed_store(root: Path, folder: Path, count: int = COUNT) -> list[int]:
    """Write a store and copy it while it is open, as a crash of the process would leave it."""
    clock = VirtualClock()
    store = small_store(folder / "live", clock)
    store.open(1)
    offsets = [put(store, number, clock) for number in range(count)]
    shutil.copytree(folder / "live", root)
    store.close()
    return offsets


def config_file(folder: Path) -> Path:
    """Write the settings of these stores to a file."""
    path = folder / "broker.conf"
    path.write_text("".join(f"{name}={value}\n" for name, value in PROPERTIES.items()))
    return path


def edit(path: Path, position: int, data: bytes) -> None:
    """Overwrite some bytes of a file."""
    with path.open("r+b") as file:
        file.seek(position)
        file.write(data)
