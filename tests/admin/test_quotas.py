"""`gantrymq quota`: set while the server runs, shown, and felt by those who are over it."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from support.shell import Shell


def test_a_topic_gets_a_quota_and_loses_it(shell: Shell) -> None:
    shell.well("topic", "create", "Metered", "--queues", "2")
    (row,) = shell.json("quota", "topic", "Metered", "--send-requests", "1")
    assert (row["name"], row["sendRequests"]) == ("Metered", "1")
    sent = [shell.run("message", "send", "Metered", "x", "--timeout", "5") for _ in range(1)]
    assert [one.status for one in sent] == [0]
    assert len(shell.json("topic", "show", "Metered")["queues"]) == 2, "nothing else has changed"
    listed = [one for one in shell.json("quota", "list") if one["name"] == "Metered"]
    assert [one["kind"] for one in listed] == ["topic"]
    (row,) = shell.json("quota", "topic", "Metered", "--send-requests", "0")
    assert row["sendRequests"] == "0"
    for _ in range(3):
        shell.well("message", "send", "Metered", "x")
    shell.well("topic", "delete", "Metered", "--yes")


def test_a_group_gets_a_quota(shell: Shell) -> None:
    shell.well("group", "create", "metered", "--retries", "5")
    (row,) = shell.json("quota", "group", "metered", "--read-bytes", "1000000")
    assert row["readBytes"] == "1000000"
    (row,) = shell.json("quota", "group", "metered")
    assert row["readBytes"] == "1000000", "without an option it is shown"
    shell.well("group", "delete", "metered", "--yes")


def test_what_cannot_be_is_refused(shell: Shell) -> None:
    for words in (
        ("quota", "topic", "NoSuchTopic", "--send-bytes", "5"),
        ("quota", "group", "no_such_group"),
        ("quota", "topic", "NoSuchTopic", "--send-bytes", "-5"),
        ("quota", "topic", "NoSuchTopic", "--send-bytes", "much"),
    ):
        done = shell.run(*words)
        assert done.status != 0
        assert done.err
