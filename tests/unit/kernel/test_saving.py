"""Many writes in one call: the files, their lengths, and what a refusal names."""

from __future__ import annotations

import errno
from typing import TYPE_CHECKING

import pytest

from gantrymq.errors import InvalidValue
from gantrymq.kernel import FileWrite

if TYPE_CHECKING:
    from pathlib import Path

    from gantrymq.kernel.interface import Kernel


def test_files_and_their_directories_are_made(kernel: Kernel, tmp_path: Path) -> None:
    first, second = tmp_path / "a" / "b" / "0", tmp_path / "a" / "c" / "0"
    kernel.write_files([FileWrite(str(first), 3, b"one", 10), FileWrite(str(second), 0, b"", 5)])
    assert first.read_bytes() == b"\0\0\0one\0\0\0\0"
    assert second.read_bytes() == bytes(5)


def test_what_is_there_stays_and_the_last_write_wins(kernel: Kernel, tmp_path: Path) -> None:
    path = tmp_path / "f"
    path.write_bytes(b"0123456789")
    kernel.write_files([FileWrite(str(path), 2, b"xyz", 4), FileWrite(str(path), 4, b"ZZ", 4)])
    assert path.read_bytes() == b"01xyZZ6789"
    kernel.write_files([FileWrite(str(path), 12, b"!", 0)])
    assert path.read_bytes() == b"01xyZZ6789\0\0!"


def test_a_refusal_names_its_file_and_ends_the_rest(kernel: Kernel, tmp_path: Path) -> None:
    good, bad, behind = tmp_path / "good", tmp_path / "good" / "bad", tmp_path / "behind"
    writes = [FileWrite(str(path), 0, b"x", 1) for path in (good, bad, behind)]
    with pytest.raises(NotADirectoryError) as refused:
        kernel.write_files(writes)
    assert (refused.value.errno, refused.value.filename) == (errno.ENOTDIR, str(bad))
    assert good.read_bytes() == b"x"
    assert not behind.exists()


def test_a_full_disk_is_named(kernel: Kernel) -> None:
    with pytest.raises(OSError, match="No space left") as refused:
        kernel.write_files([FileWrite("/dev/full", 0, b"x", 0)])
    assert (refused.value.errno, refused.value.filename) == (errno.ENOSPC, "/dev/full")


@pytest.mark.parametrize(
    ("write", "words"),
    [
        (FileWrite("a\0b", 0, b"x", 1), "a path holds no zeros"),
        (FileWrite("f", -1, b"x", 1), "between 0 and"),
        (FileWrite("f", 0, b"x", 2**62 + 1), "between 0 and"),
    ],
)
def test_nonsense_is_refused_before_anything_is_written(
    kernel: Kernel, tmp_path: Path, write: FileWrite, words: str
) -> None:
    path = tmp_path / "f"
    with pytest.raises(InvalidValue, match=words):
        kernel.write_files([FileWrite(str(path), 0, b"x", 1), write])
    assert not path.exists()
