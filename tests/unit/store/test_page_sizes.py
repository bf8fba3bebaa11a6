"""In what sizes the pages of the log's tail come into memory: asked of the kernel."""

from __future__ import annotations

import queue
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from gantrymq.clock import SystemClock
from gantrymq.store.files import OsFiles
from gantrymq.store.message_store import Identity, MessageStore
from gantrymq.store.settings import read_settings
from gantrymq.store.worker import ThreadWorker, Workers
from support.store_rig import BORN_HOST, STORE_HOST, frames

if TYPE_CHECKING:
    from collections.abc import Callable

pytestmark = pytest.mark.skipif(not sys.platform.startswith("linux"), reason="Linux says so alone")

FILE_BYTES = 8 << 20
HAS_LARGE_PAGES = Path("/sys/kernel/mm/transparent_hugepage").is_dir()


def advice(path: Path) -> set[str]:
    """Return what the kernel was told of a map: `rr`, no reading around; `hg`, large pages."""
    flags: set[str] = set()
    is_ours = False
    for line in Path("/proc/self/smaps").read_text(encoding="utf-8").splitlines():
        if "-" in line.split(" ", 1)[0]:
            is_ours = line.endswith(str(path))
        elif is_ours and line.startswith("VmFlags:"):
            flags |= {"rr", "hg"} & set(line.split())
    return flags


def opened(root: Path, disk_type: str) -> MessageStore:
    settings = {
        "storePathRootDir": str(root),
        "mappedFileSizeCommitLog": str(FILE_BYTES),
        "flushDiskType": disk_type,
    }
    calls: queue.SimpleQueue[Callable[[], None]] = queue.SimpleQueue()
    store = MessageStore(
        read_settings(settings),
        Identity(STORE_HOST),
        files=OsFiles(),
        clock=SystemClock(),
        workers=Workers.made(lambda name: ThreadWorker(name, calls.put)),
    )
    store.open(pid=1)
    store.open_topic("T", 1)
    return store


@pytest.mark.parametrize("disk_type", ["SYNC_FLUSH", "ASYNC_FLUSH"])
def test_a_log_that_is_forced_often_has_small_pages(tmp_path: Path, disk_type: str) -> None:
    expected = {"rr"} if disk_type == "SYNC_FLUSH" else {"rr", "hg"} if HAS_LARGE_PAGES else set()
    for _ in range(2):  # a new file, and one that a start has found
        store = opened(tmp_path, disk_type)
        try:
            sends = frames([b"body"])
            store.append_sends(sends, 0, len(sends), BORN_HOST)
            tail = store.log.files[-1].region.path
            assert advice(tail) == expected
        finally:
            store.close()


def test_what_is_written_is_what_is_read(tmp_path: Path) -> None:
    for forced_often in (False, True):
        path = tmp_path / f"{forced_often}"
        region = OsFiles().create(path, FILE_BYTES)
        region.will_append(forced_often=forced_often)
        region.buffer[4096:4100] = b"text"
        region.sync(4096, 4100)
        region.close()
        assert path.read_bytes() == bytes(4096) + b"text" + bytes(FILE_BYTES - 4100)
