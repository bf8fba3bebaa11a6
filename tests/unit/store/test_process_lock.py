"""One process at a time on a store, whoever it is, and the mark of one that did not finish."""

from __future__ import annotations

import errno
import fcntl
import os
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from gantrymq.store import lock_holder, process_lock
from gantrymq.store.errors import StoreLocked
from gantrymq.store.files import OsFiles
from gantrymq.store.lock_holder import Holder, holder_of
from gantrymq.store.overview import overview_of
from gantrymq.store.process_lock import ProcessLock, mark_running, mark_stopped, was_aborted
from gantrymq.store.reader import StoreReader
from gantrymq.testing.disk import Halted, Names, SimulatedFiles
from support.small_stores import written_store

if TYPE_CHECKING:
    from collections.abc import Iterator

ROOT = Path("/store")
SRC = Path(process_lock.__file__).parents[2]

OURS = """
import sys
sys.path.insert(0, sys.argv[2])
from pathlib import Path
from gantrymq.store.files import OsFiles
from gantrymq.store.process_lock import ProcessLock
lock = ProcessLock(OsFiles(), Path(sys.argv[1]))
sys.stdout.write("held\\n")
sys.stdout.flush()
sys.stdin.readline()
lock.release()
"""

JAVA_LIKE = """
import fcntl, os, sys
handle = os.open(os.path.join(sys.argv[1], "lock"), os.O_RDWR | os.O_CREAT)
fcntl.lockf(handle, fcntl.LOCK_EX | fcntl.LOCK_NB, 1, 0)
sys.stdout.write("held\\n")
sys.stdout.flush()
sys.stdin.readline()
"""


