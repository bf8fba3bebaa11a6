"""Reading a store that is stopped, crashed or in use, without changing a byte of it."""

from __future__ import annotations

import subprocess
import sys
from typing import TYPE_CHECKING

import pytest

from gantrymq.store.errors import StoreDamaged
from gantrymq.store.export import export_lines
from gantrymq.store.files import OsFiles
from gantrymq.store.query import MessageQuery
from gantrymq.store.reader import QueueRange, StoreReader
from gantrymq.store.search import Boundary, TimeSearch
from gantrymq.store.settings import InvalidSettings
from gantrymq.store.shape import settings_of, unknown_sizes
from gantrymq.testing.clock import START_MS, VirtualClock
from support.golden_trees import tree_digest
from support.small_stores import (
    COUNT,
    PLACES,
    config_file,
    crashed_store,
    edit,
    put,
    small_store,
    written_store,
)

if TYPE_CHECKING:
    from pathlib import Path


def test_records_queues_and_messages(tmp_path: Path) -> None:
    root = tmp_path / "store"
    offsets = written_store(root)
    before = tree_digest(root)
    with StoreReader.open(root) as reader:
        assert reader.queues() == [QueueRange(*place, 0, COUNT // 3) for place in PLACES]
        records = list(reader.records())
        assert [record.log_offset for record in records] == offsets
        assert [record.body for record in records] == [b"body %d" % n for n in range(COUNT)]
        assert (reader.min_log_offset, reader.max_log_offset) == (
            0,
            offsets[-1] + records[-1].stored_bytes,
        )
        part = list(reader.messages("Alpha", 1, 10, 13))
        assert [record.queue_offset for record in part] == [10, 11, 12]
        assert [record.body for record in part] == [b"body 31", b"body 34", b"body 37"]
        assert len(list(reader.messages("Alpha", 1, -5, 10**9))) == COUNT // 3
        assert list(reader.messages("Alpha", 2)) == []
        from_the_middle = reader.records(offsets[70], offsets[80])
        assert [record.log_offset for record in from_the_middle] == offsets[70:80]
        assert len(list(export_lines(reader))) == COUNT
    assert tree_digest(root) == before


def test_a_crashed_store_is_read_as_recovery_would_leave_it(tmp_path: Path) -> None:
    root = tmp_path / "store"
    offsets = crashed_store(root, tmp_path)
    assert (root / "abort").exists()
    # Half a record, as a power cut may leave it.
    end = offsets[-1] % 8192
    log_file = root / "commitlog" / f"{offsets[-1] - end:020d}"
    edit(log_file, end + 60, bytes(100))
    before = tree_digest(root)
    with StoreReader.open(root) as reader:
        assert reader.report is not None
        assert not reader.report.clean
        assert reader.max_log_offset == offsets[-1]
        assert [record.log_offset for record in reader.records()] == offsets[:-1]
        assert len(list(export_lines(reader))) == COUNT - 1
    assert tree_digest(root) == before


def test_a_store_in_use_is_read_as_it_was_at_that_moment(tmp_path: Path) -> None:
    root, clock = tmp_path / "store", VirtualClock()
    store = small_store(root, clock)
    store.open(1)
    first = [put(store, number, clock) for number in range(40)]
    before = tree_digest(root)
    with StoreReader.open(root) as reader:
        assert tree_digest(root) == before
        more = [put(store, number, clock) for number in range(40, 90)]
        assert [record.log_offset for record in reader.records()] == first
        assert sum(queue.max_offset for queue in reader.queues()) == 40
        assert len(list(export_lines(reader))) == 40
    with StoreReader.open(root) as reader:
        assert [record.log_offset for record in reader.records()] == first + more
    assert store.close()


def test_queries_on_a_reader(tmp_path: Path) -> None:
    root = tmp_path / "store"
    offsets = written_store(root)
    with StoreReader.open(root) as reader:
        query = MessageQuery(reader.log, reader.index)
        found = query.by_key("Beta", "k5", 32, 0, 2**63 - 1)
        assert [int.from_bytes(record[28:36]) for record in found.records] == [offsets[5]]
        assert found.index_log_offset == offsets[-1]
        assert query.by_key("Beta", "k4", 32, 0, 2**63 - 1).records == []
        everything = query.by_key("Beta", "all", 10**6, 0, 2**63 - 1)
        of_beta = [offset for number, offset in enumerate(offsets) if number % 3 == 2]
        assert [int.from_bytes(record[28:36]) for record in everything.records] == of_beta[-64:]
        assert MessageQuery(reader.log, None).by_key("Beta", "k5", 32, 0, 9).records == []
        assert query.earliest_timestamp() == START_MS


def test_offsets_by_time_on_a_reader(tmp_path: Path) -> None:
    root = tmp_path / "store"
    written_store(root)
    with StoreReader.open(root) as reader:
        search, queue = TimeSearch(reader.log), reader.queue_table.queue("Alpha", 0)
        # Messages of this queue are 750 ms apart.
        for offset in range(queue.max_offset):
            stored = search.stored_at(queue, offset)
            assert stored == START_MS + 750 * offset
            for boundary in Boundary:
                assert search.offset_at(queue, stored, boundary) == offset
            assert search.offset_at(queue, stored + 1, Boundary.LOWER) == offset + 1
            assert search.offset_at(queue, stored + 1, Boundary.UPPER) == offset
            if (offset + 1) % 10 and offset + 1 < queue.max_offset:
                # Within a file; behind its last message the next file is looked into.
                assert search.offset_at(queue, stored + 1) == offset
                assert search.offset_at(queue, stored + 375) == offset
                assert search.offset_at(queue, stored + 376) == offset + 1
        assert search.offset_at(queue, 0) == 0
        assert search.offset_at(queue, 0, Boundary.UPPER) == 0
        assert search.offset_at(queue, 2**62) == queue.max_offset - 1
        empty = reader.queue_table.queue("Nobody", 0)
        assert search.offset_at(empty, 5) == 0
        assert search.earliest(empty) is None


def test_an_empty_store(tmp_path: Path) -> None:
    root = tmp_path / "store"
    (root / "commitlog").mkdir(parents=True)
    before = tree_digest(root)
    with StoreReader.open(root) as reader:
        assert reader.queues() == []
        assert list(reader.records()) == []
        assert MessageQuery(reader.log, reader.index).earliest_timestamp() is None
    assert tree_digest(root) == before


def test_what_is_no_store(tmp_path: Path) -> None:
    with pytest.raises(StoreDamaged, match=r"holds no store.*storePathRootDir"):
        StoreReader.open(tmp_path)
    with pytest.raises(StoreDamaged, match="holds no store"):
        StoreReader.open(tmp_path / "nowhere")
    assert list(tmp_path.iterdir()) == []


def test_settings_that_do_not_fit_are_named(tmp_path: Path) -> None:
    root = tmp_path / "store"
    written_store(root)
    config = config_file(tmp_path)
    with StoreReader.open(root, config) as reader:
        assert reader.settings.files.commit_log_bytes == 8192
    config.write_text("mappedFileSizeCommitLog=16384\n")
    with pytest.raises(StoreDamaged, match="8192 bytes, the settings say 16384"):
        StoreReader.open(root, config)
    config.write_text("mapedFileSizeComitLog=16384\n")
    with pytest.raises(InvalidSettings, match="did you mean"):
        StoreReader.open(root, config)
    config.write_text(f"storePathCommitLog={root}/commitlog,{root}/elsewhere\n")
    with pytest.raises(StoreDamaged, match=r"there is no directory .*/elsewhere"):
        StoreReader.open(root, config)


@pytest.mark.parametrize(("slots", "entries"), [(10, 40), (7, 33), (64, 40), (3, 200), (50, 60)])
def test_the_shape_of_the_index_is_found(tmp_path: Path, slots: int, entries: int) -> None:
    root = tmp_path / "store"
    written_store(root, 60, maxHashSlotNum=str(slots), maxIndexNum=str(entries))
    settings = settings_of(root, OsFiles())
    assert (settings.index.slots, settings.index.entries) == (slots, entries)
    assert unknown_sizes(settings, OsFiles()) == []


def test_an_index_that_cannot_be_told_is_left_alone(tmp_path: Path) -> None:
    root = tmp_path / "store"
    written_store(root)
    for path in (root / "index").iterdir():
        edit(path, 40, b"\x55" * 600)
    settings = settings_of(root, OsFiles())
    assert not settings.index.enabled
    assert unknown_sizes(settings, OsFiles()) == ["maxHashSlotNum", "maxIndexNum"]
    with StoreReader.open(root) as reader:
        assert reader.index is None
        assert len(list(export_lines(reader))) == COUNT


def test_a_reader_needs_nothing_above_the_store() -> None:
    code = (
        "import sys, gantrymq.store.reader;"
        "print(sorted({n.split('.')[1] for n in sys.modules if n.startswith('gantrymq.')}))"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=30
    )
    parts = {"clock", "errors", "kernel", "limits", "model", "store", "version", "wire"}
    assert set(eval(done.stdout)) <= parts  # noqa: S307 - a list of names that we printed
