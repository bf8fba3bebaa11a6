"""Every kind of damage is found, and named; nothing is found where there is none."""

from __future__ import annotations

import mmap
import shutil
import struct
from itertools import chain
from typing import TYPE_CHECKING, NamedTuple

import pytest

from gantrymq.store import index_image, verify_chains
from gantrymq.store.export import exported
from gantrymq.store.files import OsFiles
from gantrymq.store.index import Index
from gantrymq.store.reader import StoreReader
from gantrymq.store.rebuild import rebuild_in_place
from gantrymq.store.search import Boundary, TimeSearch
from gantrymq.store.shape import settings_of
from gantrymq.store.verify import Kind, VerifyReport, verify
from gantrymq.store.verify_report import PROBLEMS_MAX
from gantrymq.testing.clock import VirtualClock
from support.golden_trees import configuration, tree_digest, unpacked
from support.small_stores import COUNT, crashed_store, edit, put, small_store, written_store

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

LOG_BYTES = 8192
SLOTS = 10
ENTRIES_AT = 40 + 4 * SLOTS
UNIT = struct.Struct(">qiq")


class Planted(NamedTuple):
    """A store with room for damage."""

    root: Path
    offsets: list[int]

    def log(self, log_offset: int, data: bytes) -> None:
        """Overwrite bytes of the log."""
        start = log_offset - log_offset % LOG_BYTES
        edit(self.root / "commitlog" / f"{start:020d}", log_offset - start, data)

    def log_byte(self, log_offset: int) -> int:
        start = log_offset - log_offset % LOG_BYTES
        return (self.root / "commitlog" / f"{start:020d}").read_bytes()[log_offset - start]

    def unit(self, topic: str, queue_id: int, offset: int, change: dict[int, int]) -> None:
        """Change fields of a queue entry: 0 log offset, 1 size, 2 tags code."""
        path, at = self.queue_file(topic, queue_id, offset)
        fields = list(UNIT.unpack_from(path.read_bytes(), at))
        for field, value in change.items():
            fields[field] = value
        edit(path, at, UNIT.pack(*fields))

    def queue_file(self, topic: str, queue_id: int, offset: int) -> tuple[Path, int]:
        start = offset * 20 - offset * 20 % 200
        folder = self.root / "consumequeue" / topic / str(queue_id)
        return folder / f"{start:020d}", offset * 20 - start

    def index_file(self, number: int) -> Path:
        """Return an index file, by its number."""
        return sorted((self.root / "index").iterdir())[number]


@pytest.fixture(scope="module")
def sound(tmp_path_factory: pytest.TempPathFactory) -> Planted:
    root = tmp_path_factory.mktemp("sound") / "store"
    return Planted(root, written_store(root))


@pytest.fixture
def planted(sound: Planted, tmp_path: Path) -> Planted:
    shutil.copytree(sound.root, tmp_path / "store")
    return sound._replace(root=tmp_path / "store")


def check(root: Path, config: Path | None = None) -> VerifyReport:
    before = tree_digest(root)
    with StoreReader.open(root, config) as reader:
        report = verify(reader)
    assert tree_digest(root) == before
    return report


def test_a_sound_store(sound: Planted) -> None:
    report = check(sound.root)
    assert report.is_sound
    assert report.problems == []
    assert (report.records, report.queue_entries, report.index_entries) == (COUNT, COUNT, 3 * COUNT)
    assert (report.queues, report.stale_bytes) == (3, 0)


def test_a_crashed_store_is_sound_once_it_is_recovered(tmp_path: Path) -> None:
    crashed_store(tmp_path / "store", tmp_path)
    report = check(tmp_path / "store")
    assert report.is_sound
    assert report.queue_entries == COUNT


def body_damaged(planted: Planted) -> None:
    at = planted.offsets[20] + 88
    planted.log(at, bytes([planted.log_byte(at) ^ 1]))


def magic_damaged(planted: Planted) -> None:
    planted.log(planted.offsets[21] + 4, b"\0\0\0\0")


def offset_damaged(planted: Planted) -> None:
    planted.log(planted.offsets[22] + 28, (77).to_bytes(8))


def size_damaged(planted: Planted) -> None:
    planted.log(planted.offsets[23], (100).to_bytes(4))


def blank_damaged(planted: Planted) -> None:
    path = planted.root / "commitlog" / f"{0:020d}"
    at = path.read_bytes().index(b"\xcb\xd4\x31\x94")
    edit(path, at - 4, (9).to_bytes(4))


