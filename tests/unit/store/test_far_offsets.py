"""Logs and queues that have come far: offsets on both sides of what 32 bits hold, and more."""

from __future__ import annotations

import io
import struct
from contextlib import redirect_stderr, redirect_stdout
from typing import TYPE_CHECKING

import pytest

from gantrymq.cli.store_commands import Request, run
from gantrymq.testing.clock import START_MS, VirtualClock
from support.small_stores import small_store
from support.store_rig import message

if TYPE_CHECKING:
    from pathlib import Path

    from gantrymq.store.message_store import MessageStore

FILE_BYTES = 65536
COUNT = 300
"""Messages of a life; they go over the edge in the middle of the second file."""
SIZES = {
    "mappedFileSizeCommitLog": str(FILE_BYTES),
    "mappedFileSizeConsumeQueue": "2000",
    "maxHashSlotNum": "100",
    "maxIndexNum": "200",
}


def begin_at(root: Path, log_offset: int, queue_offset: int) -> None:
    """Leave a log behind whose only message lies at these offsets; it has no queue."""
    store = small_store(root / "first", VirtualClock(), **SIZES)
    store.open(1)
    stored = store.put([message(b"x" * 500, properties={"KEYS": "first", "TAGS": "a"})])
    record = bytearray(store.log.read(0, stored.end) or b"")
    assert store.close()
    struct.pack_into(">qq", record, 20, queue_offset, log_offset)
    directory = root / "store" / "commitlog"
    directory.mkdir(parents=True)
    (directory / f"{log_offset:020d}").write_bytes(bytes(record).ljust(FILE_BYTES, b"\0"))


def live(store: MessageStore, clock: VirtualClock, life: int) -> None:
    """Store messages and find them in every way."""
    first = store.reads.max_offset("T", 0)
    for number in range(COUNT):
        properties = {"KEYS": f"k{life}-{number}", "TAGS": "a"}
        assert store.put([message(b"y" * 300, properties=properties)]).queue_offset == (
            first + number
        )
        clock.jump(1)
    end = first + COUNT
    assert store.reads.max_offset("T", 0) == end
    assert len(store.get("T", 0, end - 5, 32).records) == 5
    (record,) = store.reads.query_by_key("T", f"k{life}-{COUNT - 1}", 9, 0, 2**62).records
    assert int.from_bytes(record[20:28]) == end - 1
    assert store.reads.offset_at("T", 0, store.reads.stored_at("T", 0, end - 7) or 0) == end - 7
    raw = store.reads.record_at(int.from_bytes(record[28:36]))
    assert raw is not None
    assert bytes(raw) == bytes(record)


@pytest.mark.parametrize(
    ("log_offset", "queue_offset"),
    [
        (2**31 - FILE_BYTES, 2**31 - COUNT // 2),
        (2**32 - FILE_BYTES, 2**32 - COUNT // 2),
        (2**41, 2**33),
        (2**62 - 64 * FILE_BYTES, 2**50),
    ],
)
def test_a_store_goes_on(tmp_path: Path, log_offset: int, queue_offset: int) -> None:
    begin_at(tmp_path, log_offset, queue_offset)
    root, clock = tmp_path / "store", VirtualClock(START_MS + 1000)
    for life in range(3):
        store = small_store(root, clock, **SIZES)
        report = store.open(1)
        assert report.clean is (life != 2)
        assert store.reads.min_offset("T", 0) == queue_offset
        assert len(store.get("T", 0, queue_offset, 32).records) > 0
        live(store, clock, life)
        assert store.close()
        if life == 1:
            (root / "abort").touch()
    for command in ("inspect", "verify", "export", "rebuild", "verify"):
        said = io.StringIO()
        with redirect_stdout(said), redirect_stderr(said):
            output = tmp_path / "out.jsonl" if command == "export" else None
            assert run(Request(command, root, output=output)) == 0, said.getvalue()
    lines = (tmp_path / "out.jsonl").read_text(encoding="utf-8").splitlines()
    assert len(lines) == 1 + 3 * COUNT
