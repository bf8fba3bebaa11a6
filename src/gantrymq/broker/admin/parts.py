"""What every family of admin requests stands on: the broker's parts, and a few common answers.

An answer that says "done" is given when the change is in its file: what an operator was told has
happened is still so after a crash. Apache's broker writes the file before it answers, too.
"""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, TypeAlias

from gantrymq.broker.answers import answer
from gantrymq.limits import FRAME_BYTES_MAX
from gantrymq.model.queue import MessageQueue, QueueId
from gantrymq.wire.response_errors import SystemFailure, TopicNotExist

if TYPE_CHECKING:
    from asyncio import Future
    from collections.abc import Awaitable, Callable, Mapping

    from gantrymq.broker.config_saving import ConfigSaver
    from gantrymq.broker.counting import Counting
    from gantrymq.broker.hold import HeldPulls
    from gantrymq.broker.journal.journal import Journal
    from gantrymq.broker.pop.joined import TimersAndPops
    from gantrymq.broker.saved_state import SavedState
    from gantrymq.broker.selections import Selections
    from gantrymq.broker.settings import LiveSettings
    from gantrymq.broker.tables import Tables
    from gantrymq.clock import Clock
    from gantrymq.model.topic import TopicConfig
    from gantrymq.store.message_store import MessageStore
    from gantrymq.wire.command import Command
    from gantrymq.wire.peer import Answer, Pending

    RouteOf: TypeAlias = Callable[[str], Awaitable[list[MessageQueue] | None]]

BODY_BYTES_MAX: Final = FRAME_BYTES_MAX - 65536
"""Of an answer: the rest of the frame is for its header."""
QUEUE_ROWS_MAX: Final = 30_000
"""Queues in one answer, which is some 5 MB of JSON; whoever has more asks for less at a time."""
ROWS_AT_ONCE: Final = 64
"""Queues that are looked at before others have their turn."""


@dataclass(frozen=True, slots=True)
class AdminParts:
    """What admin requests see and change."""

    store: MessageStore
    tables: Tables
    settings: LiveSettings
    counting: Counting
    held: HeldPulls
    selections: Selections
    saver: ConfigSaver
    timed: TimersAndPops
    clock: Clock
    address: str
    """`host:port` that clients are told."""
    is_slave: Callable[[], bool]
    new_future: Callable[[], Future[Answer]]
    route: RouteOf | None = None
    """Asks name servers for the readable queues of a topic on all brokers; None if they do not
    answer. Without it there is this broker alone."""
    journal: Journal | None = None
    """Where changes are kept for other brokers, too."""

    @property
    def broker_name(self) -> str:
        """Return the name that queues are told with."""
        return self.settings.now.name

    def queue(self, topic: str, queue_id: int) -> MessageQueue:
        """Return a queue of this broker."""
        return MessageQueue(topic, self.broker_name, QueueId(queue_id))

    def topic(self, name: str) -> TopicConfig:
        """Return a topic that must exist.

        Raises:
            TopicNotExist: it does not.
        """
        found = self.tables.topics.find(name)
        if found is None:
            raise TopicNotExist(f"topic[{name}] not exist")
        return found

    async def readable_queues(self, name: str) -> list[MessageQueue] | None:
        """Return the queues of a topic that may be read, on all brokers; None without any."""
        found = None if self.route is None else await self.route(name)
        if found is not None:
            return found
        topic = self.tables.topics.find(name)
        if topic is None or not topic.readable:
            return None
        return [self.queue(name, queue_id) for queue_id in range(topic.read_queues)]

    def check_master(self) -> None:
        """Refuse changes on a slave: it would forget them with the next look at its master.

        Raises:
            SystemFailure: this is one.
        """
        if self.is_slave():
            raise SystemFailure(
                "Can't modify topic or subscription group from slave broker, please execute it "
                "from master broker."
            )

    def saved(self, request: Command, *states: SavedState, reply: Command | None = None) -> Pending:
        """Return the promise of an answer for when these tables are in their files.

        Where there is a journal, also for when the change is as safe in the log as a send is.
        """
        future = self.new_future()
        missing = len(states) + 1

        def done(error: Exception | None) -> None:
            nonlocal missing
            missing -= 1
            if future.done():
                return
            if error is not None:
                future.set_exception(
                    SystemFailure(f"it is done, but could not be saved and is tried again: {error}")
                )
            elif missing == 0:
                future.set_result(reply or answer(request))

        for state in states:
            self.saver.save(state, done)
        end = None if self.journal is None else self.journal.flush()
        if end is None:
            done(None)
        else:
            self.store.hold(end, lambda _status: done(None))
        return future


def body_answer(
    request: Command, body: bytes, fields: Mapping[str, str] | None = None, *, hint: str = ""
) -> Command:
    """Return an answer with a body, if a frame can hold it.

    Raises:
        SystemFailure: it cannot; `hint` says what to ask for instead.
    """
    if len(body) > BODY_BYTES_MAX:
        raise SystemFailure(
            f"the answer has {len(body)} bytes and a frame holds {BODY_BYTES_MAX}{hint}"
        )
    return answer(request, fields=fields, body=body)


class Rows:
    """Counts the queues of an answer: lets others have their turn, and ends what is too long."""

    def __init__(self, hint: str) -> None:
        self._hint = hint
        self._count = 0

    async def next(self) -> None:
        """Count one more.

        Raises:
            SystemFailure: there are too many.
        """
        self._count += 1
        if self._count > QUEUE_ROWS_MAX:
            raise SystemFailure(
                f"the answer would have more than {QUEUE_ROWS_MAX} queues; {self._hint}"
            )
        if self._count % ROWS_AT_ONCE == 0:
            await asyncio.sleep(0)