def start(program: str, root: Path) -> subprocess.Popen[str]:
    """Return a process that holds the lock until it reads a line."""
    child = subprocess.Popen(
        [sys.executable, "-c", program, str(root), str(SRC)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    assert child.stdout is not None
    assert child.stdout.readline() == "held\n"
    return child


@pytest.fixture(params=[OURS, JAVA_LIKE], ids=["ours", "java"])
def other(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[subprocess.Popen[str]]:
    """Start another process that holds the store, and end it."""
    child = start(request.param, tmp_path)
    yield child
    child.kill()
    child.communicate()


def test_a_second_process_is_refused_by_name(other: subprocess.Popen[str], tmp_path: Path) -> None:
    with pytest.raises(StoreLocked) as caught:
        ProcessLock(OsFiles(), tmp_path)
    assert str(tmp_path) in str(caught.value)
    assert f"process {other.pid} (" in str(caught.value)
    assert "python" in str(caught.value)
    other.communicate("stop\n")
    ProcessLock(OsFiles(), tmp_path).release()


def test_a_killed_process_holds_nothing(other: subprocess.Popen[str], tmp_path: Path) -> None:
    other.kill()
    other.communicate()
    assert holder_of(tmp_path / "lock") is None
    ProcessLock(OsFiles(), tmp_path).release()


def test_others_are_kept_out_until_it_is_released(tmp_path: Path) -> None:
    lock = ProcessLock(OsFiles(), tmp_path / "new" / "store")
    root = tmp_path / "new" / "store"
    assert (root / "lock").read_bytes() == b"lock"
    # Reading the file has just let a POSIX lock go: the next start must not be fooled by that.
    lock.release()
    lock = ProcessLock(OsFiles(), root)
    child = subprocess.run(
        [sys.executable, "-c", JAVA_LIKE, str(root)], check=False, capture_output=True, text=True
    )
    assert "BlockingIOError" in child.stderr
    lock.release()
    lock.release()
    start(JAVA_LIKE, root).communicate("stop\n")


def test_a_process_does_not_open_a_store_twice(tmp_path: Path) -> None:
    lock = ProcessLock(OsFiles(), tmp_path)
    (tmp_path / "link").symlink_to(tmp_path)
    for root in (tmp_path, tmp_path / "link"):
        with pytest.raises(StoreLocked, match="this very process"):
            ProcessLock(OsFiles(), root)
    child = subprocess.run(
        [sys.executable, "-c", JAVA_LIKE, str(tmp_path)],
        check=False,
        capture_output=True,
        text=True,
    )
    assert "BlockingIOError" in child.stderr, "asking twice must not let the lock go"
    lock.release()


def test_a_holder_that_cannot_be_seen_is_said_to_be_one() -> None:
    files = SimulatedFiles()
    ProcessLock(files, ROOT)
    with pytest.raises(StoreLocked, match="cannot be seen from here"):
        ProcessLock(files, ROOT, lambda _path: None)
    with pytest.raises(StoreLocked, match=r"process 7; stop it"):
        ProcessLock(files, ROOT, lambda _path: Holder(7, ""))


def test_a_lock_that_failed_can_be_tried_again(tmp_path: Path) -> None:
    (tmp_path / "lock").mkdir()
    with pytest.raises(IsADirectoryError):
        ProcessLock(OsFiles(), tmp_path)
    (tmp_path / "lock").rmdir()
    ProcessLock(OsFiles(), tmp_path).release()


def test_a_long_command_line_is_shortened(tmp_path: Path) -> None:
    child = subprocess.Popen(
        [sys.executable, "-c", JAVA_LIKE, str(tmp_path), "-cp", "x:" * 500, "BrokerStartup"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    assert child.stdout is not None
    child.stdout.readline()
    holder = holder_of(tmp_path / "lock")
    child.communicate("stop\n")
    assert holder is not None
    assert len(holder.command) <= 170
    assert "python" in holder.command
    assert holder.command.endswith("BrokerStartup")


def test_a_short_command_line_is_whole() -> None:
    program = "print(flush=True); input()"
    child = subprocess.Popen(
        [sys.executable, "-c", program], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    assert child.stdout is not None
    child.stdout.readline()
    command = lock_holder._command(child.pid)
    child.communicate("stop\n")
    assert command == f"{sys.executable} -c {program}"
    assert lock_holder._command(2**30) == "", "nobody there"


def test_a_file_that_nobody_holds(tmp_path: Path) -> None:
    assert holder_of(tmp_path / "lock") is None
    (tmp_path / "lock").write_bytes(b"lock")
    assert holder_of(tmp_path / "lock") is None
    with (tmp_path / "lock").open("r+") as held:
        fcntl.lockf(held, fcntl.LOCK_EX, 1, 0)
        assert holder_of(tmp_path / "lock") is None, "one's own lock is no obstacle"


def is_kept_out(root: Path) -> bool:
    """Tell whether another process is refused the lock."""
    child = subprocess.run(
        [sys.executable, "-c", JAVA_LIKE, str(root)],
        check=False,
        capture_output=True,
        text=True,
        stdin=subprocess.DEVNULL,
    )
    return "BlockingIOError" in child.stderr


def test_asking_for_the_holder_does_not_let_the_lock_go(tmp_path: Path) -> None:
    lock = ProcessLock(OsFiles(), tmp_path)
    (tmp_path / "link").symlink_to(tmp_path)
    for root in (tmp_path, tmp_path / "link"):
        holder = holder_of(root / "lock")
        assert holder is not None
        assert holder.pid == os.getpid()
    assert is_kept_out(tmp_path)
    lock.release()
    assert holder_of(tmp_path / "lock") is None
    assert not is_kept_out(tmp_path)


def test_reading_a_store_within_its_process_does_not_let_the_lock_go(tmp_path: Path) -> None:
    written_store(tmp_path / "store")
    lock = ProcessLock(OsFiles(), tmp_path / "store")
    with StoreReader.open(tmp_path / "store") as reader:
        overview = overview_of(reader)
    assert overview.state == "open"
    assert is_kept_out(tmp_path / "store")
    lock.release()


def test_the_holder_is_seen_without_the_right_to_write(
    other: subprocess.Popen[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # Root may write to whatever it likes, so the refusal of a read-only disk is played.
    real_open = os.open

    def read_only_open(path: Path, flags: int, mode: int = 0o777) -> int:
        if flags & (os.O_WRONLY | os.O_RDWR | os.O_CREAT):
            raise OSError(errno.EROFS, "Read-only file system", str(path))
        return real_open(path, flags, mode)

    monkeypatch.setattr(os, "open", read_only_open)
    holder = holder_of(tmp_path / "lock")
    monkeypatch.undo()
    assert holder is not None
    assert holder.pid == other.pid


class TestAbort:
    def test_the_mark_is_there_while_it_runs(self) -> None:
        files = SimulatedFiles()
        files.make_directory(ROOT)
        assert not was_aborted(files, ROOT)
        mark_running(files, ROOT, 4711)
        assert was_aborted(files, ROOT)
        assert files.read(ROOT / "abort") == b"4711"
        mark_running(files, ROOT, 7)
        assert files.read(ROOT / "abort") == b"7"
        mark_stopped(files, ROOT)
        mark_stopped(files, ROOT)
        assert not was_aborted(files, ROOT)

    @pytest.mark.parametrize("names", Names)
    def test_the_mark_survives_a_power_cut(self, names: Names) -> None:
        files = SimulatedFiles(names=names)
        files.make_directory(ROOT)
        files.sync_directory(Path("/"))
        mark_running(files, ROOT, 1)
        assert was_aborted(files.crash(keep=0), ROOT)

    @pytest.mark.parametrize("names", Names)
    def test_the_end_survives_a_power_cut(self, names: Names) -> None:
        files = SimulatedFiles(names=names)
        files.place(ROOT / "abort", b"")
        mark_stopped(files, ROOT)
        assert not was_aborted(files.crash(keep=0), ROOT)

    def test_a_start_that_was_cut_off_may_leave_either(self) -> None:
        found = set()
        for seed in range(30):
            files = SimulatedFiles(seed)
            files.make_directory(ROOT)
            files.sync_directory(Path("/"))
            files.halt_after(2)
            with pytest.raises(Halted):
                mark_running(files, ROOT, 1)
            found.add(was_aborted(files.crash(keep=0.5), ROOT))
        assert found == {True, False}
