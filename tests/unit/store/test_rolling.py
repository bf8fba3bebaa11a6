"""A log that goes on from file to file, on a real disk with its threads: nobody has to wait."""

from __future__ import annotations

import os
import queue
import time
from statistics import median
from typing import TYPE_CHECKING

import pytest

from gantrymq.clock import SystemClock
from gantrymq.store.files import OsFiles
from gantrymq.store.message_store import Identity, MessageStore
from gantrymq.store.settings import read_settings
from gantrymq.store.timers import StoreTimers
from gantrymq.store.worker import ThreadWorker, Workers
from support.store_rig import STORE_HOST, message

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

FILE_BYTES = 4 << 20
ROLLS = 12
BODY = b"x" * 1000
PER_PUT = 16
MOST = 10
"""Times an ordinary put that one which goes on in the next file may take."""


@pytest.mark.parametrize("warm", ["false", "true"])
def test_the_next_file_is_there_and_costs_nothing(tmp_path: Path, warm: str) -> None:
    settings = read_settings(
        {
            "storePathRootDir": str(tmp_path),
            "mappedFileSizeCommitLog": str(FILE_BYTES),
            "maxHashSlotNum": "1000",
            "maxIndexNum": "4000",
            "warmMapedFileEnable": warm,
        }
    )
    calls: queue.SimpleQueue[Callable[[], None]] = queue.SimpleQueue()
    clock = SystemClock()
    store = MessageStore(
        settings,
        Identity(STORE_HOST),
        files=OsFiles(),
        clock=clock,
        workers=Workers.made(lambda name: ThreadWorker(name, calls.put)),
    )
    timers = StoreTimers(store, settings, clock.monotonic())
    store.open(os.getpid())
    batch, rolled = [message(BODY)] * PER_PUT, list[bool]()
    took, rolls_took = list[int](), list[int]()
    while store.log.wrote_offset < ROLLS * FILE_BYTES:
        following = store.log.files[-1].start + FILE_BYTES if store.log.files else FILE_BYTES
        is_there = (tmp_path / "commitlog" / f"{following:020d}").exists()
        before = time.thread_time_ns()
        assert store.put(batch).messages == PER_PUT
        took.append(time.thread_time_ns() - before)
        if store.log.files[-1].start == following:
            rolled.append(is_there)
            rolls_took.append(took.pop())
        timers.tick(clock.monotonic())
        while not calls.empty():
            calls.get()()
        time.sleep(0.0005)  # a producer that sends 30 MB a second
    assert store.close()
    assert rolled == [True] * ROLLS, "it was made before it was needed"
    rolls, others = median(rolls_took), median(took)
    assert rolls < MOST * others, f"{rolls} ns of the processor, the others take {others}"
