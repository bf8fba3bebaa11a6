"""The guessable commands, one after the other, against a running server."""

from __future__ import annotations

import base64
import os
import re
import shutil
import subprocess
from typing import TYPE_CHECKING, Any

import pytest

from gantrymq.cli.daily import table as daily
from gantrymq.cli.mqadmin import command
from gantrymq.cli.mqadmin import table as mqadmin

if TYPE_CHECKING:
    from pathlib import Path

    from support.shell import Shell

DAILY = """topicList topicStatus topicRoute updateTopic clusterList brokerStatus queryMsgByKey
queryMsgByUniqueKey queryMsgByOffset resetOffsetByTime updateSubGroup getBrokerConfig
updateBrokerConfig sendMessage statsAll printMsg consumeMessage getNamesrvConfig exportMetadata
exportConfigs exportMetrics haStatus"""


def test_a_body_is_sent_as_it_was_typed_and_shown_so_that_no_terminal_obeys_it(
    shell: Shell,
) -> None:
    sent = shell.json("message", "send", "Typed", os.fsdecode(b"\xff\xfe"))
    found = shell.json("message", "get", sent["messageId"], "--topic", "Typed")
    assert base64.b64decode(found["bodyBase64"]) == b"\xff\xfe"
    sent = shell.json("message", "send", "Typed", "red \x1b[31m", "--key", "k")
    shown = shell.well("message", "get", sent["messageId"], "--topic", "Typed")
    assert r"red \x1b[31m" in shown
    assert "\x1b" not in shown


def test_topics_come_and_go(shell: Shell) -> None:
    made = shell.json("topic", "create", "Invoices", "--queues", "3", "--perm", "RW-")
    assert made["topic"]["readQueueNums"] == 3
    shell.well("message", "send", "Invoices", "hello", "--tag", "T", "--key", "k1")
    (row,) = [each for each in shell.json("topic", "list") if each["topic"] == "Invoices"]
    assert (row["queues"], row["messages"]) == (3, 1)
    assert "TBW102" not in shell.well("topic", "list")
    assert "TBW102" in shell.well("topic", "list", "--all")
    shown = shell.json("topic", "show", "Invoices")
    assert len(shown["queues"]) == 3
    plan = shell.json("topic", "delete", "Invoices")
    assert plan["done"] is False
    assert plan["plan"][0]["howMuch"] == "3 queues, 1 messages"
    assert "Invoices" in shell.well("topic", "list")
    shell.well("topic", "delete", "Invoices", "--yes")
    assert "Invoices" not in shell.well("topic", "list")
    gone = shell.run("topic", "show", "Invoices")
    assert (gone.status, gone.out) == (1, "")
    assert "TOPIC_NOT_EXIST (17)" in gone.err


@pytest.mark.parametrize(
    "words",
    [
        ("topic", "delete", "TBW102", "--yes"),
        ("topic", "delete", "broker-a", "--yes"),
        ("topic", "create", "RMQ_SYS_TRANS_HALF_TOPIC"),
        ("group", "delete", "CID_RMQ_SYS_TRANS", "--yes"),
        ("group", "reset", "CID_RMQ_SYS_TRANS", "RMQ_SYS_TRANS_HALF_TOPIC", "--to", "earliest"),
        (
            "admin",
            "resetOffsetByTime",
            "-g",
            "CID_RMQ_SYS_TRANS",
            "-t",
            "RMQ_SYS_TRANS_HALF_TOPIC",
            "-s",
            "0",
        ),
        (
            "admin",
            "skipAccumulatedMessage",
            "-g",
            "CID_RMQ_SYS_TRANS",
            "-t",
            "RMQ_SYS_TRANS_HALF_TOPIC",
        ),
        ("dlq", "redrive", "CID_RMQ_SYS_TRANS"),
        ("admin", "deleteTopic", "-c", "DefaultCluster", "-t", "SCHEDULE_TOPIC_XXXX"),
    ],
)
def test_system_names_are_untouchable(shell: Shell, words: tuple[str, ...]) -> None:
    ended = shell.run(*words)
    assert ended.status == 2
    assert "is a system" in ended.err
    assert "TBW102" in shell.well("topic", "list", "--all")


