"""Where the log ends after every kind of stop, and that queues and index agree with it."""

from __future__ import annotations

import errno
import re
import struct
from contextlib import suppress
from typing import TYPE_CHECKING, ClassVar

import pytest

from gantrymq.kernel import Stop
from gantrymq.store.errors import StoreDamaged
from gantrymq.store.log_directories import LogDirectories
from gantrymq.store.recovery import LogRecovery
from gantrymq.store.status import PutStatus
from gantrymq.testing.clock import VirtualClock
from gantrymq.testing.disk import Halted, Operation, SimulatedFiles
from support.store_rig import LOG, ROOT, Rig, sync_rig

if TYPE_CHECKING:
    from pathlib import Path

    from gantrymq.store.files import StrPath

FIRST = LOG / f"{0:020d}"
SECOND = LOG / f"{4096:020d}"
QUEUE = ROOT / "consumequeue" / "T" / "0" / f"{0:020d}"


def changed(disk: SimulatedFiles, path: object, position: int, data: bytes) -> SimulatedFiles:
    """Return the disk of a killed process with some bytes of a file changed."""
    after = disk.kill()
    after.write_at(path, position, data, 0)  # type: ignore[arg-type]
    return after


def written(*sizes: int, **settings: str) -> Rig:
    """Return a store with messages of these body lengths in it, tagged, numbered from a."""
    rig = Rig(settings)
    for number, size in enumerate(sizes):
        body = bytes([97 + number]) * size
        rig.put(body, properties={"TAGS": f"tag{number}", "KEYS": f"k{number}"})
    return rig


def first_letters(rig: Rig) -> bytes:
    return b"".join(body[:1] for body in rig.bodies())


class TestCleanStop:
    """Nothing to do but to look."""

    def test_everything_is_there(self) -> None:
        rig = written(*[700] * 20)
        assert rig.disk.exists(ROOT / "abort")
        assert rig.store.close()
        assert not rig.disk.exists(ROOT / "abort")
        again = rig.again(rig.disk)
        assert again.report.clean
        assert again.report.log_end.records < 20, "only the end is walked"
        assert (again.report.files_dropped, again.report.bytes_wiped) == (0, 0)
        assert first_letters(again) == b"abcdefghijklmnopqrst"
        assert again.put(b"u").queue_offset == 20

    def test_it_survives_a_power_cut(self) -> None:
        rig = written(*[700] * 12)
        rig.store.close()
        again = rig.again(rig.disk.crash(0.0))
        assert again.report.clean
        assert first_letters(again) == b"abcdefghijkl"

    def test_an_empty_store(self) -> None:
        rig = Rig()
        assert rig.store.close()
        again = rig.again(rig.disk)
        assert (again.report.clean, again.report.log_end.offset) == (True, 0)
        assert again.put(b"x").log_offset == 0

    def test_queues_that_were_removed_are_built_again(self) -> None:
        rig = written(*[700] * 12)
        rig.store.close()
        directory = ROOT / "consumequeue" / "T" / "0"
        for name in rig.disk.names(directory):
            rig.disk.remove(directory / name)
        rig.disk.remove(directory)
        rig.disk.remove(directory.parent)
        assert first_letters(rig.again(rig.disk)) == b"abcdefghijkl"

    def test_queues_that_were_removed_are_built_again_after_a_crash_too(self) -> None:
        rig = written(*[700] * 12)
        rig.clock.jump(100)
        rig.tick(60.0)
        rig.settle()  # the checkpoint vouches for all of it
        disk = rig.disk.kill()
        directory = ROOT / "consumequeue" / "T" / "0"
        for name in disk.names(directory):
            disk.remove(directory / name)
        disk.remove(directory)
        again = rig.again(disk)
        assert again.report.log_end.began_at == 0
        assert first_letters(again) == b"abcdefghijkl"

    def test_the_clock_of_the_log_goes_on(self) -> None:
        rig = written(10)
        stamp = rig.records()[0].store_timestamp
        rig.store.close()
        rig.clock.set_now_ms(stamp - 1_000_000)
        again = rig.again(rig.disk)
        again.put(b"x")
        assert again.records()[1].store_timestamp == stamp


