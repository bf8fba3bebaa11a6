"""The files under `config/`: a power cut anywhere leaves the old content or the new one."""

from __future__ import annotations

from pathlib import Path

import pytest

from gantrymq.errors import ProtocolError
from gantrymq.store.config_files import load, load_json, save
from gantrymq.store.errors import StoreDamaged
from gantrymq.testing.disk import Halted, Names, SimulatedFiles
from support.golden import STORE_LABELS
from support.stores import golden_store

PATH = Path("/store/config/topics.json")
BACKUP = PATH.with_name("topics.json.bak")


def disk(
    files: dict[str, bytes] | None = None, seed: int = 0, names: Names = Names.JOURNALED
) -> SimulatedFiles:
    """Return a disk that holds some of `name`, `bak` and `tmp`."""
    made = SimulatedFiles(seed, names=names, sector_bytes=1)
    made.make_directory(PATH.parent)
    for parent in (Path("/"), PATH.parent.parent):
        made.sync_directory(parent)
    for key, content in (files or {}).items():
        path = PATH if key == "name" else PATH.with_name(f"topics.json.{key}")
        made.place(path, content)
    return made


def text(content: bytes) -> str:
    """Understand what ends in an exclamation mark."""
    if not content.endswith(b"!"):
        raise ProtocolError("file", "no end")
    return content.decode()


def apache_reads(files: SimulatedFiles) -> str | None:
    """Read as ConfigManager.load does: the file, or its backup if that is missing or no good."""
    for path in (PATH, BACKUP):
        content = files.read(path) if files.exists(path) else b""
        if content.endswith(b"!"):
            return content.decode()
    return None


def test_what_was_saved_is_read() -> None:
    files = disk()
    save(files, PATH, b"one!")
    found = load(files, PATH, text)
    assert found is not None
    assert (found.value, found.path, found.trouble) == ("one!", PATH, None)
    assert (files.read(PATH), files.read(BACKUP)) == (b"one!", b"one!"), "its own backup"
    save(files, PATH, b"two!")
    assert (files.read(PATH), files.read(BACKUP)) == (b"two!", b"one!")
    assert files.names(PATH.parent) == ["topics.json", "topics.json.bak"]


def test_a_longer_leftover_is_no_part_of_it() -> None:
    files = disk({"tmp": b"what a crash left behind here"})
    save(files, PATH, b"one!")
    assert files.read(PATH) == b"one!"


@pytest.mark.parametrize("broken", [None, b"", b"\0\0\0\0", b" \n", b"half"])
def test_the_backup_is_read_if_there_is_nothing_else(broken: bytes | None) -> None:
    files = disk({"bak": b"old!"} if broken is None else {"name": broken, "bak": b"old!"})
    found = load(files, PATH, text)
    assert found is not None
    assert (found.value, found.path) == ("old!", BACKUP)
    assert found.trouble is not None  # whoever lost something is told why
    assert ("missing" in found.trouble) == (broken is None)
    assert ("empty" in found.trouble) == (broken in {b"", b"\0\0\0\0", b" \n"})


@pytest.mark.parametrize("files", [{}, {"name": b""}, {"name": b"", "bak": b"\0"}])
def test_nothing_is_nothing(files: dict[str, bytes]) -> None:
    assert load(disk(files), PATH, text) is None


@pytest.mark.parametrize("files", [{"name": b"half"}, {"name": b"half", "bak": b"hal"}])
def test_what_cannot_be_understood_is_not_thrown_away(files: dict[str, bytes]) -> None:
    with pytest.raises(StoreDamaged, match=r"topics\.json.*no end.*mend"):
        load(disk(files), PATH, text)


@pytest.mark.parametrize("names", Names)
@pytest.mark.parametrize("before", [{}, {"name": b"old!"}, {"name": b"old!", "bak": b"older!"}])
def test_a_power_cut_at_any_step_leaves_one_of_them(names: Names, before: dict[str, bytes]) -> None:
    expected_before = "old!" if before else None
    for steps in range(12):
        for seed in range(30):
            files = disk(before, seed, names)
            files.halt_after(steps)
            try:
                save(files, PATH, b"a much longer new one!")
                allowed: set[str | None] = {"a much longer new one!"}
            except Halted:
                allowed = {"a much longer new one!", expected_before}
            after = files.crash()
            found = load(after, PATH, text)
            value = None if found is None else found.value
            assert value in allowed, (steps, seed)
            assert value == apache_reads(after)
            save(after, PATH, b"next!")
            assert after.read(PATH) == b"next!"


def test_the_last_step_is_among_them() -> None:
    files = disk({"name": b"old!"})
    files.halt_after(6)
    save(files, PATH, b"new!")
    with pytest.raises(Halted):
        files.sync_directory(PATH.parent)


def golden_files() -> list[tuple[str, str]]:
    """Return every JSON file under `config/` of the golden stores."""
    return [
        (label, name)
        for label in STORE_LABELS
        for name in sorted(golden_store(label).files)
        if name.startswith("config/") and ".json" in name
    ]


@pytest.mark.parametrize(("label", "name"), golden_files())
def test_what_apache_wrote_is_read(label: str, name: str) -> None:
    files = SimulatedFiles()
    files.place(PATH, golden_store(label).files[name])
    found = load_json(files, PATH)
    assert found is None or isinstance(found.value, dict)


def test_numbers_as_keys_are_read() -> None:
    content = golden_store("apache-4.9.7-clean").files["config/consumerOffset.json"]
    files = disk({"name": content})
    found = load_json(files, PATH)
    assert found is not None
    assert isinstance(found.value, dict)
    tables = found.value["offsetTable"]
    assert all(key.isdigit() for offsets in tables.values() for key in offsets)