def time_set_back(planted: Planted) -> None:
    planted.log(planted.offsets[30] + 56, (1_000_000).to_bytes(8))


def last_record_damaged(planted: Planted) -> None:
    planted.log(planted.offsets[-1] + 88, b"XX")


def entry_moved(planted: Planted) -> None:
    planted.unit("Alpha", 0, 3, {0: planted.offsets[10]})


def entry_resized(planted: Planted) -> None:
    planted.unit("Alpha", 0, 4, {1: 99})


def entry_retagged(planted: Planted) -> None:
    planted.unit("Alpha", 1, 5, {2: 4711})


def entry_blanked(planted: Planted) -> None:
    planted.unit("Beta", 0, 6, {0: 0, 1: 2**31 - 1, 2: 0})


def entries_zeroed(planted: Planted) -> None:
    path, _at = planted.queue_file("Alpha", 0, 40)
    edit(path, 0, bytes(200))


def last_entries_zeroed(planted: Planted) -> None:
    path, _at = planted.queue_file("Alpha", 0, COUNT // 3 - 1)
    edit(path, 0, bytes(200))


def queue_removed(planted: Planted) -> None:
    shutil.rmtree(planted.root / "consumequeue" / "Alpha" / "1")


def entry_too_many(planted: Planted) -> None:
    # The record behind the queue's last one, of another queue.
    path, at = planted.queue_file("Alpha", 0, COUNT // 3)
    path.write_bytes(UNIT.pack(planted.offsets[-2], 207, 0).ljust(200, b"\0"))
    assert at == 0


def index_entry_rehashed(planted: Planted) -> None:
    edit(planted.index_file(1), ENTRIES_AT + 20 * 5, (4711).to_bytes(4))


def index_entry_moved(planted: Planted) -> None:
    edit(planted.index_file(1), ENTRIES_AT + 20 * 5 + 4, (planted.offsets[15] + 1).to_bytes(8))


def index_entry_retimed(planted: Planted) -> None:
    edit(planted.index_file(1), ENTRIES_AT + 20 * 5 + 12, (4711).to_bytes(4))


def index_chain_broken(planted: Planted) -> None:
    edit(planted.index_file(1), ENTRIES_AT + 20 * 30 + 16, (1).to_bytes(4))


def index_slot_broken(planted: Planted) -> None:
    edit(planted.index_file(1), 40, bytes(4 * SLOTS))


def index_file_removed(planted: Planted) -> None:
    planted.index_file(2).unlink()


DAMAGE: list[tuple[Callable[[Planted], None], set[Kind]]] = [
    (body_damaged, {Kind.RECORD}),
    (magic_damaged, {Kind.RECORD}),
    (offset_damaged, {Kind.RECORD}),
    (size_damaged, {Kind.RECORD}),
    (blank_damaged, {Kind.BLANK}),
    (time_set_back, {Kind.TIME}),
    (last_record_damaged, {Kind.RECORD}),
    (entry_moved, {Kind.QUEUE_ENTRY}),
    (entry_resized, {Kind.QUEUE_ENTRY}),
    (entry_retagged, {Kind.QUEUE_TAGS}),
    (entry_blanked, {Kind.QUEUE_MISSING}),
    (entries_zeroed, {Kind.QUEUE_MISSING}),
    (last_entries_zeroed, {Kind.QUEUE_MISSING}),
    (queue_removed, {Kind.QUEUE_MISSING}),
    (entry_too_many, {Kind.QUEUE_ENTRY}),
    (index_entry_rehashed, {Kind.INDEX_ENTRY, Kind.INDEX_MISSING, Kind.INDEX_CHAIN}),
    (index_entry_moved, {Kind.INDEX_ENTRY, Kind.INDEX_MISSING}),
    (index_entry_retimed, {Kind.INDEX_ENTRY}),
    (index_chain_broken, {Kind.INDEX_CHAIN}),
    (index_slot_broken, {Kind.INDEX_CHAIN}),
    (index_file_removed, {Kind.INDEX_MISSING}),
]


@pytest.mark.parametrize(("plant", "kinds"), DAMAGE, ids=lambda one: getattr(one, "__name__", ""))
def test_damage_is_found(
    planted: Planted, plant: Callable[[Planted], None], kinds: set[Kind]
) -> None:
    plant(planted)
    report = check(planted.root)
    assert kinds <= set(report.counts), report.problems
    assert not report.is_sound
    # What damage to a record costs its queue entry and keys may be there as well; nothing else.
    if not any(kind.value.startswith("log.") for kind in kinds):
        assert set(report.counts) == kinds, report.problems
    for problem in report.problems:
        assert problem.place.split("/")[0] in {"commitlog", "index", "Alpha", "Beta"}


@pytest.mark.parametrize("portion", [1, 3, 1000])
@pytest.mark.parametrize("plant", [None, index_chain_broken, index_slot_broken])
def test_chains_are_looked_at_in_portions(
    planted: Planted,
    plant: Callable[[Planted], None] | None,
    portion: int,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    if plant is not None:
        plant(planted)
    whole = check(planted.root)
    monkeypatch.setattr(index_image, "PORTION", portion)
    assert check(planted.root) == whole
    assert whole.is_sound is (plant is None)


def test_the_image_of_an_index_file_is_given_back_as_it_is_compared(tmp_path: Path) -> None:
    slots, keys = 1000, 100_000
    files = OsFiles()
    index = Index(tmp_path, slots, keys + 1, files, VirtualClock())
    raw = b"".join(struct.pack(">iqq", number, number * 100, 1) for number in range(keys))
    index.insert(raw)
    (file,) = index.files
    given: list[tuple[int, int]] = []

    class Image(mmap.mmap):
        """Notes what is given back."""

        def madvise(self, option: int, start: int = 0, length: int = 0) -> None:
            given.append((start, start + length))
            super().madvise(option, start, length)

    entries = index_image.FileEntries(file, slots, keys + 1)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(mmap, "mmap", Image)
        assert list(verify_chains.broken_chains(entries)) == []
    assert len(given) == 2
    assert sum(end - start for start, end in given) > keys * 20 - 2 * mmap.PAGESIZE
    assert given[0][0] >= 40 + 4 * slots, "the slots stay"
    index.close()


def test_the_walk_goes_on_behind_damage(planted: Planted) -> None:
    body_damaged(planted)
    planted.log(planted.offsets[60] + 88, b"??")
    report = check(planted.root)
    assert report.counts[Kind.RECORD] == 2
    assert report.records == COUNT - 2
    assert str(planted.offsets[20]) in report.problems[0].what


def test_what_follows_the_end(planted: Planted) -> None:
    """Rests of an earlier cut are harmless, unless the store has just crashed."""
    with StoreReader.open(planted.root) as reader:
        end = reader.max_log_offset
    planted.log(end + 300, b"rest of a record")
    report = check(planted.root)
    assert report.is_sound
    assert report.stale_bytes == 316
    (planted.root / "abort").touch()
    report = check(planted.root)
    assert dict(report.counts) == {Kind.TAIL: 1}
    assert "recovery will cut" in report.problems[0].what


def test_few_problems_are_described_and_all_are_counted(tmp_path: Path) -> None:
    root = tmp_path / "store"
    written_store(root, 600)
    shutil.rmtree(root / "index")
    (root / "index").mkdir()
    for path in sorted((root / "consumequeue" / "Alpha" / "0").iterdir()):
        raw = path.read_bytes()
        units = [(*unit[:2], 5) if unit[1] else unit for unit in UNIT.iter_unpack(raw)]
        path.write_bytes(b"".join(UNIT.pack(*unit) for unit in units))
    report = check(root)
    assert report.counts[Kind.QUEUE_TAGS] == 200
    assert report.counts[Kind.INDEX_MISSING] >= 1800 - 3
    kinds = [problem.kind for problem in report.problems]
    assert kinds.count(Kind.QUEUE_TAGS) == PROBLEMS_MAX
    assert kinds.count(Kind.INDEX_MISSING) == PROBLEMS_MAX


def test_topics_that_were_deleted(planted: Planted) -> None:
    # Not the topic of the last message: that one is dispatched again when a store is opened.
    shutil.rmtree(planted.root / "consumequeue" / "Alpha")
    (planted.root / "config").mkdir(exist_ok=True)
    config = planted.root / "config" / "topics.json"
    config.write_text('{"topicConfigTable":{"Alpha":{},"Beta":{}}}')
    assert check(planted.root).counts[Kind.QUEUE_MISSING] == COUNT // 3 * 2
    config.write_text('{"topicConfigTable":{"Beta":{}}}')
    report = check(planted.root)
    assert report.is_sound
    assert report.records_of_deleted_topics == COUNT // 3 * 2
    config.write_text("{")
    assert check(planted.root).counts[Kind.QUEUE_MISSING] == COUNT // 3 * 2


def test_the_extension(tmp_path: Path) -> None:
    label = "apache-4.9.7-cqext-sql92"
    root = unpacked(label, tmp_path)
    assert check(root, configuration(label)).is_sound
    path = root / "consumequeue_ext" / "PlainTopic" / "0" / f"{0:020d}"
    edit(path, 2, (4711).to_bytes(8))
    assert dict(check(root).counts) == {Kind.QUEUE_TAGS: 1}
    edit(path, 10, (1).to_bytes(8))
    assert dict(check(root).counts) == {Kind.QUEUE_EXT: 1}
    edit(path, 0, b"\0\0")
    assert dict(check(root).counts) == {Kind.QUEUE_EXT: 1}


def test_progress_is_told(planted: Planted) -> None:
    heard: list[int] = []
    with StoreReader.open(planted.root) as reader:
        verify(reader, progress=heard.append)
        assert heard == sorted(heard)
        assert heard[-1] == reader.max_log_offset


# -- stores that do not begin at 0 -----------------------------------------------------------------


@pytest.fixture
def trimmed(planted: Planted) -> Planted:
    """Give a store whose oldest log files retention has removed."""
    for start in (0, LOG_BYTES):
        (planted.root / "commitlog" / f"{start:020d}").unlink()
    return planted._replace(offsets=[at for at in planted.offsets if at >= 2 * LOG_BYTES])


def test_a_log_that_lost_its_beginning(trimmed: Planted) -> None:
    report = check(trimmed.root)
    assert report.is_sound, report.problems
    assert report.records == len(trimmed.offsets) < COUNT
    with StoreReader.open(trimmed.root) as reader:
        served = [message.commit_log_offset for message in chain.from_iterable(exported(reader))]
        assert served == trimmed.offsets
        search, queue = TimeSearch(reader.log), reader.queue_table.queue("Alpha", 0)
        first = search.earliest(queue)
        assert first is not None
        for boundary in Boundary:
            assert search.offset_at(queue, first, boundary) >= queue.min_offset
            assert search.stored_at(queue, search.offset_at(queue, 0, boundary)) == first


def test_queues_that_begin_in_the_middle(trimmed: Planted) -> None:
    """Made again from what is left, they begin with units that stand for no message."""
    rebuild_in_place(settings_of(trimmed.root, OsFiles()), OsFiles(), VirtualClock())
    report = check(trimmed.root)
    assert report.is_sound, report.problems
    with StoreReader.open(trimmed.root) as reader:
        served = [message.commit_log_offset for message in chain.from_iterable(exported(reader))]
        assert served == trimmed.offsets
        # What stands before the first message says nothing about any time.
        queue = reader.queue_table.queue("Alpha", 0)
        search = TimeSearch(reader.log)
        first = search.earliest(queue)
        assert first is not None
        for boundary in Boundary:
            found = search.offset_at(queue, first + 1, boundary)
            assert search.stored_at(queue, found) in {first, first + 750}


def test_a_topic_that_was_deleted_and_made_again(tmp_path: Path) -> None:
    root, clock = tmp_path / "store", VirtualClock()
    store = small_store(root, clock)
    store.open(1)
    for number in range(30):
        put(store, number, clock)
    assert store.close()
    shutil.rmtree(root / "consumequeue" / "Alpha")
    store = small_store(root, clock)
    store.open(2)
    for number in range(30, 45):
        put(store, number, clock)
    assert store.close()
    report = check(root)
    assert report.is_sound, report.problems
    assert report.records == 45
    with StoreReader.open(root) as reader:
        assert [q.max_offset for q in reader.queues()] == [5, 5, 15]
        assert sum(map(len, exported(reader))) == 25


def test_entries_behind_the_log_are_found(planted: Planted) -> None:
    """An index that knows more than the log, in a store that says it was stopped cleanly."""
    edit(planted.index_file(0), ENTRIES_AT + 20 * 39 + 4, (10**6).to_bytes(8))
    assert set(check(planted.root).counts) == {Kind.INDEX_ENTRY, Kind.INDEX_MISSING}