class TestCrash:
    """The process died, or the power went."""

    def test_a_killed_process_loses_nothing(self) -> None:
        rig = written(*[700] * 12)
        again = rig.again()
        assert not again.report.clean
        assert first_letters(again) == b"abcdefghijkl"
        assert again.put(b"m").queue_offset == 12
        assert again.store.flush.flushed_offset <= again.store.log.wrote_offset

    def test_what_was_recovered_is_on_the_disk_with_sync_flush(self) -> None:
        again = written(*[700] * 12, flushDiskType="SYNC_FLUSH").again()
        assert first_letters(again.again(again.disk.crash(0.0))) == b"abcdefghijkl"

    def test_with_async_flush_the_timers_force_what_was_recovered(self) -> None:
        again = written(*[700] * 12).again()
        assert again.store.flush.flushed_offset < again.store.log.wrote_offset
        again.tick(11)
        again.settle()
        assert again.store.flush.flushed_offset == again.store.log.wrote_offset
        assert first_letters(again.again(again.disk.crash(0.0))) == b"abcdefghijkl"

    def test_the_walk_begins_where_the_checkpoint_says(self) -> None:
        rig = written(*[700] * 6)
        rig.clock.jump(10)
        for letter in b"ghijkl":
            rig.put(bytes([letter]) * 700)
        rig.clock.jump(10)
        rig.tick(60.0)
        rig.settle()
        rig.tick(60.0)
        rig.settle()  # now the checkpoint knows of the log as well
        rig.put(b"m" * 700)
        again = rig.again()
        assert again.report.log_end.began_at >= 4096
        assert first_letters(again) == b"abcdefghijklm"
        assert [record.queue_offset for record in again.records()] == list(range(13))

    def test_an_entry_whose_tag_is_torn_is_built_again(self) -> None:
        rig = written(10, 10, 10)
        rig.store.flush_queues(thorough=False)
        rig.settle()
        # The last bytes of a unit did not get to the disk; offset and size did.
        disk = changed(rig.disk, QUEUE, 20 + 12, bytes(8))
        queue = rig.again(disk).store.queues.find("T", 0)
        before = rig.store.queues.find("T", 0)
        assert queue is not None
        assert before is not None
        assert queue.read(0, 3) == before.read(0, 3)

    def test_an_interrupted_start_is_followed_by_a_careful_one(self) -> None:
        rig = written(*[700] * 12)
        rig.store.close()
        assert not rig.disk.exists(ROOT / "abort")
        rig.disk.fail(Operation.OPEN, errno.EIO, where=lambda path: path.parent == LOG)
        with pytest.raises(OSError, match="Input/output"):
            rig.again(rig.disk)
        again = rig.again()
        assert not again.report.clean
        assert first_letters(again) == b"abcdefghijkl"

    def test_what_is_wiped_is_forced_and_nothing_else(self) -> None:
        rig = written(*[700] * 3)
        end = rig.store.log.wrote_offset
        disk = changed(rig.disk, FIRST, end + 64, b"left over")
        forced: list[Path] = []
        disk.on_sync = forced.append
        again = rig.again(disk)
        assert again.report.bytes_wiped == 64 + len(b"left over")
        assert forced.count(FIRST) == 1
        assert b"left over" not in disk.crash(keep=0.0).read(FIRST)
        assert first_letters(again) == b"abc"

    def test_an_index_that_went_on_in_the_same_millisecond_is_not_taken_for_a_forced_one(
        self,
    ) -> None:
        rig = written(*[100] * 3)
        assert rig.store.close()
        rig = rig.again(rig.disk)
        rig.put(b"x" * 50, properties={"KEYS": "late"})  # the clock stands still
        rig.store.flush_log(0)
        rig.settle()
        again = rig.again(rig.disk.crash(keep=0.0))
        assert again.store.index is not None
        (offset,) = again.store.index.query("T", "late", 32, 0, 1 << 60).log_offsets
        assert again.store.reads.record_at(offset) is not None

    def test_index_keys_of_what_was_walked_are_there(self) -> None:
        again = written(*[100] * 8).again()
        assert again.store.index is not None
        found = again.store.index.query("T", "k3", 32, 0, 1 << 60)
        assert len(found.log_offsets) == 1


