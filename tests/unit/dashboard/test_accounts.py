from __future__ import annotations

import fcntl
import json
import os
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING

import pytest

from gantrymq.dashboard.accounts import (
    Account,
    Accounts,
    BadAccounts,
    generated_password,
    is_right,
    make_account,
)
from gantrymq.errors import InvalidValue
from gantrymq.model.roles import Role

if TYPE_CHECKING:
    from pathlib import Path

WORD = "correct horse"


def test_a_password_is_kept_as_a_salted_hash_that_only_the_owner_reads(tmp_path: Path) -> None:
    accounts = Accounts(tmp_path / "new")
    accounts.put(make_account("anna", Role.OPERATOR, WORD))
    accounts.put(make_account("ben", Role.VIEWER, WORD))
    text = accounts.path.read_text(encoding="utf-8")
    assert WORD not in text
    anna, ben = json.loads(text)
    assert anna["hash"] != ben["hash"]
    assert accounts.path.stat().st_mode & 0o777 == 0o600
    assert accounts.path.parent.stat().st_mode & 0o777 == 0o700
    assert [path.name for path in accounts.path.parent.iterdir()] == ["accounts.json"]


def test_only_the_right_password_is_right() -> None:
    account = make_account("anna", Role.VIEWER, WORD)
    assert is_right(account, WORD)
    assert not is_right(account, WORD + " ")
    assert not is_right(account, "")
    assert not is_right(account, "x" * 1_000_000)


@pytest.mark.parametrize("name", ["", "a b", "<script>", "x" * 65, "a/b", "ä"])
def test_a_name_that_will_not_do(name: str) -> None:
    with pytest.raises(InvalidValue, match="cannot be a name"):
        make_account(name, Role.VIEWER, WORD)


@pytest.mark.parametrize("password", ["", "short", "x" * 257])
def test_a_password_that_will_not_do(password: str) -> None:
    with pytest.raises(InvalidValue, match="a password has 8 to 256 characters"):
        make_account("anna", Role.VIEWER, password)


def test_what_another_process_writes_is_seen(tmp_path: Path) -> None:
    running, command = Accounts(tmp_path), Accounts(tmp_path)
    assert running.get("anna") is None
    command.put(make_account("anna", Role.VIEWER, WORD))
    found = running.get("anna")
    assert found is not None
    command.put(make_account("anna", Role.ADMIN, WORD))
    again = running.get("anna")
    assert again is not None
    assert again.mark != found.mark
    command.delete("anna")
    assert running.get("anna") is None
    with pytest.raises(InvalidValue, match="no account 'anna'"):
        command.delete("anna")


def test_an_account_that_was_changed_meanwhile_is_left_alone(tmp_path: Path) -> None:
    running, command = Accounts(tmp_path), Accounts(tmp_path)
    before = make_account("anna", Role.ADMIN, WORD)
    running.put(before)
    own = make_account("anna", Role.ADMIN, "another one")
    command.put(make_account("anna", Role.VIEWER, WORD))
    with pytest.raises(InvalidValue, match="changed meanwhile"):
        running.change(own, before.mark)
    now = running.get("anna")
    assert now is not None
    assert now.role is Role.VIEWER
    command.delete("anna")
    with pytest.raises(InvalidValue, match="changed meanwhile"):
        running.change(own, now.mark)
    assert running.get("anna") is None


def test_nobody_is_lost_when_many_change_the_file(tmp_path: Path) -> None:
    made = [Account(f"user{at}", Role.VIEWER, "00", "00") for at in range(40)]
    with ThreadPoolExecutor(8) as pool:
        for each in [pool.submit(Accounts(tmp_path).put, account) for account in made]:
            each.result()
    assert set(Accounts(tmp_path).all()) == {account.name for account in made}


def test_a_lock_is_not_waited_for_without_end(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("gantrymq.dashboard.accounts.LOCK_TRIES_MAX", 2)
    handle = os.open(tmp_path, os.O_RDONLY)
    fcntl.flock(handle, fcntl.LOCK_EX)
    try:
        with pytest.raises(BadAccounts, match="being changed by another process"):
            Accounts(tmp_path).put(Account("anna", Role.VIEWER, "00", "00"))
    finally:
        os.close(handle)


@pytest.mark.parametrize(
    "content",
    [b"", b"{}", b"[1]", b"\xff", b"[" * 3000, b'[{"name":"\xff"}]', b'[{"x":' + b"[" * 20_000],
    ids=lambda content: content[:12].decode("latin-1"),
)
def test_a_damaged_file_lets_nobody_in(tmp_path: Path, content: bytes) -> None:
    (tmp_path / "accounts.json").write_bytes(content)
    with pytest.raises(BadAccounts, match="no file of accounts"):
        Accounts(tmp_path).get("anna")


def test_roles_are_read_as_people_write_them() -> None:
    assert [Role.parse(each) for each in ("viewer", "Operator", "ADMIN")] == list(Role)[1:]
    with pytest.raises(InvalidValue, match="give viewer, operator or admin"):
        Role.parse("root")


def test_generated_passwords_differ_and_will_do() -> None:
    made = {generated_password() for _ in range(50)}
    assert len(made) == 50
    assert all(len(each) == 23 for each in made)
    assert is_right(make_account("a", Role.VIEWER, min(made)), min(made))
