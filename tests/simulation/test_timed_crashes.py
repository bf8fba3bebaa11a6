"""Lives of a broker with timers and pops, ended by kills and power cuts at any moment.

What must hold, whatever happens: a message whose send was answered is seen by a consumer, a timer
never before it is due, and what was acknowledged comes again only after a crash.

A seed that fails is replayed, alone, with

    GANTRYMQ_SEED=<seed> .venv/bin/python -m pytest tests/simulation/test_timed_crashes.py
"""

from __future__ import annotations

import os
from random import Random

import pytest

from gantrymq.wire.properties import decode_properties
from support.timed_rig import TimedRig, decoded

SEEDS = 48
CHUNKS = 8
INVISIBLE_MS = 3000
REPLAY = "GANTRYMQ_SEED={} .venv/bin/python -m pytest tests/simulation/test_timed_crashes.py"


class World:
    """One broker, its producers and consumers, and what they were told."""

    def __init__(self, seed: int) -> None:
        self.random = Random(seed)
        self.sync = bool(seed % 2)
        store = {"flushDiskType": "SYNC_FLUSH"} if self.sync else {}
        self.rig = TimedRig(store)
        self.sent: dict[bytes, int] = {}  # body to the moment before which nobody may see it
        self.seen: dict[bytes, int] = {}
        self.acked: set[bytes] = set()
        self.acked_late: set[bytes] = set()  # it may come again, or not
        self.crashes_before: dict[bytes, int] = {}
        self.out: list[tuple[bytes, str, int, str, int]] = []
        self.crashes = 0
        self.came_again = 0
        self.number = 0
        self.send()

    def send(self) -> None:
        """Send an ordinary message or a timer."""
        self.number += 1
        body = b"m%d" % self.number
        delay_ms = self.random.choice((0, 0, 1500, 4000, 70_000))
        properties = {"UNIQ_KEY": body.decode()}
        if delay_ms:
            properties["TIMER_DELAY_MS"] = str(delay_ms)
        due_ms = self.rig.clock.now_ms() + delay_ms
        if self.rig.send(body, queue_id=self.random.randrange(2), **properties).code == 0:
            self.sent[body] = due_ms
            self.crashes_before[body] = self.crashes

    def pop(self) -> None:
        """Pop, and note what was seen."""
        answer = self.rig.pop(invisibleTime=INVISIBLE_MS, maxMsgNums=self.random.randint(1, 8))
        if answer.code != 0:
            assert answer.code == 210, answer.remark
            return
        starts = dict(one.rsplit(" ", 1) for one in answer.fields["startOffsetInfo"].split(";"))
        for record in decoded(answer.body):
            info = decode_properties(record.properties).get("POP_CK", "")
            mark = info.split(" ")[4] if info else "0"
            self.note(record.body)
            handle = (
                f"{starts[f'{mark} {record.queue_id}']} {answer.fields['popTime']} {INVISIBLE_MS} "
                f"{answer.fields['reviveQid']} {mark} broker-a {record.queue_id}"
            )
            topic = "T" if mark == "0" else "%RETRY%g_T"
            self.out.append((record.body, topic, record.queue_id, handle, record.queue_offset))

    def note(self, body: bytes) -> None:
        """Note that a consumer has seen a message."""
        now_ms = self.rig.clock.now_ms()
        if body in self.sent:
            assert now_ms >= self.sent[body], f"{body!r} came early"
        if body in self.acked:
            before = self.crashes_before.get(body, -1)
            assert before < self.crashes, f"{body!r} came again without a crash"
            self.came_again += 1
        self.seen[body] = self.seen.get(body, 0) + 1

    def ack(self, share: float = 0.7) -> None:
        """Acknowledge some of what is out, in time or too late; forget some, and keep the rest."""
        left = []
        for body, topic, queue_id, handle, offset in self.out:
            if self.random.random() > share:
                if self.random.random() < 0.5:
                    left.append((body, topic, queue_id, handle, offset))
                continue
            answer = self.rig.ack(offset, handle, topic=topic, queueId=queue_id)
            deadline = int(handle.split(" ")[1]) + INVISIBLE_MS
            if answer.code == 0:
                in_time = self.rig.clock.now_ms() < deadline
                (self.acked if in_time else self.acked_late).add(body)
        self.out = left

    def end(self) -> None:
        """End the process one way or another, and start the next."""
        how = self.random.choice(("kill", "stop", "power"))
        if how == "stop":
            self.rig = self.rig.stop()
            return
        self.crashes += 1
        if how == "power" and self.sync:
            self.rig = self.rig.again(self.rig.disk.crash())
        else:
            self.rig = self.rig.again()

    def live(self, steps: int) -> None:
        """Do things at random."""
        for _ in range(steps):
            roll = self.random.random()
            if roll < 0.40:
                self.send()
            elif roll < 0.65:
                self.pop()
            elif roll < 0.80:
                self.ack()
            elif roll < 0.96:
                self.rig.wait(self.random.choice((0.3, 1.0, 2.5, 7.0)), step=1.0)
            else:
                self.end()

    def drain(self) -> None:
        """Let all consumers die; then let everything come that is to come, and acknowledge it."""
        self.out.clear()
        for _ in range(40):
            self.rig.wait(4.0, step=1.0)
            for _ in range(4):
                self.pop()
                self.ack(1.0)
            if set(self.sent) <= self.acked | self.acked_late:
                return


def seeds_of(chunk: int) -> list[int]:
    """Return every eighth seed, or the one that is to be replayed."""
    only = os.environ.get("GANTRYMQ_SEED")
    return list(range(chunk, SEEDS, CHUNKS)) if only is None else [int(only)]


@pytest.mark.parametrize("chunk", range(CHUNKS))
def test_no_seed_loses_a_timer_or_a_popped_message(chunk: int) -> None:
    crashes = messages = 0
    for seed in seeds_of(chunk):
        world = World(seed)
        try:
            world.live(80)
            world.drain()
            missing = set(world.sent) - set(world.seen)
            assert not missing, f"never seen: {sorted(missing)}"
            assert set(world.sent) <= world.acked | world.acked_late
        except BaseException as error:
            error.add_note(f"seed {seed}; replay: {REPLAY.format(seed)}")
            raise
        crashes += world.crashes
        messages += len(world.sent)
    if "GANTRYMQ_SEED" not in os.environ:
        assert crashes >= 5
        assert messages >= 100