class TestTornTail:
    """The last record is cut at every byte, or one of its bits is another."""

    def test_at_every_byte_of_it(self) -> None:
        rig = written(50, 60, 70)
        records = rig.store.get("T", 0, 0, 3).records
        start = sum(len(raw) for raw in records[:2])
        last = bytes(records[2])
        for cut in range(len(last)):
            disk = changed(rig.disk, FIRST, start + cut, bytes(len(last) - cut))
            again = rig.again(disk)
            letters = first_letters(again)
            if letters == b"abc":
                # Only properties are missing, and not from a sector's border on: no power cut does
                # that, and a record has nothing that would show it.
                assert cut > len(last) - len(b"TAGS\x01tag2\x02KEYS\x01k2\x02")
            else:
                assert letters == b"ab"
                assert again.report.log_end.offset == start
                assert again.report.bytes_wiped == len(last[:cut].rstrip(b"\0"))
                assert not any(again.disk.read(FIRST)[start:])
                assert again.put(b"next").log_offset == start

    def test_a_byte_of_its_body_is_another(self) -> None:
        rig = written(50, 60, 70)
        raw = rig.disk.read(FIRST)
        disk = changed(rig.disk, FIRST, raw.index(b"c" * 70) + 33, b"X")
        again = rig.again(disk)
        assert first_letters(again) == b"ab"
        assert again.report.log_end.stop is Stop.BAD_CRC

    def test_damage_in_the_middle_ends_the_log_as_in_apache(self) -> None:
        rig = written(*[700] * 12)
        raw = rig.disk.read(SECOND)
        again = rig.again(changed(rig.disk, SECOND, raw.index(b"g" * 700) + 5, b"X"))
        assert first_letters(again) == b"abcdef"
        assert again.report.files_dropped > 0
        assert again.disk.names(LOG) == [FIRST.name, SECOND.name]

    def test_without_crc_checks_a_damaged_body_is_served(self) -> None:
        rig = written(50, 60, checkCRCOnRecover="false")
        raw = rig.disk.read(FIRST)
        disk = changed(rig.disk, FIRST, raw.index(b"b" * 60) + 5, b"X")
        again = rig.again(disk)
        assert again.store.get("T", 0, 0, 32).max_offset == 2

    def test_a_record_that_says_it_belongs_elsewhere(self) -> None:
        rig = written(50, 60)
        second = len(rig.store.get("T", 0, 0, 1).records[0])
        again = rig.again(changed(rig.disk, FIRST, second + 28, struct.pack(">q", 12345)))
        assert first_letters(again) == b"a"
        assert again.report.log_end.stop is Stop.BAD_OFFSET

    def test_properties_that_did_not_get_to_the_disk(self) -> None:
        rig = sync_rig(mappedFileSizeCommitLog="8192")
        rig.put(b"a" * 300, properties={"KEYS": "k" * 100})
        rig.settle()
        # The properties of the second begin before 1024 and end behind it.
        rig.put(b"b" * 350, properties={"KEYS": "k" * 200})
        raw = bytearray(rig.disk.read(FIRST))
        assert raw[1023:1025] == b"kk"
        disk = rig.disk.kill()
        disk.write_at(FIRST, 1024, bytes(512), 0)
        again = rig.again(disk)
        assert [len(body) for body in again.bodies()] == [300]
        assert again.report.log_end.stop is Stop.BAD_CRC


