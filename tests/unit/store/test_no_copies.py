"""What is in memory is sent out of the mapped log: nothing is read from files for it."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING

from gantrymq.clock import SystemClock
from gantrymq.store.files import OsFiles
from gantrymq.store.message_store import Identity, MessageStore
from gantrymq.store.settings import read_settings
from gantrymq.store.worker import InlineWorker, Workers
from support.store_rig import SMALL, STORE_HOST, message

if TYPE_CHECKING:
    from gantrymq.store.get import Found

BODY = b"x" * 4000
COUNT = 500


def bytes_read() -> int:
    """Return what this process has asked of files so far, from the page cache or not."""
    lines = Path("/proc/self/io").read_text(encoding="ascii").splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith("rchar"))


def test_a_pull_reads_no_message_into_a_buffer(tmp_path: Path) -> None:
    changes = {"storePathRootDir": str(tmp_path), "mappedFileSizeCommitLog": str(1 << 20)}
    store = MessageStore(
        read_settings(SMALL | changes),
        Identity(STORE_HOST),
        files=OsFiles(),
        clock=SystemClock(),
        workers=Workers.made(lambda _name: InlineWorker()),
    )
    store.open(os.getpid())
    for _ in range(COUNT):
        store.put([message(BODY)])
    store.flush_queues(thorough=True)
    before, offset, served = bytes_read(), 0, 0
    while offset < COUNT:
        out: list[Found] = []
        store.begin_get("T", 0, offset, 32, None, out.append)
        (found,) = out
        assert found.records
        served += sum(len(record) for record in found.records)
        offset = found.next_offset
    assert served > COUNT * len(BODY)
    assert bytes_read() - before < served // 10, "units of the queue, and this very question"
    assert store.close()
