"""Starting on a store of 10 GiB and 8,008 queues that was stopped cleanly, beside Apache."""

from __future__ import annotations

import os
import time
from pathlib import Path

import pytest

from gantrymq.testing.clock import VirtualClock
from support import apache, every_kind, gantry
from support.large_stores import QUEUES, TOPICS, grow
from support.small_stores import small_store
from support.store_rig import message

pytestmark = [pytest.mark.tool("java"), pytest.mark.tool("mvn")]

FILE_BYTES, FILES = 64 << 20, 160
"""10 GiB, as holes: files of the usual size would have a gibibyte reserved behind them."""
SIZES = {
    "mappedFileSizeCommitLog": str(FILE_BYTES),
    "mappedFileSizeConsumeQueue": "6000000",
    "messageIndexEnable": "false",
}
SECONDS_MAX = 2.0
"""Of the processor's time; and by the clock, unless Apache takes longer on a busy machine."""
_TICKS = os.sysconf("SC_CLK_TCK")


def written(root: Path) -> None:
    """Leave a store behind that was stopped cleanly."""
    store = small_store(root, VirtualClock(every_kind.STORED_MS), **SIZES)
    store.open(1, is_reader=True)
    stored = store.put([message(b"x" * 1000)])
    record = bytes(store.log.read(0, stored.end) or b"")
    every_kind.write_config(root)
    assert store.close()
    grow(root, record, FILES, FILE_BYTES)


def processor_seconds(pid: int) -> float:
    """Return what a process has used so far, all of its threads."""
    fields = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8").rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / _TICKS


def test_a_clean_start_of_ten_gibibytes(tmp_path: Path, request: pytest.FixtureRequest) -> None:
    root = tmp_path / "data" / "store"
    root.mkdir(parents=True)
    written(root)
    settings = {"storePathRootDir": str(root), **SIZES}
    begun = time.monotonic()
    with gantry.server(tmp_path, settings) as server:
        ours, used = time.monotonic() - begun, processor_seconds(server.pid)
        with server.client() as client:
            assert client.max_offset("T", 0) == FILES
            assert client.max_offset(f"Topic{TOPICS - 1:04d}", QUEUES - 1) == 1
    assert not (root / "abort").exists()
    begun = time.monotonic()
    with apache.broker("4.9.7", tmp_path / "apache", settings) as broker:
        theirs = time.monotonic() - begun
        with broker.client() as client:
            assert client.max_offset("T", 0) == FILES
    figures = {"ours": ours, "processor": used, "apache": theirs}
    request.node.user_properties += [(name, round(value, 2)) for name, value in figures.items()]
    assert used < SECONDS_MAX, figures
    assert ours < max(SECONDS_MAX, theirs), figures
