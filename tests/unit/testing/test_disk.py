"""The simulated disk loses what it should lose, keeps the rest, and behaves like the real one."""

from __future__ import annotations

import errno
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from gantrymq.store.files import Files, OsFiles
from gantrymq.testing.clock import VirtualClock
from gantrymq.testing.disk import Halted, Names, Operation, SimulatedFiles

if TYPE_CHECKING:
    from collections.abc import Callable

ROOT = Path("/store")
FILE = ROOT / "a"
PAGE = 4096


def disk(seed: int = 0, names: Names = Names.JOURNALED) -> SimulatedFiles:
    """Return a disk with one directory that is safe."""
    made = SimulatedFiles(seed, names=names)
    made.make_directory(ROOT)
    made.sync_directory(ROOT.parent)
    return made


class TestPowerCut:
    def test_what_was_forced_is_there(self) -> None:
        files = disk()
        region = files.create(FILE, 2 * PAGE)
        region.buffer[:5] = b"first"
        region.sync()
        region.buffer[PAGE : PAGE + 4] = b"last"
        after = files.crash(keep=0)
        assert after.read(FILE) == b"first".ljust(2 * PAGE, b"\0")

    def test_what_was_not_forced_may_be_there(self) -> None:
        files = disk()
        region = files.create(FILE, PAGE)
        region.buffer[:5] = b"first"
        assert files.crash(keep=1).read(FILE)[:5] == b"first"

    def test_sectors_go_one_by_one(self) -> None:
        files = disk()
        region = files.create(FILE, 16 * PAGE)
        region.sync()
        region.buffer[:] = b"x" * 16 * PAGE
        content = files.crash(keep=0.5).read(FILE)
        sectors = {content[at : at + 512] for at in range(0, len(content), 512)}
        assert sectors == {b"x" * 512, bytes(512)}

    def test_a_tear_can_be_as_coarse_as_a_page(self) -> None:
        files = SimulatedFiles(sector_bytes=PAGE)
        files.place(FILE, bytes(16 * PAGE))
        files.write_at(FILE, 0, b"x" * 16 * PAGE, 0)
        content = files.crash(keep=0.5).read(FILE)
        pages = {content[at : at + PAGE] for at in range(0, len(content), PAGE)}
        assert pages == {b"x" * PAGE, bytes(PAGE)}

    def test_a_length_that_was_not_forced_is_the_old_or_the_new_one(self) -> None:
        found = set()
        for seed in range(40):
            files = disk(seed)
            files.truncate(FILE, 10)
            files.sync_directory(ROOT)
            files.write_at(FILE, 10, b"x" * 10, 0)
            found.add(files.crash(keep=0.5).size(FILE))
        assert found == {0, 10, 20}

    def test_a_length_that_was_forced_stays(self) -> None:
        for seed in range(20):
            files = disk(seed)
            files.write_at(FILE, 0, b"x", 30)
            files.sync(FILE)
            files.write_at(FILE, 40, b"x", 0)
            assert files.crash(keep=0.5).size(FILE) in {30, 41}

    def test_the_dead_disk_is_of_no_more_use(self) -> None:
        files = disk()
        region = files.create(FILE, PAGE)
        after = files.crash(keep=1)
        region.buffer[:3] = b"ghs"
        for use in (region.sync, lambda: files.read(FILE), lambda: files.create(ROOT / "b", 1)):
            with pytest.raises(OSError, match="crashed"):
                use()
        assert after.read(FILE) == bytes(PAGE)

    def test_the_same_seed_leaves_the_same_disk(self) -> None:
        def leftover() -> bytes:
            files = disk(7)
            files.place(FILE, bytes(PAGE * 8))
            files.write_at(FILE, 0, bytes(range(256)) * 128, 0)
            return files.crash(keep=0.5).read(FILE)

        assert leftover() == leftover()

    def test_the_kernel_may_write_back_before(self) -> None:
        files = disk()
        files.place(FILE, bytes(PAGE))
        files.write_at(FILE, 0, b"old", 0)
        files.write_back(keep=1)
        files.write_at(FILE, 0, b"new", 0)
        assert files.crash(keep=0).read(FILE)[:3] == b"old"


