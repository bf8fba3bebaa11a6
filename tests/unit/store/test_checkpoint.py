"""The checkpoint: read as RocketMQ writes it, and never half written."""

from __future__ import annotations

import struct
from pathlib import Path

import pytest

from gantrymq.store.checkpoint import PAGE_BYTES, SAFETY_MS, Checkpoint, load_checkpoint
from gantrymq.testing.disk import Halted, Names, SimulatedFiles
from support.golden import STORE_LABELS
from support.stores import golden_store

PATH = Path("/store/checkpoint")


def page(*values: int) -> bytes:
    """Return a page that begins with values."""
    return struct.pack(f">{len(values)}q", *values).ljust(PAGE_BYTES, b"\0")


def test_nothing_is_known_without_a_file() -> None:
    found = load_checkpoint(SimulatedFiles(), PATH)
    assert (found.log_ms, found.queues_ms, found.index_ms) == (0, 0, 0)
    assert (found.min_timestamp, found.min_timestamp_with_index) == (0, 0)


@pytest.mark.parametrize(
    ("log_ms", "queues_ms", "index_ms", "least", "least_with_index"),
    [
        (10_000, 20_000, 30_000, 7_000, 7_000),
        (20_000, 10_000, 30_000, 7_000, 7_000),
        (20_000, 10_000, 5_000, 7_000, 5_000),
        (20_000, 2_000, 5_000, 0, 0),
        (20_000, 10_000, 0, 7_000, 0),
    ],
)
def test_recovery_begins_three_seconds_before_the_least(
    log_ms: int, queues_ms: int, index_ms: int, least: int, least_with_index: int
) -> None:
    files = SimulatedFiles()
    files.place(PATH, page(log_ms, queues_ms, index_ms))
    found = load_checkpoint(files, PATH)
    assert (found.min_timestamp, found.min_timestamp_with_index) == (least, least_with_index)


def test_what_later_releases_keep_there_stays() -> None:
    files = SimulatedFiles()
    files.place(PATH, page(1, 2, 3, 444, 555, 6))
    found = load_checkpoint(files, PATH)
    found.log_ms, found.queues_ms, found.index_ms = 10, 20, 30
    found.save(files)
    assert files.read(PATH) == page(10, 20, 30, 444, 555, 6)
    assert files.names(PATH.parent) == ["checkpoint"]


@pytest.mark.parametrize("content", [b"", b"\x00\x00\x01", page(5, 6, 7)[:23]])
def test_a_file_that_is_cut_short_says_nothing(content: bytes) -> None:
    files = SimulatedFiles()
    files.place(PATH, content)
    assert load_checkpoint(files, PATH).image() == bytes(PAGE_BYTES)


def test_a_short_file_with_all_timestamps_is_taken() -> None:
    files = SimulatedFiles()
    files.place(PATH, page(5, 6, 7)[:24])
    assert load_checkpoint(files, PATH).image() == page(5, 6, 7)


def test_timestamps_below_zero_are_none() -> None:
    assert Checkpoint(PATH, page(-1, 5, -(2**63))).image() == page(0, 5, 0)


@pytest.mark.parametrize("names", Names)
@pytest.mark.parametrize("steps", range(5))
def test_a_power_cut_at_any_step_leaves_the_old_or_the_new(names: Names, steps: int) -> None:
    for seed in range(20):
        files = SimulatedFiles(seed, names=names, sector_bytes=1)
        files.place(PATH, page(0xFF, 0xFF, 0xFF))
        checkpoint = load_checkpoint(files, PATH)
        checkpoint.log_ms = checkpoint.queues_ms = checkpoint.index_ms = 0x100
        files.halt_after(steps)
        try:
            checkpoint.save(files)
            done = True
        except Halted:
            done = False
        found = files.crash().read(PATH)
        assert found == page(0x100, 0x100, 0x100) or (not done and found == page(0xFF, 0xFF, 0xFF))


@pytest.mark.parametrize("label", STORE_LABELS)
def test_a_golden_checkpoint_is_understood(label: str) -> None:
    store = golden_store(label)
    files = SimulatedFiles()
    files.place(PATH, store.files["checkpoint"])
    found = load_checkpoint(files, PATH)
    assert found.image() == store.files["checkpoint"]
    times = [message["storeTimestamp"] for message in store.messages.values()]
    latest = max(time for time in times if isinstance(time, int))
    if store.is_torn:
        # The records that the queues saw last are gone; that is what the three seconds are for.
        latest += SAFETY_MS
    assert 0 <= found.log_ms <= latest
    assert 0 <= found.queues_ms <= latest
    assert 0 <= found.index_ms <= latest


def test_the_index_has_a_place_in_the_log_beside_its_time() -> None:
    files = SimulatedFiles()
    files.make_directory(PATH.parent)
    checkpoint = load_checkpoint(files, PATH)
    assert checkpoint.index_log_offset is None
    checkpoint.index_ms, checkpoint.index_log_offset = 1000, 77
    checkpoint.save(files)
    assert load_checkpoint(files, PATH).index_log_offset == 77
    # Another broker, which knows nothing of it, has gone on with the same page.
    files.write_at(PATH, 16, (1001).to_bytes(8), 0)
    assert load_checkpoint(files, PATH).index_log_offset is None
