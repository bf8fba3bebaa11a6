"""A store of 10 GiB with 8,000 queues, made of holes: how long a clean start takes."""

from __future__ import annotations

import os
import time
from typing import TYPE_CHECKING

from gantrymq.clock import SystemClock
from gantrymq.store.files import OsFiles
from gantrymq.store.message_store import Identity, MessageStore
from gantrymq.store.settings import read_settings
from gantrymq.store.worker import InlineWorker, Workers
from support.large_stores import QUEUES, TOPICS, grow
from support.store_rig import STORE_HOST, message

if TYPE_CHECKING:
    from pathlib import Path

GIB = 1 << 30
FILES = 10
SECONDS_MAX = 2.0
"""Of the processor's time: other tests may run beside this one, and nothing here reads a disk."""


def store_on(root: Path) -> MessageStore:
    settings = read_settings({"storePathRootDir": str(root), "messageIndexEnable": "false"})
    workers = Workers.made(lambda _name: InlineWorker())
    return MessageStore(
        settings, Identity(STORE_HOST), files=OsFiles(), clock=SystemClock(), workers=workers
    )


def one_record(root: Path) -> bytes:
    """Return a record as a store writes it; the store is closed, and a clean one."""
    store = store_on(root)
    store.open(os.getpid(), is_reader=True)
    stored = store.put([message(b"x" * 1000)])
    record = bytes(store.log.read(0, stored.end) or b"")
    assert store.close()
    return record


def test_a_clean_start(tmp_path: Path) -> None:
    grow(tmp_path, one_record(tmp_path), FILES, GIB)
    store = store_on(tmp_path)
    begun = time.process_time()
    report = store.open(os.getpid(), is_reader=True)
    seconds = time.process_time() - begun
    assert report.clean
    assert report.queues == (TOPICS + 1) * QUEUES
    assert store.get("T", 0, 0, 32).max_offset == FILES
    assert report.log_end.offset > (FILES - 1) * GIB
    assert store.reads.record_at(5 * GIB) is not None
    assert seconds < SECONDS_MAX
    assert store.close()
