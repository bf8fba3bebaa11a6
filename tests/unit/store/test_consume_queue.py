"""Consume queues: dispatch, reading, writing out, recovery, retention; and their files.

A file has five units here. `test_consume_queue_model.py` puts all of it together at random.
"""

from __future__ import annotations

import errno
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from gantrymq.errors import InvalidValue
from gantrymq.kernel import PRE_BLANK_SIZE, QueueRun, QueueUnit
from gantrymq.store.consume_queue import GAP_UNITS_MAX, ConsumeQueue
from gantrymq.store.errors import StoreDamaged
from gantrymq.store.queue_files import PAGE_BYTES, WAITING_BYTES_MAX, sync_out, write_out
from gantrymq.testing.disk import Operation, SimulatedFiles
from support.queues import BLANK, drop_files_before, log_offsets, run, unit

if TYPE_CHECKING:
    from gantrymq.store.files import StrPath

DIRECTORY = Path("/store/consumequeue/T/0")
FIRST, SECOND, THIRD = (DIRECTORY / f"{start:020d}" for start in (0, 100, 200))
FILE_BYTES = 100


@pytest.fixture
def disk() -> SimulatedFiles:
    return SimulatedFiles()


def new(disk: SimulatedFiles, file_bytes: int = FILE_BYTES) -> ConsumeQueue:
    return ConsumeQueue("T", 0, DIRECTORY, file_bytes, disk)


def filled(disk: SimulatedFiles, count: int) -> ConsumeQueue:
    """Return a queue of so many messages, each of 100 bytes, one behind the other in the log."""
    queue = new(disk)
    queue.append(run(0, *range(0, 100 * count, 100)))
    return queue


def save(queue: ConsumeQueue, disk: SimulatedFiles) -> ConsumeQueue:
    end = queue.max_offset
    write_out(disk, queue.pending_writes())
    queue.wrote_out(end)
    return queue


def forced(queue: ConsumeQueue) -> list[Path]:
    """Return what a thorough flush would force."""
    return [Path(one.path) for one in queue.pending_syncs()]


def recovered(disk: SimulatedFiles) -> ConsumeQueue:
    queue = new(disk)
    queue.load()
    queue.recover()
    return queue


# -- dispatch and reading --------------------------------------------------------------------------


def test_an_empty_queue(disk: SimulatedFiles) -> None:
    queue = new(disk)
    queue.load()
    queue.recover()
    queue.truncate_to(0)
    queue.correct_min_offset(100)
    assert (queue.min_offset, queue.max_offset, queue.log_end) == (0, 0, 0)
    assert queue.read(0, 10) == b""
    assert queue.unit(0) is None
    assert queue.last_unit() is None
    assert queue.pending_writes() == []
    assert drop_files_before(queue, 10**9) == []
    assert queue.delete() == []
    assert not disk.exists(DIRECTORY)
    assert repr(queue) == "<ConsumeQueue T/0 0..0>"


def test_units_are_read_from_memory_and_from_files(disk: SimulatedFiles) -> None:
    queue = save(filled(disk, 60), disk)
    queue.append(run(60, 6000, 6100))
    assert log_offsets(queue) == [100 * number for number in range(62)]
    # Across files, across the border of files and memory, and the last ones from memory alone.
    assert queue.read(3, 4) == b"".join(unit(100 * number) for number in range(3, 7))
    assert queue.read(26, 4) == b"".join(unit(100 * number) for number in range(26, 30))
    disk.fail(Operation.READ, errno.EIO)
    assert queue.read(28, 100) == b"".join(unit(100 * number) for number in range(28, 62))
    with pytest.raises(OSError, match="error"):
        queue.read(27, 1)


def test_read_keeps_within_the_queue(disk: SimulatedFiles) -> None:
    queue = filled(disk, 7)
    assert queue.unit(6) == QueueUnit(600, 100, 0)
    assert queue.last_unit() == QueueUnit(600, 100, 0)
    assert (queue.read(7, 1), queue.read(99, 1), queue.read(-1, 1)) == (b"", b"", b"")
    assert (queue.next_file_offset(0), queue.next_file_offset(4), queue.next_file_offset(5)) == (
        5, 5, 10,
    )  # fmt: skip