class TestNames:
    def test_a_forced_file_has_its_name_in_a_journal(self) -> None:
        files = disk()
        files.create(FILE, PAGE).sync()
        assert files.crash(keep=0).exists(FILE)

    def test_a_forced_file_has_no_name_by_the_letter_of_posix(self) -> None:
        files = disk(names=Names.STRICT)
        files.create(FILE, PAGE).sync()
        assert not files.crash(keep=0).exists(FILE)

    def test_a_forced_directory_has_its_names(self) -> None:
        files = disk(names=Names.STRICT)
        files.create(FILE, PAGE).sync()
        files.sync_directory(ROOT)
        assert files.crash(keep=0).size(FILE) == PAGE

    def test_a_removed_file_may_come_back(self) -> None:
        files = disk()
        files.place(FILE, b"x")
        files.remove(FILE)
        assert files.crash(keep=0).read(FILE) == b"x"

    def test_names_come_in_order_from_a_journal(self) -> None:
        seen = set()
        for seed in range(60):
            files = disk(seed)
            for name in "abc":
                files.truncate(ROOT / name, 1)
            seen.add("".join(files.crash(keep=0.5).names(ROOT)))
        assert seen == {"", "a", "ab", "abc"}

    def test_names_come_in_any_order_without_one(self) -> None:
        seen = set()
        for seed in range(120):
            files = disk(seed, Names.STRICT)
            for name in "abc":
                files.truncate(ROOT / name, 1)
            seen.add("".join(files.crash(keep=0.5).names(ROOT)))
        assert seen == {"", "a", "b", "c", "ab", "ac", "bc", "abc"}

    def test_a_rename_is_never_half_done(self) -> None:
        for seed in range(40):
            files = disk(seed, Names.STRICT)
            files.place(FILE, b"old")
            files.place(ROOT / "a.tmp", b"new")
            files.rename(ROOT / "a.tmp", FILE)
            after = files.crash(keep=0.5)
            left = {name: after.read(ROOT / name) for name in after.names(ROOT)}
            assert left in ({"a": b"old", "a.tmp": b"new"}, {"a": b"new"})

    def test_a_lost_directory_takes_its_files_along(self) -> None:
        files = disk(names=Names.STRICT)
        files.make_directory(ROOT / "b" / "c")
        files.write_at(ROOT / "b" / "c" / "d", 0, b"x", 0)
        files.sync(ROOT / "b" / "c" / "d")
        files.sync_directory(ROOT / "b" / "c")
        assert files.crash(keep=0).names(ROOT) == []

    def test_a_renamed_file_that_was_not_forced_is_empty(self) -> None:
        files = disk()
        files.write_at(FILE, 0, b"content", 0)
        files.rename(FILE, ROOT / "b")
        files.sync_directory(ROOT)
        assert files.crash(keep=0).read(ROOT / "b") == b""


class TestProcessDeath:
    def test_everything_written_is_still_there(self) -> None:
        files = disk()
        region = files.create(FILE, PAGE)
        region.buffer[:3] = b"abc"
        files.lock(ROOT / "lock")
        after = files.kill()
        region.buffer[:3] = b"xyz"
        assert after.read(FILE)[:3] == b"abc"
        assert after.lock(ROOT / "lock")

    def test_it_is_not_on_the_disk_for_that(self) -> None:
        files = disk()
        files.write_at(FILE, 0, b"abc", 0)
        assert not files.kill().crash(keep=0).exists(FILE)


