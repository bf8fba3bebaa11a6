"""plain_acl.yml: Apache's own, what each line means, and what is refused with its line."""

from __future__ import annotations

import pytest

from gantrymq.errors import InvalidValue
from gantrymq.security.account_file import AccountFile, make_entry, read, written
from gantrymq.security.accounts import PUB_SUB, Permission, Secret
from gantrymq.security.addresses import read_address

APACHE = """\
# as it comes with 4.9.7
globalWhiteRemoteAddresses:
  - 10.10.103.*
  - 192.168.0.*

accounts:
  - accessKey: RocketMQ
    secretKey: 12345678
    whiteRemoteAddress:
    admin: false
    defaultTopicPerm: DENY
    defaultGroupPerm: SUB
    topicPerms:
      - topicA=DENY
      - topicB=PUB|SUB
      - topicC=SUB
    groupPerms:
      # the group should convert to retry topic
      - groupA=DENY
      - groupB=PUB|SUB
      - groupC=SUB

  - accessKey: rocketmq2
    secretKey: 12345678
    whiteRemoteAddress: 192.168.1.*
    # if it is admin, it could access all resources
    admin: true
"""

SECRET = "my-secret"  # noqa: S105


def test_apaches_own_file_is_read() -> None:
    found = read(APACHE.encode())
    assert found.white_texts == ("10.10.103.*", "192.168.0.*")
    first, second = (entry.account for entry in found.entries)
    assert (first.access_key, first.secret_key, first.admin) == ("RocketMQ", "12345678", False)
    assert (first.topic_default, first.group_default) == (Permission.DENY, Permission.SUB)
    assert first.resources == {
        "topicA": Permission.DENY,
        "topicB": PUB_SUB,
        "topicC": Permission.SUB,
        "%RETRY%groupA": Permission.DENY,
        "%RETRY%groupB": PUB_SUB,
        "%RETRY%groupC": Permission.SUB,
    }
    assert not first.white.has(read_address("192.168.1.7:1"))
    assert second.may_everything
    assert second.white.has(read_address("192.168.1.7:1"))


@pytest.mark.parametrize(
    ("resource", "wanted", "may"),
    [
        ("topicA", Permission.PUB, False),
        ("topicA", Permission.SUB, False),
        ("topicB", Permission.PUB, True),
        ("topicC", Permission.PUB, False),
        ("topicC", Permission.SUB, True),
        ("topicC", PUB_SUB, True),
        ("other", Permission.PUB, False),
        ("%RETRY%groupA", Permission.SUB, False),
        ("%RETRY%other", Permission.SUB, True),
        ("%RETRY%other", Permission.PUB, False),
    ],
)
def test_a_permission_by_name_counts_before_the_default(
    resource: str, wanted: Permission, may: bool
) -> None:
    assert read(APACHE.encode()).entries[0].account.may(resource, wanted) is may


def test_an_administrator_with_permissions_by_name_has_those_only() -> None:
    account = make_entry(
        access_key="limited-admin", secret_key=SECRET, admin=True, topic_perms=("A=PUB",)
    ).account
    assert account.may("A", Permission.PUB)
    assert not account.may("A", Permission.SUB)
    assert not account.may("B", Permission.PUB)


@pytest.mark.parametrize(
    "topic",
    ["SCHEDULE_TOPIC_XXXX", "RMQ_SYS_TRANS_HALF_TOPIC", "rmq_sys_wheel_timer", "rmq_sys_anything"],
)
def test_a_default_does_not_open_what_holds_messages_of_all_topics(topic: str) -> None:
    account = make_entry(
        access_key="everything", secret_key=SECRET, topic_default="PUB|SUB"
    ).account
    assert account.may("orders", PUB_SUB)
    assert not account.may(topic, PUB_SUB)
    named = make_entry(access_key="everything", secret_key=SECRET, topic_perms=(f"{topic}=SUB",))
    assert named.account.may(topic, Permission.SUB)


def test_what_is_written_says_the_same() -> None:
    found = read(APACHE.encode())
    again = read(written(found.changed(1_700_000_000_000)))
    assert again.entries == found.entries
    assert again.white == found.white
    assert (again.counter, again.timestamp_ms) == (1, 1_700_000_000_000)
    assert read(written(again.changed(5))).counter == 2


