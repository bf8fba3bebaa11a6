"""Five members of a group that join and leave at random while messages are sent: none is lost.

Some 15 seconds here, against our own broker; GANTRYMQ_LONG_FAULTS=1 makes it three minutes against
each of the servers. The number of duplicates is logged, and a property of the test's result.
"""

from __future__ import annotations

import asyncio
import logging
import random
import time
from collections import Counter
from typing import TYPE_CHECKING

import pytest

from gantrymq.client.consuming import strategies
from gantrymq.client.producer import Producer
from gantrymq.client.push_consumer import PushConsumer
from support import apache
from support.consuming import until
from support.fault_world import IS_LONG, run

if TYPE_CHECKING:
    from collections.abc import Callable

    from gantrymq.client.received import ReceivedMessage
    from gantrymq.model.queue import MessageQueue
    from support.targets import Target

logger = logging.getLogger(__name__)

CHURN_S = 180.0 if IS_LONG else 12.0
SETTLE_S_MAX = 60.0
MEMBERS = 5
QUEUES = 8
DUPLICATES_MAX = 0.25
"""Of the messages: a queue that changes hands may repeat what is in hand, and no more than that."""
OURS = "gantrymq"
THEIRS = [
    pytest.param(f"apache-{each}", marks=pytest.mark.tool("java")) for each in apache.VERSIONS
]


class Churn:
    """A group whose members come and go, and what they handled together."""

    def __init__(self, target: Target, seed: int) -> None:
        self._chance = random.Random(seed)
        self._namesrv = target.namesrv
        self._topic = target.create_topic(target.name("churn"), QUEUES)
        self._group = target.name("churn_group")
        self._members: dict[int, PushConsumer] = {}
        self._sends = True
        self.acknowledged: set[bytes] = set()
        self.handled: Counter[bytes] = Counter()
        self.changes: Counter[str] = Counter()

    async def run(self, churn_s: float) -> None:
        """Send, have members come and go for so long, then let it settle."""
        sending = asyncio.create_task(self._send())
        end = time.monotonic() + churn_s
        try:
            while time.monotonic() < end:
                await self._join_or_leave()
                await asyncio.sleep(self._chance.uniform(0.0, 1.0))
            while len(self._members) < 3:
                await self._join(self._absent()[0])
            await until(self._is_settled, SETTLE_S_MAX)
            self._sends = False
            await sending
            await until(lambda: self.acknowledged <= set(self.handled), SETTLE_S_MAX)
            assert self._is_settled()
        finally:
            sending.cancel()
            for member in self._members.values():
                await member.close()

    async def _join_or_leave(self) -> None:
        absent, present = self._absent(), list(self._members)
        if not present or (absent and self._chance.random() < 0.55):
            await self._join(self._chance.choice(absent))
        else:
            await self._members.pop(self._chance.choice(present)).close()
            self.changes["left"] += 1

    def _absent(self) -> list[int]:
        return [slot for slot in range(MEMBERS) if slot not in self._members]

    async def _join(self, slot: int) -> None:
        self.changes["joined"] += 1
        member = PushConsumer(
            self._namesrv,
            self._group,
            start="first",
            instance=f"{slot}-{self.changes['joined']}",
            rebalance_s=2.0,
            strategy=strategies.average,
        )
        member.subscribe(self._topic, "*", self._handle)
        await member.start()
        self._members[slot] = member

    async def _send(self) -> None:
        async with Producer(self._namesrv, "churn_producers") as producer:
            while self._sends:
                body = b"%d" % (len(self.acknowledged) + 1)
                await producer.send(self._topic, body)
                self.acknowledged.add(body)
                await asyncio.sleep(0.002)

    async def _handle(self, message: ReceivedMessage) -> None:
        # Not the seeded numbers: how many handlers run is not repeatable.
        await asyncio.sleep(random.uniform(0.0, 0.005))
        self.handled[message.body] += 1

    def _is_settled(self) -> bool:
        """Tell whether each queue has one owner, and no member more than its share."""
        parts = [self._queues(member) for member in self._members.values()]
        share = -(-QUEUES // len(parts))
        return (
            sum(map(len, parts)) == QUEUES == len(set().union(*parts))
            and max(map(len, parts)) <= share
        )

    def _queues(self, member: PushConsumer) -> set[MessageQueue]:
        return {queue for queue in member.assignment if queue.topic == self._topic}


@pytest.mark.parametrize(
    "target", [OURS, *THEIRS] if IS_LONG else [OURS], indirect=True, scope="session"
)
def test_members_join_and_leave_at_random(
    target: Target, record_property: Callable[[str, object], None]
) -> None:
    churn = Churn(target, seed=6)
    run(churn.run(CHURN_S), CHURN_S + 2 * SETTLE_S_MAX + 20)
    lost = churn.acknowledged - set(churn.handled)
    assert not lost
    assert set(churn.handled) <= churn.acknowledged
    sent = len(churn.acknowledged)
    assert sent > 100 * CHURN_S / 3
    assert min(churn.changes["joined"], churn.changes["left"]) >= CHURN_S / 4
    twice = churn.handled.total() - len(churn.handled)
    record_property("duplicates", twice)
    logger.info("%s: %d messages, %s, %d twice", target.kind, sent, dict(churn.changes), twice)
    assert twice <= DUPLICATES_MAX * sent