class TestFiles:
    """Files that a crash leaves behind the log's end, or without content."""

    def test_a_last_file_without_length(self) -> None:
        rig = written(700)
        rig.allocation.drain()
        disk = rig.disk.kill()
        disk.truncate(SECOND, 0)
        again = rig.again(disk)
        assert first_letters(again) == b"a"
        assert again.disk.names(LOG) == [FIRST.name]
        again.put(b"b" * 3500)
        assert [body[:1] for body in again.bodies()] == [b"a", b"b"]

    def test_a_file_made_ahead(self) -> None:
        rig = written(700)
        rig.allocation.drain()
        assert len(rig.disk.names(LOG)) == 2
        again = rig.again()
        assert (again.report.files_dropped, again.disk.names(LOG)) == (1, [FIRST.name])

    def test_a_log_that_ends_with_a_blank_record(self) -> None:
        rig = written(700, 3800)
        assert rig.store.log.wrote_offset > 4096
        disk = rig.disk.kill()
        disk.remove(SECOND)
        if len(disk.names(LOG)) > 1:
            disk.remove(LOG / f"{8192:020d}")
        again = rig.again(disk)
        assert first_letters(again) == b"a"
        assert again.report.log_end.stop is Stop.BLANK
        # Unlike in Apache nothing takes its place: a slave may have it already.
        stored = again.put(b"b")
        assert (stored.log_offset, stored.queue_offset) == (4096, 1)
        assert first_letters(again.again()) == b"ab"

    @pytest.mark.parametrize("stops_cleanly", [True, False])
    def test_the_log_never_goes_back_behind_a_file_that_was_closed(
        self, *, stops_cleanly: bool
    ) -> None:
        """The disk was full when the next file was to be made, and the broker is restarted."""
        rig = Rig({"flushDiskType": "SYNC_FLUSH"})
        rig.put(b"a" * 1000)
        rig.disk.fail(Operation.CREATE, errno.ENOSPC, times=None)
        assert rig.put(b"b" * 3500).status is PutStatus.CREATE_MAPPED_FILE_FAILED
        rig.settle()
        assert rig.store.log.wrote_offset == 4096, "and a slave has copied that much"
        rig.disk.heal()
        if stops_cleanly:
            assert rig.store.close()
        again = rig.again()
        assert again.store.log.wrote_offset == 4096
        assert again.put(b"c").log_offset == 4096
        again.settle()
        assert first_letters(again) == b"ac"

    @pytest.mark.parametrize("stops_cleanly", [True, False])
    def test_a_log_without_any_file_may_lie_on_a_disk_that_is_not_mounted(
        self, *, stops_cleanly: bool
    ) -> None:
        rig = written(700, 700)
        rig.store.flush_queues(thorough=True)
        rig.settle()
        if stops_cleanly:
            assert rig.store.close()
        disk = rig.disk.kill()
        log = {name: disk.read(LOG / name) for name in disk.names(LOG)}
        for name in log:
            disk.remove(LOG / name)
        with pytest.raises(StoreDamaged, match="not mounted"):
            rig.again(disk)
        disk = disk.kill()
        for name, data in log.items():
            disk.write_at(LOG / name, 0, data, len(data))
        assert first_letters(rig.again(disk)) == b"ab", "and nothing was done to its queues"

    def test_a_missing_file_is_not_passed_over(self) -> None:
        rig = written(*[700] * 20)
        disk = rig.disk.kill()
        disk.remove(SECOND)
        with pytest.raises(StoreDamaged, match="4096 bytes are missing"):
            rig.again(disk)

    def test_other_file_sizes_are_refused_and_nothing_is_changed(self) -> None:
        rig = written(700)
        rig.store.close()
        with pytest.raises(StoreDamaged, match="8192"):
            rig.again(rig.disk, mappedFileSizeCommitLog="8192")
        again = rig.again(rig.disk)
        assert again.report.clean
        assert first_letters(again) == b"a"


class TestStaleBytes:
    """What lay behind the end is wiped, so that nothing brings it back."""

    def test_a_record_behind_a_torn_one_stays_gone(self) -> None:
        rig = written(50, 50, 50)
        size = len(rig.store.get("T", 0, 0, 1).records[0])
        disk = changed(rig.disk, FIRST, size + 100, b"X")  # the second is damaged
        again = rig.again(disk)
        assert first_letters(again) == b"a"
        # A record of the same length takes its place: behind it the third would be good again.
        again.put(b"B" * 50, properties={"TAGS": "tag1", "KEYS": "k1"})
        assert again.store.log.wrote_offset == 2 * size
        third = again.again()
        assert first_letters(third) == b"aB"

    def test_nor_does_a_power_cut_while_it_is_being_wiped(self) -> None:
        for steps in range(40):
            rig = written(50, 50, 50)
            size = len(rig.store.get("T", 0, 0, 1).records[0])
            disk = changed(rig.disk, FIRST, size + 100, b"X")
            disk.halt_after(steps)
            with suppress(Halted):
                rig.again(disk)
            again = rig.again(disk.crash(0.5))
            assert first_letters(again) in {b"", b"a"}
            again.put(b"B" * 50, properties={"TAGS": "tag1", "KEYS": "k1"})
            assert first_letters(again.again()).endswith(b"B")

    def test_queue_entries_of_what_was_cut_are_gone_too(self) -> None:
        rig = written(*[100] * 15)
        rig.store.flush_queues(thorough=True)
        rig.settle()
        raw = rig.disk.read(FIRST)
        again = rig.again(changed(rig.disk, FIRST, raw.index(b"c" * 100), b"X"))
        assert first_letters(again) == b"ab"
        again.put(b"C")
        assert first_letters(again.again()) == b"abC"