def test_what_is_built_is_not_built_again(disk: SimulatedFiles) -> None:
    queue = filled(disk, 3)
    assert queue.append(run(0, 0, 100)) == 0
    assert queue.append(run(2, 200)) == 0
    assert queue.append(run(1, 100, 200, 300, 400)) == 0
    assert log_offsets(queue) == [0, 100, 200, 300, 400]
    assert queue.log_end == 500
    assert queue.fresh(run(3, 300, 400)) is None
    assert queue.fresh(run(3, 300, 400, 500)) == run(5, 500)
    assert queue.fresh(run(5, 500)) == run(5, 500)


def test_an_offset_that_is_taken_is_a_duplicate(disk: SimulatedFiles) -> None:
    queue = filled(disk, 3)
    assert queue.append(run(1, 700, 800, 900)) == 0
    assert log_offsets(queue) == [0, 100, 200, 900]


def test_a_queue_that_begins_in_the_middle(disk: SimulatedFiles) -> None:
    queue = new(disk)
    assert queue.append(run(7, 700, 800)) == 0
    assert (queue.min_offset, queue.max_offset) == (7, 9)
    assert queue.read(6, 1) == b""
    save(queue, disk)
    assert not disk.exists(FIRST)
    assert disk.read(SECOND) == BLANK * 2 + unit(700) + unit(800) + bytes(20)
    again = recovered(disk)
    assert (again.min_offset, again.max_offset, again.log_end) == (5, 9, 900)
    again.correct_min_offset(0)
    assert again.min_offset == 7, "pre-blank units are no messages"


def test_a_gap_is_filled(disk: SimulatedFiles) -> None:
    queue = filled(disk, 2)
    assert queue.append(run(6, 900)) == 4
    assert log_offsets(queue) == [0, 100, None, None, None, None, 900]
    assert queue.unit(3) == QueueUnit(0, PRE_BLANK_SIZE, 0)


@pytest.mark.parametrize("offset", [-1, 2 + GAP_UNITS_MAX + 1, 2**62])
def test_an_offset_that_cannot_be(disk: SimulatedFiles, offset: int) -> None:
    queue = filled(disk, 2)
    with pytest.raises(StoreDamaged, match=f"queue offset {offset}, the queue ends at 2"):
        queue.append(run(offset, 900))
    assert log_offsets(queue) == [0, 100]


def test_a_topic_made_again_begins_anew(disk: SimulatedFiles) -> None:
    queue = save(filled(disk, 12), disk)
    assert queue.append(run(0, 5000, 5100)) == 0
    assert log_offsets(queue) == [5000, 5100]
    assert disk.names(DIRECTORY) == []
    assert log_offsets(recovered_after_save(queue, disk)) == [5000, 5100]


def recovered_after_save(queue: ConsumeQueue, disk: SimulatedFiles) -> ConsumeQueue:
    save(queue, disk)
    return recovered(disk)


# -- writing out -----------------------------------------------------------------------------------


def test_writes_are_cut_at_files(disk: SimulatedFiles) -> None:
    queue = filled(disk, 12)
    writes = queue.pending_writes()
    assert [(Path(write.path), write.position, len(write.data)) for write in writes] == [
        (FIRST, 0, 100), (SECOND, 0, 100), (THIRD, 0, 40),
    ]  # fmt: skip
    assert queue.pending_writes() == [], "under way"
    queue.append(run(12, 1200))
    write_out(disk, writes)
    assert log_offsets(queue)[-1] == 1200
    queue.wrote_out(12)
    (write,) = queue.pending_writes()
    assert write == (str(THIRD), 40, unit(1200), FILE_BYTES)
    assert [disk.size(path) for path in (FIRST, SECOND, THIRD)] == [FILE_BYTES] * 3


