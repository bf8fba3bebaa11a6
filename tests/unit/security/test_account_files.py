"""Account files on a disk: found, taken over when they change, kept when new ones are broken."""

from __future__ import annotations

import logging
import os
from typing import TYPE_CHECKING

import pytest

from gantrymq.errors import InvalidValue
from gantrymq.security.account_file import AccountFile, make_entry
from gantrymq.security.account_files import AccountFiles
from gantrymq.testing.clock import VirtualClock
from support.accounts import FILE, SECRETS, write_accounts

if TYPE_CHECKING:
    from pathlib import Path

OTHER = "accounts:\n  - accessKey: from-another-file\n    secretKey: other-secret\n"


def opened(folder: Path) -> AccountFiles:
    return AccountFiles(folder, VirtualClock())


def keys(files: AccountFiles) -> set[str]:
    return set(files.rules.accounts)


def test_one_file_or_several(tmp_path: Path) -> None:
    write_accounts(tmp_path)
    (tmp_path / "acl" / "deeper").mkdir(parents=True)
    (tmp_path / "acl" / "deeper" / "more.yaml").write_text(OTHER)
    (tmp_path / "acl" / "not.txt").write_text("anything")
    assert {"administrator", "from-another-file"} <= keys(opened(tmp_path))
    assert keys(opened(tmp_path / "acl" / "deeper" / "more.yaml")) == {"from-another-file"}


@pytest.mark.parametrize(
    ("files", "why"),
    [
        ({}, "there is no account file"),
        ({"plain_acl.yml": ""}, "nobody could come in"),
        ({"plain_acl.yml": OTHER, "acl/a.yml": OTHER}, "in one file only"),
        ({"plain_acl.yml": "accounts:\n  - x\n"}, "plain_acl.yml: line 2"),
        ({"acl/a.yml": OTHER + "b: [1]\n"}, "a.yml: line 4"),
    ],
)
def test_what_cannot_be_is_refused(tmp_path: Path, files: dict[str, str], why: str) -> None:
    (tmp_path / "acl").mkdir()
    for name, text in files.items():
        (tmp_path / name).write_text(text)
    with pytest.raises(InvalidValue, match=why):
        opened(tmp_path)


def test_a_white_list_alone_will_do(tmp_path: Path) -> None:
    write_accounts(tmp_path, "globalWhiteRemoteAddresses:\n  - 10.0.0.1\n")
    assert keys(opened(tmp_path)) == set()


def test_a_changed_file_is_taken_over(tmp_path: Path) -> None:
    files = opened(write_accounts(tmp_path))
    assert not files.tick()
    write_accounts(tmp_path, OTHER)
    assert files.tick()
    assert keys(files) == {"from-another-file"}
    assert not files.tick()


def test_a_file_that_comes_or_goes_is_noticed(tmp_path: Path) -> None:
    files = opened(write_accounts(tmp_path))
    (tmp_path / "acl").mkdir()
    (tmp_path / "acl" / "more.yml").write_text(OTHER)
    assert files.tick()
    assert "from-another-file" in keys(files)
    (tmp_path / "acl" / "more.yml").unlink()
    assert files.tick()
    assert "from-another-file" not in keys(files)


def test_a_second_change_within_the_same_moment_is_noticed(tmp_path: Path) -> None:
    clock = VirtualClock()
    path = write_accounts(tmp_path) / "plain_acl.yml"
    at = clock.now_ms() * 1_000_000
    os.utime(path, ns=(at, at))
    files = AccountFiles(tmp_path, clock)
    path.write_text(FILE.replace("administrator-secret", "administrator-SECRET"))
    os.utime(path, ns=(at, at))  # the same time, length and number
    assert files.tick()
    assert files.account("administrator").secret.reveal().endswith("SECRET")


@pytest.mark.parametrize("broken", ["accounts:\n  - accessKey: x\n", "", "a: [", None])
def test_a_broken_file_changes_nothing_and_is_told_once(
    tmp_path: Path, broken: str | None, caplog: pytest.LogCaptureFixture
) -> None:
    files = opened(write_accounts(tmp_path))
    before = files.rules
    if broken is None:
        (tmp_path / "plain_acl.yml").unlink()
    else:
        write_accounts(tmp_path, broken)
    with caplog.at_level(logging.ERROR):
        assert not any(files.tick() for _ in range(5))
    assert files.rules is before
    (record,) = caplog.records
    assert "the old rules stay" in record.getMessage()
    write_accounts(tmp_path, OTHER)
    assert files.tick()
    assert keys(files) == {"from-another-file"}


def test_a_file_that_is_as_it_was_again_needs_no_change(tmp_path: Path) -> None:
    files = opened(write_accounts(tmp_path))
    before = files.rules
    write_accounts(tmp_path, "broken")
    assert not files.tick()
    write_accounts(tmp_path)
    assert not files.tick()
    assert files.rules is before


def test_what_is_written_holds_at_once_and_for_its_owner_alone(tmp_path: Path) -> None:
    (tmp_path / "acl").mkdir()
    (tmp_path / "acl" / "more.yml").write_text(OTHER)
    files = opened(tmp_path)
    path = files.main_file
    assert not path.exists()
    entry = make_entry(access_key="a-new-one", secret_key="x" * 9)
    files.replace(path, AccountFile(entries=(entry,)))
    assert keys(files) == {"a-new-one", "from-another-file"}
    assert path.stat().st_mode & 0o777 == 0o600
    assert not files.tick()
    assert keys(opened(tmp_path)) == keys(files)
    assert [one.name for one in tmp_path.iterdir() if one.is_file()] == ["plain_acl.yml"]


def test_a_change_that_makes_no_sense_is_not_written(tmp_path: Path) -> None:
    files = opened(write_accounts(tmp_path, OTHER))
    path = files.main_file
    before = path.read_bytes()
    with pytest.raises(InvalidValue, match="nobody could come in"):
        files.replace(path, files.files[path].without("from-another-file"))
    assert path.read_bytes() == before
    assert keys(files) == {"from-another-file"}


def test_what_is_hardly_meant_is_said_and_no_secret_is(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    write_accounts(tmp_path, FILE.replace("10.8.8.8", '"*"').replace("10.9.9.*", '"*"'))
    (tmp_path / "plain_acl.yml").chmod(0o644)
    with caplog.at_level(logging.DEBUG):
        files = opened(tmp_path)
        write_accounts(tmp_path, FILE + "broken\n")
        files.tick()
        write_accounts(tmp_path, OTHER)
        files.tick()
    for words in ("chmod 600", "lets every address", "the account from-its-host", "have changed"):
        assert words in caplog.text
    for secret in (*SECRETS, "other-secret"):
        assert secret not in caplog.text