@pytest.mark.parametrize(
    "secret", ['a"b\\c d', "#: *&! ", "0123456", "true true", "äöüß…€!", " x     "]
)
def test_any_secret_survives(secret: str) -> None:
    entry = make_entry(access_key="somebody", secret_key=secret)
    found = read(written(AccountFile(entries=(entry,))))
    assert found.entries[0].account.secret == Secret(secret)


def test_a_file_as_snakeyaml_writes_it_is_read() -> None:
    dumped = (
        "accounts:\n- accessKey: RocketMQ\n  secretKey: '12345678'\n  whiteRemoteAddress: ''\n"
        "  admin: false\n  topicPerms:\n  - a=PUB\n  groupPerms: []\n"
        "dataVersion:\n- counter: 3\n  timestamp: 1651116000000\n"
        "globalWhiteRemoteAddresses:\n- 10.10.103.*\n"
    )
    found = read(dumped.encode())
    assert found.entries[0].account.resources == {"a": Permission.PUB}
    assert (found.counter, found.timestamp_ms) == (3, 1_651_116_000_000)


HEAD = "accounts:\n  - accessKey: somebody\n    secretKey: 1234567\n"


@pytest.mark.parametrize(
    ("text", "line", "why"),
    [
        ("accounts:\n  - accessKey: six666\n    secretKey: 1234567\n", 2, "more than 6"),
        ("accounts:\n  - accessKey: somebody\n    secretKey: 123456\n", 2, "more than 6"),
        ("accounts:\n  - accessKey: somebody\n", 2, "secretKey"),
        ("accounts:\n  - secretKey: 1234567\n", 2, "accessKey"),
        (HEAD + HEAD.removeprefix("accounts:\n"), 4, "in line 2 already"),
        (HEAD + "    topicPerms:\n      - a\n", 2, "NAME=PERMISSION"),
        (HEAD + "    topicPerms:\n      - a=READ\n", 2, "DENY, PUB, SUB or PUB"),
        (HEAD + "    topicPerms:\n      - a=PUB\n      - a=SUB\n", 2, "twice"),
        (HEAD + "    defaultTopicPerm: ALL\n", 2, "defaultTopicPerm"),
        (HEAD + "    topicPerm: x\n", 4, "topicPerm means nothing"),
        (HEAD + "    admin: maybe\n", 4, "true or false"),
        (HEAD + "    topicPerms: a=PUB\n", 4, "is a list"),
        (HEAD + "    whiteRemoteAddress: 10.0.0\n", 2, "pattern"),
        ("globalWhiteRemoteAddresses:\n  - 10.0.0.1\n  - host\n", 3, "pattern"),
        ("account:\n", 1, "account means nothing"),
        ("- 1\n", 1, "no map"),
        ("accounts:\n  - just text\n", 2, "no map"),
        ("accounts:\n  - accessKey: somebody\n    secretKey: 01234567\n", 3, "quotes"),
        ("accounts:\n  - accessKey: somebody\n    secretKey: 0x1234567\n", 3, "quotes"),
        ("accounts:\n  - accessKey: somebody\n    secretKey: 123_456_789\n", 3, "quotes"),
        ("accounts:\n  - accessKey: somebody\n    secretKey: 1234567.50\n", 3, "quotes"),
        ("accounts:\n  - accessKey: 2024-01-01\n    secretKey: 1234567\n", 2, "quotes"),
    ],
)
def test_what_makes_no_sense_is_refused_with_its_line(text: str, line: int, why: str) -> None:
    with pytest.raises(InvalidValue, match=why) as caught:
        read(text.encode())
    assert str(caught.value).startswith(f"line {line}: ")
    assert "123456" not in str(caught.value)


def test_bytes_that_are_no_text_are_refused() -> None:
    with pytest.raises(InvalidValue, match="not UTF-8"):
        read(b"accounts: \xff")
    with pytest.raises(InvalidValue, match="too many"):
        read(b"#" * (4 * 1024 * 1024 + 1))


def test_an_empty_file_has_no_accounts() -> None:
    assert read(b"") == AccountFile()


def test_nothing_shows_a_secret() -> None:
    entry = make_entry(access_key="somebody", secret_key=SECRET)
    for text in (repr(entry), str(entry.account), f"{entry.account.secret}", repr(entry.account)):
        assert SECRET not in text
    with pytest.raises(TypeError):
        entry.account.secret.__reduce__()