def test_a_write_that_is_cut_between_pages_leaves_no_half_unit(disk: SimulatedFiles) -> None:
    """The system may end a write there when its process is killed; no page but the first is."""
    queue = new(disk, 20_000)
    queue.append(tagged(0, 300))
    save(queue, disk)
    queue.append(tagged(300, 800))
    begin, ends = 300 * 20, list[int]()
    (write,) = queue.pending_writes()
    assert (write.position, len(write.data)) == (begin, 500 * 20)
    writes: list[tuple[int, bytes]] = []

    class Noted(SimulatedFiles):
        """Says what is written, in order."""

        def write_at(self, path: StrPath, position: int, data: bytes, size: int) -> None:
            writes.append((position, data))

    write_out(Noted(), [write])
    file = bytearray(disk.read(FIRST))
    for position, data in writes:
        # Each of them may end at each page.
        for end in [*range(PAGE_BYTES - position % PAGE_BYTES, len(data), PAGE_BYTES), len(data)]:
            cut = file.copy()
            cut[position : position + end] = data[:end]
            ends.append(units_in(cut))
        file[position : position + len(data)] = data
    assert ends == [*[300] * (len(ends) - 1), 800]
    assert len(ends) == 3


TAGS_CODE = -2


def tagged(first: int, stop: int) -> QueueRun:
    """Return a run of messages with a tag."""
    units = b"".join(unit(100 * number, TAGS_CODE) for number in range(first, stop))
    return QueueRun(b"T", 0, first, units, 100 * stop, 1)


def units_in(file: bytearray) -> int:
    """Return how many units a start finds, each of which must be whole."""
    count = 0
    for count, at in enumerate(range(0, len(file), 20)):
        raw = bytes(file[at : at + 20])
        if int.from_bytes(raw[8:12]) == 0:
            return count
        assert raw == unit(100 * count, TAGS_CODE)
    return count + 1


def test_too_much_does_not_wait(disk: SimulatedFiles) -> None:
    queue = new(disk, 6_000_000)
    count = WAITING_BYTES_MAX // 20
    queue.append(run(0, *range(0, 100 * count, 100)))
    assert queue.written_offset == 0
    queue.append(run(count, 100 * count))
    assert queue.written_offset == count + 1
    assert not queue.is_pending
    # Not while a thread writes: its zeros could land on what is written here.
    queue.append(run(count + 1, 10**9))
    queue.pending_writes()
    queue.append(run(count + 2, *range(2 * 10**9, 2 * 10**9 + 100 * count, 100)))
    assert queue.written_offset == count + 1


def test_a_failed_write_is_tried_again(disk: SimulatedFiles) -> None:
    queue = filled(disk, 3)
    writes = queue.pending_writes()
    disk.fail(Operation.WRITE, errno.ENOSPC, times=1)
    with pytest.raises(OSError, match="space"):
        write_out(disk, writes)
    queue.wrote_out(queue.written_offset)
    assert queue.is_pending
    save(queue, disk)
    assert log_offsets(recovered(disk)) == [0, 100, 200]


def test_a_failed_write_at_once_leaves_the_units(disk: SimulatedFiles) -> None:
    queue = new(disk, 6_000_000)
    count = WAITING_BYTES_MAX // 20 + 1
    disk.fail(Operation.WRITE, errno.ENOSPC, times=1)
    with pytest.raises(OSError, match="space"):
        queue.append(run(0, *range(0, 100 * count, 100)))
    assert queue.max_offset == count
    queue.append(run(count, 100 * count))
    assert queue.written_offset == count + 1


def test_syncs_name_what_was_written_and_made(disk: SimulatedFiles) -> None:
    queue = filled(disk, 7)
    assert queue.pending_syncs() == []
    save(queue, disk)
    directories = [DIRECTORY, DIRECTORY.parent, DIRECTORY.parent.parent]
    assert forced(queue) == [FIRST, SECOND, *directories]
    sync_out(disk, queue.pending_syncs())
    queue.synced(queue.written_offset)
    assert queue.pending_syncs() == []
    queue.append(run(7, 700))
    save(queue, disk)
    assert forced(queue) == [SECOND], "its name is safe"
    assert log_offsets(recovered(disk.crash(keep=0))) == [100 * number for number in range(7)]


def test_a_queue_tells_when_it_changes(disk: SimulatedFiles) -> None:
    changed: list[ConsumeQueue] = []
    queue = ConsumeQueue("T", 0, DIRECTORY, FILE_BYTES, disk, changed.append)
    queue.append(run(0, 0))
    queue.append(run(1, 100))
    assert changed == [queue]
    save(queue, disk)
    queue.append(run(2, 200))
    queue.truncate_to(200)
    assert changed == [queue] * 3


# -- recovery --------------------------------------------------------------------------------------


