"""Consume queues and index made again from the log: the same bytes, and the old ones kept."""

from __future__ import annotations

import shutil
from typing import TYPE_CHECKING

import pytest

from gantrymq.store.errors import StoreDamaged, StoreLocked
from gantrymq.store.files import OsFiles
from gantrymq.store.process_lock import ProcessLock
from gantrymq.store.reader import StoreReader
from gantrymq.store.rebuild import RebuildReport, rebuild_in_place, rebuild_into
from gantrymq.store.settings import read_settings
from gantrymq.store.shape import settings_of
from gantrymq.store.verify import verify
from gantrymq.testing.clock import VirtualClock
from support.golden import STORE_LABELS, stored_messages
from support.golden_trees import configuration, data_digest, manifest, tree_digest, unpacked
from support.small_stores import COUNT, PROPERTIES, crashed_store, edit, written_store

if TYPE_CHECKING:
    from pathlib import Path


def in_place(root: Path, topics: frozenset[str] | None = None) -> RebuildReport:
    settings = read_settings(PROPERTIES | {"storePathRootDir": str(root)})
    return rebuild_in_place(settings, OsFiles(), VirtualClock(), topics=topics)


def contents(root: Path) -> dict[str, list[bytes]]:
    """Return queue files by name, and index files in their order: their names are times."""
    files = sorted(path for path in root.rglob("*") if path.is_file())
    found = {
        str(path.relative_to(root)): [path.read_bytes()]
        for path in files
        if path.relative_to(root).parts[0] == "consumequeue"
    }
    return found | {"index": [path.read_bytes() for path in files if path.parent.name == "index"]}


def is_sound(root: Path) -> bool:
    with StoreReader.open(root) as reader:
        return verify(reader).is_sound


@pytest.mark.parametrize("lost", ["nothing", "queues", "index", "everything"])
def test_what_is_made_is_what_was(tmp_path: Path, lost: str) -> None:
    root = tmp_path / "store"
    written_store(root)
    before, log = contents(root), tree_digest(root / "commitlog")
    if lost in {"queues", "everything"}:
        shutil.rmtree(root / "consumequeue")
    if lost in {"index", "everything"}:
        shutil.rmtree(root / "index")
    report = in_place(root)
    assert (report.records, report.queues, report.queue_entries) == (COUNT, 3, COUNT)
    assert report.index_keys == 3 * COUNT
    assert report.trouble_count == 0
    assert tree_digest(root / "commitlog") == log
    made = {name: raw for name, raw in contents(root).items() if "replaced" not in name}
    made["index"] = [path.read_bytes() for path in sorted((root / "index").iterdir())]
    assert made == before
    assert (report.replaced is None) is (lost == "everything")
    assert not (root / "rebuilding").exists()
    assert is_sound(root)


def test_the_old_ones_are_kept(tmp_path: Path) -> None:
    root = tmp_path / "store"
    written_store(root)
    before = contents(root)
    report = in_place(root)
    assert report.replaced is not None
    assert contents(root / report.replaced) == before


def test_a_crashed_store_keeps_its_index_when_it_is_opened(tmp_path: Path) -> None:
    root = tmp_path / "store"
    crashed_store(root, tmp_path)
    in_place(root)
    assert (root / "abort").exists()
    assert is_sound(root)


def test_refused_while_the_store_is_open(tmp_path: Path) -> None:
    root = tmp_path / "store"
    written_store(root)
    lock = ProcessLock(OsFiles(), root)
    before = tree_digest(root)
    with pytest.raises(StoreLocked):
        in_place(root)
    assert tree_digest(root) == before
    lock.release()
    assert in_place(root).queues == 3


def test_an_interrupted_one_is_named(tmp_path: Path) -> None:
    root = tmp_path / "store"
    written_store(root)
    (root / "rebuilding").mkdir()
    before = tree_digest(root)
    with pytest.raises(StoreDamaged, match="interrupted; remove it first"):
        in_place(root)
    assert tree_digest(root) == before
    (root / "rebuilding").rmdir()
    assert in_place(root).queues == 3


def test_into_another_directory(tmp_path: Path) -> None:
    root, other = tmp_path / "store", tmp_path / "other"
    written_store(root)
    before = tree_digest(root)
    settings = settings_of(root, OsFiles())
    rebuild_into(settings, other, OsFiles(), VirtualClock())
    assert contents(other) == contents(root)
    assert tree_digest(root) == before
    with pytest.raises(StoreDamaged, match="is not empty"):
        rebuild_into(settings, other, OsFiles(), VirtualClock())


def test_chosen_topics(tmp_path: Path) -> None:
    root = tmp_path / "store"
    written_store(root)
    report = in_place(root, frozenset({"Alpha"}))
    assert report.left_out == {"Beta": COUNT // 3}
    assert [path.name for path in (root / "consumequeue").iterdir()] == ["Alpha"]


def test_damage_is_passed_over(tmp_path: Path) -> None:
    root = tmp_path / "store"
    offsets = written_store(root)
    edit(root / "commitlog" / f"{0:020d}", offsets[20] + 88, b"??")
    report = in_place(root)
    assert report.trouble_count == 1
    assert str(offsets[20]) in report.troubles[0]
    assert report.queue_entries == COUNT - 1
    with StoreReader.open(root) as reader:
        served = {record.body for q in reader.queues() for record in reader.messages(*q[:2])}
    assert served == {b"body %d" % number for number in range(COUNT) if number != 20}


def queue_files(digest: dict[str, str]) -> dict[str, str]:
    """Return the queue files that Apache has: it removed those of the deleted topic."""
    return {
        name: content
        for name, content in digest.items()
        if name.startswith("consumequeue/") and "DeletedTopic" not in name
    }


@pytest.mark.parametrize("label", STORE_LABELS)
def test_apache_stores(tmp_path: Path, label: str) -> None:
    """From the log alone: queues as Apache wrote them, and every message served again.

    Byte for byte where nothing was torn and no extension was in use; the deleted topic comes back.
    """
    root = unpacked(label, tmp_path)
    before = data_digest(root)
    settings = settings_of(root, OsFiles(), configuration(label))
    report = rebuild_in_place(settings, OsFiles(), VirtualClock())
    assert report.trouble_count == 0
    after = data_digest(root)
    if not manifest(label).damage and "cqext" not in label:
        assert queue_files(after) == queue_files(before)
    with StoreReader.open(root, configuration(label)) as reader:
        served = [
            record.log_offset
            for queue in reader.queues()
            if queue.topic != "DeletedTopic"
            for record in reader.messages(queue.topic, queue.queue_id)
        ]
        assert verify(reader).queue_entries == report.queue_entries
    assert sorted(served) == [message["commitLogOffset"] for message in stored_messages(label)]
