"""Dead letters sent again by a job that is killed again and again: none lost, none twice."""

from __future__ import annotations

import asyncio
import json
import os
import random
import signal
import subprocess
import sys
import time
from collections import Counter
from typing import TYPE_CHECKING, Any

import pytest

from gantrymq.admin.messages import ends
from gantrymq.admin.reading import queues_of, read_range
from gantrymq.admin.redrive import FROM, TIMES, WINDOW
from gantrymq.admin.session import Session
from support.dead_letters import prepare

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from gantrymq.wire.record import MessageRecord
    from support.shell import Shell

LETTERS = int(os.environ.get("REDRIVE_LETTERS", "12000"))
KILLS = int(os.environ.get("REDRIVE_KILLS", "1"))
"""At moments that chance chooses, beside the two that are aimed at. The long form, by hand:
REDRIVE_LETTERS=100000 REDRIVE_KILLS=20. The short one is the same run."""
SEED = int(os.environ.get("GANTRYMQ_SEED", "7"))
LINE_BYTES = 60
"""Of an outcome in the journal, at least."""


def stored(shell: Shell, topic: str) -> list[MessageRecord]:
    """Return all messages of a topic."""

    async def read() -> list[MessageRecord]:
        found = []
        async with Session(shell.server.name_server) as session:
            for queue, address in (await queues_of(session, topic)).items():
                end = await ends(session, address, topic, queue.queue_id)
                found += await read_range(session, address, queue, *end)
        return found

    return asyncio.run(read())


def outcomes(job: Path) -> list[dict[str, Any]]:
    lines = map(json.loads, job.read_text().splitlines())
    return [line for line in lines if "o" in line]


