"""All queues of a store: finding, loading, flushing, deleting."""

from __future__ import annotations

import errno
from pathlib import Path

import pytest

from gantrymq.errors import InvalidValue
from gantrymq.store.consume_queue_ext import ExtUnit
from gantrymq.store.errors import StoreDamaged
from gantrymq.store.files import OsFiles
from gantrymq.store.queue_files import Sync
from gantrymq.store.queue_table import QueueTable
from gantrymq.testing.disk import Operation, SimulatedFiles
from support.queues import drop_table_files_before, log_offsets, run, unit

ROOT = Path("/store")
QUEUES = ROOT / "consumequeue"
FILE_BYTES = 100


@pytest.fixture
def disk() -> SimulatedFiles:
    return SimulatedFiles()


def new(disk: SimulatedFiles, ext_file_bytes: int | None = None) -> QueueTable:
    return QueueTable(ROOT, FILE_BYTES, disk, ext_file_bytes)


def recovered(disk: SimulatedFiles, ext_file_bytes: int | None = None) -> QueueTable:
    table = new(disk, ext_file_bytes)
    table.load()
    table.recover()
    return table


def flush(table: QueueTable, disk: SimulatedFiles, *, thorough: bool = False) -> None:
    work = table.begin_flush(thorough=thorough)
    work.perform(disk)
    table.end_flush(work)


def filled(disk: SimulatedFiles) -> QueueTable:
    table = new(disk)
    table.queue("A", 0).append(run(0, 0, 100, 200))
    table.queue("A", 3).append(run(0, 300))
    table.queue("B", 1).append(run(0, *range(400, 1200, 100)))
    return table


# -- which there are -------------------------------------------------------------------------------


def test_queues_come_into_being_when_asked_for(disk: SimulatedFiles) -> None:
    table = new(disk)
    assert table.find("A", 0) is None
    queue = table.queue("A", 0)
    assert table.queue("A", 0) is queue
    assert table.find("A", 0) is queue
    assert (len(table), list(table), table.topics()) == (1, [queue], ["A"])
    assert table.extension(queue) is None
    flush(table, disk)
    assert not disk.exists(QUEUES), "no directory before the first unit"


@pytest.mark.parametrize("topic", ["", ".", "..", "a/b", "../etc", "a\0b", "x" * 256])
def test_a_topic_must_be_a_directory(disk: SimulatedFiles, topic: str) -> None:
    with pytest.raises(InvalidValue, match="cannot be a directory name"):
        new(disk).queue(topic, 0)


def test_next_offsets(disk: SimulatedFiles) -> None:
    table = filled(disk)
    assert table.next_offsets("A", 5) == [3, 0, 0, 1, 0]
    assert table.next_offsets("C", 2) == [0, 0]
    assert len(table) == 3, "asking makes none"


def test_log_ends(disk: SimulatedFiles) -> None:
    table = filled(disk)
    table.queue("Empty", 0)
    assert (table.log_end_min, table.log_end_max) == (300, 1200)
    assert (new(disk).log_end_min, new(disk).log_end_max) == (0, 0)


def test_queues_of_a_topic_are_in_order(disk: SimulatedFiles) -> None:
    table = new(disk)
    for queue_id in (10, 2, -1):
        table.queue("A", queue_id)
    assert [queue.queue_id for queue in table.queues("A")] == [-1, 2, 10]
    assert table.queues("B") == []


# -- recovery --------------------------------------------------------------------------------------


def test_what_was_flushed_is_found_again(disk: SimulatedFiles) -> None:
    flush(filled(disk), disk)
    table = recovered(disk)
    assert sorted((queue.topic, queue.queue_id, queue.max_offset) for queue in table) == [
        ("A", 0, 3), ("A", 3, 1), ("B", 1, 8),
    ]  # fmt: skip
    assert table.log_end_max == 1200


def test_other_names_are_left_alone(disk: SimulatedFiles) -> None:
    flush(filled(disk), disk)
    for name in ("A/notes", "A/01", "A/+1", "A/99999999999"):
        disk.make_directory(QUEUES / name)
    disk.write_at(QUEUES / "A/7", 0, b"a file", 6)
    disk.write_at(QUEUES / "README", 0, b"a file", 6)
    table = recovered(disk)
    assert [queue.queue_id for queue in table.queues("A")] == [0, 3]
    assert sorted(table.topics()) == ["A", "B"]


