"""What a broker notes of its log, and when that log can be relied on."""

from __future__ import annotations

from pathlib import Path

import pytest

from gantrymq.cluster.epoch_file import LastWritten, load_epoch, save_epoch
from gantrymq.store.errors import StoreDamaged
from gantrymq.testing.disk import SimulatedFiles

CONFIG = Path("/store/config")


@pytest.mark.parametrize(
    ("last", "boot", "was_clean", "is_forced", "expected"),
    [
        (LastWritten(3, "one"), "one", False, False, True),
        (LastWritten(3, "one"), "two", False, False, False),
        (LastWritten(3, "one"), "two", True, False, True),
        (LastWritten(3, "one"), "two", False, True, True),
        (LastWritten(3, ""), "", False, False, False),
        (LastWritten(3, "one", doubtful=True), "one", True, True, False),
    ],
)
def test_when_a_log_is_whole(
    last: LastWritten, boot: str, was_clean: bool, is_forced: bool, expected: bool
) -> None:
    assert last.is_whole(boot, was_clean=was_clean, is_forced=is_forced) is expected


def test_it_is_on_the_disk() -> None:
    files = SimulatedFiles()
    assert load_epoch(files, CONFIG) == LastWritten()
    save_epoch(files, CONFIG, LastWritten(7, "boot", doubtful=True))
    assert load_epoch(files, CONFIG) == LastWritten(7, "boot", doubtful=True)


NO_EPOCH = [
    b"{]",
    b'{"boot":"\xff"}',
    b'{"x":' + b"[" * 20_000,
    b'{"epoch":-1}',
    b'{"epoch":9223372036854775808}',
]


@pytest.mark.parametrize("content", NO_EPOCH, ids=lambda content: content[:12].decode("latin-1"))
def test_a_file_that_is_none_is_said_and_its_backup_taken(content: bytes) -> None:
    files = SimulatedFiles()
    files.place(CONFIG / "epoch.json", content)
    with pytest.raises(StoreDamaged, match="epoch"):
        load_epoch(files, CONFIG)
    files.place(CONFIG / "epoch.json.bak", b'{"epoch":7}')
    assert load_epoch(files, CONFIG) == LastWritten(7)
