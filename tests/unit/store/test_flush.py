"""Forcing the log: what is worth it, one force for many, and a disk that fails."""

from __future__ import annotations

import errno

import pytest

from gantrymq.store.errors import StoreNotWritable
from gantrymq.store.mapped_file import is_due
from gantrymq.store.status import PutStatus
from gantrymq.testing.disk import Operation
from support.store_rig import BORN_HOST, ROOT, Rig, frames, sync_rig

SIZE = 1 << 20
PAGE = 4096


@pytest.mark.parametrize(
    ("wrote", "flushed", "pages", "due"),
    [
        (0, 0, 0, False),
        (1, 0, 0, True),
        (100, 100, 0, False),
        (1, 0, 4, False),
        (4 * PAGE - 1, 0, 4, False),
        (4 * PAGE, 0, 4, True),
        (4 * PAGE, 1, 4, True),
        (4 * PAGE, PAGE - 1, 4, True),
        (4 * PAGE, PAGE, 4, False),
        (5 * PAGE, PAGE, 4, True),
        (SIZE, 0, 4, True),
        (SIZE, SIZE - 1, 4, True),
        (SIZE, SIZE, 4, True),
        (SIZE, SIZE, 0, True),
        (SIZE - 1, SIZE - 2, 4, False),
    ],
)
def test_what_is_worth_a_flush(wrote: int, flushed: int, pages: int, due: bool) -> None:
    # The table of MappedFile.isAbleToFlush: full is always worth it, else pages, else a byte.
    assert is_due(wrote, flushed, SIZE, pages) is due


def test_one_force_lets_out_everyone_who_came_before_it() -> None:
    rig = sync_rig()
    waiting = [rig.hold(rig.put(b"%d" % number)) for number in range(20)]
    assert rig.log_flush.waiting_jobs == 1
    rig.log_flush.run_one()
    later = [rig.hold(rig.put(b"late %d" % number)) for number in range(10)]
    rig.log_flush.report_one()
    # The first force was asked for by the first message and began with it.
    assert waiting == [[PutStatus.PUT_OK]] + 19 * [[]]
    rig.log_flush.run_one()
    rig.log_flush.report_one()
    assert waiting + later == 30 * [[PutStatus.PUT_OK]]
    assert rig.store.flush.syncs == 2
    assert rig.log_flush.waiting_jobs == 0


def test_a_buffer_of_sends_is_one_force() -> None:
    rig = sync_rig(mappedFileSizeCommitLog="65536")
    buffer = frames([b"x"] * 100)
    run = rig.store.append_sends(buffer, 0, len(buffer), BORN_HOST)
    out: list[PutStatus] = []
    rig.store.hold(rig.store.log.wrote_offset, out.append)
    rig.log_flush.drain()
    assert (run.messages, rig.store.flush.syncs, out) == (100, 1, [PutStatus.PUT_OK])


def test_nothing_is_readable_before_it_is_on_the_disk() -> None:
    rig = sync_rig()
    rig.put(b"one")
    assert rig.bodies() == []
    rig.log_flush.run_one()
    assert rig.bodies() == []  # the owner does not know yet
    rig.log_flush.report_one()
    assert rig.bodies() == [b"one"]


def test_wait_false_is_answered_at_once_and_forced_all_the_same() -> None:
    rig = sync_rig()
    out = rig.hold(rig.put(b"one"), waits=False)
    assert out == [PutStatus.PUT_OK]
    assert rig.bodies() == []
    rig.settle()
    assert rig.bodies() == [b"one"]
    assert rig.store.flush.flushed_offset == rig.store.log.wrote_offset
    assert rig.again(rig.disk.crash(0.0)).bodies() == [b"one"]


def test_a_slow_disk_is_a_time_out_and_not_a_loss() -> None:
    rig = sync_rig()
    out = rig.hold(rig.put(b"one"))
    rig.tick(4.9)
    assert out == []
    rig.tick(0.1)
    assert out == [PutStatus.FLUSH_DISK_TIMEOUT]
    rig.settle()
    assert (out, rig.bodies()) == ([PutStatus.FLUSH_DISK_TIMEOUT], [b"one"])


def test_a_failed_force_is_final() -> None:
    rig = sync_rig()
    rig.hold(rig.put(b"good"))
    rig.settle()
    rig.disk.fail(Operation.SYNC, errno.EIO)
    lost = [rig.hold(rig.put(b"lost %d" % number)) for number in range(3)]
    syncs = rig.disk.counts[Operation.SYNC]
    rig.log_flush.drain()
    assert lost == 3 * [[PutStatus.UNKNOWN_ERROR]]
    assert rig.disk.counts[Operation.SYNC] == syncs + 1, "it was asked once and never again"
    assert rig.bodies() == [b"good"]
    assert rig.put(b"more").status is PutStatus.SERVICE_NOT_AVAILABLE
    reason = rig.store.writability.reason
    assert reason is not None
    assert "Input/output error" in reason
    assert rig.store.gate.failure == reason
    buffer = frames([b"x"])
    with pytest.raises(StoreNotWritable, match="Input/output error"):
        rig.store.append_sends(buffer, 0, len(buffer), BORN_HOST)
    rig.tick(60.0)
    rig.settle()
    assert rig.disk.counts[Operation.SYNC] == syncs + 1
    assert not rig.store.close()
    assert rig.disk.counts[Operation.SYNC] == syncs + 1
    assert rig.again(rig.disk.crash(0.0)).bodies() == [b"good"]


