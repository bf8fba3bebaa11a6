"""What happens at which interval, and that a full disk is tried again."""

from __future__ import annotations

import errno

import pytest

from gantrymq.store.checkpoint import load_checkpoint
from gantrymq.store.status import PutStatus
from gantrymq.testing.disk import Operation
from support.store_rig import BORN_HOST, ROOT, Rig, frames, sync_rig

EVERY_UNIT = {"flushConsumeQueueLeastPages": "0"}
BIG = {"mappedFileSizeCommitLog": "1048576"}
POOL = {"transientStorePoolEnable": "true", "transientStorePoolSize": "2"}


def flushed(rig: Rig) -> bool:
    """Let the log's worker work; tell whether the log is on the disk, up to the tail's page."""
    rig.log_flush.drain()
    done = rig.store.flush.flushed_offset
    return done > 0 and done >= rig.store.log.committed_pages_offset


class TestLog:
    """ASYNC_FLUSH: 500 ms and 4 pages, 10 s and a byte."""

    def test_a_byte_waits_for_the_long_interval(self) -> None:
        rig = Rig(BIG)
        rig.put(b"x")
        for _ in range(19):
            rig.tick(0.5)
            assert not flushed(rig)
        rig.tick(0.5)
        assert flushed(rig)

    def test_four_pages_wait_for_the_short_one(self) -> None:
        rig = Rig(BIG)
        rig.put(bytes(4 * 4096))
        rig.tick(0.4)
        assert not flushed(rig)
        rig.tick(0.1)
        assert flushed(rig)

    def test_a_put_may_end_the_pause(self) -> None:
        rig = Rig(BIG | {"flushCommitLogTimed": "false"})
        rig.put(b"x")
        assert rig.log_flush.waiting_jobs == 0
        rig.put(bytes(4 * 4096))
        assert flushed(rig)

    def test_sync_flush_needs_no_timer(self) -> None:
        rig = sync_rig(**BIG)
        rig.tick(10.0)
        assert rig.log_flush.waiting_jobs == 0

    def test_when_to_be_called_again(self) -> None:
        rig = Rig(BIG)
        now = rig.clock.monotonic()
        assert rig.timers.tick(now) == now + 0.5
        rig = sync_rig(**BIG | {"syncFlushTimeout": "300"})
        assert rig.timers.tick(0.0) == 1.0
        rig.hold(rig.put(b"x"))
        assert rig.timers.tick(0.0) == 0.3
        assert rig.timers.tick(0.3) == 1.0


class TestPool:
    """The transient store pool: 200 ms, or 4 pages at once."""

    def test_what_is_not_committed_cannot_be_read(self) -> None:
        rig = Rig(BIG | POOL)
        out = rig.hold(rig.put(b"x"))
        assert out == [PutStatus.PUT_OK]
        assert rig.bodies() == []
        rig.tick(0.2)
        assert rig.bodies() == [b"x"]
        rig.put(b"y")
        rig.put(bytes(4 * 4096))
        assert len(rig.bodies()) == 3

    def test_the_end_of_the_process_takes_only_what_was_not_committed(self) -> None:
        rig = Rig(BIG | POOL)
        rig.put(b"x")
        rig.tick(0.2)
        rig.put(b"y")
        again = rig.again()
        assert again.bodies() == [b"x"]
        assert again.put(b"z").queue_offset == 1

    def test_with_sync_flush_a_commit_comes_before_every_force(self) -> None:
        rig = sync_rig(**BIG | POOL)
        out = rig.hold(rig.put(b"x"))
        assert (out, rig.bodies()) == ([], [])
        rig.log_flush.drain()
        assert (out, rig.bodies()) == ([PutStatus.PUT_OK], [b"x"])
        assert rig.again(rig.disk.crash(0.0)).bodies() == [b"x"]

    def test_a_clean_stop_commits(self) -> None:
        rig = Rig(BIG | POOL)
        rig.put(b"x")
        assert rig.store.close()
        assert rig.again(rig.disk).bodies() == [b"x"]

    def test_a_slave_has_none(self) -> None:
        assert Rig(BIG | POOL | {"brokerRole": "SLAVE"}).store.pool is None

    def test_sends_use_it_too(self) -> None:
        rig = Rig(BIG | POOL)
        buffer = frames([b"x", b"y"])
        rig.store.append_sends(buffer, 0, len(buffer), BORN_HOST)
        assert rig.bodies() == []
        rig.tick(0.2)
        assert rig.bodies() == [b"x", b"y"]
        assert rig.store.pool is not None
        assert rig.store.pool.free == 1