class TestFaults:
    def test_a_sync_fails_once(self) -> None:
        files = disk()
        region = files.create(FILE, PAGE)
        files.fail(Operation.SYNC)
        with pytest.raises(OSError, match="Input/output error") as caught:
            region.sync()
        assert caught.value.errno == errno.EIO
        region.sync()

    def test_a_sync_that_is_tried_again_leaves_the_pages_behind(self) -> None:
        files = disk()
        region = files.create(FILE, 2 * PAGE)
        region.sync()
        region.buffer[0] = 1
        files.fail(Operation.SYNC)
        with pytest.raises(OSError, match="error"):
            region.sync()
        region.buffer[PAGE] = 2
        region.sync()
        content = files.crash(keep=0).read(FILE)
        assert (content[0], content[PAGE]) == (0, 2)

    def test_a_page_that_is_written_again_is_forced_again(self) -> None:
        files = disk()
        region = files.create(FILE, PAGE)
        region.buffer[0] = 1
        files.fail(Operation.SYNC)
        with pytest.raises(OSError, match="error"):
            region.sync()
        region.buffer[1] = 2
        region.sync()
        assert files.crash(keep=0).read(FILE)[:2] == b"\1\2"

    def test_faults_can_wait_and_choose(self) -> None:
        files = disk()
        files.fail(
            Operation.WRITE,
            errno.ENOSPC,
            times=None,
            after=1,
            where=lambda path: path.suffix == ".tmp",
        )
        files.write_at(ROOT / "a.tmp", 0, b"x", 0)
        files.write_at(ROOT / "a", 0, b"x", 0)
        for _ in range(3):
            with pytest.raises(OSError, match="No space"):
                files.write_at(ROOT / "a.tmp", 0, b"x", 0)
        files.heal()
        files.write_at(ROOT / "a.tmp", 0, b"x", 0)
        assert files.counts[Operation.WRITE] == 6

    def test_a_full_disk(self) -> None:
        files = disk()
        files.capacity = 10 * PAGE
        files.create(FILE, 8 * PAGE)
        assert files.usage(ROOT).ratio == 0.8
        with pytest.raises(OSError, match="No space"):
            files.create(ROOT / "b", 3 * PAGE)
        assert not files.exists(ROOT / "b")
        files.other_bytes = 2 * PAGE
        with pytest.raises(OSError, match="No space"):
            files.write_at(ROOT / "b", 0, b"x", 0)
        files.remove(FILE)
        assert files.create(ROOT / "c", 3 * PAGE).size == 3 * PAGE

    def test_a_read_only_disk(self) -> None:
        files = disk()
        files.place(FILE, b"x")
        files.read_only = True
        assert files.read(FILE) == b"x"
        changes: list[Callable[[], None]] = [
            lambda: files.write_at(FILE, 0, b"y", 0),
            lambda: files.remove(FILE),
            files.open(FILE).sync,
        ]
        for change in changes:
            with pytest.raises(OSError, match="Read-only"):
                change()

    def test_it_halts_at_a_chosen_step(self) -> None:
        files = disk()
        files.halt_after(2)
        files.write_at(FILE, 0, b"x", 0)
        files.sync(FILE)
        for _ in range(2):
            with pytest.raises(Halted, match="RENAME"):
                files.rename(FILE, ROOT / "b")
        assert files.crash().read(FILE) == b"x"

    def test_a_slow_sync_forces_what_was_there_when_it_began(self) -> None:
        files = disk()
        region = files.create(FILE, PAGE)
        region.sync()
        region.buffer[0] = 1

        def late(_path: Path) -> None:
            region.buffer[1] = 2

        files.on_sync = late
        region.sync()
        assert files.crash(keep=0).read(FILE)[:2] == b"\1\0"

    def test_of_two_syncs_the_later_one_wins(self) -> None:
        files = disk()
        region = files.create(FILE, PAGE)

        def overtake(_path: Path) -> None:
            files.on_sync = None
            region.buffer[0] = 9
            region.sync()

        files.on_sync = overtake
        region.sync()
        assert files.crash(keep=0).read(FILE)[0] == 9


BOTH: list[Callable[[], Files]] = [OsFiles, SimulatedFiles]