def test_a_failed_force_in_the_background_stops_the_store_too() -> None:
    rig = Rig()
    rig.put(b"one")
    rig.disk.fail(Operation.SYNC, errno.EIO)
    rig.tick(10.0)
    rig.log_flush.drain()
    assert rig.put(b"two").status is PutStatus.SERVICE_NOT_AVAILABLE
    assert rig.bodies() == [b"one"]


def test_a_failure_that_nobody_was_told_of_is_not_forgotten_at_the_end() -> None:
    rig = sync_rig()
    out = rig.hold(rig.put(b"one"))
    rig.disk.fail(Operation.SYNC, errno.EIO)
    rig.log_flush.run_one()  # it fails, and its report is still on its way
    assert not rig.store.close()
    assert out == [PutStatus.UNKNOWN_ERROR]
    rig.log_flush.report_one()
    assert rig.disk.exists(ROOT / "abort")
    assert rig.again(rig.disk.crash(0.0)).bodies() == []


def test_what_was_written_after_a_failed_force_is_not_built_on_a_hole() -> None:
    rig = sync_rig()
    rig.put(b"one")
    out = rig.hold(rig.put(b"two"))
    rig.disk.fail(Operation.SYNC, errno.EIO)
    rig.log_flush.drain()
    assert out == [PutStatus.UNKNOWN_ERROR]
    assert rig.disk.exists(ROOT / "disk-failed")
    # The machine goes on and the process is started again: the page cache has what the disk lacks.
    second = rig.again()
    assert second.bodies() == [b"one", b"two"]
    assert not second.disk.exists(ROOT / "disk-failed")
    out = second.hold(second.put(b"three"))
    second.settle()
    assert out == [PutStatus.PUT_OK]
    assert second.again(second.disk.crash(0.0)).bodies() == [b"one", b"two", b"three"]


def test_a_force_vouches_for_nothing_behind_where_the_log_was_cut_meanwhile() -> None:
    rig = sync_rig()
    first = rig.put(b"one")
    rig.log_flush.drain()
    rig.put(b"two")
    rig.log_flush.run_one()  # its report is still on its way
    rig.store.flush.cut(first.end)
    rig.log_flush.report_one()
    assert rig.store.flush.flushed_offset == first.end


def test_least_pages_count_within_a_file() -> None:
    rig = Rig({"mappedFileSizeCommitLog": "65536"})
    rig.put(bytes(1000))
    rig.store.flush_log(4)
    assert rig.log_flush.waiting_jobs == 0
    rig.put(bytes(4 * PAGE))
    rig.store.flush_log(4)
    assert rig.log_flush.waiting_jobs == 1
    rig.settle()
    assert rig.store.flush.flushed_offset == 4 * PAGE, "the page of the tail is left alone"
    rig.store.flush_log(0)
    rig.settle()
    assert rig.store.flush.flushed_offset == rig.store.log.wrote_offset


def test_pages_that_nobody_asked_for_are_not_forced() -> None:
    rig = Rig({"mappedFileSizeCommitLog": "65536"})
    rig.put(b"a" * 5 * PAGE)
    tail = rig.store.log.files[0]
    tail.region.buffer[tail.size - 1] = 7  # as if somebody had touched it
    rig.store.flush_log(4)
    rig.settle()
    left = rig.disk.crash(keep=0.0).read_at(tail.region.path, 0, tail.size)
    assert left[: 5 * PAGE] == bytes(tail.region.buffer[: 5 * PAGE])
    assert left[5 * PAGE :] == bytes(tail.size - 5 * PAGE)


def test_the_stamp_of_a_force_covers_what_lies_before_the_page_of_the_tail() -> None:
    rig = Rig({"mappedFileSizeCommitLog": "65536"})
    told: list[tuple[int, int]] = []
    flush = rig.store.flush
    flush._flushed = lambda offset, stamp_ms: told.append((offset, stamp_ms))
    rig.put(bytes(4 * PAGE))
    first = rig.store.log.committed_stamp_ms
    rig.store.flush_log(4)
    rig.settle()
    rig.clock.jump(1.0)
    rig.put(bytes(4 * PAGE))
    rig.store.flush_log(4)
    rig.settle()
    assert told == [(4 * PAGE, 0), (8 * PAGE, first)]


def test_a_full_file_is_always_worth_it() -> None:
    rig = Rig()
    rig.put(bytes(3000))
    rig.put(bytes(3000))
    rig.store.flush_log(100)
    rig.settle()
    assert rig.store.flush.flushed_offset == 4096
    assert [file.flushed for file in rig.store.log.files] == [4096, 0]