def test_messages_are_found(shell: Shell) -> None:
    shell.well("topic", "create", "Finds", "--queues", "2")
    sent = shell.json(
        "message", "send", "Finds", "the needle", "--key", "n1", "--property", "shop=7"
    )
    for number in range(40):
        shell.well("message", "send", "Finds", f"hay {number}", "--tag", "hay")
    by_id = shell.json("message", "get", sent["messageId"], "--topic", "Finds")
    assert by_id["body"] == "the needle"
    assert shell.json("message", "get", sent["offsetId"])["messageId"] == sent["messageId"]
    for options in (["--key", "n1"], ["--body", "needle"], ["--property", "shop=7"],
                    ["--id", sent["messageId"]]):  # fmt: skip
        found = shell.json("message", "search", "Finds", *options)
        assert [each["body"] for each in found["messages"]] == ["the needle"], options
    assert len(shell.json("message", "search", "Finds", "--tag", "hay")["messages"]) == 40
    nothing = shell.json("message", "search", "Finds", "--tag", "hay", "--until", "1h")
    assert nothing["messages"] == []


def test_a_search_has_a_bound_and_goes_on(shell: Shell) -> None:
    shell.well("topic", "create", "Bounds", "--queues", "2")
    for number in range(30):
        shell.well("message", "send", "Bounds", f"{number}")
    found: list[str] = []
    resume: list[str] = []
    looks = 0
    while True:
        told = shell.json("message", "search", "Bounds", "--look-at", "7", *resume)
        assert told["lookedAt"] <= 7
        found += [each["body"] for each in told["messages"]]
        looks += 1
        if told["resume"] is None:
            break
        resume = ["--resume", told["resume"]]
    assert sorted(map(int, found)) == list(range(30))
    assert looks >= 5
    bad = shell.run("message", "search", "Bounds", "--resume", "nowhere:0=3")
    assert bad.status == 2


def test_a_group_is_moved_and_put_back(shell: Shell, tmp_path: Path) -> None:
    shell.well("topic", "create", "Moves", "--queues", "2")
    shell.well("group", "create", "movers")
    for number in range(10):
        shell.well("message", "send", "Moves", f"{number}")
    undo = str(tmp_path / "undo.json")
    plan = shell.json("group", "reset", "movers", "Moves", "--to", "latest")
    assert plan["done"] is False
    assert sum(each["isSkipped"] for each in plan["plan"]) == 10
    assert at(shell, "movers", "Moves") == {0}
    first = str(tmp_path / "first.json")
    shell.well("group", "reset", "movers", "Moves", "--to", "earliest", "--yes", "--undo-file",
               first)  # fmt: skip
    nowhere = shell.run("group", "reset", "movers", "--undo", first, "--yes", "--offline")
    assert nowhere.status == 2, "brokers say 0 of a group that was nowhere"
    assert "had no offset in Moves" in nowhere.err
    shell.well("group", "reset", "movers", "Moves", "--to", "latest", "--yes", "--undo-file", undo)
    assert sum(positions(shell, "movers", "Moves").values()) == 10
    one = ("--to-offset", "1", "--queue", "broker-a:1", "--yes", "--undo-file")
    shell.well("group", "reset", "movers", "Moves", *one, str(tmp_path / "one.json"))
    assert positions(shell, "movers", "Moves")["broker-a:1"] == 1
    shell.well("group", "reset", "movers", "--undo", undo, "--yes", "--offline")
    assert at(shell, "movers", "Moves") == {0}
    wrong = shell.run("group", "reset", "movers", "Moves", "--to-offset", "99")
    assert wrong.status == 2
    assert "is not in queue" in wrong.err


def positions(shell: Shell, group: str, topic: str) -> dict[str, int]:
    plan = shell.json("group", "reset", group, topic, "--to", "earliest")["plan"]
    return {each["queue"]: each["isAt"] or 0 for each in plan}