@pytest.mark.parametrize("make", BOTH, ids=["machine", "simulated"])
class TestLikeTheRealOne:
    """What the store relies on; each case runs on the machine's disk too."""

    @pytest.fixture
    def files(self, make: Callable[[], Files], tmp_path: Path) -> Files:
        made = make()
        made.make_directory(tmp_path)
        return made

    def test_regions_and_positions_show_the_same_bytes(self, files: Files, tmp_path: Path) -> None:
        path = tmp_path / "a"
        region = files.create(path, 100)
        region.buffer[10:13] = b"abc"
        assert files.read_at(path, 10, 3) == b"abc"
        files.write_at(path, 11, b"XY", 0)
        assert bytes(region.buffer[10:14]) == b"aXY\0"
        held = region.buffer[10:14]
        region.close()
        assert bytes(held) == b"aXY\0"
        region.close()
        other = files.open(path, writable=False)
        assert (other.size, other.path, other.buffer.readonly) == (100, path, True)

    def test_a_closed_region_cannot_be_forced(self, files: Files, tmp_path: Path) -> None:
        region = files.create(tmp_path / "a", 100)
        region.close()
        with pytest.raises((OSError, ValueError), match=r"closed|negative"):
            region.sync()

    def test_a_removed_file_stays_readable_through_its_map(
        self, files: Files, tmp_path: Path
    ) -> None:
        region = files.create(tmp_path / "a", 100)
        region.buffer[0] = 7
        files.remove(tmp_path / "a")
        region.sync()
        assert region.buffer[0] == 7
        assert not files.exists(tmp_path / "a")

    def test_sizes(self, files: Files, tmp_path: Path) -> None:
        path = tmp_path / "a"
        files.write_at(path, 3, b"abc", 10)
        assert files.read(path) == b"\0\0\0abc\0\0\0\0"
        files.write_at(path, 9, b"xyz", 10)
        assert files.size(path) == 12
        files.truncate(path, 4)
        assert files.read(path) == b"\0\0\0a"
        files.truncate(path, 6)
        assert files.read(path) == b"\0\0\0a\0\0"
        assert files.read_at(path, 4, 100) == b"\0\0"
        assert files.read_at(path, 40, 100) == b""
        files.truncate(tmp_path / "b", 0)
        with pytest.raises(ValueError, match="empty"):
            files.open(tmp_path / "b")

    def test_where_the_zeros_begin(self, files: Files, tmp_path: Path) -> None:
        files.write_at(tmp_path / "a", 5, b"abc", 1 << 20)
        assert 8 <= files.data_end(tmp_path / "a") <= 1 << 20
        files.truncate(tmp_path / "b", 1 << 20)
        assert files.data_end(tmp_path / "b") == 0

    def test_names(self, files: Files, tmp_path: Path) -> None:
        directory = tmp_path / "x" / "y"
        assert files.names(directory) == []
        files.make_directory(directory)
        files.make_directory(directory)
        for name in ("b", "a"):
            files.truncate(directory / name, 1)
        assert files.names(directory) == ["a", "b"]
        assert files.is_directory(directory)
        assert not files.is_directory(directory / "a")
        files.rename(directory / "a", directory / "b")
        files.sync_directory(directory)
        assert files.names(directory) == ["b"]
        files.remove(directory / "b")
        files.remove(directory)
        assert not files.exists(directory)
        assert files.exists(directory.parent)

    @pytest.mark.parametrize(
        ("call", "error"),
        [
            (lambda files, at: files.create(at / "here", 1), FileExistsError),
            (lambda files, at: files.create(at / "no" / "x", 1), FileNotFoundError),
            (lambda files, at: files.open(at / "no"), FileNotFoundError),
            (lambda files, at: files.size(at / "no"), FileNotFoundError),
            (lambda files, at: files.read(at / "no"), FileNotFoundError),
            (lambda files, at: files.read_at(at / "no", 0, 1), FileNotFoundError),
            (lambda files, at: files.read(at), IsADirectoryError),
            (lambda files, at: files.write_at(at / "no" / "x", 0, b"", 0), FileNotFoundError),
            (lambda files, at: files.sync(at / "no"), FileNotFoundError),
            (lambda files, at: files.remove(at / "no"), FileNotFoundError),
            (lambda files, at: files.remove(at), OSError),
            (lambda files, at: files.rename(at / "no", at / "x"), FileNotFoundError),
            (lambda files, at: files.rename(at / "here", at / "no" / "x"), FileNotFoundError),
            (lambda files, at: files.rename(at / "here", at / "dir"), IsADirectoryError),
            (lambda files, at: files.make_directory(at / "here"), FileExistsError),
            (lambda files, at: files.sync_directory(at / "no"), FileNotFoundError),
            (lambda files, at: files.modified_ms(at / "no"), FileNotFoundError),
        ],
    )
    def test_errors(
        self,
        files: Files,
        tmp_path: Path,
        call: Callable[[Files, Path], object],
        error: type[OSError],
    ) -> None:
        files.truncate(tmp_path / "here", 1)
        files.make_directory(tmp_path / "dir")
        with pytest.raises(error):
            call(files, tmp_path)


def test_a_lock_is_held_by_one() -> None:
    files = disk()
    held = files.lock(ROOT / "lock")
    with pytest.raises(BlockingIOError):
        files.lock(ROOT / "lock")
    files.unlock(held)
    files.unlock(files.lock(ROOT / "lock"))
    with pytest.raises(OSError, match="Bad file descriptor"):
        files.unlock(held)


def test_times_of_files_come_from_the_clock() -> None:
    clock = VirtualClock(1_000)
    files = SimulatedFiles(clock=clock)
    files.make_directory(ROOT)
    region = files.create(FILE, PAGE)
    clock.jump(1)
    region.sync()
    assert files.modified_ms(FILE) == 2_000
    clock.jump(1)
    region.sync()
    assert files.modified_ms(FILE) == 2_000, "nothing new was written"
    files.set_modified_ms(FILE, 5)
    assert files.crash(keep=1).modified_ms(FILE) == 5
