"""Users of a server that runs: a good change holds, a bad one leaves all as it was and is said."""

from __future__ import annotations

import logging
import os
from typing import TYPE_CHECKING

import pytest

from gantrymq.errors import InvalidValue
from gantrymq.node.access import NodeAccess, access_places
from gantrymq.security.access import AccessRefused
from gantrymq.testing.clock import VirtualClock
from gantrymq.wire.frame import FrameParser
from support.access_matrix import USER_ROLES, request, user_signer, write_users
from support.accounts import SECRETS, write_accounts
from support.client_peers import FakePeer

if TYPE_CHECKING:
    from pathlib import Path

USERS = len(USER_ROLES)


def opened(folder: Path, **more: str) -> NodeAccess:
    return NodeAccess(access_places(folder, **more), VirtualClock())


def may(node: NodeAccess, code: int, user: str) -> bool:
    (asked,) = FrameParser().feed(request(code, user_signer(user)))
    try:
        node.access.check(code, asked, FakePeer(1))
    except AccessRefused:
        return False
    return True


def change(path: Path, old: str, new: str) -> None:
    """Change a file, and let it look changed whatever the clock says."""
    text = path.read_text(encoding="utf-8")
    assert old in text
    path.write_text(text.replace(old, new), encoding="utf-8")
    seen = path.stat()
    os.utime(path, ns=(seen.st_atime_ns, seen.st_mtime_ns + 1_000_000))


# -- what cannot begin -----------------------------------------------------------------------------


def test_nothing_at_all_does_not_begin(tmp_path: Path) -> None:
    with pytest.raises(InvalidValue, match=r"there is no account file.*`gantrymq user add`"):
        opened(tmp_path)


def test_a_file_that_was_named_must_be_there(tmp_path: Path) -> None:
    write_accounts(tmp_path)
    with pytest.raises(
        InvalidValue, match=r"usersFile is .*people.toml, and there is no such file"
    ):
        opened(tmp_path, users_file=str(tmp_path / "people.toml"))
    assert opened(tmp_path).users.users == {}


def test_an_access_key_is_in_one_file_only(tmp_path: Path) -> None:
    write_accounts(tmp_path)
    change(write_users(tmp_path), "[users.viewer]", "[users.subscriber]\n[users.viewer]")
    with pytest.raises(
        InvalidValue, match=r"access key subscriber is in .*users.toml and in an acc"
    ):
        opened(tmp_path)


def test_somebody_must_be_administrator(tmp_path: Path) -> None:
    path = write_users(tmp_path)
    change(path, 'role = "admin"', 'role = "operator"')
    with pytest.raises(
        InvalidValue, match=f"nobody is an administrator: none of the {USERS} users"
    ):
        opened(tmp_path)
    write_accounts(tmp_path, "accounts:\n  - accessKey: publisher\n    secretKey: the-secret\n")
    with pytest.raises(InvalidValue, match="user add NAME --role admin --file"):
        opened(tmp_path)
    write_accounts(tmp_path)  # one of its accounts is
    assert len(opened(tmp_path).users.users) == USERS


def test_a_file_of_nobody_is_none(tmp_path: Path) -> None:
    (tmp_path / "users.toml").write_text("# soon\n")
    with pytest.raises(
        InvalidValue, match=r"users.toml has no users, and there is no account file"
    ):
        opened(tmp_path)
    write_accounts(tmp_path, "globalWhiteRemoteAddresses:\n  - 10.0.0.1\n")
    assert may(opened(tmp_path), 25, "nobody")


@pytest.mark.parametrize(
    ("mode", "content", "why"),
    [
        (0o644, None, "has mode 0644"),
        (0o600, "0" * 64, "not sealed with this key"),
        (0o600, "", "hexadecimal digits"),
    ],
)
def test_a_key_that_does_not_fit_does_not_begin(
    tmp_path: Path, mode: int, content: str | None, why: str
) -> None:
    write_users(tmp_path)
    key = tmp_path / "users.key"
    if content is not None:
        key.write_text(content)
    key.chmod(mode)
    with pytest.raises(InvalidValue, match=why):
        opened(tmp_path)
    key.unlink()
    with pytest.raises(InvalidValue, match=r"key file .*users.key cannot be read"):
        opened(tmp_path)