def at(shell: Shell, group: str, topic: str) -> set[int]:
    return set(positions(shell, group, topic).values())


def test_a_file_is_applied_with_a_plan_first(shell: Shell, tmp_path: Path) -> None:
    file = tmp_path / "site.toml"
    file.write_text(
        '[topics.Declared]\nqueues = 4\nperm = "R--"\n[groups.declarers]\nretry_times_max = 3\n'
    )
    plan = shell.json("apply", "-f", str(file))
    assert [each["action"] for each in plan["changes"]] == ["create", "create"]
    assert "Declared" not in shell.well("topic", "list")
    shell.well("apply", "-f", str(file), "--yes")
    again = shell.json("apply", "-f", str(file))
    assert [each["action"] for each in again["changes"]] == ["same", "same"]
    file.write_text("[topics.Declared]\nqueues = 6\n")
    (change,) = shell.json("apply", "-f", str(file), "--yes")["changes"]
    assert change["what"] == "read_queues 4 -> 6, write_queues 4 -> 6"
    (same,) = shell.json("apply", "-f", str(file))["changes"]
    assert same["action"] == "same"
    for text, wanted in {
        "[topics.Declared]\nqueus = 6\n": "topics.Declared.queus is not known",
        '[topics.Declared]\nqueues = "6"\n': "give int",
        "[topics.TBW102]\n": "is a system topic",
        "topics = 3\n": "topics is no table",
        "[[": "cannot be read",
    }.items():
        file.write_text(text)
        ended = shell.run("apply", "-f", str(file))
        assert (ended.status, ended.out) == (2, ""), text
        assert wanted in ended.err, text


def test_a_message_and_a_group_are_explained(shell: Shell) -> None:
    shell.well("topic", "create", "Tales", "--queues", "1")
    sent = shell.json("message", "send", "Tales", "once upon a time")
    told = shell.json("explain", "message", sent["messageId"], "--topic", "Tales")
    assert told["stored"]["brokerName"] == "broker-a"
    assert told["delivered"] == []
    shell.well("group", "create", "readers")
    life = shell.json("explain", "group", "readers")
    assert (life["members"], life["behind"]) == ([], 0)
    (row,) = [each for each in shell.json("group", "list") if each["group"] == "readers"]
    assert row["version"] == "NEVER ONLINE"
    nobody = shell.run("explain", "group", "no-such-group")
    assert (nobody.status, nobody.out) == (1, "")
    assert "no-such-group" in nobody.err
    nothing = shell.run("explain", "message", "0" * 32, "--topic", "Tales")
    assert nothing.status == 1
    assert "no message has the id" in nothing.err


def test_the_doctor_finds_what_is_wrong(shell: Shell) -> None:
    told = shell.json("doctor")
    assert {"ok", "warning"} >= {each["verdict"] for each in told}
    assert any(each["what"].startswith("broker broker-a:0") for each in told)
    from gantrymq.cli.main import main  # noqa: PLC0415

    assert main(["doctor", "-n", f"{shell.server.name_server};127.0.0.1:1"]) == 1
    assert main(["doctor", "-n", "127.0.0.1:1"]) == 1