class TestQueues:
    """Queues are written out each second, forced with the checkpoint each minute."""

    def test_written_and_forced(self) -> None:
        rig = Rig(EVERY_UNIT)
        rig.put(b"x")
        queue = ROOT / "consumequeue" / "T" / "0" / f"{0:020d}"
        rig.tick(0.9)
        rig.queue_flush.drain()
        assert not rig.disk.exists(queue)
        rig.tick(0.1)
        rig.queue_flush.drain()
        assert any(rig.disk.read(queue))
        assert not rig.disk.exists(ROOT / "checkpoint")
        rig.tick(59.0)
        rig.settle()
        stamp = rig.records()[0].store_timestamp
        assert load_checkpoint(rig.disk, ROOT / "checkpoint").queues_ms == stamp
        rig.tick(60.0)
        rig.settle()
        assert load_checkpoint(rig.disk, ROOT / "checkpoint").log_ms == stamp

    def test_one_job_at_a_time(self) -> None:
        rig = Rig()
        rig.put(b"x")
        rig.tick(1.0)
        rig.tick(60.0)
        # One save; the other two look at the disks, for the cleaner and for writability.
        assert rig.queue_flush.waiting_jobs == 3
        rig.queue_flush.drain()
        rig.tick(1.0)  # the thorough one that could not be begun
        rig.queue_flush.drain()
        assert rig.disk.exists(ROOT / "checkpoint")

    def test_the_checkpoint_does_not_vouch_for_what_came_meanwhile(self) -> None:
        rig = Rig()
        rig.put(b"x")
        stamp = rig.records()[0].store_timestamp
        rig.tick(60.0)
        rig.clock.jump(5.0)
        rig.put(b"y")
        rig.settle()
        assert load_checkpoint(rig.disk, ROOT / "checkpoint").queues_ms == stamp

    def test_index_files_that_are_full(self) -> None:
        rig = Rig({"mappedFileSizeCommitLog": "65536"})
        for number in range(60):
            rig.put(b"x", properties={"KEYS": f"k{number}"})
            rig.clock.jump(1.0)
        rig.tick(60.0)
        rig.settle()
        assert rig.store.index is not None
        end = rig.store.index.files[0].header.end_timestamp
        assert load_checkpoint(rig.disk, ROOT / "checkpoint").index_ms == end
        again = rig.again()
        assert again.store.index is not None
        assert len(again.store.index.query("T", "k3", 32, 0, 1 << 60).log_offsets) == 1

    @pytest.mark.parametrize(("changes", "wait_s"), [(EVERY_UNIT, 1.0), ({}, 60.0)], ids=str)
    def test_a_full_disk_stops_writes_until_there_is_room(
        self, changes: dict[str, str], wait_s: float
    ) -> None:
        rig = Rig(changes)
        rig.put(b"x")
        rig.disk.fail(Operation.WRITE, errno.ENOSPC, times=2)
        rig.tick(wait_s)
        rig.queue_flush.drain()
        assert rig.put(b"y").status is PutStatus.SERVICE_NOT_AVAILABLE
        assert "No space left" in str(rig.store.writability.reason)
        assert rig.bodies() == [b"x"]
        rig.tick(1.0)
        rig.queue_flush.drain()
        assert rig.put(b"y").status is PutStatus.SERVICE_NOT_AVAILABLE
        rig.tick(1.0)
        rig.queue_flush.drain()
        assert rig.put(b"y").status is PutStatus.PUT_OK
        assert rig.store.gate.failure is None
        assert rig.again().bodies() == [b"x", b"y"]

    def test_a_queue_that_cannot_be_forced_stops_them_for_good(self) -> None:
        rig = Rig()
        rig.put(b"x")
        rig.disk.fail(Operation.SYNC, errno.EIO, where=lambda path: "consumequeue" in path.parts)
        rig.tick(60.0)
        rig.settle()
        assert rig.put(b"y").status is PutStatus.SERVICE_NOT_AVAILABLE
        assert not rig.store.flush_queues(thorough=True)
        assert load_checkpoint(rig.disk, ROOT / "checkpoint").queues_ms == 0
        again = rig.again()
        assert again.bodies() == [b"x"]
        assert again.again(again.disk.crash(0.0)).bodies() == [b"x"]

    def test_an_index_without_room_is_built_later(self) -> None:
        rig = Rig()
        rig.disk.fail(
            Operation.CREATE, errno.ENOSPC, times=1, where=lambda path: path.parent.name == "index"
        )
        out = rig.hold(rig.put(b"x", properties={"KEYS": "k"}))
        assert out == [PutStatus.PUT_OK]  # it is in the log
        assert rig.put(b"y").status is PutStatus.SERVICE_NOT_AVAILABLE
        rig.tick(1.0)
        assert rig.put(b"y").status is PutStatus.PUT_OK
        assert rig.bodies() == [b"x", b"y"]
        assert rig.store.index is not None
        assert len(rig.store.index.query("T", "k", 32, 0, 1 << 60).log_offsets) == 1


def test_late_replies_are_let_out() -> None:
    rig = sync_rig(syncFlushTimeout="700")
    out = rig.hold(rig.put(b"x"))
    rig.tick(0.6)
    assert out == []
    rig.tick(0.1)
    assert out == [PutStatus.FLUSH_DISK_TIMEOUT]
