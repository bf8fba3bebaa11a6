"""Another key for the secrets of users: whatever stops the change, nobody is locked out by it.

A crash is a call to the system that does not come back, and nothing after it. Every one of them is
tried, and after each the files are opened as a server does.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

import pytest

from gantrymq.errors import InvalidValue
from gantrymq.security import sealing
from gantrymq.security.accounts import Secret
from gantrymq.security.live_users import LiveUsers
from gantrymq.security.sealing import read_key
from gantrymq.security.user_editing import UserEditing
from gantrymq.security.user_file import UserEntry
from gantrymq.testing.clock import VirtualClock

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

CALLS = ("open", "fsync", "fchmod", "replace", "rename", "unlink")
"""What changes files, or makes them last."""
SECRETS = {"anna": Secret("secret-of-anna"), "ben": Secret("secret-of-ben")}
CALLS_MAX = 100


class Crash(BaseException):
    """The process is dead."""


class Site:
    """A file of users and its key."""

    def __init__(self, folder: Path) -> None:
        self.path, self.key_path = folder / "users.toml", folder / "users.key"
        self.editing = UserEditing(self.path, self.key_path)
        for name, secret in SECRETS.items():
            self.editing.add(name, UserEntry(role="admin"), secret)
        self.editing.add("carl", UserEntry(), None)
        self.first = self.keys()
        self.before = self.editing.read()

    def keys(self) -> list[str]:
        return self.key_path.read_text().split()

    def opened(self) -> dict[str, Secret]:
        """Return the secrets as a server that starts now has them."""
        live = LiveUsers(self.path, self.key_path, VirtualClock(), required=True)
        assert live.users["carl"].secret is None
        return {name: one.secret for name, one in live.users.items() if one.secret is not None}


@pytest.fixture
def site(tmp_path: Path) -> Site:
    return Site(tmp_path)


def counting(monkeypatch: pytest.MonkeyPatch, before: Callable[[str], None]) -> None:
    """Have something called before every call that changes files."""

    def wrapped(name: str) -> Callable[..., object]:
        real = getattr(os, name)

        def call(*arguments: object, **more: object) -> object:
            before(name)
            return real(*arguments, **more)

        return call

    for name in CALLS:
        monkeypatch.setattr(os, name, wrapped(name))


def crashed_at(site: Site, number: int, monkeypatch: pytest.MonkeyPatch) -> bool:
    """Change the key and die at that call; tell whether there was one."""
    calls = 0

    def count(_name: str) -> None:
        nonlocal calls
        calls += 1
        if calls > number:
            raise Crash

    with monkeypatch.context() as patched:
        counting(patched, count)
        try:
            site.editing.rekey()
        except Crash:
            return True
    return False


def check_settled(site: Site) -> None:
    """Check what holds after a change that ended."""
    (key,) = site.keys()
    assert key not in site.first
    assert site.opened() == SECRETS
    old = sealing.SealKey(bytes.fromhex(site.first[0]))
    for name in SECRETS:
        with pytest.raises(InvalidValue, match="not sealed with this key"):
            old.open(name, site.editing.read().users[name].sealed)


def test_secrets_stay_and_the_old_key_opens_nothing(site: Site) -> None:
    assert site.editing.rekey() == (len(SECRETS), False)
    check_settled(site)
    now = site.editing.read()
    assert {name: one.role for name, one in now.users.items()} == {
        name: one.role for name, one in site.before.users.items()
    }
    assert site.key_path.stat().st_mode & 0o777 == 0o600
    second = site.keys()
    site.editing.rekey()
    assert site.keys() != second


def test_a_crash_at_any_call_locks_nobody_out(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    states = set()
    for number in range(CALLS_MAX):
        folder = tmp_path / str(number)
        folder.mkdir()
        site = Site(folder)
        if not crashed_at(site, number, monkeypatch):
            break
        assert site.opened() == SECRETS
        assert site.key_path.stat().st_mode & 0o777 == 0o600
        states.add((len(site.keys()), site.editing.read() == site.before))
        # Life goes on in between, and the next attempt ends what was begun.
        site.editing.change_secret("ben", SECRETS["ben"])
        site.editing.rekey()
        check_settled(site)
        assert sorted(path.name for path in folder.iterdir()) == ["users.key", "users.toml"]
    else:
        pytest.fail("it never ends")
    assert states == {(1, True), (2, True), (2, False), (1, False)}, "all steps were interrupted"


def test_two_crashes_in_a_row(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for number in range(0, CALLS_MAX, 2):
        folder = tmp_path / str(number)
        folder.mkdir()
        site = Site(folder)
        if not crashed_at(site, number, monkeypatch):
            break
        crashed_at(site, number // 2, monkeypatch)
        assert site.opened() == SECRETS
        site.editing.rekey()
        check_settled(site)


def test_a_server_that_looks_between_any_two_calls_keeps_its_users(
    site: Site, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    clock = VirtualClock()
    live = LiveUsers(site.path, site.key_path, clock, required=True)
    looks = 0

    def look(_name: str) -> None:
        nonlocal looks
        looks += 1
        live.tick()
        assert {name: one.secret for name, one in live.users.items() if one.secret} == SECRETS

    with monkeypatch.context() as patched:
        counting(patched, look)
        site.editing.rekey()
    look("")
    assert looks > 10
    assert [one for one in caplog.records if one.levelname == "ERROR"] == []
    sealed = site.editing.read().users["anna"].sealed
    assert read_key(site.key_path).open("anna", sealed) == SECRETS["anna"]


def test_what_cannot_be_opened_is_left_alone(site: Site, tmp_path: Path) -> None:
    site.key_path.write_text("ab" * 32 + "\n")
    before = site.path.read_bytes(), site.key_path.read_bytes()
    with pytest.raises(InvalidValue, match="not sealed with this key"):
        site.editing.rekey()
    assert (site.path.read_bytes(), site.key_path.read_bytes()) == before
    site.key_path.unlink()
    with pytest.raises(InvalidValue, match="cannot be read"):
        site.editing.rekey()
    nobody = UserEditing(tmp_path / "none" / "users.toml", tmp_path / "none" / "users.key")
    with pytest.raises(InvalidValue, match="has no secrets"):
        nobody.rekey()
    assert not (tmp_path / "none" / "users.key").exists()


@pytest.mark.parametrize("content", ["ab" * 32 + "\n" + "cd" * 31, ("ab" * 32 + "\n") * 3])
def test_a_file_of_other_keys_is_none(site: Site, content: str) -> None:
    site.key_path.write_text(content)
    with pytest.raises(InvalidValue, match="does not hold 64 hexadecimal digits"):
        read_key(site.key_path)