@pytest.mark.parametrize("count", [1, 4, 5, 6, 10, 23])
def test_recovery_finds_the_end(disk: SimulatedFiles, count: int) -> None:
    save(filled(disk, count), disk)
    queue = recovered(disk)
    assert (queue.min_offset, queue.max_offset, queue.log_end) == (0, count, 100 * count)
    assert not queue.is_pending
    queue.append(run(count, 100 * count))
    assert log_offsets(queue) == [100 * number for number in range(count + 1)]


@pytest.mark.parametrize(
    "garbage",
    [unit(700, size=0), unit(-1), unit(700, size=-5), unit(100), unit(600)],
    ids=["no size", "negative offset", "negative size", "earlier", "same again"],
)
def test_a_garbage_tail_is_cut(disk: SimulatedFiles, garbage: bytes) -> None:
    save(filled(disk, 7), disk)
    disk.write_at(SECOND, 40, garbage + unit(9000), FILE_BYTES)
    queue = recovered(disk)
    assert (queue.max_offset, queue.log_end) == (7, 700)
    assert disk.read(SECOND)[40:60] == bytes(20), "and does not come back"


def test_a_torn_unit_is_cut(disk: SimulatedFiles) -> None:
    save(filled(disk, 9), disk)
    disk.write_at(SECOND, 69, bytes(31), FILE_BYTES)
    assert recovered(disk).max_offset == 8


def test_files_behind_the_end_are_removed(disk: SimulatedFiles) -> None:
    save(filled(disk, 14), disk)
    disk.write_at(SECOND, 20, bytes(20), FILE_BYTES)
    disk.write_at(DIRECTORY / f"{300:020d}", 0, b"", 0)  # made by a broker that died
    queue = recovered(disk)
    assert queue.max_offset == 6
    assert disk.names(DIRECTORY) == [FIRST.name, SECOND.name]


def test_lost_files_are_looked_for_before_them(disk: SimulatedFiles) -> None:
    save(filled(disk, 22), disk)
    for start in (100, 200, 300, 400):
        disk.write_at(DIRECTORY / f"{start:020d}", 0, bytes(100), FILE_BYTES)
    queue = recovered(disk)
    assert (queue.max_offset, queue.log_end) == (5, 500)


def test_a_queue_without_units_keeps_its_place(disk: SimulatedFiles) -> None:
    disk.make_directory(DIRECTORY)
    disk.write_at(SECOND, 0, b"", FILE_BYTES)
    queue = recovered(disk)
    assert (queue.min_offset, queue.max_offset, queue.log_end) == (5, 5, 0)
    # Built again from the log, it may begin before that.
    assert queue.append(run(1, 100)) == 0
    assert (queue.min_offset, queue.max_offset) == (1, 2)
    assert log_offsets(recovered_after_save(queue, disk)) == [None, 100]
    assert disk.names(DIRECTORY) == [FIRST.name]


def test_a_first_file_of_no_length_is_removed(disk: SimulatedFiles) -> None:
    disk.make_directory(DIRECTORY)
    disk.write_at(FIRST, 0, b"", 0)
    assert recovered(disk).max_offset == 0
    assert disk.names(DIRECTORY) == []


def test_a_queue_of_blanks_has_no_log_end(disk: SimulatedFiles) -> None:
    disk.make_directory(DIRECTORY)
    disk.write_at(FIRST, 0, BLANK * 3, FILE_BYTES)
    queue = recovered(disk)
    assert (queue.max_offset, queue.log_end) == (3, 0)


def test_log_end_is_that_of_a_message_before_the_walk(disk: SimulatedFiles) -> None:
    queue = filled(disk, 2)
    queue.append(run(25, 900))
    save(queue, disk)
    disk.write_at(DIRECTORY / f"{500:020d}", 0, bytes(20), FILE_BYTES)
    again = recovered(disk)
    assert (again.max_offset, again.log_end) == (25, 200)


def test_other_files_and_lengths_are_refused(disk: SimulatedFiles) -> None:
    save(filled(disk, 3), disk)
    with pytest.raises(StoreDamaged, match="has 100 bytes, the settings say 6000000"):
        new(disk, 6_000_000).load()
    disk.write_at(DIRECTORY / "notes.txt", 0, b"", 0)
    with pytest.raises(StoreDamaged, match=r"notes\.txt is not a data file"):
        new(disk).load()