def test_the_key_may_lie_elsewhere(tmp_path: Path) -> None:
    path = write_users(tmp_path)
    elsewhere = tmp_path / "secret" / "the.key"
    elsewhere.parent.mkdir()
    (tmp_path / "users.key").rename(elsewhere)
    node = opened(tmp_path, users_file=str(path), key_file=str(elsewhere))
    assert may(node, 26, "viewer")


# -- while it runs ---------------------------------------------------------------------------------


def test_a_change_holds_at_the_next_look(tmp_path: Path) -> None:
    path = write_users(tmp_path)
    node = opened(tmp_path)
    assert not may(node, 26, "without")
    change(path, "[users.without]", '[users.without]\nrole = "viewer"')
    change(path, 'role = "operator"', "")
    assert may(node, 17, "operator"), "nobody has looked yet"
    node.tick()
    assert may(node, 26, "without")
    assert not may(node, 17, "operator")


@pytest.mark.parametrize(
    ("old", "new", "why"),
    [
        ('role = "viewer"', 'role = "boss"', "users.viewer.role is 'boss'"),
        ('role = "admin"', "", "nobody is an administrator"),
        ("[users.viewer]", "[users.viewer", "it is not TOML"),
        ('"publish"', '"push"', "there is no action 'push'"),
        ('secret = "seal1.', 'secret = "seal1.AAAA', "not sealed with this key"),
        ('secret = "seal1.', 'secret = "', "is not sealed"),
    ],
)
def test_a_bad_change_leaves_all_as_it_was_and_is_said_once(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, old: str, new: str, why: str
) -> None:
    path = write_users(tmp_path)
    node = opened(tmp_path)
    good = path.read_text(encoding="utf-8")
    change(path, old, new)
    for _ in range(3):
        node.tick()
    (line,) = [one.getMessage() for one in caplog.records if one.levelno == logging.ERROR]
    assert "not taken over, and the old users stay" in line
    assert why in line
    assert may(node, 26, "viewer")
    assert may(node, 25, "admin")
    path.write_text(good.replace('role = "viewer"', 'role = "operator"'), encoding="utf-8")
    node.tick()
    assert may(node, 17, "viewer")


def test_a_file_that_goes_takes_nobody_with_it(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    path = write_users(tmp_path)
    node = opened(tmp_path)
    path.unlink()
    node.tick()
    assert may(node, 25, "admin")
    assert "users.toml has gone" in caplog.text
    write_users(tmp_path)
    node.tick()
    assert may(node, 25, "admin")


def test_a_file_that_comes_is_taken(tmp_path: Path) -> None:
    node = opened(write_accounts(tmp_path))
    assert not may(node, 26, "viewer")
    write_users(tmp_path)
    node.tick()
    assert may(node, 26, "viewer")


@pytest.mark.parametrize(
    ("old", "new", "why"),
    [
        ("operators", "operator", "the access key operator is in"),
        ("admin: true", "admin: false", "nobody is an administrator"),
    ],
)
def test_accounts_cannot_take_a_users_name_nor_the_last_administrator_away(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, old: str, new: str, why: str
) -> None:
    change(write_users(tmp_path), 'role = "admin"', "")
    accounts = "accounts:\n  - accessKey: operators\n    secretKey: the-secret\n    admin: true\n"
    node = opened(write_accounts(tmp_path, accounts))
    change(tmp_path / "plain_acl.yml", old, new)
    node.tick()
    assert why in caplog.text
    assert node.rules.accounts["operators"].admin


def test_another_key_and_what_it_sealed_are_taken_together(tmp_path: Path) -> None:
    write_users(tmp_path)
    node = opened(tmp_path)
    (tmp_path / "users.key").unlink()
    write_users(tmp_path)
    node.tick()
    assert may(node, 26, "viewer")


def test_no_log_line_and_no_error_shows_a_secret(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG)
    path = write_users(write_accounts(tmp_path))
    node = opened(tmp_path)
    sealed = [line.split('"')[1] for line in path.read_text().splitlines() if "seal1." in line]
    assert len(sealed) == USERS
    for code in (10, 25, 54):
        may(node, code, "without")
    change(path, "[users.viewer]", "[users.reviewer]")
    node.tick()
    said = caplog.text + repr(node.rules) + repr(vars(node.users)["users"])
    assert "not taken over" in said
    for secret in (*SECRETS, *sealed, *(user_signer(name).secret_key for name in USER_ROLES)):
        assert secret not in said
