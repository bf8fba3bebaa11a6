"""A disk that keeps its changes to itself behaves like one that does not."""

from __future__ import annotations

import random
import shutil
from tempfile import TemporaryFile
from typing import IO, TYPE_CHECKING

import pytest

from gantrymq.store import shadow_files
from gantrymq.store.files import Files, OsFiles
from gantrymq.store.shadow_files import ShadowFiles
from support.golden_trees import tree_digest

if TYPE_CHECKING:
    from pathlib import Path

NAMES = ("a", "b", "new", "sub/c", "sub/d", "made/e")


def tree(root: Path) -> None:
    (root / "sub").mkdir(parents=True)
    generator = random.Random(1)
    for name, size in (("a", 100), ("b", 9000), ("sub/c", 4096)):
        (root / name).write_bytes(generator.randbytes(size))


def step(files: Files, root: Path, seed: int) -> object:
    """Do one thing to a disk; return what it says."""
    generator = random.Random(seed)
    path = root / generator.choice(NAMES)
    position, count = generator.randrange(9000), generator.randrange(1, 6000)
    match generator.randrange(8):
        case 0:
            files.make_directory(path.parent)
            files.write_at(path, position, generator.randbytes(count), position)
        case 1:
            return files.read_at(path, position, count)
        case 2:
            files.remove(path)
        case 3:
            files.rename(path, root / generator.choice(NAMES[:3]))
        case 4:
            files.truncate(path, count)
        case 5:
            region = files.open(path)
            region.buffer[: min(50, region.size)] = generator.randbytes(min(50, region.size))
            region.sync()
            region.close()
        case 6:
            files.make_directory(path.parent)
            region = files.create(path, count)
            region.buffer[0] = 7
            region.close()
        case _:
            return files.names(path.parent), files.exists(path), files.is_directory(path.parent)
    return files.size(path) if files.exists(path) else None


def outcome(files: Files, root: Path, seed: int) -> object:
    try:
        return step(files, root, seed)
    except (FileNotFoundError, FileExistsError, ValueError) as error:
        return type(error)


@pytest.mark.parametrize("seed", range(40))
def test_it_is_like_the_real_disk(tmp_path: Path, seed: int) -> None:
    real, looked_at = tmp_path / "real", tmp_path / "looked_at"
    tree(real)
    shutil.copytree(real, looked_at)
    before = tree_digest(looked_at)
    os_files, shadow = OsFiles(), ShadowFiles()
    for number in range(60):
        at = seed * 1000 + number
        assert outcome(shadow, looked_at, at) == outcome(os_files, real, at), at
    for name in NAMES:
        assert shadow.exists(looked_at / name) == (real / name).exists()
        if (real / name).exists():
            assert shadow.read(looked_at / name) == (real / name).read_bytes()
    assert tree_digest(looked_at) == before


def test_reading_alone_maps_the_real_file(tmp_path: Path) -> None:
    tree(tmp_path)
    shadow = ShadowFiles()
    region = shadow.open(tmp_path / "b", writable=False)
    assert region.buffer.readonly
    assert bytes(region.buffer) == (tmp_path / "b").read_bytes()
    region.close()


def test_a_slice_outlives_its_region(tmp_path: Path) -> None:
    tree(tmp_path)
    region = ShadowFiles().open(tmp_path / "b")
    part = region.buffer[10:20]
    region.close()
    assert bytes(part) == (tmp_path / "b").read_bytes()[10:20]


def test_times_space_and_locks(tmp_path: Path) -> None:
    tree(tmp_path)
    shadow = ShadowFiles()
    shadow.write_at(tmp_path / "new", 0, b"x", 1)
    assert shadow.modified_ms(tmp_path / "a") == OsFiles().modified_ms(tmp_path / "a")
    assert shadow.modified_ms(tmp_path / "new") == 0
    assert shadow.usage(tmp_path).available > 0
    shadow.sync(tmp_path / "new")
    shadow.sync_directory(tmp_path)
    shadow.unlock(shadow.lock(tmp_path / "lock"))
    assert not (tmp_path / "lock").exists()
    assert shadow.data_end(tmp_path / "a") >= 100
    assert shadow.data_end(tmp_path / "new") == 1


def test_what_is_made_again_as_it_was_is_not_kept(tmp_path: Path) -> None:
    content = random.Random(2).randbytes(100_000)
    (tmp_path / "file").write_bytes(content)
    files, path = ShadowFiles(), tmp_path / "file"
    files.write_at(path, 50, bytes(99_950), 0)
    assert files.kept_bytes > 90_000
    for position in range(0, 100_000, 7_000):
        files.write_at(path, position, content[position : position + 7_000], 0)
    assert files.read(path) == content
    assert files.kept_bytes <= 4096, "at most the block that the file ends in"
    files.remove(path)
    for position in range(0, 100_000, 7_000):
        files.write_at(path, position, content[position : position + 7_000], 100_000)
        held = content[: position + 7_000].ljust(100_000, b"\0")
        assert files.read(path) == held
    assert files.kept_bytes <= 4096
    region = files.open(path)
    assert bytes(region.buffer) == content


def test_a_file_that_was_removed_does_not_show_through(tmp_path: Path) -> None:
    (tmp_path / "file").write_bytes(b"x" * 20_000)
    files, path = ShadowFiles(), tmp_path / "file"
    files.remove(path)
    files.write_at(path, 4096, b"x" * 4096, 20_000)
    assert files.read(path) == bytes(4096) + b"x" * 4096 + bytes(20_000 - 8192)
    files.write_at(path, 5000, b"y", 0)
    assert files.read_at(path, 4999, 3) == b"xyx"


@pytest.mark.parametrize("chosen", [None, "elsewhere"])
def test_a_large_file_that_is_made_lies_on_a_disk(
    tmp_path: Path, chosen: str | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    """`/tmp` is memory on many systems; who knows better sets TMPDIR."""
    monkeypatch.delenv("TMPDIR", raising=False)
    if chosen is not None:
        monkeypatch.setenv("TMPDIR", str(tmp_path))
    asked: list[str | None] = []

    def temporary(dir: str | None = None) -> IO[bytes]:  # noqa: A002 - its own name for it
        asked.append(dir)
        return TemporaryFile(dir=tmp_path)

    monkeypatch.setattr(shadow_files, "TemporaryFile", temporary)
    region = ShadowFiles().create(tmp_path / "index", 10_000)
    region.buffer[:3] = b"abc"
    assert asked == ["/var/tmp" if chosen is None else None]  # noqa: S108
    assert not list(tmp_path.iterdir()), "without a name"