def test_files_that_a_power_cut_left_are_removed(disk: SimulatedFiles) -> None:
    save(filled(disk, 17), disk)
    disk.truncate(SECOND, 0)
    with pytest.raises(StoreDamaged, match="has 0 bytes, the settings say 100"):
        new(disk).load()
    queue = new(disk)
    queue.load(after_crash=True)
    queue.recover()
    assert queue.max_offset == 5
    assert disk.names(DIRECTORY) == [FIRST.name]


def test_after_a_power_cut_a_gap_ends_the_queue(disk: SimulatedFiles) -> None:
    save(filled(disk, 17), disk)
    disk.remove(SECOND)
    with pytest.raises(StoreDamaged, match="100 bytes are missing between them"):
        new(disk).load()
    queue = new(disk)
    queue.load(after_crash=True)
    queue.recover()
    assert queue.max_offset == 5


@pytest.mark.parametrize("name", [".DS_Store", "notes.txt", "1", f"{200:020d}.tmp"])
@pytest.mark.parametrize("size", [0, 1, FILE_BYTES])
def test_what_is_no_file_of_a_queue_is_refused_after_a_crash_and_nothing_removed(
    disk: SimulatedFiles, name: str, size: int
) -> None:
    save(filled(disk, 17), disk)
    disk.write_at(DIRECTORY / name, 0, bytes(size), size)
    before = disk.names(DIRECTORY)
    with pytest.raises(StoreDamaged, match="is not a data file; move it elsewhere"):
        new(disk).load(after_crash=True)
    assert disk.names(DIRECTORY) == before


@pytest.mark.parametrize("name", ["00000000000000000020", "99999999999999999999"])
@pytest.mark.parametrize("after_crash", [False, True])
def test_a_file_with_the_name_of_no_file_is_refused(
    disk: SimulatedFiles, name: str, *, after_crash: bool
) -> None:
    save(filled(disk, 3), disk)
    disk.rename(FIRST, DIRECTORY / name)
    with pytest.raises(StoreDamaged, match=rf"{name} is named by an offset that no file of 100"):
        new(disk).load(after_crash=after_crash)


def test_a_wrong_length_is_refused_after_a_crash_too(disk: SimulatedFiles) -> None:
    save(filled(disk, 17), disk)
    disk.truncate(SECOND, 0)
    disk.truncate(THIRD, 60)
    with pytest.raises(StoreDamaged, match="has 0 bytes"):
        new(disk).load(after_crash=True)
    assert len(disk.names(DIRECTORY)) == 4, "nothing is removed"


def test_a_file_that_shrank_is_reported(disk: SimulatedFiles) -> None:
    save(filled(disk, 50), disk)
    queue = recovered(disk)
    disk.truncate(FIRST, 30)
    with pytest.raises(StoreDamaged, match="gantrymq store rebuild"):
        queue.read(0, 10)


# -- truncation ------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("log_offset", "left"), [(0, 0), (1, 1), (450, 5), (500, 5), (501, 6), (1100, 11), (1200, 12)]
)
@pytest.mark.parametrize("written", [False, True])
def test_truncation(disk: SimulatedFiles, log_offset: int, left: int, written: bool) -> None:
    queue = filled(disk, 12)
    if written:
        save(queue, disk)
    queue.truncate_to(log_offset)
    assert (queue.max_offset, queue.log_end) == (left, 100 * left)
    assert log_offsets(queue) == [100 * number for number in range(left)]
    queue.append(run(left, 7000))
    assert log_offsets(recovered_after_save(queue, disk)) == [
        *(100 * number for number in range(left)), 7000,
    ]  # fmt: skip


def test_what_was_cut_off_does_not_come_back(disk: SimulatedFiles) -> None:
    save(filled(disk, 9), disk)
    queue = recovered(disk)
    queue.truncate_to(600)
    # At once: the log grows over the offsets of the cut units, and then they would look good.
    assert recovered(disk).max_offset == 6
    queue.append(run(6, 600))
    save(queue, disk)
    assert log_offsets(recovered(disk)) == [0, 100, 200, 300, 400, 500, 600]
    assert disk.read(SECOND) == unit(500) + unit(600) + bytes(60)


