"""An archive that is killed again and again holds every message once.

A few kills in every run; GANTRYMQ_ARCHIVE_KILLS=50 makes more of them. A failure prints its seed.
"""

from __future__ import annotations

import os
import random
import threading
from collections import Counter
from typing import TYPE_CHECKING

import pytest

from gantrymq.blocking import Producer
from gantrymq.model.message import Message
from gantrymq.spark.jobs.lake import Lake, joined_ranges
from gantrymq.testing import ThreadedBroker
from support.archive_kills import Job, archived, run_and_kill
from support.pipeline import run_well

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = [pytest.mark.tool("java"), pytest.mark.usefixtures("spark")]

KILLS = int(os.environ.get("GANTRYMQ_ARCHIVE_KILLS", "2"))
SEED = int(os.environ.get("GANTRYMQ_SEED", "7"))
BATCH = 100
ENOUGH = 3000
"""Messages that are not archived yet, so that there is always something to be killed in."""


class Feeder:
    """Sends, so that the lake never catches up."""

    def __init__(self, broker: ThreadedBroker, topic: str, lake: Path) -> None:
        self.sent = 0
        self._broker = broker
        self._topic = topic
        self._lake = lake
        self._stopped = threading.Event()
        self._thread = threading.Thread(target=self._run, daemon=True)

    def start(self) -> None:
        """Begin."""
        self._thread.start()

    def stop(self) -> None:
        """End, when the last batch is stored."""
        self._stopped.set()
        self._thread.join(30)

    def _archived(self) -> int:
        folder = self._lake / "manifest"
        if not folder.is_dir():
            return 0
        return sum(one.rows for batch in Lake.open(str(self._lake)).batches for one in batch.files)

    def _run(self) -> None:
        with Producer(self._broker.namesrv, "feeder") as producer:
            while not self._stopped.is_set():
                if self.sent - self._archived() > ENOUGH:
                    self._stopped.wait(0.2)
                    continue
                for _ in range(10):
                    producer.send_batch([
                        Message(topic=self._topic, body=f"body-{self.sent + number}".encode())
                        for number in range(BATCH)
                    ])  # fmt: skip
                    self.sent += BATCH


def test_every_message_is_archived_once_whatever_is_killed(tmp_path: Path) -> None:
    rng, killed = random.Random(SEED), Counter[str]()
    with ThreadedBroker(settings={"mappedFileSizeCommitLog": str(64 << 20)}) as broker:
        topic = broker.create_topic("Killed", 4)
        job = Job(broker.namesrv, topic, tmp_path / "lake", tmp_path / "log")
        feeder = Feeder(broker, topic, job.lake)
        feeder.start()
        kinds = ("driver", "worker", "jvm")
        for number in range(KILLS):
            killed[run_and_kill(job, rng, kinds[number % len(kinds)])] += 1
        feeder.stop()
        run_well("archive", name_server=broker.namesrv, topic=[topic], to=str(job.lake))
        expected = Counter(
            (message.queue_id, message.offset, message.body) for message in broker.messages(topic)
        )
    said = f"seed {SEED}, killed {dict(killed)}, {feeder.sent} sent"
    assert sum(killed[kind] for kind in kinds) >= KILLS * 0.6, said
    assert sum(expected.values()) == feeder.sent, said
    found = archived(job.lake)
    assert found == expected, said
    for one in joined_ranges(Lake.open(str(job.lake)).files()):
        assert one.begin == 0
        assert not one.seams, said
    print(said)  # noqa: T201  (shown with -s: how many were killed, and what)
