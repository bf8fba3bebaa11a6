"""Requests 50 to 54: accounts in their file, changed and shown without their secrets."""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec
import pytest

from gantrymq.errors import InvalidValue
from gantrymq.security.account_files import AccountFiles
from gantrymq.security.requests import HIDDEN, AccountRequests, split_patterns
from gantrymq.testing.clock import VirtualClock
from gantrymq.wire.bodies.auth import ACL_CONFIG
from gantrymq.wire.command import Command
from gantrymq.wire.response_errors import ResponseError
from support.accounts import FILE, SECRETS, write_accounts
from support.client_peers import FakePeer

if TYPE_CHECKING:
    from pathlib import Path

PEER = FakePeer(1)


class Asked:
    """A broker's account requests, over files in a folder."""

    def __init__(self, folder: Path) -> None:
        self.files = AccountFiles(write_accounts(folder), VirtualClock())
        self.requests = AccountRequests(
            self.files, name="broker-a", address="10.0.0.9:1", cluster="c"
        )

    def __call__(self, code: int, **fields: str) -> Command:
        answer = self.requests.handlers[code](Command.request(code, 1, fields), PEER)
        assert isinstance(answer, Command)
        return answer


@pytest.fixture
def asked(tmp_path: Path) -> Asked:
    return Asked(tmp_path)


def test_an_account_is_made_and_holds(asked: Asked, tmp_path: Path) -> None:
    fields = {
        "accessKey": "newcomer", "secretKey": "newcomer-secret", "admin": "false",
        "defaultTopicPerm": "DENY", "topicPerms": "a=PUB,b=SUB", "groupPerms": "g=SUB",
    }  # fmt: skip
    assert asked(50, **fields).code == 0
    for files in (asked.files, AccountFiles(tmp_path, VirtualClock())):
        account = files.account("newcomer")
        assert account.secret.reveal() == "newcomer-secret"
        assert set(account.resources) == {"a", "b", "%RETRY%g"}


def test_an_account_is_changed_and_keeps_what_is_not_named(asked: Asked) -> None:
    secret = asked.files.account("publisher").secret
    assert asked(50, accessKey="publisher", topicPerms="a=SUB").code == 0
    changed = asked.files.account("publisher")
    assert changed.secret == secret
    assert set(changed.resources) == {"a"}
    assert changed.topic_default.name == "PUB"
    assert asked(50, accessKey="publisher", secretKey=HIDDEN).code == 0  # as it was shown
    assert asked.files.account("publisher").secret == secret
    assert asked(50, accessKey="publisher", secretKey="another-one").code == 0
    assert asked.files.account("publisher").secret != secret


@pytest.mark.parametrize(
    ("code", "fields", "answered"),
    [
        (50, {"accessKey": "six666", "secretKey": "longer-than-6"}, 209),
        (50, {"accessKey": "newcomer"}, 209),
        (50, {"accessKey": "newcomer", "secretKey": "short"}, 209),
        (50, {"accessKey": "publisher", "topicPerms": "a=EVERYTHING"}, 209),
        (50, {"accessKey": "publisher", "whiteRemoteAddress": "a host"}, 209),
        (51, {"accessKey": "nobody-known"}, 210),
        (53, {"globalWhiteAddrs": "10.0.0", "aclFileFullPath": ""}, 211),
        (53, {"globalWhiteAddrs": "10.0.0.1", "aclFileFullPath": "/etc/passwd"}, 211),
        (53, {"globalWhiteAddrs": "10.0.0.1", "aclFileFullPath": "../plain_acl.yml"}, 211),
    ],
)
def test_what_cannot_be_is_refused_with_apaches_code(
    asked: Asked, tmp_path: Path, code: int, fields: dict[str, str], answered: int
) -> None:
    with pytest.raises(ResponseError) as caught:
        asked(code, **fields)
    assert caught.value.code == answered
    assert (tmp_path / "plain_acl.yml").read_text() == FILE


def test_an_account_is_deleted(asked: Asked) -> None:
    assert asked(51, accessKey="publisher").code == 0
    with pytest.raises(InvalidValue):
        asked.files.account("publisher")


def test_white_addresses_are_set(asked: Asked, tmp_path: Path) -> None:
    path = str(tmp_path / "plain_acl.yml")
    for named in ("", path):
        fields = {"globalWhiteAddrs": "10.1.0.{1,2},10.2.0.*", "aclFileFullPath": named}
        assert asked(53, **fields).code == 0
        shown = ACL_CONFIG.decode(asked(54).body)
        assert shown.global_white_addrs == ("10.1.0.{1,2}", "10.2.0.*")
    assert asked(53, globalWhiteAddrs="10.3.0.1").code == 0  # 4.8 names no file
    assert split_patterns("a, b,,c{1,2}") == ("a", "b", "c{1,2}")


def test_the_version_grows_with_every_change(asked: Asked, tmp_path: Path) -> None:
    def versions() -> tuple[int, dict[str, dict[str, int]]]:
        fields = asked(52).fields
        assert (fields["brokerName"], fields["clusterName"]) == ("broker-a", "c")
        files = msgspec.json.decode(fields["allAclFileVersion"])
        return msgspec.json.decode(fields["version"])["counter"], files

    assert versions()[0] == 0
    asked(51, accessKey="publisher")
    asked(50, accessKey="newcomer", secretKey="newcomer-secret")
    counter, files = versions()
    assert counter == 2
    assert files[str(tmp_path / "plain_acl.yml")]["counter"] == 2


def test_secrets_are_never_shown(asked: Asked) -> None:
    answer = asked(54)
    found = ACL_CONFIG.decode(answer.body)
    assert {one.access_key for one in found.plain_access_configs} == set(asked.files.rules.accounts)
    assert {one.secret_key for one in found.plain_access_configs} == {HIDDEN}
    for secret in SECRETS:
        assert secret.encode() not in answer.body
        assert secret not in repr(asked.files.files)
        assert secret not in repr(asked.files.rules)