@pytest.mark.parametrize("to", ["topic", "group"])
def test_killed_and_resumed(shell: Shell, tmp_path: Path, to: str) -> None:
    group = f"fallen-{to}"
    target = f"Posts-{to}" if to == "topic" else f"%RETRY%{group}"
    prepare(shell, group, f"Posts-{to}", LETTERS)
    job = tmp_path / "job.jsonl"
    words = ("dlq", "redrive", group, "--to", to, "--rate", "20000", "--job", str(job))
    command = [sys.executable, "-m", "gantrymq", *words, "-n", shell.server.name_server]
    third = LETTERS // 3
    # In the middle of a window's outcomes, and as soon as one has begun and is being sent.
    aimed = {"topic": (b'"o":', third + 700), "group": (b'"window"', LETTERS * 2 // 3 // WINDOW)}
    if to == "topic" or KILLS > 1:
        chance = random.Random(SEED)
        for bytes_then in sorted(chance.randrange(1, third * LINE_BYTES) for _ in range(KILLS)):
            # Any moment: when it waits, reads, sends, or is in the middle of writing.
            kill_when(command, job, lambda at=bytes_then: job.stat().st_size >= at)  # type: ignore[misc]
    mark, wanted = aimed[to]
    kill_when(command, job, lambda: job.read_bytes().count(mark) >= wanted)
    begun = time.monotonic()
    told = shell.json(*words)
    assert told["outcomes"] == {"sent": LETTERS}
    if KILLS > 1:
        sys.stderr.write(f"to a {to}: the last run took {time.monotonic() - begun:.1f} s\n")
    noted = Counter(line["o"] for line in outcomes(job))
    assert len(noted) == LETTERS
    assert set(noted.values()) == {1}, "an outcome was recorded twice"
    copies = stored(shell, target)
    came = Counter(record.properties[FROM] for record in copies)
    assert len(came) == LETTERS, "a dead letter is lost"
    assert set(came.values()) == {1}, "a dead letter was sent twice"
    ids = {record.unique_key for record in copies}
    assert ids == {line["t"] for line in outcomes(job)}, "an outcome names another message"
    again = shell.json("dlq", "redrive", group, "--to", to, "--job", str(job))
    assert again["outcomes"] == {"sent": LETTERS}
    assert len(stored(shell, target)) == LETTERS


def kill_when(command: list[str], job: Path, is_time: Callable[[], bool]) -> None:
    """Start a job, kill it with SIGKILL when it is time, and see that it has not ended."""
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    deadline = time.monotonic() + 60
    while not job.exists() or not is_time():
        assert process.poll() is None, "it ended before it was killed"
        assert time.monotonic() < deadline
        time.sleep(0.001)
    process.send_signal(signal.SIGKILL)
    process.wait()
    assert len(outcomes_so_far(job)) < LETTERS


def outcomes_so_far(job: Path) -> list[str]:
    """Return whole lines only: the last one may be cut."""
    return [line for line in job.read_text().splitlines(keepends=True)
            if '"o":' in line and line.endswith("\n")]  # fmt: skip


def test_to_the_group_alone_with_filter_and_count(shell: Shell, tmp_path: Path) -> None:
    prepare(shell, "lonely", "Letters", 20)
    dry = shell.json("dlq", "redrive", "lonely", "--tag", "t1", "--dry-run")
    assert dry["outcomes"] == {"filtered": 10, "would be sent": 10}
    job = ("--job", str(tmp_path / "lonely.jsonl"))
    some = shell.json("dlq", "redrive", "lonely", "--tag", "t1", "--count", "4", *job)
    assert some["outcomes"]["sent"] == 4
    rest = shell.json("dlq", "redrive", "lonely", "--tag", "t1", *job)
    assert rest["outcomes"] == {"sent": 10, "filtered": 10}
    came = stored(shell, "%RETRY%lonely")
    assert sorted(record.body for record in came) == sorted(
        b"letter %d" % number for number in range(1, 20, 2)
    )
    assert {record.properties["RETRY_TOPIC"] for record in came} == {"Letters"}
    assert stored(shell, "Letters") == []
    other = shell.run("dlq", "redrive", "lonely", "--tag", "t0", *job)
    assert other.status == 2
    assert "another job (it differs in filter)" in other.err


def test_large_letters_go_in_batches_that_a_broker_takes(shell: Shell, tmp_path: Path) -> None:
    prepare(shell, "stout", "Parcels", 60, batch=20, properties={"pad": "100000"})
    for to, target in (("topic", "Parcels"), ("group", "%RETRY%stout")):
        job = ("--job", str(tmp_path / to))
        told = shell.json("dlq", "redrive", "stout", "--to", to, *job)
        assert told["outcomes"] == {"sent": 60}
        assert [len(record.body) for record in stored(shell, target)] == [100_000] * 60


def test_a_group_that_takes_no_retries_gets_its_letters(shell: Shell, tmp_path: Path) -> None:
    prepare(shell, "once", "Onces", 4)
    shell.well("group", "create", "once", "--retries", "0")
    told = shell.json("dlq", "redrive", "once", "--job", str(tmp_path / "job"))
    assert told["outcomes"] == {"sent": 4}
    assert len(stored(shell, "%RETRY%once")) == 4
    assert len(stored(shell, "%DLQ%once")) == 4, "they went to the dead letters again"


def test_dead_letters_are_no_target(shell: Shell, tmp_path: Path) -> None:
    prepare(shell, "circle", "Circles", 2)
    for to in ("%DLQ%circle", "%DLQ%other", "no such/topic"):
        job = tmp_path / "job"
        ended = shell.run("dlq", "redrive", "circle", "--to", to, "--job", str(job))
        assert ended.status == 2
        assert to in ended.err
        assert not job.exists()


def test_a_count_is_of_one_run_and_leaves_the_others(shell: Shell, tmp_path: Path) -> None:
    prepare(shell, "counted", "Counts", 200, queues=2)
    assert len({record.queue_id for record in stored(shell, "%DLQ%counted")}) == 2
    command = ("dlq", "redrive", "counted", "--to", "topic", "--job", str(tmp_path / "job"))
    dry = shell.json(*command, "--count", "10", "--dry-run")
    assert dry["outcomes"] == {"would be sent": 10, "left": 190}
    for sent in (10, 20):
        assert shell.json(*command, "--count", "10")["outcomes"] == {"sent": sent}
        assert len(stored(shell, "Counts")) == sent
    assert shell.json(*command, "--count", "95")["outcomes"] == {"sent": 115}
    assert shell.json(*command)["outcomes"] == {"sent": 200}
    came = Counter(record.properties[FROM] for record in stored(shell, "Counts"))
    assert len(came) == 200
    assert set(came.values()) == {1}


def test_a_count_holds_in_a_window_that_was_left_open(shell: Shell, tmp_path: Path) -> None:
    prepare(shell, "halved", "Halves", 20)
    job = tmp_path / "job"
    command = ("dlq", "redrive", "halved", "--to", "topic", "--job", str(job))
    assert shell.json(*command, "--count", "2")["outcomes"] == {"sent": 2}
    # As a run leaves it that was killed between the beginning of a window and its first send.
    with job.open("a") as file:
        window = {"window": "broker-a:0", "from": 2, "to": 20, "ends": {"Halves": {}}}
        file.write(json.dumps(window) + "\n")
    os.utime(job, (1, 1))
    for sent in (5, 8):
        assert shell.json(*command, "--count", "3")["outcomes"] == {"sent": sent}
        os.utime(job, (1, 1))
    assert shell.json(*command)["outcomes"] == {"sent": 20}
    came = Counter(record.properties[FROM] for record in stored(shell, "Halves"))
    assert len(came) == 20
    assert set(came.values()) == {1}


def test_loops_are_refused(shell: Shell, tmp_path: Path) -> None:
    prepare(shell, "dizzy", "Rounds", 3, properties={TIMES: "3"})
    told = shell.json("dlq", "redrive", "dizzy", "--job", str(tmp_path / "dizzy.jsonl"))
    assert told["outcomes"] == {"refused": 3}
    more = shell.json("dlq", "redrive", "dizzy", "--loops", "4", "--to", "topic", "--job",
                      str(tmp_path / "more.jsonl"))  # fmt: skip
    assert more["outcomes"] == {"sent": 3}
    assert {record.properties[TIMES] for record in stored(shell, "Rounds")} == {"4"}


def test_a_count_of_loops_that_is_no_number_of_this_world(shell: Shell, tmp_path: Path) -> None:
    prepare(shell, "endless", "Ages", 2, properties={TIMES: "9" * 5_000})
    told = shell.json("dlq", "redrive", "endless", "--job", str(tmp_path / "endless.jsonl"))
    assert told["outcomes"] == {"refused": 2}


def test_dead_letters_are_listed(shell: Shell) -> None:
    prepare(shell, "gone", "Lists", 7)
    (row,) = [each for each in shell.json("dlq", "list") if each["group"] == "gone"]
    assert row["deadLetters"] == 7
    shown = shell.json("dlq", "show", "gone", "--tag", "t1")
    assert len(shown) == 3
    nobody = shell.run("dlq", "show", "nobody-died")
    assert (nobody.status, nobody.out) == (1, "")


@pytest.mark.parametrize("text", ["not JSON\n", '{"job":"other"}\n'])
def test_a_foreign_file_is_refused(shell: Shell, tmp_path: Path, text: str) -> None:
    prepare(shell, "foreign", "Foreign", 1)
    job = tmp_path / "job"
    job.write_text(text)
    ended = shell.run("dlq", "redrive", "foreign", "--job", str(job))
    assert ended.status == 2
    assert job.read_text() == text