def test_a_damaged_queue_is_reported(disk: SimulatedFiles) -> None:
    flush(filled(disk), disk)
    disk.write_at(QUEUES / "A/0/stray", 0, b"", 0)
    with pytest.raises(StoreDamaged, match="stray is not a data file"):
        new(disk).load()


def test_truncation_and_correction_reach_every_queue(disk: SimulatedFiles) -> None:
    flush(filled(disk), disk)
    table = recovered(disk)
    table.truncate_to(500)
    assert [queue.max_offset for queue in table] == [3, 1, 1]
    table.correct_min_offsets(150)
    assert [queue.min_offset for queue in table] == [2, 0, 0]
    # What was cut off was wiped, and that has to be forced as well.
    assert Path(table.begin_flush(thorough=True).syncs[0].path) == QUEUES / "B/1" / f"{0:020d}"


# -- retention -------------------------------------------------------------------------------------


def test_expired_files_are_named(disk: SimulatedFiles) -> None:
    table = filled(disk)
    flush(table, disk)
    assert drop_table_files_before(table, 950) == [QUEUES / "B/1" / f"{0:020d}"]
    assert [(queue.min_offset, queue.max_offset) for queue in table] == [(3, 3), (1, 1), (6, 8)]


def test_a_queue_begun_anew_does_not_take_the_answer_of_an_old_question(
    disk: SimulatedFiles,
) -> None:
    table = filled(disk)
    flush(table, disk)
    queue = table.queue("B", 1)
    search = table.search(queue, 950)
    found = search.find()
    queue.append(run(0, *range(2000, 3200, 100)))
    assert table.expire(queue, search, found) is None
    assert (queue.min_offset, queue.max_offset) == (0, 12)
    again = table.search(queue, 2950)
    flush(table, disk)
    expired = table.expire(queue, again, again.find())
    assert expired is not None
    queue.append(run(0, *range(4000, 5200, 100)))
    table.drop(expired)
    assert log_offsets(queue) == list(range(4000, 5200, 100))


def test_a_topic_is_deleted_with_its_directories(disk: SimulatedFiles) -> None:
    table = filled(disk)
    flush(table, disk)
    paths = table.delete_topic("A")
    assert paths[-1] == QUEUES / "A"
    for path in paths:
        disk.remove(path)
    assert disk.names(QUEUES) == ["B"]
    assert table.topics() == ["B"]
    assert table.delete_topic("A") == []
    assert table.next_offsets("A", 1) == [0]


def test_a_topic_may_be_deleted_while_it_is_flushed(disk: SimulatedFiles) -> None:
    table = filled(disk)
    work = table.begin_flush(thorough=True)
    paths = table.delete_topic("A")
    work.perform(disk)
    for path in paths:
        disk.remove(path)
    table.end_flush(work)
    assert disk.names(QUEUES) == ["B"]
    assert table.begin_flush(thorough=True).writes == []


# -- flush -----------------------------------------------------------------------------------------


def test_a_flush_takes_what_changed_and_nothing_else(disk: SimulatedFiles) -> None:
    table = filled(disk)
    assert len(table.begin_flush(thorough=False).queues) == 3
    with pytest.raises(InvalidValue, match="one flush at a time"):
        table.begin_flush(thorough=False)


def test_units_that_come_during_a_flush_are_not_forgotten(disk: SimulatedFiles) -> None:
    table = filled(disk)
    work = table.begin_flush(thorough=False)
    table.queue("A", 0).append(run(3, 1200))
    work.perform(disk)
    table.end_flush(work)
    (write,) = table.begin_flush(thorough=False).writes
    assert write.data == unit(1200)


def test_a_thorough_flush_forces_what_others_wrote(disk: SimulatedFiles) -> None:
    table = filled(disk)
    flush(table, disk)
    work = table.begin_flush(thorough=True)
    assert work.writes == []
    assert set(work.syncs) >= {
        Sync(f"{QUEUES}/A/0/{0:020d}"),
        *(Sync(f"{QUEUES}{below}", is_directory=True) for below in ("", "/A", "/A/0")),
    }
    work.perform(disk)
    table.end_flush(work)
    after = table.begin_flush(thorough=True)
    assert (after.syncs, after.queues) == ([], [])
    assert len(recovered(disk.crash(keep=0))) == 3


@pytest.mark.parametrize("operation", [Operation.WRITE, Operation.SYNC])
def test_a_failed_flush_is_done_again(disk: SimulatedFiles, operation: Operation) -> None:
    table = filled(disk)
    work = table.begin_flush(thorough=True)
    disk.fail(operation, errno.EIO, times=1)
    with pytest.raises(OSError, match="error"):
        work.perform(disk)
    table.end_flush(work, failed=True)
    again = table.begin_flush(thorough=True)
    assert sorted(again.writes) == sorted(work.writes)
    assert set(again.syncs) == set(work.syncs)