def test_what_apache_cut_off_does_not_come_back(disk: SimulatedFiles) -> None:
    """A zero unit, then units from before a crash, as Apache leaves them."""
    save(filled(disk, 6), disk)
    disk.write_at(SECOND, 40, unit(700) + unit(800) + unit(900), FILE_BYTES)
    queue = recovered(disk)
    assert queue.max_offset == 6
    queue.append(run(6, 600))
    save(queue, disk)
    assert disk.read(SECOND)[20:60] == unit(600) + bytes(20)
    assert recovered(disk).max_offset == 7
    queue.append(run(7, 700))
    queue.append(run(8, 800))
    save(queue, disk)
    assert recovered(disk).max_offset == 9, "though the unit behind it would fit"
    queue.append(run(9, 900))
    save(queue, disk)
    assert disk.names(DIRECTORY) == [FIRST.name, SECOND.name], "no file for zeros alone"


def test_truncation_keeps_the_place_of_a_queue(disk: SimulatedFiles) -> None:
    queue = new(disk)
    queue.append(run(5, 500, 600))
    save(queue, disk)
    queue.truncate_to(500)
    assert (queue.min_offset, queue.max_offset, queue.log_end) == (5, 5, 0)
    assert recovered(disk).max_offset == 5
    assert disk.read(SECOND) == bytes(FILE_BYTES)


def test_truncation_passes_over_blanks(disk: SimulatedFiles) -> None:
    queue = filled(disk, 5)
    queue.append(run(7, 700))
    queue.truncate_to(400)
    assert queue.max_offset == 4, "the gap behind it goes too"


def test_nothing_is_cut_while_a_thread_writes(disk: SimulatedFiles) -> None:
    queue = filled(disk, 3)
    queue.pending_writes()
    with pytest.raises(InvalidValue, match="is being written to"):
        queue.truncate_to(100)


# -- retention -------------------------------------------------------------------------------------


def test_the_min_offset_follows_the_log(disk: SimulatedFiles) -> None:
    queue = save(filled(disk, 12), disk)
    for log_min, expected in [(0, 0), (250, 3), (400, 4), (200, 4), (401, 5)]:
        queue.correct_min_offset(log_min)
        assert queue.min_offset == expected
    assert queue.read(3, 1) == b""
    assert drop_files_before(queue, 650) == [FIRST]
    assert queue.min_offset == 7
    assert drop_files_before(queue, 10**9) == [SECOND], "the last file stays"
    assert queue.min_offset == queue.max_offset == 12, "without a message in the log it is empty"
    assert queue.read(11, 1) == b""
    queue.append(run(12, 10**9))
    queue.correct_min_offset(10**9)
    assert log_offsets(queue) == [10**9]


def test_the_min_offset_of_a_large_file(disk: SimulatedFiles) -> None:
    queue = new(disk, 6_000_000)
    queue.append(run(20_000, *range(0, 9_000_000, 100)))
    for log_min in (0, 50, 100, 4_000_000, 8_999_900):
        again = new(disk, 6_000_000)
        save(queue, disk)
        again.load()
        again.recover()
        assert again.max_offset == 110_000
        again.correct_min_offset(log_min)
        assert again.min_offset == 20_000 + -(-log_min // 100)


def test_a_file_that_waits_to_be_written_is_not_dropped(disk: SimulatedFiles) -> None:
    queue = save(filled(disk, 5), disk)
    queue.append(run(5, 500))
    assert drop_files_before(queue, 450) == [], "the only file on the disk"
    save(queue, disk)
    assert drop_files_before(queue, 450) == [FIRST]


def test_a_file_that_ends_with_blanks_may_hold_messages(disk: SimulatedFiles) -> None:
    queue = filled(disk, 3)
    queue.append(run(8, 900))
    save(queue, disk)
    assert drop_files_before(queue, 200) == []
    assert drop_files_before(queue, 201) == [FIRST]


def test_deletion_names_files_and_directory(disk: SimulatedFiles) -> None:
    queue = save(filled(disk, 7), disk)
    assert queue.delete() == [FIRST, SECOND, DIRECTORY]
    for path in queue.delete():
        disk.remove(path)
    unwritten = filled(disk, 7)
    assert unwritten.delete() == []
    writes = unwritten.pending_writes()
    assert unwritten.delete() == [FIRST, SECOND, DIRECTORY], "a thread is making them"
    write_out(disk, writes)
