"""`gantrymq user`: what it writes is what a server takes, and a secret is shown once."""

from __future__ import annotations

import json
import re
import threading
from typing import TYPE_CHECKING

import pytest

from gantrymq.cli.main import main
from gantrymq.node.access import NodeAccess, access_places
from gantrymq.security.accounts import Permission, Secret
from gantrymq.testing.clock import VirtualClock

if TYPE_CHECKING:
    from pathlib import Path

    from gantrymq.security.accounts import Principal


class Shell:
    """Runs the command on one file."""

    def __init__(self, folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
        self.path = folder / "users.toml"
        self._folder = folder
        self._capsys = capsys

    def __call__(self, *arguments: str, status: int = 0) -> str:
        """Return what is said; on standard error too."""
        assert main(["user", *arguments, "--file", str(self.path)]) == status
        out, self.problem = self._capsys.readouterr()
        return out

    def user(self, name: str) -> Principal:
        """Return a user as a server has it."""
        return NodeAccess(access_places(self._folder), VirtualClock()).rules.users[name]


@pytest.fixture
def shell(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> Shell:
    return Shell(tmp_path, capsys)


def secret_in(said: str) -> str:
    found = re.search(r"secret (\S+) \(shown this once\)", said)
    assert found is not None
    return found[1]


def test_a_server_takes_who_was_added(shell: Shell) -> None:
    said = shell("add", "anna", "--role", "admin")
    secret = secret_in(said)
    assert re.fullmatch("[0-9a-f]{64}", secret), "a shell and `--secret-key` take it as it is"
    assert shell.user("anna").secret == Secret(secret)
    assert shell.user("anna").may_everything
    assert secret not in shell.path.read_text()
    assert shell.path.stat().st_mode & 0o777 == 0o600
    assert shell.path.with_suffix(".key").stat().st_mode & 0o777 == 0o600
    shell("add", "orders", "--topic", "Orders*=publish,look", "--group", "billing=subscribe")
    orders = shell.user("orders")
    assert orders.may("OrdersOfMay", Permission.PUB)
    assert not orders.may("OrdersOfMay", Permission.SUB)
    assert orders.may("%RETRY%billing", Permission.SUB)
    assert shell.user("anna").secret == Secret(secret)


def test_a_list_shows_everything_but_secrets(shell: Shell) -> None:
    secret = secret_in(shell("add", "anna", "--role", "admin"))
    shell("add", "orders", "--topic", "Orders*=publish")
    said = shell("list")
    assert "anna    admin  sealed" in said
    assert "publish: Orders*" in said
    rows = json.loads(shell("list", "--json"))
    assert rows[0] == {
        "user": "anna", "role": "admin", "secret": "sealed", "certificates": "cn:anna", "rules": "",
    }  # fmt: skip
    for text in (said, json.dumps(rows)):
        assert secret not in text
        assert "seal1." not in text


def test_a_user_with_a_certificate_and_no_secret(shell: Shell) -> None:
    shell("add", "root", "--role", "admin")
    said = shell(
        "add", "mailer", "--no-secret", "--certificate", "dns:mailer.example.com",
        "--certificate", "uri:spiffe://shop/mailer",
    )  # fmt: skip
    assert said == "added mailer\n"
    assert shell.user("mailer").secret is None
    assert "none    dns:mailer.example.com uri:spiffe://shop/mailer" in shell("list")
    secret = secret_in(shell("passwd", "mailer"))
    assert shell.user("mailer").secret == Secret(secret)
    assert "dns:mailer.example.com" in shell("list")
    shell("add", "post", "--certificate", "dns:mailer.example.com", status=2)
    assert "is of mailer and of post" in shell.problem
    shell("add", "post", "--certificate", "mailer.example.com", status=2)
    assert "write cn:NAME" in shell.problem


def test_another_secret_and_none_of_the_old(shell: Shell, tmp_path: Path) -> None:
    old = secret_in(shell("add", "anna", "--role", "admin"))
    new = secret_in(shell("passwd", "anna"))
    assert old != new
    assert shell.user("anna").secret == Secret(new)
    assert shell.user("anna").may_everything
    chosen = tmp_path / "chosen.txt"
    chosen.write_text("a-secret-of-mine\nsecond line\n")
    said = shell("passwd", "anna", "--secret-file", str(chosen))
    assert "a-secret-of-mine" not in said
    assert shell.user("anna").secret == Secret("a-secret-of-mine")


def test_another_key_and_the_same_secrets(shell: Shell, tmp_path: Path) -> None:
    key = tmp_path / "users.key"
    shell("rekey", status=2)
    assert "has no secrets" in shell.problem
    assert not key.exists()
    secret = secret_in(shell("add", "anna", "--role", "admin"))
    first, sealed = key.read_text(), shell.path.read_text()
    assert shell("rekey") == "1 secrets are sealed with another key\n"
    assert key.read_text() != first
    assert shell.path.read_text() != sealed
    assert shell.user("anna").secret == Secret(secret)
    key.write_text(first + key.read_text())  # as if it had been interrupted
    assert "which ends a change that was interrupted" in shell("rekey")
    assert key.read_text() == first
    assert shell.user("anna").secret == Secret(secret)


def test_who_was_removed_is_gone_and_the_last_admin_stays(shell: Shell) -> None:
    shell("add", "anna", "--role", "admin")
    shell("add", "ben")
    shell("remove", "ben")
    assert "ben" not in shell("list")
    shell("remove", "anna", status=2)
    assert "the only admin" in shell.problem
    assert shell.user("anna").may_everything
    shell("remove", "anna", "--force")
    assert "anna" not in shell("list")


@pytest.mark.parametrize(
    ("arguments", "why"),
    [
        (["add", "anna"], "has a user anna already"),
        (["add", "a b"], "'a b' cannot be a user's name"),
        (["add", "ben", "--role", "boss"], "the role is 'boss', which is no role"),
        (["add", "ben", "--topic", "T=push"], "there is no action 'push'"),
        (["add", "ben", "--topic", "*T=look"], "a star stands at the end"),
        (["add", "ben", "--group", "g=publish"], "publish is an action for topics"),
        (["remove", "ben"], "has no user ben; it has anna"),
        (["passwd", "ben"], "has no user ben"),
    ],
)
def test_what_cannot_be_changes_nothing(shell: Shell, arguments: list[str], why: str) -> None:
    shell("add", "anna", "--role", "admin")
    before = shell.path.read_bytes()
    shell(*arguments, status=2)
    assert why in shell.problem
    assert shell.path.read_bytes() == before


@pytest.mark.parametrize(
    ("arguments", "why"),
    [
        (["add"], "take a name"),
        (["list", "anna"], "list and rekey take none"),
        (["rekey", "anna"], "list and rekey take none"),
        (["rekey", "--force"], "--force is for remove"),
        (["add", "ben", "--topic", "T"], "is not NAME=ACTION"),
        (["remove", "ben", "--role", "admin"], "--role is for add"),
        (["add", "ben", "--force"], "--force is for remove"),
        (["passwd", "ben", "--no-secret"], "--no-secret is for add"),
        (["add", "ben", "--no-secret", "--secret-file", "f"], "say two things"),
        (["forget", "ben"], "invalid choice"),
    ],
)
def test_bad_usage_is_one_line(
    capsys: pytest.CaptureFixture[str], arguments: list[str], why: str
) -> None:
    with pytest.raises(SystemExit) as ended:
        main(["user", *arguments])
    problem = capsys.readouterr().err
    assert ended.value.code == 2
    assert why in problem
    assert problem.count("\n") == 1


def test_secrets_that_are_none(shell: Shell, tmp_path: Path) -> None:
    given = tmp_path / "given.txt"
    for content, why in ((b"", "is empty"), (b"short\n", "more than 6"), (b"\xff" * 9, "UTF-8")):
        given.write_bytes(content)
        shell("add", "anna", "--secret-file", str(given), status=2)
        assert why in shell.problem
        assert "short" not in shell.problem.replace("shorter", "")
        assert not shell.path.exists()
    shell("add", "anna", "--secret-file", str(tmp_path / "missing.txt"), status=1)
    assert "No such file" in shell.problem


def test_a_key_that_is_lost_is_not_made_anew(shell: Shell) -> None:
    """A new one would lock out those whose secrets were sealed with the old one."""
    shell("add", "anna", "--role", "admin")
    key = shell.path.with_suffix(".key")
    content = key.read_bytes()
    key.unlink()
    shell("add", "ben", status=2)
    assert "cannot be read" in shell.problem
    assert not key.exists()
    key.write_bytes(b"0" * 64)
    key.chmod(0o600)
    shell("add", "ben", status=2)
    assert "secret of anna was not sealed with this key" in shell.problem
    key.write_bytes(content)
    shell("add", "ben")
    assert shell.user("ben").secret is not None


def test_a_file_of_ones_own_keeps_its_roles_and_is_told_of_lost_comments(shell: Shell) -> None:
    shell.path.write_text(
        '# who is who\n[roles.shop]\nbase = "viewer"\n'
        'rules = [{ topics = ["Orders"], actions = ["publish"] }]\n'
    )
    shell("add", "root", "--role", "admin")
    assert "the comments of" in shell.problem
    shell("add", "anna", "--role", "shop")
    assert "comments" not in shell.problem
    assert shell.user("anna").may("Orders", Permission.PUB)
    assert "who is who" not in shell.path.read_text()


def test_a_first_user_who_is_no_admin_is_said(shell: Shell) -> None:
    shell("add", "anna", "--role", "viewer")
    assert "has no admin yet" in shell.problem


def test_a_file_that_cannot_be_read_is_left_alone(shell: Shell) -> None:
    shell.path.write_text("[users.anna\n")
    for verb in (["add", "ben"], ["remove", "anna"], ["list"]):
        shell(*verb, status=2)
        assert "it is not TOML" in shell.problem
    assert shell.path.read_text() == "[users.anna\n"


def test_changes_at_once_wait_for_each_other(shell: Shell) -> None:
    shell("add", "root", "--role", "admin")
    names = [f"user{number}" for number in range(8)]
    threads = [
        threading.Thread(target=main, args=(["user", "add", name, "--file", str(shell.path)],))
        for name in names
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert all(shell.user(name).secret is not None for name in names)


def test_the_help_teaches(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        main(["user", "--help"])
    text = capsys.readouterr().out
    assert ended.value.code == 0
    for word in ("viewer", "operator", "admin", "publish", "manage", "comments", "--role admin"):
        assert word in text
