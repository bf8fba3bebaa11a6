"""A pop on its way: what was asked, and what it has so far."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from gantrymq.broker.pop.offsets import QueueKey

if TYPE_CHECKING:
    from asyncio import Future
    from collections.abc import Iterator

    from gantrymq.broker.pop.queue_pop import Share, Taken
    from gantrymq.broker.selections import Selection
    from gantrymq.wire.command import Command
    from gantrymq.wire.headers.pop import PopMessageRequest
    from gantrymq.wire.peer import Answer, Peer


class Pop:
    """A pop that passed the checks, and what it has so far."""

    def __init__(
        self, request: Command, header: PopMessageRequest, peer: Peer, share: Share,
        queues: list[tuple[str, int]], selection: Selection, future: Future[Answer],
    ) -> None:  # fmt: skip
        self.request = request
        self.header = header
        self.peer = peer
        self.share = share
        self.queues: Iterator[tuple[str, int]] = iter(queues)
        self.selection = selection
        self.future = future
        self.taken: list[Taken] = []
        self.rest = 0
        self.left_in: set[int] = set()
        self.blocked_until: int | None = None
        self.is_running = False
        self.is_waiting = False

    @property
    def key(self) -> QueueKey:
        """Return where it waits."""
        header = self.header
        return QueueKey(header.consumer_group, header.topic, max(header.queue_id, -1))

    @property
    def room(self) -> int:
        """Return how many messages it can still take."""
        return self.header.max_msg_nums - sum(len(one.offsets) for one in self.taken)

    def add(self, taken: Taken) -> None:
        """Take in what one queue gave."""
        self.rest += taken.rest
        if taken.rest and taken.topic == self.header.topic:
            self.left_in.add(taken.queue_id)
        if taken.offsets:
            self.taken.append(taken)
        if taken.blocked_until is not None:
            self.blocked_until = min(self.blocked_until or taken.blocked_until, taken.blocked_until)


class Asked(NamedTuple):
    """What is kept of a pop that waits."""

    request: Command
    header: PopMessageRequest
    peer: Peer
    future: Future[Answer]