def test_every_command_of_mqadmin_answers(shell: Shell, tmp_path: Path) -> None:
    """Each is asked with something in every option that it needs; none may fail on its own."""
    shell.well("topic", "create", "Every", "--queues", "1")
    shell.well("group", "create", "everyone")
    sent = shell.json("message", "send", "Every", "x", "--key", "e1")
    known: dict[str, str] = {
        "brokerAddr": shell.broker, "broker": shell.broker, "clusterName": "DefaultCluster",
        "cluster": "DefaultCluster", "topic": "Every", "topicName": "Every",
        "group": "everyone", "groupName": "everyone", "consumerGroup": "everyone",
        "brokerName": "broker-a", "queueId": "0", "offset": "0", "queue": "0", "index": "0",
        "timestamp": "now", "perm": "6", "msgKey": "e1", "msgId": sent["messageId"],
        "messageId": sent["messageId"], "body": "b", "key": "fileReservedTime", "value": "72",
        "ipList": "a,b", "method": "get", "mode": "PULL", "filename": str(tmp_path / "no"),
        "fromBroker": shell.broker, "toBroker": shell.broker, "engineType": "F",
        "controllerAddress": shell.broker, "brokerId": "0", "threshold": "1", "amount": "1",
        "brokerContainerAddr": shell.broker, "brokerConfigPath": "/none", "count": "1",
        "brokerIdentity": "DefaultCluster:broker-a:0", "commitLogReadAheadMode": "0",
        "filePath": str(tmp_path), "rounds": "1", "namespace": "ns",
    }  # fmt: skip
    answered: dict[str, int] = {}
    in_order = sorted(mqadmin.SPECS.items(), key=lambda item: item[0].startswith("delete"))
    for name, spec in in_order:
        words = ["admin", name, "--json"]
        for flags, long_name, takes_value, is_needed in command.options_of(spec):
            if is_needed or long_name in {"filePath", "rounds", "amount", "count"}:
                words += [flags[-1], known.get(long_name, "x")] if takes_value else []
            elif long_name == "brokerAddr" and "deleteSubGroup" not in name:
                words += [flags[-1], shell.broker]
        ended = shell.run(*words)
        assert ended.status in {0, 1, 2}, name
        first: Any = ended.data
        assert ended.status == 0 or "error" in first or "problems" in first, (name, ended)
        answered[name] = ended.status
    for name, why in mqadmin.LEFT_OUT.items():
        ended = shell.run("admin", name)
        assert (ended.status, ended.out) == (1, "")
        assert why in ended.err
    assert {name for name in DAILY.split() if answered[name] != 0} == set()


def test_completion_is_read_by_its_shell(shell: Shell, tmp_path: Path) -> None:
    for name in ("bash", "zsh", "fish"):
        text = shell.well("completion", name)
        for word in ("topicStatus", "redrive", "--namesrv" if name != "fish" else "namesrv"):
            assert word in text
        if (program := shutil.which(name)) is not None:
            file = tmp_path / name
            file.write_text(text)
            subprocess.run([program, "-n", str(file)], check=True, timeout=20)
    asked = f"""{shell.well("completion", "bash")}
        COMP_WORDS=(gantrymq dlq re); COMP_CWORD=2; _gantrymq; echo "${{COMPREPLY[@]}}"
        COMP_WORDS=(gantrymq admin topicStatus --to); COMP_CWORD=3; _gantrymq
        echo "${{COMPREPLY[@]}}" """
    said = subprocess.run(["bash", "-c", asked], capture_output=True, text=True, check=True)  # noqa: S607
    assert said.stdout.split() == ["redrive", "--topic"]


@pytest.mark.parametrize("noun", [*daily.NOUNS, "admin"])
def test_help_names_every_command(
    shell: Shell, noun: str, capsys: pytest.CaptureFixture[str]
) -> None:
    del shell
    from gantrymq.cli.main import main  # noqa: PLC0415

    assert main([noun, "--help"]) == 0
    said = capsys.readouterr().out
    names = mqadmin.SPECS if noun == "admin" else daily.NOUNS[noun]
    assert all(re.search(rf"^  {name}\b", said, re.MULTILINE) for name in names)
    assert "exit status: 0 success, 1" in said


def test_bad_usage_is_one_line(shell: Shell) -> None:
    for words, wanted in {
        ("topic", "lst"): "there is no 'lst'",
        ("admin", "topicLst"): "did you mean topicList?",
        ("admin", "topicStatus"): "-t/--topic",
        ("group", "reset", "g", "t"): "say where to",
        ("message", "search", "T", "--from", "yesterday"): "is no time",
        ("topic", "list", "--timeout", "soon"): "give seconds",
    }.items():
        ended = shell.run(*words)
        assert (ended.status, ended.out) == (2, ""), words
        assert wanted in ended.err
        assert len(ended.err.splitlines()) == 1