# -- the extension ---------------------------------------------------------------------------------


def extended(disk: SimulatedFiles) -> QueueTable:
    """Return a table with a queue of six messages, three extension units to a file."""
    table = new(disk, 100)
    queue = table.queue("A", 0)
    extension = table.extension(queue)
    assert extension is not None
    for number in range(6):
        address = extension.append(ExtUnit(number, 1000, bytes(10)))
        assert address is not None
        units = unit(100 * number, address)
        queue.append(run(number, 100 * number)._replace(units=units))
    return table


def test_extensions_are_flushed_and_found_again(disk: SimulatedFiles) -> None:
    table = extended(disk)
    flush(table, disk, thorough=True)
    assert table.begin_flush(thorough=True).queues == []
    again = recovered(disk.crash(keep=0), 100)
    (queue,) = again
    extension = again.extension(queue)
    assert extension is not None
    last = queue.last_unit()
    assert last is not None
    assert extension.read(last.tags_code) == ExtUnit(5, 1000, bytes(10))
    assert extension.max_address == last.tags_code + 30
    again.truncate_to(400)
    assert extension.max_address == last.tags_code - 30
    assert log_offsets(queue) == [0, 100, 200, 300]


def test_extensions_expire_and_are_deleted(disk: SimulatedFiles) -> None:
    table = extended(disk)
    flush(table, disk)
    ext = ROOT / "consumequeue_ext/A"
    assert drop_table_files_before(table, 350) == [ext / "0" / f"{0:020d}"]
    disk.remove(ext / "0" / f"{0:020d}")
    for path in table.delete_topic("A"):
        disk.remove(path)
    assert disk.names(ROOT / "consumequeue_ext") == disk.names(QUEUES) == []


def test_a_stray_file_has_no_extension(disk: SimulatedFiles) -> None:
    flush(extended(disk), disk)
    disk.write_at(QUEUES / "A/7", 0, b"a file", 6)
    assert len(recovered(disk, 100)) == 1


# -- the machine's own disk ------------------------------------------------------------------------


def test_a_real_directory(tmp_path: Path) -> None:
    files = OsFiles()
    table = QueueTable(tmp_path, FILE_BYTES, files)
    table.queue("A", 0).append(run(0, *range(0, 1200, 100)))
    work = table.begin_flush(thorough=True)
    work.perform(files)
    table.end_flush(work)
    (tmp_path / "consumequeue/A/7").write_bytes(b"a file")
    again = QueueTable(tmp_path, FILE_BYTES, files)
    again.load()
    again.recover()
    (queue,) = again
    assert log_offsets(queue) == list(range(0, 1200, 100))
    again.truncate_to(600)
    assert sorted(path.name for path in queue.directory.iterdir()) == [
        f"{start:020d}" for start in (0, 100)
    ]
    (tmp_path / "consumequeue/A/7").unlink()
    for path in again.delete_topic("A"):
        files.remove(path)
    assert list((tmp_path / "consumequeue").iterdir()) == []


def test_an_ordinary_flush_takes_some_and_those_that_have_waited_longest(
    disk: SimulatedFiles,
) -> None:
    table = filled(disk)
    names = []
    for _ in range(4):
        due = table.take_due(most=2)
        names.append([(queue.topic, queue.queue_id) for queue in due])
        work = table.begin_flush(thorough=False, queues=due)
        table.queue("A", 0).append(run(table.queue("A", 0).max_offset, 2000 + 100 * len(names)))
        work.perform(disk)
        table.end_flush(work)
    assert names == [[("A", 0), ("A", 3)], [("B", 1), ("A", 0)], [("A", 0)], [("A", 0)]]
    assert len(table.take_all()) == 3


def test_a_queue_worth_writing_is_found_behind_many_that_are_not(disk: SimulatedFiles) -> None:
    table = QueueTable(ROOT, 1_000_000, disk)
    for number in range(5):
        table.queue(f"T{number}", 0).append(run(0, 100))
    table.queue("Busy", 0).append(run(0, *range(0, 41_000, 100)))
    found = [[queue.topic for queue in table.take_due(2, least_pages=2)] for _ in range(4)]
    assert found == [[], [], ["Busy"], []]
    assert {queue.topic for queue in table.take_due()} == {f"T{number}" for number in range(5)}