class _Warmed(SimulatedFiles):
    """A disk whose files have been touched to their end, and that counts what is written."""

    def __init__(self) -> None:
        super().__init__()
        self.written: list[tuple[int, int]] = []

    def data_end(self, path: Path) -> int:
        """Know nothing of holes."""
        return self.size(path)

    def write_at(self, path: StrPath, position: int, data: bytes, size: int) -> None:
        """Note it."""
        self.written.append((position, len(data)))
        super().write_at(path, position, data, size)


class TestWiping:
    """Zeros are not written where they stand, unless it is not known that the disk has them."""

    def cut(self, *, trusts_zeros: bool, stale: bytes) -> tuple[_Warmed, int]:
        disk = _Warmed()
        disk.make_directory(LOG)
        disk.place(FIRST, bytes(100) + stale + bytes(3996 - len(stale)))
        recovery = LogRecovery(LogDirectories((LOG,)), 4096, disk)
        _dropped, wiped = recovery.cut(100, trusts_zeros=trusts_zeros)
        assert not any(disk.read(FIRST))
        return disk, wiped

    def test_zeros_are_left_alone(self) -> None:
        disk, wiped = self.cut(trusts_zeros=True, stale=b"")
        assert (disk.written, wiped) == ([], 0)

    def test_anything_else_is_not(self) -> None:
        disk, wiped = self.cut(trusts_zeros=True, stale=b"\0\0x")
        assert (disk.written, wiped) == ([(100, 3996)], 3)

    def test_after_a_failed_force_everything_is_written(self) -> None:
        disk, wiped = self.cut(trusts_zeros=False, stale=b"")
        assert (disk.written, wiped) == ([(100, 3996)], 0)


def test_a_report_is_one_line() -> None:
    rig = written(700)
    report = str(rig.again().report)
    assert report.startswith("store opened after a crash: log 0 to ")
    assert "\n" not in report


class TestRot:
    """A disk that forgot what it had kept: good messages behind the damage are not cut off."""

    SETTINGS: ClassVar = {"mappedFileSizeCommitLog": "65536", "flushDiskType": "SYNC_FLUSH"}

    def rotten(self) -> tuple[Rig, SimulatedFiles]:
        """Return a store with forced messages, killed, one byte of the eleventh changed."""
        rig = Rig(self.SETTINGS)
        for number in range(400):
            rig.put(b"%04d" % number)
            rig.settle()
            rig.tick(0.001)
        for _ in range(2):
            rig.tick(61)
            rig.settle()
        disk = rig.disk.kill()
        path = LOG / "00000000000000000000"
        return rig, changed(disk, path, disk.read(path).index(b"0010"), b"X")

    def test_nothing_is_cut_and_the_error_says_what_to_do(self) -> None:
        rig, disk = self.rotten()
        before = disk.read(LOG / "00000000000000000000")
        with pytest.raises(StoreDamaged, match=r"Nothing was cut.*remove .*checkpoint"):
            Rig(rig.settings, disk, rig.clock)
        assert disk.read(LOG / "00000000000000000000") == before

    def test_without_its_checkpoint_the_log_ends_there(self) -> None:
        rig, disk = self.rotten()
        disk.remove(LOG.parent / "checkpoint")
        assert len(Rig(rig.settings, disk, rig.clock).bodies()) == 10


class SlowClock(VirtualClock):
    """Time passes between any two questions."""

    def monotonic(self) -> float:
        self.jump(3)
        return super().monotonic()


def test_a_start_that_takes_long_says_how_far_it_is(caplog: pytest.LogCaptureFixture) -> None:
    rig = Rig()
    for _ in range(8):
        rig.put(bytes(3000))
    end = rig.store.log.wrote_offset
    caplog.set_level("INFO", "gantrymq.store.opening")
    quick = rig.again(rig.disk.kill())
    assert caplog.messages == []
    slow = Rig(rig.settings, quick.disk.kill(), SlowClock())
    files_end = slow.store.log.files[-1].start + slow.store.log.file_bytes
    said = [re.fullmatch(r"recovering: at log offset (\d+); the files end at (\d+)", line)
            for line in caplog.messages]  # fmt: skip
    places = [(int(one[1]), int(one[2])) for one in said if one is not None]
    assert len(places) == len(caplog.messages) >= 3
    assert places == sorted(places), "it goes on"
    assert places[-1][0] <= end
    assert {stop for _, stop in places} == {files_end}
