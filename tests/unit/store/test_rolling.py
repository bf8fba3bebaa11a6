"""A log that goes on from file to file, on a real disk with its threads: nobody has to wait.

What a put takes is counted in time of the processor, faults of pages included, and not by the
clock: a machine that runs other tests as well takes its time from rolls and other puts alike.
"""

from __future__ import annotations

import os
import queue
import time
from itertools import count
from statistics import median
from typing import TYPE_CHECKING

import pytest

from gantrymq.clock import SystemClock
from gantrymq.store.files import OsFiles
from gantrymq.store.message_store import Identity, MessageStore
from gantrymq.store.settings import read_settings
from gantrymq.store.timers import StoreTimers
from gantrymq.store.worker import ThreadWorker, Workers
from support.store_rig import BORN_HOST, STORE_HOST, frames, message

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

FILE_BYTES = 2 << 20
ROLLS = 20
MADE_S_MAX = 30
BODY = b"x" * 1000
PER_TURN = 8
MOST = 10
"""Times an ordinary put that one which goes on in the next file may take."""
FLOOR_NS = 2_000_000
"""Below this the slowest of all rolls is quick on any machine, however quick the others were."""


class Turns:
    """A store and what its event loop would do: calls that wait for the end of a turn."""

    def __init__(self, root: Path, warm: str) -> None:
        settings = read_settings(
            {
                "storePathRootDir": str(root),
                "mappedFileSizeCommitLog": str(FILE_BYTES),
                "maxHashSlotNum": "1000",
                "maxIndexNum": "400000",
                "warmMapedFileEnable": warm,
            }
        )
        self._calls: queue.SimpleQueue[Callable[[], None]] = queue.SimpleQueue()
        self._clock = SystemClock()
        self.store = MessageStore(
            settings,
            Identity(STORE_HOST),
            files=OsFiles(),
            clock=self._clock,
            workers=Workers.made(lambda name: ThreadWorker(name, self._calls.put)),
            soon=self._calls.put,
        )
        self.store.open(os.getpid())
        self.store.open_topic("T", 2)
        self.put_one()  # the first file is made when somebody needs it
        self._timers = StoreTimers(self.store, settings, self._clock.monotonic())

    def end(self) -> None:
        """Do what has waited for the end of a turn."""
        while not self._calls.empty():
            self._calls.get()()
        self._timers.tick(self._clock.monotonic())

    def put_one(self) -> None:
        assert self.store.put([message(BODY)]).messages == 1

    def append_one(self, sends: bytes = frames([BODY])) -> None:
        assert self.store.append_sends(sends, 0, len(sends), BORN_HOST).messages == 1

    def wait_for(self, path: Path) -> None:
        """Let turns go by without a put until there is a file: disks may be slow, and busy."""
        deadline = time.monotonic() + MADE_S_MAX
        while not path.exists():
            assert time.monotonic() < deadline, f"{path} is not made before a put needs it"
            self.end()
            time.sleep(0.001)


@pytest.mark.parametrize("warm", ["false", "true"])
@pytest.mark.parametrize("way", ["put_one", "append_one"])
def test_the_next_file_is_there_and_costs_nothing(tmp_path: Path, warm: str, way: str) -> None:
    turns = Turns(tmp_path, warm)
    log, put = turns.store.log, getattr(turns, way)
    took, rolls_took = list[int](), list[int]()
    for number in count():
        if number % PER_TURN == 0:
            turns.end()
        following = log.files[-1].start + FILE_BYTES if log.files else FILE_BYTES
        if log.wrote_offset + 2 * PER_TURN * len(BODY) > following:
            turns.wait_for(tmp_path / "commitlog" / f"{following:020d}")
        before = time.thread_time_ns()
        put()
        took.append(time.thread_time_ns() - before)
        if log.files[-1].start == following:
            rolls_took.append(took.pop())
        if len(rolls_took) == ROLLS:
            break
    turns.end()
    assert turns.store.close()
    others, rolls, worst = median(took), median(rolls_took), max(rolls_took)
    said = f"{rolls} ns of the processor, {worst} at most; the others take {others}"
    assert rolls <= MOST * others, said
    assert worst <= max(MOST * others, FLOOR_NS), said
