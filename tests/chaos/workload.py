"""Clients under whom servers fail: producers of four kinds, consumers of two, and who looks on.

    Plain    any queue, read by a group of two members
    Ordered  one key, one queue; a sender goes on when it knows what became of the last one
    Paid     transactions: committed, taken back, or decided when the broker asks
    Later    by delay level, or at a date

Everything is noted in a `History` and nothing is judged here.
"""

from __future__ import annotations

import asyncio
import time
from contextlib import AsyncExitStack, suppress
from functools import partial
from typing import TYPE_CHECKING, Final, TypeVar

from chaos.history import Attempt, Commit, Decision, Delivery, Found, History, Outcome, Place
from gantrymq.client.producer import Producer
from gantrymq.client.pull_consumer import PullConsumer
from gantrymq.client.push_consumer import PushConsumer
from gantrymq.client.results import TransactionState
from gantrymq.client.settings import ClientSettings
from gantrymq.errors import GantryError

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Coroutine
    from random import Random

    from gantrymq.client.received import ReceivedMessage
    from gantrymq.client.results import SendResult
    from gantrymq.model.message import Message
    from gantrymq.model.queue import MessageQueue

Answer = TypeVar("Answer")

READERS: Final = "readers"
IN_ORDER: Final = "in-order"
TOPICS: Final = {"Plain": READERS, "Ordered": IN_ORDER, "Paid": READERS, "Later": READERS}
DELAYS_S: Final = (1.0, 2.0, 4.0)
"""Of the delay levels that brokers have here."""
SEND_S_MAX: Final = 3.0
PAUSE_S: Final = 0.05
"""After a send that failed."""
READY_S_MAX: Final = 40.0
LOOK_S: Final = 0.5
PATIENCE_S: Final = 0.2
PULLED: Final = 32


class Workload:
    """All clients of a run."""

    def __init__(self, names: str, dice: Random) -> None:
        self.history = History(orderly=frozenset({IN_ORDER}), readers=dict(TOPICS))
        self._names = names
        self._dice = dice
        self._stack = AsyncExitStack()
        self._tasks: list[asyncio.Task[None]] = []
        self._members: dict[int, PushConsumer] = {}
        self._is_sending = True
        self._running: set[str] = set()
        """Transactions whose send has not ended."""

    async def start(self) -> None:
        """Have everything work once before anything is broken."""
        settings = ClientSettings(
            name_servers=tuple(self._names.split(";")), route_s=1.0, heartbeat_s=1.0
        )
        self._producer = Producer(
            self._names, group="senders", timeout_s=SEND_S_MAX, settings=settings, check=self._check
        )
        await patiently(self._producer.start)
        self._stack.push_async_callback(self._producer.close)
        async with asyncio.timeout(READY_S_MAX):
            for topic in TOPICS:
                await self._warm_up(topic)
        for number in range(4):
            await self.join(number)
        loops: list[Callable[[int], Coroutine[None, None, None]]] = []
        loops += [self._send_plain] * 4 + [self._send_in_order] * 6
        loops += [self._send_paid] * 3 + [self._send_later] * 3
        self._tasks = [asyncio.create_task(loop(number)) for number, loop in enumerate(loops)]
        self._tasks += [asyncio.create_task(self._look_at(group)) for group in (READERS, IN_ORDER)]

    async def _warm_up(self, topic: str) -> None:
        number = 0
        while True:
            attempt = self.history.begin(Attempt(f"first-{topic}-{number}", topic, now()))
            await self._sent(attempt, self._producer.send(topic, attempt.ident.encode()))
            if attempt.outcome is Outcome.ACKNOWLEDGED:
                return
            number += 1
            await asyncio.sleep(0.1)

    # -- senders ----------------------------------------------------------------------------------

    def _body(self, ident: str) -> bytes:
        size = self._dice.choice((0, 50, 300, 300, 1000, 1000, 3000))
        return f"{ident}:".encode().ljust(size, b".")

    async def _sent(
        self, attempt: Attempt, sending: Awaitable[SendResult], *, has_place: bool = True
    ) -> None:
        """Note what a send comes to."""
        try:
            result = await sending
        except GantryError:
            self.history.end(attempt, Outcome.FAILED, now())
            await asyncio.sleep(PAUSE_S)
            return
        if has_place:
            attempt.place, attempt.offset = place_of(result.queue), result.offset
        self.history.end(attempt, Outcome.ACKNOWLEDGED if result.is_ok else Outcome.STORED, now())

    async def _send_plain(self, sender: int) -> None:
        number = 0
        while self._is_sending:
            number += 1
            attempt = self.history.begin(Attempt(f"plain-{sender}-{number}", "Plain", now()))
            await self._sent(attempt, self._producer.send("Plain", self._body(attempt.ident)))
            await asyncio.sleep(self._dice.uniform(0, 0.03))

    async def _send_in_order(self, sender: int) -> None:
        number = 0
        while self._is_sending:
            number += 1
            attempt = self.history.begin(Attempt(f"order-{sender}-{number}", "Ordered", now()))
            body = self._body(attempt.ident)
            await self._sent(attempt, self._producer.send("Ordered", body, key=f"key-{sender}"))
            await asyncio.sleep(self._dice.uniform(0, 0.06))

    async def _send_later(self, sender: int) -> None:
        number = 0
        while self._is_sending:
            number += 1
            level = self._dice.randint(1, len(DELAYS_S))
            delay_s, by_date = DELAYS_S[level - 1], self._dice.random() < 0.5
            attempt = Attempt(f"later-{sender}-{number}", "Later", now(), delay_s, by_date)
            self.history.begin(attempt)
            body = self._body(attempt.ident)
            if by_date:
                due_ms = int((time.time() + delay_s) * 1000) + 1
                sending = self._producer.send("Later", body, deliver_at=due_ms)
            else:
                sending = self._producer.send("Later", body, delay_level=level)
            await self._sent(attempt, sending, has_place=False)
            await asyncio.sleep(self._dice.uniform(0, 0.1))

    async def _send_paid(self, sender: int) -> None:
        number = 0
        while self._is_sending:
            number += 1
            ident = f"paid-{sender}-{number}"
            attempt = self.history.begin(Attempt(ident, "Paid", now(), in_transaction=True))
            self._running.add(ident)
            try:
                await self._sent(attempt, self._transaction(attempt), has_place=False)
            finally:
                self._running.discard(ident)
            await asyncio.sleep(self._dice.uniform(0, 0.1))

    async def _transaction(self, attempt: Attempt) -> SendResult:
        answer = self._dice.choice(["commit", "commit", "rollback", "ask"])

        async def execute(_message: Message) -> TransactionState:
            await asyncio.sleep(0)
            committed = answer == "commit" or (answer == "ask" and self._dice.random() < 0.5)
            attempt.decision = Decision.COMMIT if committed else Decision.ROLLBACK
            return TransactionState.UNKNOWN if answer == "ask" else state_of(attempt.decision)

        body = self._body(attempt.ident)
        done = await self._producer.send_in_transaction("Paid", execute, body)
        return done.send

    async def _check(self, message: ReceivedMessage) -> TransactionState:
        """Say how a transaction ended; one that never came to its own part is taken back."""
        await asyncio.sleep(0)
        ident = ident_of(message)
        attempt = self.history.attempts.get(ident)
        if attempt is None:
            return TransactionState.ROLLBACK
        if attempt.decision is None and ident in self._running:
            return TransactionState.UNKNOWN
        attempt.decision = attempt.decision or Decision.ROLLBACK
        return state_of(attempt.decision)

    # -- consumers --------------------------------------------------------------------------------

    async def join(self, number: int) -> None:
        """Let a consumer begin: 0 and 1 in any order, 2 and 3 in order."""
        group = READERS if number < 2 else IN_ORDER
        consumer = PushConsumer(
            self._names, group=group, orderly=group == IN_ORDER, start="first", pull_batch=16,
            route_s=1.0, heartbeat_s=1.0, rebalance_s=1.0, persist_s=0.5, close_timeout_s=3.0,
        )  # fmt: skip

        async def handle(message: ReceivedMessage) -> None:
            await asyncio.sleep(0)
            delivery = Delivery(
                ident_of(message), group, place_of(message.queue), message.offset, now()
            )
            self.history.deliveries.append(delivery)

        for topic, reader in TOPICS.items():
            if reader == group:
                consumer.subscribe(topic, handler=handle)
        try:
            await consumer.start()
        except GantryError:
            await consumer.close()
            return
        self._members[number] = consumer

    async def leave(self, number: int) -> None:
        """Let a consumer end."""
        consumer = self._members.pop(number, None)
        if consumer is not None:
            await consumer.close()

    async def join_all(self) -> None:
        """Have every member there."""
        for number in range(4):
            if number not in self._members:
                await self.join(number)

    async def _look_at(self, group: str) -> None:
        """Ask again and again how far a group is."""
        async with PullConsumer(self._names, group=group) as watcher:
            while True:
                for topic in (topic for topic, reader in TOPICS.items() if reader == group):
                    with suppress(GantryError):
                        for queue in await watcher.queues(topic):
                            offset = await watcher.committed(queue)
                            if offset:
                                commit = Commit(group, place_of(queue), offset, now())
                                self.history.commits.append(commit)
                await asyncio.sleep(LOOK_S)

    # -- the end ----------------------------------------------------------------------------------

    async def stop_sending(self) -> None:
        """Let every send that is under way come to its end."""
        self._is_sending = False
        senders = self._tasks[:-2]
        _done, pending = await asyncio.wait(senders, timeout=4 * SEND_S_MAX)
        if pending:
            raise RuntimeError(f"{len(pending)} senders do not end: {pending}")

    async def read_all(self) -> None:
        """Read every queue from its beginning."""
        async with PullConsumer(self._names, group="the-end") as reader:
            for topic in TOPICS:
                for queue in await patiently(partial(reader.queues, topic)):
                    await self._read(reader, queue)

    async def _read(self, reader: PullConsumer, queue: MessageQueue) -> None:
        offset = await patiently(lambda: reader.min_offset(queue))
        end = await patiently(lambda: reader.max_offset(queue))
        while offset < end:
            result = await patiently(partial(reader.pull, queue, offset, count=PULLED))
            for message in result.messages:
                found = Found(ident_of(message), place_of(message.queue), message.offset)
                self.history.found.append(found)
            offset = result.next_offset

    async def close(self) -> None:
        """End all clients."""
        self._is_sending = False
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        for number in list(self._members):
            await self.leave(number)
        await self._stack.aclose()


async def patiently(step: Callable[[], Awaitable[Answer]]) -> Answer:
    """Do something again until it works: servers come back, and name servers hear of it."""
    deadline = now() + READY_S_MAX
    while True:
        try:
            return await step()
        except GantryError:
            if now() > deadline:
                raise
            await asyncio.sleep(PATIENCE_S)


def now() -> float:
    """Return the time that histories are kept in."""
    return time.monotonic()


def place_of(queue: MessageQueue) -> Place:
    """Return a queue's place."""
    return Place(queue.topic, queue.broker_name, queue.queue_id)


def ident_of(message: ReceivedMessage) -> str:
    """Return which message this is."""
    return message.body.partition(b":")[0].decode()


def state_of(decision: Decision) -> TransactionState:
    """Return what a broker is told."""
    return TransactionState.COMMIT if decision is Decision.COMMIT else TransactionState.ROLLBACK
